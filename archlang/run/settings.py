"""How a run is trained: the statics of its optimizer, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from archlang.types.statics import StaticValue, Symbol


class Settings(BaseModel):
    """The statics of `train` with their meaning; the same for every optimizer, but for what only one has."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    lr: float = Field(gt=0)
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    alpha: float = 0.99
    momentum: float = 0.0
    epsilon: float = 1e-8
    clip: float = 0.0
    clip_value: float = 0.0
    batch: int = Field(gt=0)
    steps: int = Field(ge=0)
    epochs: int = Field(ge=0)
    schedule: Literal["constant", "warmup", "root", "cosine", "onecycle"] = "constant"
    warmup: int = 0
    ponder: float = 0.0
    select: str = "valid.accuracy"
    every: int = 0

    @staticmethod
    def of(statics: Mapping[str, StaticValue]) -> Settings:
        plain = {name: str(value) if isinstance(value, Symbol) else value for name, value in statics.items()}
        return Settings.model_validate(plain)

    def total_steps(self, samples: int) -> int:
        """The steps of a run over a training split of so many samples."""
        return self.steps or self.epochs * max(samples // self.batch, 1)

    def interval(self, total: int) -> int:
        """The steps between two looks at the selecting metric."""
        return self.every or max(total // 10, 1)

    @property
    def selecting(self) -> tuple[str, str]:
        """The split and the metric that choose the weights."""
        split, _, metric = self.select.partition(".")
        return split, metric
