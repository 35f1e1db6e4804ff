"""A step of one run as a CUDA graph: one launch for the whole step, in place of one for each of its operations."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from archlang.backend.runtime.loops import drawn_loops, halting_loops
from archlang.diagnostics.machine import first_line, is_out_of_memory
from archlang.plan.plan import BoundExtern
from archlang.train import mistakes
from archlang.train.optimizers import is_capturable, make_capturable
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


class CudaGraphWarning(UserWarning):
    """Some steps are launched operation by operation, as there is no memory for their graphs."""


class CudaGraphStep(EagerStep):
    """Launches steps of frequent shapes as CUDA graphs. Other steps run eagerly, and so do batches in parts."""

    def __init__(self, run: Trainer, capture: Capture) -> None:
        """Prepares the run's optimizer; before the run begins or resumes."""
        super().__init__(run)
        make_capturable(run.optimizer, run.fabric.device, run.settings.moves_first_beta)
        self._graphs: CudaGraphs | None = CudaGraphs(capture)
        # The tensors that hold the auxiliary losses of each captured shape.
        self._losses: dict[Shape, Mapping[str, Tensor]] = {}

    def _train_on(self, items: np.ndarray) -> LossAndNorm:
        launched = self._launch(items)
        return super()._train_on(items) if launched is None else launched

    def _launch(self, items: np.ndarray) -> LossAndNorm | None:
        """Takes a step as a CUDA graph; returns None if the step must run eagerly."""
        run, graphs = self.run, self._graphs
        if graphs is None or len(items) > (run.micro or len(items)):
            return None
        widths = run.data.widths(items)
        shape = (len(items), *widths)
        if not graphs.is_due(shape):
            return None

        def step(placed_items: Tensor) -> LossAndNorm:
            run.optimizer.zero_grad(set_to_none=True)
            loss = self._backward(run.data.gather(placed_items, widths))
            self._losses[shape] = run.module.losses
            return loss, self._update()

        launched = graphs.launch(shape, run.data.place(items), step)
        if launched is not None:
            run.module.losses = {name: loss.clone() for name, loss in self._losses[shape].items()}
        return launched

    def _shrink(self, count: int) -> str | None:
        change = super()._shrink(count)
        if change is not None:
            # Frees the memory pool of the graphs before the step is computed again.
            self._graphs = None
        return change


class CudaGraphs:
    """The CUDA graphs of a run, one for each shape that its batches often have.

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

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._counts: Counter[Shape] = Counter()
        self._graphs: dict[Shape, tuple[Tensor, Launch]] = {}
        self._most_graphs = _MOST_GRAPHS

    def is_due(self, shape: Shape) -> bool:
        """Counts a step of this shape. Returns whether it is to be launched as a graph."""
        self._counts[shape] += 1
        may_capture = self._counts[shape] >= _CAPTURED_AT and len(self._graphs) < self._most_graphs
        return shape in self._graphs or may_capture

    def launch(
        self, shape: Shape, items: Int[Tensor, " b"], step: Callable[[Tensor], LossAndNorm]
    ) -> LossAndNorm | None:
        """Takes a step with these items. Returns None, without a step, if the memory does not suffice for its graph."""
        if shape not in self._graphs:
            graph_items = items.clone()
            try:
                self._graphs[shape] = graph_items, self._capture(lambda: step(graph_items))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    # Where a capture fails, torch raises a second error at its end, which says less.
                    raise mistakes.not_captured(first_line(_origin(error))) from error
                self._most_graphs = len(self._graphs)
                warnings.warn(
                    f"not enough memory for more than {self._most_graphs} CUDA graphs; steps of other shapes run "
                    "eagerly",
                    CudaGraphWarning,
                    stacklevel=2,
                )
                return None
        graph_items, launch = self._graphs[shape]
        graph_items.copy_(items)
        loss, norm = launch()
        return loss.clone(), None if norm is None else norm.clone()


def make_capture(
    module: nn.Module, optimizer: BoundExtern, device: torch.device, precision: str, processes: int = 1
) -> Capture:
    """Returns a function that captures a step as a CUDA graph. The step is not taken by the capture, but by each call
    of its result, which returns the tensors that hold loss and norm until the next step.

    All graphs share one memory pool and overwrite each other's memory. That is sound as no graph reads what another one
    wrote: a step begins without gradients and writes its own before it reads them; weights, optimizer state, data and
    items are outside of the pool; and loss and norm are copied before the next step."""
    if device.type != "cuda":
        raise mistakes.no_graphs(f"`{device.type}` has none")
    if precision != "32" or processes > 1:
        raise mistakes.no_graphs("they need one device and precision 32")
    if not is_capturable(optimizer):
        raise mistakes.no_graphs(f"the optimizer `{optimizer.name}` reads its learning rate on the host")
    if next(halting_loops(module), None) is not None:
        raise mistakes.no_graphs("a halting loop's number of steps depends on what it computes; a graph's is fixed")
    if drawn_loops(module):
        raise mistakes.no_graphs("a loop draws its number of steps; a graph's is fixed")
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
