"""How a run is trained: the statics of its optimizer, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from archlang.record.mistakes import RunError
from archlang.types.statics import StaticValue, Symbol

# An evaluation is seldom worth less than this share of a run, and a curve is seldom worth more points.
_LOOKS, _POINTS = 10, 100
# A long run shows its loss as often as a short one.
_LONGEST_SILENCE = 100


class Settings(BaseModel):
    """The statics of `train` with their meaning; the same for every optimizer, but for what only one has."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    lr: float = Field(gt=0)
    weight_decay: float = Field(default=0.0, ge=0)
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.999, ge=0, lt=1)
    alpha: float = Field(default=0.99, ge=0, lt=1)
    momentum: float = Field(default=0.0, ge=0)
    epsilon: float = Field(default=1e-8, gt=0)
    clip: float = Field(default=0.0, ge=0)
    clip_value: float = Field(default=0.0, ge=0)
    batch: int = Field(gt=0)
    batch_of: Literal["samples", "tokens"] = "samples"
    micro: int = Field(default=0, ge=0)
    steps: int = Field(ge=0)
    epochs: int = Field(ge=0)
    schedule: Literal["constant", "warmup", "root", "cosine", "onecycle"] = "constant"
    warmup: int = Field(default=0, ge=0)
    ponder: float = Field(default=0.0, ge=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    select: str = Field(default="valid.accuracy", pattern=r"^\w+\.\w+$")
    every: int = Field(default=0, ge=0)

    @staticmethod
    def of(statics: Mapping[str, StaticValue]) -> Settings:
        """The settings that a recipe gives.

        Raises:
            RunError: one of them means nothing."""
        plain = {name: str(value) if isinstance(value, Symbol) else value for name, value in statics.items()}
        try:
            return Settings.model_validate(plain)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(["train", *map(str, first["loc"])])
            raise RunError(f"`{name} = {first['input']}` cannot be: {first['msg']}", "mend the recipe") from None

    def total_steps(self, batches: int) -> int:
        """The steps of a run whose epochs have so many batches."""
        return self.steps or self.epochs * batches

    def evaluated_every(self, total: int) -> int:
        """The steps between two looks at the selecting metric."""
        return self.every or max(total // _LOOKS, 1)

    def logged_every(self, total: int) -> int:
        """The steps between two points of the curves."""
        return min(max(total // _POINTS, 1), _LONGEST_SILENCE)

    @property
    def selecting(self) -> tuple[str, str]:
        """The split and the metric that choose the weights."""
        split, _, metric = self.select.partition(".")
        return split, metric
