"""A step of one run as a CUDA graph: one launch for the whole step, in place of one for each of its operations."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.loops import drawn_loops
from archlang.errors.machine import first_line, is_out_of_memory
from archlang.train.data import Batch, DeviceSplit
from archlang.train.optimizers import make_capturable
from archlang.train.record.mistakes import RunWarning
from archlang.train.score import Tensors, compute_eagerly
from archlang.train.step import EagerStep, LossAndNorm
from archlang.train.step_pieces import Cut, Launch, Pieces, chunked_loops
from archlang.train.trainer import Trainer

# The number of items of a batch, the widths of its fields, and the numbers of steps that loops have drawn.
Shape = tuple[int, ...]
Result = TypeVar("Result")


class Capture(Protocol):
    """Captures a pass, to which it gives what ends a piece. Returns the result of the pass and the launch of its last
    piece. The pass is not taken by the capture, but by each launch of its pieces, which write the same result."""

    def __call__(self, function: Callable[[Cut], Result]) -> tuple[Result, Launch]: ...


# A shape is captured when it occurs for the third time, up to 64 shapes. Of the recipes whose data is generated, an
# epoch has 1 to 21 shapes, and 77 for ListOps of up to 100 tokens, where the 64 most frequent are 98 % of the batches.
_CAPTURED_AT = 3
_MOST_GRAPHS = 64


class _GraphsByShape(Generic[Result]):
    """What is captured of passes that differ in the shape of their batch. `passes` names them."""

    def __init__(self, passes: str) -> None:
        self._passes, self._most = passes, _MOST_GRAPHS
        self._counts: Counter[Shape] = Counter()
        self.captured: dict[Shape, Result] = {}
        self.is_closed = False

    def get(self, shape: Shape, record: Callable[[], Result]) -> Result | None:
        """Counts a pass of this shape, and returns what `record` has captured: it is called if the shape is frequent
        and the memory suffices. If it fails for another reason, nothing is captured any more."""
        self._counts[shape] += 1
        is_frequent = self._counts[shape] >= _CAPTURED_AT and len(self.captured) < self._most
        if is_frequent and shape not in self.captured and not self.is_closed:
            try:
                self.captured[shape] = record()
            except Exception as error:
                if is_out_of_memory(error):
                    self._most = len(self.captured)
                    change = f"not enough memory for more CUDA graphs; {self._passes} of other shapes run"
                else:
                    self.close()
                    # Where a capture fails, torch raises a second error at its end, which says less.
                    reason = first_line(_origin(error))
                    change = f"{self._passes} cannot be captured as CUDA graphs ({reason}); all of them run"
                warnings.warn(f"{change} one operation at a time", RunWarning, stacklevel=2)
        return self.captured.get(shape)

    def close(self) -> None:
        """Frees the graphs with their memory pool, and captures no others."""
        self.captured.clear()
        self.is_closed = True


@dataclass(frozen=True, eq=False)
class _Graph(Generic[Result]):
    """A captured pass: the items that it reads, its launch, and its result."""

    items: Tensor
    launch: Launch
    result: Result


@dataclass(frozen=True, eq=False)
class _StepResult:
    """The loss and norm of a captured step, what it leaves on the module, and the weights that have a gradient after
    it."""

    loss: Tensor
    norm: Tensor | None
    losses: Mapping[str, Tensor]
    depth: Tensor | None
    weights: Sequence[Tensor]


class CudaGraphStep(EagerStep):
    """Launches steps of frequent shapes as CUDA graphs. Other steps run eagerly, and so do batches in parts, and all
    steps once a step could not be captured.

    The first steps of a shape run eagerly. They warm up what torch sets up at a first call, and create the optimizer's
    state of every weight that the shape updates: created in a graph, it would be zeroed at every launch. No step is
    taken for warming up alone, so the weights are those of a run without graphs.

    A graph freezes every Python number at capture. What changes between two steps is on the device: the indices of the
    items, which are copied to the tensor that the graph reads, what a schedule changes (`make_capturable`), and the
    optimizer's step count. Dropout draws the same numbers as in an eager step: a launch advances the device's generator
    by as much as the captured operations would, so that checkpoints hold the right state
    (`CUDAGeneratorState::replay_prologue` of torch).

    A step with halting loops is several graphs, between which the host asks whether anything is live (`Pieces`). It
    computes the full batch in each chunk of steps, as the work of a graph is fixed, and so do eager steps, which then
    draw as many random numbers and add gradients in the same order.

    Without `moves`, graphs end before the optimizer, which then reads the gradients where each graph copies them.

    Batches are not padded to common widths: pools of similar lengths have few shapes, and blocks that read where a
    sequence ends, or cut it into chunks, would see the padding."""

    def __init__(self, run: Trainer, capture: Capture, *, moves: bool = True) -> None:
        """Prepares the run's optimizer; before the run begins or resumes. `moves`: graphs can hold the optimizer."""
        super().__init__(run)
        if moves:
            make_capturable(run.optimizer, run.fabric.device, run.settings.moves_first_beta)
        self._capture, self._moves = capture, moves
        self._graphs = _GraphsByShape[_Graph[_StepResult]]("steps")
        self._drawn = drawn_loops(run.module)
        self._is_chunked = bool(chunked_loops(run.module))
        # Outside of the pool of the graphs, which overwrite each other's memory.
        self._gradients: dict[Tensor, Tensor] = {}

    def _train_on(self, items: np.ndarray) -> LossAndNorm:
        run = self.run
        widths = run.data.widths(items)
        shape = (len(items), *widths, *(loop.drawn_count or 0 for loop in self._drawn))
        graph = None
        # A graph gathers its batch itself.
        if len(items) <= (run.micro or len(items)) and run.data.is_resident:
            graph = self._graphs.get(shape, partial(self._record, items, widths))
        if graph is None:
            return super()._train_on(items)
        graph.items.copy_(run.data.place(items))
        graph.launch()
        result = graph.result
        run.module.losses = {name: own.clone() for name, own in result.losses.items()}
        run.module.mean_depth = None if result.depth is None else result.depth.clone()
        loss, norm = result.loss.clone(), None if result.norm is None else result.norm.clone()
        if not self._moves:
            run.optimizer.zero_grad(set_to_none=True)
            for weight in result.weights:
                weight.grad = self._gradients[weight]
            run.optimizer.step()
        return loss, norm

    def _record(self, items: np.ndarray, widths: Sequence[int]) -> _Graph[_StepResult]:
        run = self.run
        graph_items = run.data.place(items).clone()
        if not self._moves:
            self._gradients = self._gradients or {weight: torch.zeros_like(weight) for weight in run.weights}
        (loss, norm), last = self._capture(partial(self._step, graph_items, widths))
        weights = [weight for weight in run.weights if weight.grad is not None]
        result = _StepResult(loss, norm, run.module.losses, run.module.mean_depth, weights)
        return _Graph(graph_items, partial(self._pieces.launch, last), result)

    def _step(self, items: Tensor, widths: Sequence[int], cut: Cut) -> LossAndNorm:
        run = self.run
        run.optimizer.zero_grad(set_to_none=True)
        self._pieces = Pieces(run.weights, cut, is_captured=True)
        loss = self._backward_in_pieces(run.data.gather(items, widths))
        if self._moves:
            return loss, self._update()
        norm = self._clip()
        gradients = {self._gradients[weight]: weight.grad for weight in run.weights if weight.grad is not None}
        torch._foreach_copy_(list(gradients), list(gradients.values()))
        return loss, norm

    def _backward(
        self, batch: Batch, loss_share: float = 1.0, sample_share: float = 1.0, *, retain_graph: bool = False
    ) -> Tensor:
        if self._graphs.is_closed or not self.run.data.is_resident:
            return super()._backward(batch, loss_share, sample_share)
        self._pieces = Pieces(self.run.weights)
        return self._backward_in_pieces(batch, loss_share, sample_share)

    def _backward_in_pieces(self, batch: Batch, loss_share: float = 1.0, sample_share: float = 1.0) -> Tensor:
        with self._pieces.running(self.run.module):
            loss = super()._backward(batch, loss_share, sample_share, retain_graph=self._is_chunked)
        self._pieces.backward()
        return loss

    def _shrink(self, count: int) -> str | None:
        change = super()._shrink(count)
        if change is not None:
            # Before the step is computed again.
            self._graphs.close()
            self._gradients.clear()
        return change


