"""Which step's weights a run reports, and what another way to choose would have cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archlang.tasks.kit.metrics import rank

Line = Mapping[str, Any]  # Any: JSON


def ranking(history: Iterable[Line], split: str, metric: str) -> list[int]:
    """The steps at which a split was measured, the best first, and the latest first of equal ones."""
    lines = [line for line in history if line.get("split") == split and line[metric] == line[metric]]  # not NaN
    lines.sort(key=lambda line: (rank(metric, line[metric]), line["step"]), reverse=True)
    return [line["step"] for line in lines]


@dataclass(frozen=True)
class Alternative:
    """The step that the lowest loss of a split would have chosen, and the selecting metric there and at its best, both
    on that split. Loss and accuracy often part on what generalizes ("The Devil is in the Detail", section 4)."""

    split: str
    metric: str
    step: int
    value: float
    best_step: int
    best: float

    def described(self) -> dict[str, Any]:  # Any: JSON
        return {
            "split": self.split, "metric": self.metric, "lowest_loss_step": self.step, "there": self.value,
            "best_step": self.best_step, "best": self.best,
        }  # fmt: skip

    @classmethod
    def read(cls, line: Line) -> Alternative:
        """From what `described` gave."""
        step, there = line["lowest_loss_step"], line["there"]
        return cls(line["split"], line["metric"], step, there, line["best_step"], line["best"])

    @property
    def costs(self) -> bool:
        """Whether the lowest loss would have chosen something worse."""
        return rank(self.metric, self.value) < rank(self.metric, self.best)


def alternatives(history: Sequence[Line], metric: str) -> tuple[Alternative, ...]:
    """What stopping at the lowest loss would have meant, for each split that was looked at in training."""
    found = []
    for split in dict.fromkeys(line["split"] for line in history):
        by_loss, by_metric = ranking(history, split, "loss"), ranking(history, split, metric)
        if by_loss and by_metric:
            values = {line["step"]: line[metric] for line in history if line["split"] == split}
            early, best = by_loss[0], by_metric[0]
            found.append(Alternative(split, metric, early, values[early], best, values[best]))
    return tuple(found)
