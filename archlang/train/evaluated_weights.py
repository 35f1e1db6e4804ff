"""The weights that a run evaluates and saves, where they differ from those that it trains."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

from archlang.train.record.divided import divided_like


class EvaluatedWeights:
    """An exponential moving average of the weights, the average that a schedule-free optimizer keeps, or the trained
    weights themselves.

    The module always holds the trained weights, except inside `placed`."""

    def __init__(self, module: nn.Module, optimizer: Optimizer, decay: float) -> None:
        """
        Args:
            decay: The decay of the moving average; 0 for none."""
        self._weights = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
        self._optimizer = optimizer
        # A schedule-free optimizer has a method for each of its two points.
        self._moves_to_average = hasattr(optimizer, "eval")
        self._update = get_ema_multi_avg_fn(decay) if decay else None  # type: ignore[no-untyped-call]  # torch's own
        self._averages: list[Tensor] = []

    @torch.no_grad()
    def update(self) -> None:
        """Adds the weights after a step to the average."""
        if self._update is None:
            return
        if not self._averages:
            self._averages = self._copies()
        else:
            self._update(self._averages, list(self._weights.values()), len(self._averages))

    @contextmanager
    def placed(self) -> Iterator[dict[str, Tensor] | None]:
        """Inside, the module has the evaluated weights; yields the trained ones by name, or None if they are the same.
        Afterwards the module has the trained weights again, bit for bit."""
        if not self._moves_to_average and self._update is None:
            yield None
            return
        trained = self._copies()
        if self._moves_to_average:
            self._optimizer.eval()  # type: ignore[attr-defined]  # of schedule-free optimizers
        elif self._averages:
            self._assign(self._averages)
        try:
            yield dict(zip(self._weights, trained, strict=True))
        finally:
            if self._moves_to_average:
                self._optimizer.train()  # type: ignore[attr-defined]
            # Restoring them by arithmetic would add rounding.
            self._assign(trained)

    def restore(self, trained: object, step: int) -> None:
        """Restores both from the checkpoint of a step: the module holds the evaluated weights, and `trained` are the
        trained ones.

        Raises:
            ValueError: `trained` does not fit the module."""
        if not self._moves_to_average and self._update is None:
            return
        if not isinstance(trained, Mapping) or set(trained) != set(self._weights):
            raise ValueError("it does not hold the trained weights of this model")
        for name, weight in self._weights.items():
            value = trained[name]
            if not isinstance(value, Tensor) or (value.shape, value.dtype) != (weight.shape, weight.dtype):
                raise ValueError(f"the trained weight {name} does not fit this model")
        if self._update is not None and step:
            self._averages = self._copies()
        self._assign([divided_like(trained[name], weight) for name, weight in self._weights.items()])

    def _copies(self) -> list[Tensor]:
        return [weight.detach().clone() for weight in self._weights.values()]

    @torch.no_grad()
    def _assign(self, values: list[Tensor]) -> None:
        """Copies values into the weights where they are: CUDA graphs and stacked models refer to their memory."""
        for weight, value in zip(self._weights.values(), values, strict=True):
            weight.copy_(value)