class CudaGraphEvaluation:
    """Launches the passes of evaluations as CUDA graphs, where batches of a shape recur in a split: in one evaluation,
    or in those of a run. Halting loops run in chunks, also in passes that are no graphs, so that these have the same
    results."""

    def __init__(self, module: Architecture, capture: Capture) -> None:
        self._module, self._capture = module, capture
        self._graphs = WeakKeyDictionary[DeviceSplit, _GraphsByShape[_Graph[Tensors]]]()
        self._is_closed = False

    def __call__(self, data: DeviceSplit, items: np.ndarray, function: Callable[[Batch], Tensors]) -> Tensors:
        """As `compute_eagerly`. The tensors are overwritten by the next pass."""
        graphs = self._graphs.setdefault(data, _GraphsByShape("evaluations"))
        if self._is_closed or not data.is_resident:
            return compute_eagerly(data, items, function)
        widths = data.widths(items)
        graph = graphs.get((len(items), *widths), partial(self._record, data, items, widths, function))
        self._is_closed = graphs.is_closed
        if graph is None:
            with Pieces([]).running(self._module):
                return compute_eagerly(data, items, function)
        graph.items.copy_(data.place(items))
        graph.launch()
        return graph.result

    def _record(
        self, data: DeviceSplit, items: np.ndarray, widths: Sequence[int], function: Callable[[Batch], Tensors]
    ) -> _Graph[Tensors]:
        graph_items = data.place(items).clone()

        def compute(cut: Cut) -> tuple[Pieces, Tensors]:
            pieces = Pieces([], cut, is_captured=True)
            with pieces.running(self._module):
                return pieces, function(data.gather(graph_items, widths))

        (pieces, result), last = self._capture(compute)
        return _Graph(graph_items, partial(pieces.launch, last), result)


