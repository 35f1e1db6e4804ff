"""The states of a loop that training continues in its next step, one step of the loop at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor


@dataclass(eq=False)
class CarriedStates:
    """What a loop takes over from the training step before: the `states` of the rows in `continued`. The loop takes one
    step, and leaves its new states, without gradients."""

    continued: Bool[Tensor, " b"]
    states: Sequence[Tensor]

    def resume(self, initial: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Returns the states with which the loop begins: those of new rows are `initial`.

        A batch may be wider or narrower than the one before, as rows of other lengths come and go. The positions of a
        continued row are in both."""
        if not self.states:
            return tuple(initial)
        return tuple(self._merged(begin, state) for begin, state in zip(initial, self.states, strict=True))

    def _merged(self, initial: Tensor, state: Tensor) -> Tensor:
        common = tuple(slice(min(sizes)) for sizes in zip(initial.shape[1:], state.shape[1:], strict=True))
        aligned = torch.zeros_like(initial)
        aligned[:, *common] = state[:, *common].to(initial)
        rows = self.continued.to(initial.device).view(-1, *[1] * (initial.dim() - 1))
        return torch.where(rows, aligned, initial)

    def keep(self, states: Sequence[Tensor]) -> None:
        """Stores the states after the step."""
        self.states = tuple(state.detach() for state in states)
