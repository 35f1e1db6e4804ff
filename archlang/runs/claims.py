"""Claims of papers beside the measurements of a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from archlang.plan.measures import group_value
from archlang.plan.plan import Plan, PublishedResult
from archlang.record.schemas import ClaimResult
from archlang.train.score import Score


@dataclass(frozen=True)
class Comparison:
    """A claim with the measurement that it is about."""

    claim: PublishedResult
    measured: float | None
    """None if the claim is about another point, or the run does not measure it"""
    has_no_group: bool = False
    """whether the run measures the metric, but its split has no items of the claimed group"""

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
            has_no_group=self.has_no_group,
        )  # fmt: skip


def compare(plan: Plan, scores: Iterable[Score], breakdown: str) -> tuple[Comparison, ...]:
    """Returns each claim of a plan with its measurement.

    A path after `at` that is a setting (`task.order`) names the point that the claim is about. Any other path
    (`test.ignore`) names a group of the split.

    Args:
        breakdown: The group that the index of a claim is about."""
    by_split = {score.split: score for score in scores}
    return tuple(_compared(plan, claim, by_split, breakdown) for claim in plan.claims)


def _compared(plan: Plan, claim: PublishedResult, scores: Mapping[str, Score], breakdown: str) -> Comparison:
    groups = {}
    for path, value in claim.at.items():
        if path not in plan.settings:
            groups[path.partition(".")[2]] = group_value(value)
        elif plan.settings[path] != value:
            return Comparison(claim, None)
    if claim.index is not None:
        groups[breakdown] = claim.index
    split, _, metric = claim.metric.partition(".")
    score = scores.get(split)
    if score is None:
        return Comparison(claim, None)
    measured = score.loss if metric == "loss" and not groups else score.within_groups(metric, groups)
    return Comparison(claim, measured, measured is None and metric in score.metrics)