def make_capture(device: torch.device) -> Capture:
    """Returns a function that captures passes as CUDA graphs.

    All graphs share one memory pool and overwrite each other's memory. That is sound as no graph reads what one of
    another pass wrote: a step begins without gradients and writes its own before it reads them; weights, optimizer
    state, data and items are outside of the pool; and results are copied before the next pass."""
    # Only captures on one stream can share the pool.
    pool = torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call] # torch's own

    def capture(function: Callable[[Cut], Result]) -> tuple[Result, Launch]:
        before, random = torch.cuda.current_stream(device), torch.cuda.get_rng_state(device)
        graph = torch.cuda.CUDAGraph()

        def cut() -> Launch:
            nonlocal graph
            launch = graph.replay
            piece.close()
            graph = torch.cuda.CUDAGraph()
            piece.enter_context(torch.cuda.graph(graph, pool=pool, stream=stream))
            return launch

        try:
            with ExitStack() as piece:
                piece.enter_context(torch.cuda.graph(graph, pool=pool, stream=stream))
                result = function(cut)
            return result, graph.replay
        except Exception as error:
            # torch stays on the stream of a capture that fails.
            torch.cuda.set_stream(before)
            if not is_out_of_memory(error):
                _leave_capture(device, pool, random)
            raise

    return capture


def _leave_capture(device: torch.device, pool: tuple[int, int], random: Tensor) -> None:
    """Ends a capture that has failed: the generator of torch 2.11 would refuse all further numbers, and its allocator
    would not free memory."""
    generator = torch.Generator(device)
    generator.set_state(random)
    torch.cuda.default_generators[device.index].graphsafe_set_state(generator)
    with suppress(RuntimeError):  # which a later torch raises, as it has done this
        torch._C._cuda_endAllocateToPool(device.index, pool)


@contextmanager
def ignoring_eager_steps() -> Iterator[None]:
    """Ignores torch's warning about an optimizer that is prepared for capture and takes an eager step."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")
        yield


def _origin(error: BaseException) -> BaseException:
    return error if error.__context__ is None else _origin(error.__context__)
