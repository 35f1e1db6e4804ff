"""Paired measurements: both sides run alternately in one process, so that other load on the machine affects both."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial, partialmethod
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import nn

from archlang.backend import Architecture
from archlang.backend.runtime.stacking import answering
from archlang.train.cuda_graph import Assumptions, Capture, make_capture
from archlang.train.step_pieces import Cut, Launch, Pieces, chunked_loops

# A case that exceeds either limit is skipped, with a reason.
LONGEST = 30.0  # seconds a call
LARGEST = 8.0  # GiB

# What tells the time; the time of the process says more beside other work, on one thread.
clock: Callable[[], float] = time.perf_counter

Call = Callable[[], Any]  # Any: the unit interprets the result


@dataclass(frozen=True)
class Unit:
    """How a call is measured: after `warm` calls for warming up, at most `most` rounds."""

    name: str
    read: Callable[[Call], float]
    warm: int = 2
    most: int | None = None


def _seconds(call: Call) -> tuple[float, Any]:  # Any: as above
    _synchronize()
    start = clock()
    result = call()
    _synchronize()
    return clock() - start, result


def _synchronize() -> None:
    """Waits for the GPU, which may still be running when a call returns."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _milliseconds(call: Call) -> float:
    return 1000 * _seconds(call)[0]


def _rate(call: Call) -> float:
    seconds, count = _seconds(call)
    return float(count) / seconds


def _returned_value(call: Call) -> float:
    return float(call())


MS = Unit("ms", _milliseconds)
TFLOPS = Unit("TFLOP/s, more is better", _rate, warm=3)  # a call returns their number
BATCHES = Unit("batches/s, more is better", _rate)  # a call returns the number of batches
PROCESS = Unit("ms, whole process", _milliseconds, warm=1)
PHASE = Unit("ms", _returned_value, warm=1)
MIB = Unit("MiB", _returned_value, warm=0, most=2)
MATRICES = Unit("score matrices", _returned_value, warm=0, most=1)


class Sides(NamedTuple):
    """The two sides of a comparison: archlang, and the baseline."""

    ours: Call
    theirs: Call


@dataclass(frozen=True)
class CallOfModule:
    """A call of a module whose halting loops can run in chunks."""

    call: Call
    module: nn.Module

    def __call__(self) -> Any:  # Any: as above
        return self.call()


@dataclass(frozen=True)
class Case:
    """One comparison. `build` allocates both sides."""

    name: str
    beside: str
    """a short description of the baseline"""
    build: Callable[[], Sides]
    unit: Unit = MS
    memory: float = 0.0
    """estimated memory in GiB; 0 if it is small"""


@dataclass(frozen=True)
class Setting:
    """The device and the sizes of the cases. Tests run `tiny` sizes."""

    device: torch.device
    tiny: bool = False


@dataclass(frozen=True)
class Group:
    """Related cases. `says` describes their sizes."""

    name: str
    says: str
    cases: Callable[[Setting], Iterator[Case]]
    devices: tuple[str, ...] = ("cpu", "cuda")


@dataclass(frozen=True)
class Result:
    """The measurements of each round; none if the case was skipped for the reason `left_out`."""

    case: Case
    ours: tuple[float, ...] = ()
    theirs: tuple[float, ...] = ()
    left_out: str = ""

    @property
    def ratios(self) -> list[float]:
        """Ours / theirs for each round, sorted. Where less is better, a ratio below 1 favours archlang."""
        return sorted(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The first and third quartile of the ratios."""
        ratios = self.ratios
        return ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]


def captured(call: Call) -> Call:
    """Returns a call as CUDA graphs, with a check between the chunks of the halting loops of a `CallOfModule`, as
    `archlang train` runs them; without a GPU, the same pieces as they are."""
    capture = gpu_capture()
    module = call.module if isinstance(call, CallOfModule) else None
    run: Callable[..., Any] = lambda *_: call()  # noqa: E731  # Any: as above
    if isinstance(module, Architecture):
        run = partial(_in_pieces, call, module)
    elif capture is None:
        return call
    for _ in range(3):
        answers = Assumptions()
        with answering(answers.read):
            run()
    if capture is None:
        return run
    is_chunked = isinstance(module, Architecture) and bool(chunked_loops(module))
    with nullcontext() if is_chunked else answering(answers.assume):
        return partial(_launch, call, *capture(run))


def gpu_capture() -> Capture | None:
    """Returns what captures calls on the GPU; None without one."""
    return make_capture(torch.device("cuda", torch.cuda.current_device())) if torch.cuda.is_available() else None


def _launch(call: Call, result: Any, last: Launch) -> Any:  # Any: as above
    """`call` holds the tensors that the graphs read."""
    if isinstance(result, Pieces):
        result.launch()
    last()
    return result


def _in_pieces(call: Call, module: Architecture, cut: Cut | None = None) -> Pieces:
    weights = list(module.parameters())
    pieces = Pieces(weights) if cut is None else Pieces(weights, cut, is_captured=True)
    keeping_tape = partialmethod(torch.Tensor.backward, retain_graph=True)
    with pieces.running(module), patch.object(torch.Tensor, "backward", keeping_tape):
        call()
    if any(weight.grad is not None for weight in weights):
        pieces.backward()
    # The tape of an eager call must not meet a capture.
    module.ponder, module.losses = module.ponder.detach(), {}
    return pieces


def measure(case: Case, seconds: float, least: int = 5, *, graphs: bool = False) -> Result:
    """Calls both sides alternately, A B B A, for `seconds` and at least `least` rounds, then frees what was built. With
    `graphs`, our side is a CUDA graph."""
    if case.memory > LARGEST:
        return Result(case, left_out=f"would need about {case.memory:.0f} GiB")
    try:
        try:
            sides = case.build()
        except ModuleNotFoundError as error:
            return Result(case, left_out=f"`{error.name}` is not installed")
        if graphs and case.unit is MS:
            try:
                sides = Sides(captured(sides.ours), sides.theirs)
            except RuntimeError as error:
                return Result(case, left_out=f"it cannot be a CUDA graph: {str(error).splitlines()[0]}")
        return _measure_sides(case, sides, seconds, least)
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _measure_sides(case: Case, sides: Sides, seconds: float, least: int) -> Result:
    read, most = case.unit.read, case.unit.most
    for number in range(case.unit.warm):
        for call in (sides.ours, sides.theirs):
            duration, _ = _seconds(call)
            # On a GPU, a first call compiles kernels.
            if duration > LONGEST and (number or not torch.cuda.is_available()):
                return Result(case, left_out=f"a call takes {duration:.0f} s")
    ours: list[float] = []
    theirs: list[float] = []
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        while len(ours) < least or time.perf_counter() - start < seconds:
            turns = [(sides.ours, ours), (sides.theirs, theirs)]
            for call, values in turns if len(ours) % 2 == 0 else reversed(turns):
                values.append(read(call))
            if len(ours) == most:
                break
    finally:
        gc.enable()
    return Result(case, tuple(ours), tuple(theirs))
