"""The step whose weights a run reports, and the step that the lowest loss would have selected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archlang.tasks.kit.metrics import rank

Line = Mapping[str, Any]  # Any: JSON


def ranking(history: Iterable[Line], split: str, metric: str) -> list[int]:
    """Returns the steps at which a split was evaluated, from the best to the worst; of equal steps the latest first."""
    lines = [line for line in history if line.get("split") == split and line[metric] == line[metric]]  # not NaN
    lines.sort(key=lambda line: (rank(metric, line[metric]), line["step"]), reverse=True)
    return [line["step"] for line in lines]


@dataclass(frozen=True)
class Alternative:
    """The step with the lowest loss of a split, and the metric of that split there and at its best step. Loss and
    accuracy often differ about which weights generalize ("The Devil is in the Detail", section 4)."""

    split: str
    metric: str
    step: int
    value: float
    best_step: int
    best: float

    def described(self) -> dict[str, Any]:  # Any: JSON
        """Returns the alternative as JSON."""
        return {
            "split": self.split, "metric": self.metric, "lowest_loss_step": self.step, "there": self.value,
            "best_step": self.best_step, "best": self.best,
        }  # fmt: skip

    @classmethod
    def read(cls, line: Line) -> Alternative:
        """Reads the result of `described`."""
        step, value = line["lowest_loss_step"], line["there"]
        return cls(line["split"], line["metric"], step, value, line["best_step"], line["best"])

    @property
    def is_worse(self) -> bool:
        """Whether the weights with the lowest loss have a worse metric."""
        return rank(self.metric, self.value) < rank(self.metric, self.best)


def alternatives(history: Sequence[Line], metric: str) -> tuple[Alternative, ...]:
    """Returns, for each split that was evaluated during training, the step with the lowest loss."""
    steps = []
    for split in dict.fromkeys(line["split"] for line in history):
        by_loss, by_metric = ranking(history, split, "loss"), ranking(history, split, metric)
        if by_loss and by_metric:
            values = {line["step"]: line[metric] for line in history if line["split"] == split}
            early, best = by_loss[0], by_metric[0]
            steps.append(Alternative(split, metric, early, values[early], best, values[best]))
    return tuple(steps)
