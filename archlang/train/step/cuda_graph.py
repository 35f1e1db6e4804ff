"""Steps of training as CUDA graphs: one launch for a whole step, in place of one for each of its operations."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor, nn

from archlang.backend.runtime.loops import halting_loops
from archlang.train import mistakes
from archlang.train.devices import is_out_of_memory

# How many items a batch has, and how wide its fields are.
Shape = tuple[int, ...]
# What a step tells of itself: its loss, and the norm of the gradient if it was clipped.
Told = tuple[Tensor, Tensor | None]
Capture = Callable[[Callable[[], Told]], Callable[[], Told]]
# A shape of batches that has come so often gets a graph; so many shapes do. Of the recipes whose data is generated, an
# epoch has 1 to 21 shapes, and 77 for ListOps of up to 100 tokens, where the 64 most frequent are 98 % of the batches.
_OFTEN = 3
_MOST = 64


class GraphWarning(UserWarning):
    """Some steps are launched operation by operation, for want of memory for their graphs."""


def make_capture(module: nn.Module, device: torch.device, precision: str, processes: int = 1) -> Capture:
    """What records a step as a graph: the step is not taken by that, but whenever what is given back is called, which
    says where its results lie until the next step.

    All graphs have their memory in one pool, one on top of the other. That is sound as none reads what another has left
    there: a step begins without gradients, so that its own are written before they are read; weights, the optimizer's
    state, the data and the items are outside of the pool; and what a step tells is copied before the next one.

    Raises:
        RunError: the device has no graphs, or the module cannot become one."""
    if device.type != "cuda":
        raise mistakes.no_graphs(f"`{device.type}` has none")
    if precision != "32" or processes > 1:
        raise mistakes.no_graphs("they are of one device, and of precision 32")
    if next(halting_loops(module), None) is not None:
        raise mistakes.no_graphs("a halting loop ends by what it computes, and a graph goes on as it began")
    # The pool is only shared by what is recorded on one stream.
    pool = torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call] # torch's own

    def capture(step: Callable[[], Told]) -> Callable[[], Told]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            told = step()

        def launch() -> Told:
            graph.replay()
            return told

        return launch

    return capture


class Graphs:
    """The graphs of a run, one for each shape that its batches often have.

    The first steps of a shape are taken as ever. They warm up what torch sets up at a first call, and make the
    optimizer's state of every weight that the shape moves: made in a graph, it would be zero again at every launch. So
    no step is taken for warming up alone, and the weights are those of a run without graphs.

    A graph keeps every Python number of the step that it was recorded of. What changes between two steps is on the
    device: the numbers of the items, which are copied to where the graph reads them, what a schedule moves
    (`make_capturable`), and the steps that the optimizer counts. Dropout draws what it would have drawn: a launch moves
    the device's generator on by as much as the recorded operations would, so a checkpoint finds it where it belongs
    (`CUDAGeneratorState::replay_prologue` of torch).

    Batches are not padded to common widths: pools of like lengths have few shapes, and what reads where a sequence ends
    or is cut into chunks would see the padding."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._seen: Counter[Shape] = Counter()
        self._graphs: dict[Shape, tuple[Tensor, Callable[[], Told]]] = {}
        self._most = _MOST

    def is_due(self, shape: Shape) -> bool:
        """Whether a step of this shape, which is counted by that, is to be launched as a graph."""
        self._seen[shape] += 1
        return shape in self._graphs or (self._seen[shape] >= _OFTEN and len(self._graphs) < self._most)

    def launch(self, shape: Shape, items: Int[Tensor, " b"], step: Callable[[Tensor], Told]) -> Told | None:
        """Takes a step with these items. None if it has not been taken, as the memory does not hold its graph.

        Raises:
            RunError: the step cannot become a graph."""
        if shape not in self._graphs:
            mine = items.clone()
            try:
                self._graphs[shape] = mine, self._capture(lambda: step(mine))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    # Where recording fails, torch fails once more at its end, and says less.
                    raise mistakes.not_captured(_first_line(_origin(error))) from error
                self._most = len(self._graphs)
                said = f"the memory does not suffice for more than {self._most} CUDA graphs"
                warnings.warn(f"{said}; steps of other shapes are launched without", GraphWarning, stacklevel=2)
                return None
        mine, launched = self._graphs[shape]
        mine.copy_(items)
        loss, norm = launched()
        return loss.clone(), None if norm is None else norm.clone()


@contextmanager
def graphs_told() -> Iterator[None]:
    """Keeps torch from warning of an optimizer that could be recorded, and takes a step that is not."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")
        yield


def _origin(error: BaseException) -> BaseException:
    return error if error.__context__ is None else _origin(error.__context__)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
