"""One optimizer that is composed of several, each with its own weights."""

from collections.abc import Callable, Sequence
from typing import Any

from torch.optim import Optimizer


class OptimizerParts(Optimizer):
    """Optimizers with a group of weights each, as one optimizer."""

    parts: tuple[Optimizer, ...]
    """the optimizers of `param_groups`, in order"""

    def __init__(self, parts: Sequence[Optimizer]) -> None:
        """`parts` may have parts of their own."""
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, OptimizerParts) else (part,))]
        super().__init__([group for part in flat for group in part.param_groups], {})
        self.parts = tuple(flat)

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # without a closure
        assert closure is None
        for part, group in zip(self.parts, self.param_groups, strict=True):
            # `load_state_dict` replaces the groups and the state.
            part.param_groups, part.state = [group], self.state
            part.step()
