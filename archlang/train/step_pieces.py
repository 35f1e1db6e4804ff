"""A pass through a model in pieces, between which the host asks whether a halting loop goes on: as CUDA graphs their
time follows the depth."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.backend.runtime import loops
from archlang.backend.runtime.loops import STEPS_BETWEEN_CHECKS, Chunk, HaltingLoop, Turn, halting_loops, map_tensors
from archlang.backend.runtime.scans import ScanLoop

# Repeats what was captured in a piece.
Launch = Callable[[], object]
# Ends a piece and returns its launch.
Cut = Callable[[], Launch]


def nothing() -> None:
    """The launch of a piece that is not captured."""


@dataclass(frozen=True, eq=False)
class _ChunkTape:
    """The tensors of a chunk at which its tape begins, those of the turn and those that all chunks read, and at which
    it ends."""

    begin: list[Tensor]
    fixed: list[Tensor]
    end: list[Tensor]


@dataclass(eq=False)
class _LoopCall:
    """A call of a halting loop: the piece before it, those of its chunks, each with whether anything is live after it,
    those of their backward passes from the last chunk to the first, and the one behind them."""

    before: Launch
    arguments: list[Tensor]
    results: list[Tensor] = field(default_factory=list)
    tapes: list[_ChunkTape] = field(default_factory=list)
    forward: list[tuple[Launch, Tensor]] = field(default_factory=list)
    backward: list[Launch] = field(default_factory=list)
    after: Launch = nothing


class Pieces:
    """Runs the halting loops of a pass in chunks of steps, and the backward pass of each chunk by itself.

    The tape of autograd ends at each check: chunks, and what follows a loop, begin with tensors without history. The
    results of a loop are in the same memory after any chunk, and so are their gradients.

    With `is_captured` all chunks are computed, as a tensor that is captured has no value yet. `launch` then repeats the
    pieces up to the chunk after which nothing is live. They may share memory as if each ran: pieces are launched in the
    order in which they were captured, and what those that are left out would write, no other one reads."""

    def __init__(self, weights: Sequence[Tensor], cut: Cut = lambda: nothing, is_captured: bool = False) -> None:
        self._weights, self._cut, self._is_captured = weights, cut, is_captured
        self._calls: list[_LoopCall] = []
        self._is_inside = False
        self._middle: Launch = nothing

    @contextmanager
    def running(self, module: Architecture) -> Iterator[None]:
        """Inside, the halting loops of a model run in chunks where they may, and else compute all their steps."""
        all_loops, chunked = list(halting_loops(module)), chunked_loops(module)
        for loop in all_loops:
            loop.all_steps, loop.run_chunks = True, self.run_chunks if loop in chunked else None
        try:
            yield
        finally:
            for loop in all_loops:
                loop.all_steps, loop.run_chunks = False, None

    def run_chunks(self, chunks: Sequence[Chunk], turn: Turn, fixed: tuple[Any, ...]) -> Turn:  # Any: as in `Chunk`
        """Takes the steps of a loop, as `HaltingLoop.run_chunks`."""
        if self._is_inside:  # a loop in the body of another one, of which a chunk is one piece
            for chunk in chunks:
                turn = chunk(turn, fixed)
            return turn
        self._is_inside = True
        call = _LoopCall(self._cut(), _tensors((turn, fixed)))
        self._calls.append(call)
        for chunk in chunks:
            begin, own_fixed = map_tensors(_without_history, (turn, fixed))
            turn = chunk(begin, own_fixed)
            tape = _ChunkTape(_tensors(begin), _tensors(own_fixed), _tensors(turn))
            call.tapes.append(tape)
            with torch.no_grad():
                if call.results:
                    torch._foreach_copy_(call.results, tape.end)
                else:
                    call.results = [tensor.clone() for tensor in tape.end]
                live = turn[0].live.any()
            call.forward.append((self._cut(), live))
            if not self._is_captured and len(call.forward) < len(chunks) and not live:
                break
        self._is_inside = False
        for result, tensor in zip(call.results, call.tapes[0].end, strict=True):
            result.requires_grad_(tensor.requires_grad)
        results = iter(call.results)
        last_turn: Turn = map_tensors(lambda _: next(results), turn)
        return last_turn

    def backward(self) -> None:
        """Adds the gradients of the loops and of what is before them, after the backward pass of what follows them."""
        sums = {weight: torch.zeros_like(weight) for weight in self._weights if self._calls}
        reached: set[Tensor] = set()
        later: _LoopCall | None = None
        self._is_inside = True
        for call in reversed(self._calls):
            ends = [torch.zeros_like(end) if end.grad is None else end.grad.clone() for end in call.results]
            arguments = [torch.zeros_like(argument) for argument in call.arguments]
            launch = self._cut()
            if later is None:
                self._middle = launch
            else:
                later.after = launch
            later = call
            while call.tapes:
                tape = call.tapes.pop()  # which frees the tape of the chunk behind it
                gradients = _gradients(tape, ends, self._weights)
                begin_count = len(arguments) - len(tape.fixed)
                for total, leaf in zip(arguments[begin_count:], tape.fixed, strict=True):
                    if leaf in gradients:
                        total.add_(gradients[leaf])
                for total, leaf in zip(ends if call.tapes else arguments[:begin_count], tape.begin, strict=True):
                    total.copy_(gradients[leaf]) if leaf in gradients else total.zero_()
                moved = [weight for weight in self._weights if weight in gradients]
                if moved:
                    torch._foreach_add_([sums[weight] for weight in moved], [gradients[weight] for weight in moved])
                    reached.update(moved)
                call.backward.append(self._cut() if gradients else nothing)
            pairs = [pair for pair in zip(call.arguments, arguments, strict=True) if pair[0].requires_grad]
            if pairs:
                values, totals = zip(*pairs, strict=True)
                torch.autograd.backward(values, totals, retain_graph=True)
        for weight in self._weights:
            if weight in reached:
                weight.grad = sums[weight] if weight.grad is None else weight.grad + sums[weight]
        self.forget()

    def forget(self) -> None:
        """Drops the tape, and keeps the launches."""
        for call in self._calls:
            call.arguments, call.results, call.tapes = [], [], []

    def launch(self) -> None:
        """Repeats the pieces of a captured pass but the last one."""
        counts = []
        for call in self._calls:
            call.before()
            for count, (launch, live) in enumerate(call.forward, 1):
                launch()
                if count == len(call.forward) or not live:
                    break
            counts.append(count)
        self._middle()
        for call, count in zip(reversed(self._calls), reversed(counts), strict=True):
            for launch in call.backward[len(call.backward) - count :]:
                launch()
            call.after()


def _gradients(tape: _ChunkTape, ends: Sequence[Tensor], weights: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """Returns the gradients of where the tape of a chunk begins, and of weights, from those of where it ends."""
    pairs = [pair for pair in zip(tape.end, ends, strict=True) if pair[0].requires_grad]
    leaves = [leaf for leaf in (*tape.begin, *tape.fixed, *weights) if leaf.requires_grad]
    if not pairs or not leaves:  # as under `torch.no_grad()`
        return {}
    results, result_gradients = zip(*pairs, strict=True)
    # The tape is kept, as chunks share values that are derived from weights once in a call of the model.
    gradients = torch.autograd.grad(results, leaves, result_gradients, retain_graph=True, allow_unused=True)
    # A gradient may be one of `ends` itself, which are overwritten.
    places = {end.untyped_storage().data_ptr() for end in ends}
    return {
        leaf: gradient.clone() if gradient.untyped_storage().data_ptr() in places else gradient
        for leaf, gradient in zip(leaves, gradients, strict=True)
        if gradient is not None
    }


def chunked_loops(module: Architecture) -> list[HaltingLoop]:
    """Returns the halting loops of a model that may run in chunks: those of more steps than a chunk has, and only
    inside loops that do not use the tape of autograd themselves."""
    return list(_chunked_loops(module, module.program.code))


def _chunked_loops(owner: nn.Module, code: Code) -> Iterator[HaltingLoop]:
    for loop in code.loops:
        match runtime := owner.__dict__[loop.name]:
            case HaltingLoop():
                if runtime.limit > STEPS_BETWEEN_CHECKS:
                    yield runtime
            case loops.StackLoop(truncated=None, settled=False):
                for step in runtime.steps():
                    yield from _chunked_loops(step, loop.body)
            case loops.RepeatLoop(truncated=None, settled=False) | ScanLoop(truncated=None):
                yield from _chunked_loops(owner, loop.body)


def _tensors(value: Any) -> list[Tensor]:  # Any: as in `map_tensors`
    tensors: list[Tensor] = []

    def add(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    map_tensors(add, value)
    return tensors


def _without_history(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_() if tensor.requires_grad else tensor
