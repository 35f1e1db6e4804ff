"""Deep supervision: each training step takes one step of a loop, with the examples and the states of the one before.

Each row of a batch keeps its example until the loop has taken all of its steps for it, or until it halts; then the row
takes the example that the sampler offers. Wang et al., "Hierarchical reasoning model", 2025, and its program."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.carried_steps import CarriedStates
from archlang.backend.runtime.loops import RepeatLoop
from archlang.graph.graph import loop_of_results
from archlang.train.settings import Settings


class DeepSupervision:
    """The examples that the rows of a batch work on, as items of the training split, and how many steps of the loop
    each has taken."""

    def __init__(self, module: Architecture, settings: Settings, seed: int, size: int) -> None:
        """`size` is the number of items of the split."""
        self._module = module
        self._settings = settings
        self._seed = seed
        self._size = size
        self._items = np.zeros(0, dtype=np.int64)
        self._steps = np.zeros(0, dtype=np.int64)
        self._states: tuple[Tensor, ...] = ()
        self._has_ended = np.zeros(0, dtype=np.bool_)

    @contextmanager
    def step(self, number: int, offered: np.ndarray) -> Iterator[np.ndarray]:
        """Takes the training step `number`, from 0: yields the items of the rows, for which the module is to be called
        once. Rows whose example has ended take the `offered` item of their place; the others ignore it."""
        if not len(self._items):
            self._items, self._steps = offered.copy(), np.zeros(len(offered), dtype=np.int64)
            self._has_ended = np.ones(len(offered), dtype=np.bool_)
        items = np.where(self._has_ended, offered, self._items)
        loop = self._loop()
        device = self._states[0].device if self._states else torch.device("cpu")
        loop.carried = CarriedStates(torch.from_numpy(~self._has_ended).to(device), self._states)
        try:
            yield items
            states = loop.carried.states
        finally:
            loop.carried = None
        steps = np.where(self._has_ended, 0, self._steps) + 1
        self._items, self._steps, self._states = items, steps, tuple(states)
        self._has_ended = steps >= loop.count
        if self._settings.halt != "none":
            halts = (self._module.sample_losses[self._settings.halt] > 0).cpu().numpy()
            self._has_ended |= halts & (steps >= self._fewest_steps(number, loop.count))

    def _loop(self) -> RepeatLoop:
        loop = self._module.loop_of_results()
        assert isinstance(loop, RepeatLoop), "the plan of a run has checked it"
        return loop

    def _fewest_steps(self, number: int, count: int) -> np.ndarray:
        """Draws the number of steps before which each row does not halt: with the probability `explore` a number from
        2 to `count`, else 0. It depends on the seed and the training step alone."""
        random = np.random.default_rng([self._seed, number, 1])
        explores = random.random(len(self._items)) < self._settings.explore
        fewest: np.ndarray = random.integers(min(2, count), count + 1, len(self._items)) * explores
        return fewest

    def state(self) -> dict[str, Any]:  # Any: tensors and lists
        """Returns everything that the next step depends on, for a checkpoint."""
        return {
            "items": self._items.tolist(),
            "steps": self._steps.tolist(),
            "ended": self._has_ended.tolist(),
            "states": [state.cpu().clone() for state in self._states],
        }

    def restore(self, state: Any, device: torch.device) -> None:  # Any: what a file holds
        """Restores what `state` returned.

        Raises:
            ValueError: it is not a state of this run."""
        try:
            items, steps = (np.array(state[name], dtype=np.int64) for name in ("items", "steps"))
            ended, states = np.array(state["ended"], dtype=np.bool_), tuple(state["states"])
            node = loop_of_results(self._module.program.graph)
            assert node is not None
            kinds = node.types[: self._loop().states] if len(items) else ()
            is_fit = items.shape == steps.shape == ended.shape == (len(items),)
            is_fit &= bool(((items >= 0) & (items < self._size) & (steps > 0)).all())
            is_fit &= [(1 + len(kind.tensor_dims), len(items)) for kind in kinds] == [
                (value.dim(), len(value)) for value in states
            ]
            is_fit &= all(value.is_floating_point() for value in states)
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"the examples that the loop has begun: {error}") from error
        if not is_fit:
            raise ValueError("the examples that the loop has begun, or its states, do not fit this run")
        self._items, self._steps, self._has_ended = items, steps, ended
        self._states = tuple(value.to(device) for value in states)
