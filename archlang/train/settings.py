"""The training settings of a run, read from the checked statics of its optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from archlang.graph.operations import CHARGES
from archlang.plan.rules import EVALUATIONS
from archlang.types.statics import StaticValue, Symbol

_POINTS = 100  # about this many points has a curve
# Long runs log at least every so many steps.
_MOST_STEPS_BETWEEN_LOGS = 100


@dataclass(frozen=True)
class Settings:
    """A typed view of `extern settings training` in `optimizers.arch`, and of `lr`, which every optimizer declares.
    Defaults, ranges and meanings are declared there."""

    lr: float
    clip: float
    clip_value: float
    batch: int
    batch_of: str
    sampling: str
    drop_last: bool
    micro: int
    steps: int
    epochs: int
    schedule: str
    warmup: int
    cooldown: float
    ponder: float
    label_smoothing: float
    other_class_weight: float
    supervise: str
    halt: str
    explore: float
    select: str
    every: int
    patience: int
    ema: float
    sign_sgd: tuple[str, ...]
    sign_lr: float
    sign_decay: float
    rate: str
    loss: str
    metrics: tuple[str, ...]
    charges: Mapping[str, float]
    """the weights of charges that the recipe sets"""

    @staticmethod
    def of(statics: Mapping[str, StaticValue]) -> Settings:
        """The settings among the statics of an optimizer, which have passed its signature."""
        values = {name: statics[name] for name in SETTING_NAMES}
        charges = {
            name.removeprefix(CHARGES): float(value)
            for name, value in statics.items()
            if name.startswith(CHARGES) and isinstance(value, int | float)
        }
        return Settings(**{name: plain_value(value) for name, value in values.items()}, charges=charges)  # type: ignore[arg-type]  # the signature has the same types, as a test shows

    def total_steps(self, batches: int) -> int:
        """The steps of a run with `batches` batches an epoch."""
        return self.steps or self.epochs * batches

    def evaluated_every(self, total: int, batches: int) -> int:
        """The number of steps from one evaluation of the selecting metric to the next, in a run of `total` steps with
        `batches` batches an epoch."""
        by_epoch = self.patience > 0 and not self.steps
        return self.every or (batches if by_epoch else max(total // EVALUATIONS, 1))

    def logged_every(self, total: int) -> int:
        """The number of steps from one point of the curves to the next."""
        return min(max(total // _POINTS, 1), _MOST_STEPS_BETWEEN_LOGS)

    @property
    def selecting(self) -> tuple[str, str]:
        """The split and the metric that choose the weights."""
        split, _, metric = self.select.partition(".")
        return split, metric


def plain_value(value: StaticValue) -> object:
    """Returns a static as a Python value: a word as a string."""
    if isinstance(value, tuple):
        return tuple(map(plain_value, value))
    return str(value) if isinstance(value, Symbol) else value


def is_setting(name: str) -> bool:
    """Whether a static of an optimizer is a training setting; `lr` is of both."""
    return name in SETTING_NAMES or name.startswith(CHARGES)


SETTING_NAMES = tuple(field.name for field in fields(Settings) if field.name != "charges")
