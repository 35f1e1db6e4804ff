"""A step of one run as a CUDA graph: one launch for the whole step, in place of one for each of its operations."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.carried_steps import CarriedStates
from archlang.backend.runtime.loops import RepeatLoop, drawn_loops
from archlang.backend.runtime.stacking import answering
from archlang.errors.machine import first_line, is_out_of_memory
from archlang.train.data import Batch, DeviceSplit
from archlang.train.optimizers import make_capturable
from archlang.train.record.mistakes import RunWarning
from archlang.train.score import Interrupted, Tensors, compute_eagerly
from archlang.train.step import EagerStep, LossAndNorm
from archlang.train.step_pieces import Cut, Launch, Pieces, chunked_loops, nothing
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
# A shape runs eagerly after so many graphs of it have assumed what was wrong.
_MOST_MISSES = 4


class Assumptions:
    """The answers of `holds` in a pass: those that the host reads in a pass of single operations, or those that a graph
    assumes, with whether they are right. They choose between forms of a recurrence of which one is faster."""

    def __init__(self, answers: Sequence[bool] = ()) -> None:
        self.answers = [*answers]
        self._marks: list[Tensor] = []

    def read(self, mark: Tensor) -> bool:
        self.answers.append(bool(mark))
        return self.answers[-1]

    def assume(self, mark: Tensor) -> bool:
        # The graph takes the way of the pass before, whose answers have this order; the general form is always right.
        place = len(self._marks)
        answer = place < len(self.answers) and self.answers[place]
        self._marks.append(mark == answer)
        return answer

    def are_right(self) -> Tensor | None:
        return torch.stack(self._marks).all() if self._marks else None


@dataclass(frozen=True, eq=False)
class CapturedPass(Generic[Result]):
    """A captured pass: the tensors that each launch reads anew, the items first, its launches, whether what it assumes
    is right after them, None if it assumes nothing, its last launch, which moves the weights, and its result."""

    inputs: Sequence[Tensor]
    launches: Sequence[Launch]
    is_right: Tensor | None
    last: Launch
    result: Result


class GraphsByShape(Generic[Result]):
    """The graphs of passes that differ in the shape of their batch. `passes` names them."""

    def __init__(self, passes: str) -> None:
        self._passes, self._most = passes, _MOST_GRAPHS
        self._counts: Counter[Shape] = Counter()
        self._misses: Counter[Shape] = Counter()
        self._answers: dict[Shape, Sequence[bool]] = {}
        self.captured: dict[Shape, CapturedPass[Result]] = {}
        self.is_closed = False

    def launch(
        self, shape: Shape, inputs: Sequence[Tensor], record: Callable[[Assumptions], CapturedPass[Result]]
    ) -> Result | None:
        """Counts a pass of this shape. Returns its result, or None if it has to run eagerly: it is rare, or its graph
        has assumed what is wrong for its items."""
        graph, device = self._captured(shape, record), inputs[0].device
        if graph is None:
            return None
        for own, value in zip(graph.inputs, inputs, strict=True):
            own.copy_(value)
        random = None if graph.is_right is None else _random_state(device)
        for launch in graph.launches:
            launch()
        if graph.is_right is not None and random is not None and not graph.is_right:
            _set_random_state(device, random)
            self._misses[shape] += 1
            del self.captured[shape]
            return None
        graph.last()
        return graph.result

    def _captured(
        self, shape: Shape, record: Callable[[Assumptions], CapturedPass[Result]]
    ) -> CapturedPass[Result] | None:
        """Returns the graph of a shape: it is captured if the shape is frequent and the memory suffices. If that fails
        for another reason, nothing is captured any more."""
        self._counts[shape] += 1
        is_frequent = self._counts[shape] >= _CAPTURED_AT and self._misses[shape] < _MOST_MISSES
        if is_frequent and shape not in self.captured and len(self.captured) < self._most and not self.is_closed:
            try:
                self.captured[shape] = record(Assumptions(self._answers.get(shape, ())))
            except Interrupted:
                raise
            except Exception as error:  # whatever the pass raises in a capture: it then runs eagerly, and says why
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

    @contextmanager
    def eagerly(self, shape: Shape) -> Iterator[None]:
        """Inside, a pass of this shape runs one operation at a time."""
        answers = Assumptions()
        with answering(answers.read):
            yield
        self._answers[shape] = answers.answers

    def close(self) -> None:
        """Frees the graphs with their memory pool, and captures no others."""
        self.captured.clear()
        self.is_closed = True


def _random_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_random_state(device: torch.device, state: Tensor) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)


@dataclass(frozen=True, eq=False)
class _StepResult:
    """The loss and norm of a captured step, what it leaves on the module, the states that a loop carries to the next
    one, and the weights that have a gradient after it."""

    loss: Tensor
    norm: Tensor | None
    losses: Mapping[str, Tensor]
    depth: Tensor | None
    sample_losses: Mapping[str, Tensor]
    states: Sequence[Tensor]
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
    draw as many random numbers and add gradients in the same order. Another step that depends on what the host reads of
    a value, such as whether a recurrence may take its fast form, assumes it, and is two graphs: before the second one,
    which moves the weights, the host asks whether it was right (`Assumptions`).

    Without `moves`, graphs end before the optimizer, which then reads the gradients where each graph copies them.

    Each part of a stream has graphs of its own. Under deep supervision a graph reads the states of the step before from
    where they are copied to, and the host reads which examples have ended.

    Batches are not padded to common widths: pools of similar lengths have few shapes, and blocks that read where a
    sequence ends, or cut it into chunks, would see the padding."""

    def __init__(self, run: Trainer, capture: Capture, *, moves: bool = True) -> None:
        """Prepares the run's optimizer; before the run begins or resumes. `moves`: graphs can hold the optimizer."""
        super().__init__(run)
        if moves:
            make_capturable(run.optimizer, run.fabric.device, run.settings.moves_first_beta)
        self._capture, self._moves = capture, moves
        self._graphs, self._data = GraphsByShape[_StepResult]("steps"), run.data
        self._drawn = drawn_loops(run.module)
        self._is_chunked = bool(chunked_loops(run.module))
        # Outside of the pool of the graphs, which overwrite each other's memory.
        self._gradients: dict[Tensor, Tensor] = {}

    def _train_on(self, items: np.ndarray) -> LossAndNorm:
        run = self.run
        if run.data is not self._data:  # the next part of a stream
            self._data = run.data
            self._graphs.captured.clear()
        widths, carried = run.data.widths(items), self._carried()
        states = () if carried is None else (carried.continued, *carried.states)
        drawn = (loop.drawn_count or 0 for loop in self._drawn)
        shape = (len(items), *widths, *drawn, *(size for state in states for size in state.shape))
        # A graph gathers its batch itself, and batches in parts are several.
        if len(items) > (run.micro or len(items)) or not run.data.is_resident:
            return super()._train_on(items)
        inputs = [run.data.place(items), *states]
        result = self._graphs.launch(shape, inputs, partial(self._record, inputs, widths))
        if result is None:
            with nullcontext() if self._is_chunked else self._graphs.eagerly(shape):
                return super()._train_on(items)
        run.module.losses = {name: own.clone() for name, own in result.losses.items()}
        run.module.mean_depth = None if result.depth is None else result.depth.clone()
        if carried is not None:
            run.module.sample_losses = {name: own.clone() for name, own in result.sample_losses.items()}
            carried.states = [state.clone() for state in result.states]
        loss, norm = result.loss.clone(), None if result.norm is None else result.norm.clone()
        if not self._moves:
            run.optimizer.zero_grad(set_to_none=True)
            for weight in result.weights:
                weight.grad = self._gradients[weight]
            run.optimizer.step()
        return loss, norm

    def _carried(self) -> CarriedStates | None:
        """Returns what a loop carries from step to step under deep supervision."""
        loop = None if self.run.deep is None else self.run.module.loop_of_results()
        return loop.carried if isinstance(loop, RepeatLoop) else None

    def _record(
        self, inputs: Sequence[Tensor], widths: Sequence[int], answers: Assumptions
    ) -> CapturedPass[_StepResult]:
        run, carried = self.run, self._carried()
        own_inputs = [value.clone() for value in inputs]
        before = None if carried is None else (carried.continued, carried.states)
        if carried is not None:
            carried.continued, *carried.states = own_inputs[1:]
        if not self._moves:
            self._gradients = self._gradients or {weight: torch.zeros_like(weight) for weight in run.weights}
        launches: list[Launch] = []

        def step(cut: Cut) -> tuple[LossAndNorm, Tensor | None]:
            run.optimizer.zero_grad(set_to_none=True)
            pieces = Pieces(run.weights, cut, is_captured=True)
            launches.append(pieces.launch)
            # The host checks chunks of halting loops; what a later one would assume has no answer yet.
            with nullcontext() if self._is_chunked else answering(answers.assume):
                loss = self._backward_in(pieces, run.data.gather(own_inputs[0], widths))
            is_right = answers.are_right()
            if is_right is not None:
                launches.append(cut())
            return (loss, self._end()), is_right

        try:
            ((loss, norm), is_right), last = self._capture(step)
            states = [] if carried is None else carried.states
        finally:
            if carried is not None and before is not None:
                carried.continued, carried.states = before
        weights, module = [weight for weight in run.weights if weight.grad is not None], run.module
        result = _StepResult(loss, norm, module.losses, module.mean_depth, module.sample_losses, states, weights)
        return CapturedPass(own_inputs, launches, is_right, last, result)

    def _end(self) -> Tensor | None:
        run = self.run
        if self._moves:
            return self._update()
        norm = self._clip()
        gradients = {self._gradients[weight]: weight.grad for weight in run.weights if weight.grad is not None}
        torch._foreach_copy_(list(gradients), list(gradients.values()))
        return norm

    def _backward(
        self, batch: Batch, loss_share: float = 1.0, sample_share: float = 1.0, *, retain_graph: bool = False
    ) -> Tensor:
        if self._graphs.is_closed or not self.run.data.is_resident:
            return super()._backward(batch, loss_share, sample_share)
        return self._backward_in(Pieces(self.run.weights), batch, loss_share, sample_share)

    def _backward_in(self, pieces: Pieces, batch: Batch, loss_share: float = 1.0, sample_share: float = 1.0) -> Tensor:
        with pieces.running(self.run.module):
            loss = super()._backward(batch, loss_share, sample_share, retain_graph=self._is_chunked)
        pieces.backward()
        return loss

    def _shrink(self, count: int) -> str | None:
        change = super()._shrink(count)
        if change is not None:
            # Before the step is computed again. The graphs of evaluations hold the same memory pool.
            self._graphs.close()
            self._gradients.clear()
            self.run.compute = compute_eagerly
        return change


