"""What the training loop asks of a step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class StepResult:
    """For each run its loss and the norm of its gradient, None if gradients are not clipped by norm; and the learning
    rate."""

    losses: Sequence[Float[Tensor, ""]]
    norms: Sequence[Float[Tensor, ""] | None]
    rate: float


@dataclass(frozen=True, eq=False)
class StepState:
    """The states of a run's optimizer and of the generators, for its checkpoint."""

    optimizer: dict[str, Any]  # Any: torch's own state
    random: dict[str, Any]  # Any: as random_state


class Step(Protocol):
    """Computes the gradients of one or several runs, and moves their weights."""

    def take(self, number: int, items: Sequence[np.ndarray]) -> StepResult:
        """Takes step `number`, from 0, with the items of each run's batch.

        Raises:
            CannotStack: the runs cannot be computed together."""

    def state(self, index: int) -> StepState:
        """Returns the state of the run `index`."""


class CannotStack(Exception):
    """Why runs cannot be computed together. `weights_are_intact` unless the optimizer failed in the middle of a
    step."""

    def __init__(self, reason: str, weights_are_intact: bool = True) -> None:
        super().__init__(reason)
        self.weights_are_intact = weights_are_intact
