"""Claims of papers beside the measurements of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from archlang.plan.plan import Plan, PublishedResult
from archlang.record.schemas import ClaimResult
from archlang.train.score import Score
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class Comparison:
    """A claim with the measurement that it is about."""

    claim: PublishedResult
    measured: float | None
    """None if the claim is about another point, or the run does not measure it"""

    @property
    def metric(self) -> str:
        """The metric as the recipe writes it."""
        index = "" if self.claim.index is None else f"[{self.claim.index}]"
        return f"{self.claim.metric}{index}"

    @property
    def conditions(self) -> Mapping[str, str]:
        """What follows `at` in the claim."""
        return {name: str(value) for name, value in self.claim.at.items()}

    def result(self) -> ClaimResult:
        """Returns the comparison as `results.json` has it."""
        return ClaimResult(
            metric=self.metric, value=self.claim.value, deviation=self.claim.deviation, at=dict(self.conditions),
            origin=self.claim.origin, measured=self.measured, median=self.claim.median,
        )  # fmt: skip


def compare(plan: Plan, scores: Iterable[Score], breakdown: str) -> tuple[Comparison, ...]:
    """Returns each claim of a plan with its measurement.

    A path after `at` that is a setting (`task.order`) names the point that the claim is about. Any other path
    (`test.ignore`) names a group of the split.

    Args:
        breakdown: The group that the index of a claim is about."""
    by_split = {score.split: score for score in scores}
    return tuple(Comparison(claim, _measured(plan, claim, by_split, breakdown)) for claim in plan.claims)


def _measured(plan: Plan, claim: PublishedResult, scores: Mapping[str, Score], breakdown: str) -> float | None:
    groups = {}
    for path, value in claim.at.items():
        if path not in plan.settings:
            groups[path.partition(".")[2]] = group_value(value)
        elif plan.settings[path] != value:
            return None
    if claim.index is not None:
        groups[breakdown] = claim.index
    split, _, metric = claim.metric.partition(".")
    score = scores.get(split)
    if score is None:
        return None
    return score.loss if metric == "loss" and not groups else score.within_groups(metric, groups)


def group_value(value: StaticValue) -> int:
    """Returns the number of a group: an int itself, a share in per cent; -1, which no group has, for other statics."""
    if isinstance(value, float):
        return round(value * 100)
    return value if isinstance(value, int) else -1
