"""A step of one run as a CUDA graph: one launch for the whole step, in place of one for each of its operations."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from archlang.errors.machine import first_line, is_out_of_memory
from archlang.train import mistakes
from archlang.train.optimizers import make_capturable
from archlang.train.record.mistakes import RunWarning
from archlang.train.step import EagerStep, LossAndNorm
from archlang.train.trainer import Trainer

# The number of items of a batch, and the widths of its fields.
Shape = tuple[int, ...]
Launch = Callable[[], LossAndNorm]
Capture = Callable[[Callable[[], LossAndNorm]], Launch]
# A shape is captured when it occurs for the third time, up to 64 shapes. Of the recipes whose data is generated, an
# epoch has 1 to 21 shapes, and 77 for ListOps of up to 100 tokens, where the 64 most frequent are 98 % of the batches.
_CAPTURED_AT = 3
_MOST_GRAPHS = 64


class CudaGraphStep(EagerStep):
    """Launches steps of frequent shapes as CUDA graphs. Other steps run eagerly, and so do batches in parts.

    The first steps of a shape run eagerly. They warm up what torch sets up at a first call, and create the optimizer's
    state of every weight that the shape updates: created in a graph, it would be zeroed at every launch. No step is
    taken for warming up alone, so the weights are those of a run without graphs.

    A graph freezes every Python number at capture. What changes between two steps is on the device: the indices of the
    items, which are copied to the tensor that the graph reads, what a schedule changes (`make_capturable`), and the
    optimizer's step count. Dropout draws the same numbers as in an eager step: a launch advances the device's generator
    by as much as the captured operations would, so that checkpoints hold the right state
    (`CUDAGeneratorState::replay_prologue` of torch).

    Batches are not padded to common widths: pools of similar lengths have few shapes, and blocks that read where a
    sequence ends, or cut it into chunks, would see the padding."""

    def __init__(self, run: Trainer, capture: Capture) -> None:
        """Prepares the run's optimizer; before the run begins or resumes."""
        super().__init__(run)
        make_capturable(run.optimizer, run.fabric.device, run.settings.moves_first_beta)
        self._capture = capture
        self._counts: Counter[Shape] = Counter()
        # By shape: the items that a graph reads, its launch, and the tensors that hold its auxiliary losses.
        self._graphs: dict[Shape, tuple[Tensor, Launch, Mapping[str, Tensor]]] = {}
        self._most_graphs = _MOST_GRAPHS

    def _train_on(self, items: np.ndarray) -> LossAndNorm:
        run = self.run
        shape = (len(items), *run.data.widths(items))
        if len(items) > (run.micro or len(items)) or not self._is_captured(shape, items):
            return super()._train_on(items)
        graph_items, launch, losses = self._graphs[shape]
        graph_items.copy_(run.data.place(items))
        loss, norm = launch()
        run.module.losses = {name: own.clone() for name, own in losses.items()}
        return loss.clone(), None if norm is None else norm.clone()

    def _is_captured(self, shape: Shape, items: np.ndarray) -> bool:
        """Counts a step of this shape. Captures it if it is frequent and the memory suffices."""
        run = self.run
        if not run.data.is_resident:
            return False  # a graph gathers its batch itself
        self._counts[shape] += 1
        if shape in self._graphs:
            return True
        if self._counts[shape] < _CAPTURED_AT or len(self._graphs) >= self._most_graphs:
            return False
        graph_items = run.data.place(items).clone()

        def step() -> LossAndNorm:
            run.optimizer.zero_grad(set_to_none=True)
            loss = self._backward(run.data.gather(graph_items, shape[1:]))
            return loss, self._update()

        try:
            self._graphs[shape] = graph_items, self._capture(step), run.module.losses
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                # Where a capture fails, torch raises a second error at its end, which says less.
                raise mistakes.not_captured(first_line(_origin(error))) from error
            self._most_graphs = len(self._graphs)
            warnings.warn(
                f"not enough memory for more than {self._most_graphs} CUDA graphs; steps of other shapes run eagerly",
                RunWarning,
                stacklevel=2,
            )
        return shape in self._graphs

    def _shrink(self, count: int) -> str | None:
        change = super()._shrink(count)
        if change is not None:
            # Frees the memory pool of the graphs before the step is computed again.
            self._graphs.clear()
            self._most_graphs = 0
        return change


def make_capture(device: torch.device) -> Capture:
    """Returns a function that captures a step as a CUDA graph. The step is not taken by the capture, but by each call
    of its result, which returns the tensors that hold loss and norm until the next step.

    All graphs share one memory pool and overwrite each other's memory. That is sound as no graph reads what another one
    wrote: a step begins without gradients and writes its own before it reads them; weights, optimizer state, data and
    items are outside of the pool; and loss and norm are copied before the next step."""
    # Only captures on one stream can share the pool.
    pool = torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call] # torch's own

    def capture(step: Callable[[], LossAndNorm]) -> Launch:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            result = step()

        def launch() -> LossAndNorm:
            graph.replay()
            return result

        return launch

    return capture


@contextmanager
def ignoring_eager_steps() -> Iterator[None]:
    """Ignores torch's warning about an optimizer that is prepared for capture and takes an eager step."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")
        yield


def _origin(error: BaseException) -> BaseException:
    return error if error.__context__ is None else _origin(error.__context__)