class CudaGraphEvaluation:
    """Launches the passes of evaluations as CUDA graphs, where batches of a shape recur in a split: in one evaluation,
    or in those of a run. Halting loops run in chunks, also in passes that are no graphs, so that these have the same
    results."""

    def __init__(self, module: Architecture, capture: Capture) -> None:
        self._module, self._capture = module, capture
        self._is_chunked = bool(chunked_loops(module))
        self._graphs = WeakKeyDictionary[DeviceSplit, GraphsByShape[Tensors]]()
        self._is_closed = False

    def __call__(self, data: DeviceSplit, items: np.ndarray, function: Callable[[Batch], Tensors]) -> Tensors:
        """As `compute_eagerly`. The tensors are overwritten by the next pass."""
        graphs = self._graphs.setdefault(data, GraphsByShape("evaluations"))
        if self._is_closed or not data.is_resident:
            return compute_eagerly(data, items, function)
        widths = data.widths(items)
        shape = (len(items), *widths)
        result = graphs.launch(shape, [data.place(items)], partial(self._record, data, items, widths, function))
        self._is_closed = graphs.is_closed
        if result is None:
            reading = nullcontext() if self._is_chunked else graphs.eagerly(shape)
            with reading, Pieces([]).running(self._module):
                return compute_eagerly(data, items, function)
        return result

    def _record(
        self,
        data: DeviceSplit,
        items: np.ndarray,
        widths: Sequence[int],
        function: Callable[[Batch], Tensors],
        answers: Assumptions,
    ) -> CapturedPass[Tensors]:
        graph_items = data.place(items).clone()

        def compute(cut: Cut) -> tuple[Pieces, Tensors, Tensor | None]:
            pieces = Pieces([], cut, is_captured=True)
            with pieces.running(self._module), nullcontext() if self._is_chunked else answering(answers.assume):
                return pieces, function(data.gather(graph_items, widths)), answers.are_right()

        (pieces, result, is_right), last = self._capture(compute)
        pieces.forget()
        return CapturedPass([graph_items], (pieces.launch, last), is_right, nothing, result)


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
