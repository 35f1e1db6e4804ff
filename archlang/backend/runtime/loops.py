"""The loops at run time. Each runs a compiled body in the module that owns the body's instances.

A loop is no module: its weights stand in the module tree once, under the instance's path. The extra results of a body,
after its states, are numbers of each sample, [b]: the ponder of its halting loops, the depth of the outermost ones, and
its auxiliary losses."""

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from archlang.backend.runtime.call_cache import in_same_call
from archlang.backend.runtime.carried_steps import CarriedStates
from archlang.backend.runtime.fixed_points import at_fixed_point
from archlang.backend.runtime.graph_loops import is_exporting, while_steps
from archlang.backend.runtime.halting import HaltingBlock, HaltingState
from archlang.backend.runtime.stacking import in_any_model, is_plain, needs_plain_form

# Takes the module, the states, captured values and masks; returns the states after one step, then the extra results.
# Any: a value is a tensor, a mask or None for one, a number, or chunks.
Body = Callable[..., tuple[Any, ...]]
# The extra results of a body.
Costs = tuple[Float[Tensor, " b"], ...]
PONDER, DEPTH = "ponder", "depth"
"""the names of extra results; those of auxiliary losses begin with `losses.`"""
STEPS_BETWEEN_CHECKS = 4
"""the number of steps on a GPU between two checks of which samples have halted"""


def computed_again(function: Callable[..., Any], *arguments: Any) -> Any:  # Any: as in `Body`
    """Returns the result of a function, of which nothing but the arguments is kept until backward computes it again."""
    if not (torch.is_grad_enabled() and is_plain()):
        return function(*arguments)
    return checkpoint(function, *arguments, use_reentrant=False, context_fn=in_same_call)


def resolve(owner: nn.Module, words: Sequence[str]) -> Any:  # Any: a stack's steps, or a halting block
    """Returns the attribute of a dotted name. torch.compile cannot trace `operator.attrgetter`."""
    value = owner
    for word in words:
        value = getattr(value, word)
    return value


@dataclass(eq=False)
class SplitBody:
    """The body of a scan in two functions. `head` reads only the values of the indices `reads`, and runs for many parts
    at once; `rest` reads all values, then the results of `head`."""

    head: Body = field(repr=False)
    rest: Body = field(repr=False)
    reads: tuple[int, ...]


class Attached:
    """What a program sets on a module beside its weights: a loop."""


class ObservedLoop(Attached):
    """Stands for a loop, `runtime`, while its turns are recorded."""

    runtime: Any  # Any: one of the loops


@dataclass(eq=False, kw_only=True)
class Loop(Attached):
    """A loop whose body runs in `owner`, or in a step of a stack of `owner`. `extras` names the body's extra
    results."""

    owner: nn.Module = field(repr=False)
    body: Body = field(repr=False)
    extras: tuple[str, ...]
    split: SplitBody | None = None
    parallel: Body | None = None


@dataclass(eq=False)
class StepResults:
    """What the steps of a loop emit, except for those that `truncated` leaves without gradients. `weights` are the
    probabilities of halting at each step, [b] or [b n] with the sum 1; empty if the loop does not halt, or if its
    halting block has no probabilities."""

    values: list[Tensor] = field(default_factory=list)
    weights: list[Float[Tensor, "b *n"]] = field(default_factory=list)


@dataclass(eq=False, kw_only=True)
class _CountedLoop(Loop):
    """A loop over a known number of steps. `states` counts the states; with `emits`, each step returns a result beside
    them, of which the loop's is the last. Gradients flow through the last `truncated` steps only, or through all.
    `step_results` gathers what the steps emit, unless it is None. With `carried`, the loop takes one step from the
    states of the training step before. With `together`,
    it keeps its states alone until backward, which computes so many steps at a time again. If `settled`, it has the
    gradient of a fixed point, of which `truncated` is the number of terms, all steps if that is None."""

    states: int
    emits: bool = False
    truncated: int | None = None
    step_results: StepResults | None = None
    carried: CarriedStates | None = None
    together: int | None = None
    settled: bool = False

    def __call__(self, *values: Any) -> Any:
        states, captured = values[: self.states], values[self.states :]
        if self.carried is not None:
            states = self.carried.resume(states)
        steps = self._steps()[: None if self.carried is None else 1]
        detached = 0 if self.truncated is None else max(0, len(steps) - self.truncated)
        take: Callable[..., Any] = self._take_steps
        if self.settled:
            detached, take = max(0, len(steps) - 1), partial(self._settle, self.truncated or len(steps))
        elif self.together is not None:
            take = partial(computed_again, self._take_steps)
        emissions: list[Any] = []
        extras: list[Costs] = []
        if detached:
            with torch.no_grad():
                results = self._take_steps(steps[:detached], *states, *captured)
            # A step may return a value from outside as it is.
            states, emissions, extras = tree_map(_detached, results)
        first = len(emissions) if torch.is_grad_enabled() else 0
        size = self.together or max(len(steps), 1)
        for start in range(detached, len(steps), size):
            states, own_emissions, own_extras = take(steps[start : start + size], *states, *captured)
            emissions = own_emissions if self.step_results is None else emissions + own_emissions
            extras += own_extras
        if self.step_results is not None:
            self.step_results.values[:] = emissions[first:]
        if self.carried is not None:
            self.carried.keep(states)
        outputs = (*states, *emissions[-1:])
        if self.extras:
            return (*outputs, *_over_steps(self.extras, extras))
        return outputs if len(outputs) > 1 else outputs[0]

    def _settle(self, terms: int, steps: Sequence[Body], *values: Any) -> Any:
        """Takes the last step, with the gradient of a fixed point."""
        states, captured = values[: self.states], values[self.states :]
        return at_fixed_point(lambda *own: self._take_steps(steps, *own, *captured), states, terms)

    def _take_steps(self, steps: Sequence[Body], *values: Any) -> tuple[tuple[Any, ...], list[Any], list[Costs]]:
        """Takes some steps. Returns the states after them, what they emit (the last one alone unless `step_results`
        gathers it), and their extra results."""
        states, captured = values[: self.states], values[self.states :]
        emissions: list[Any] = []
        extras: list[Costs] = []
        for step in steps:
            results = step(*states, *captured)
            states = results[: self.states]
            if self.step_results is None:
                emissions.clear()
            emissions += results[self.states : self.states + self.emits]
            extras.append(results[self.states + self.emits :])
        return states, emissions, extras

    def _steps(self) -> Sequence[Body]:
        """The steps as functions of the states and the captured values."""
        raise NotImplementedError


@dataclass(eq=False, kw_only=True)
class RepeatLoop(_CountedLoop):
    """Updates the states `count` times with one set of weights. If `drawn` is not "", the block at this path draws the
    number of steps in training, unless the training loop has set it as `drawn_count`."""

    count: int
    drawn: str = ""
    drawn_count: int | None = None

    def draw(self) -> int:
        """Draws a number of steps."""
        block = resolve(self.owner, self.drawn.split("."))
        return int(block(1).item())

    def _steps(self) -> Sequence[Body]:
        count = self.count
        if self.drawn and self.owner.training and not is_exporting():
            count = self.draw() if self.drawn_count is None else self.drawn_count
        return [partial(self.body, self.owner)] * count


@dataclass(eq=False, kw_only=True)
class StepModules:
    """A loop whose steps have modules of their own, at `path` in `owner`."""

    owner: nn.Module = field(repr=False)
    path: str

    def __post_init__(self) -> None:
        self._words = self.path.split(".")

    def steps(self) -> nn.ModuleList:
        """Returns the modules of the steps. They are looked up at each call, because a wrapper may replace a step."""
        steps: nn.ModuleList = resolve(self.owner, self._words)
        return steps


@dataclass(eq=False, kw_only=True)
class StackLoop(StepModules, _CountedLoop):
    """Updates the states once for each of its steps, each with its own weights."""

    def _steps(self) -> Sequence[Body]:
        return [partial(step, self.body) for step in self.steps()]


class ModuleGroup(nn.Module):
    """A module that holds others. Its attribute lookup tries modules before weights, which is faster than in torch."""

    def __getattr__(self, name: str) -> Any:  # Any: as in torch
        module = self.__dict__.get("_modules", {}).get(name)
        return super().__getattr__(name) if module is None else module

    def __getstate__(self) -> dict[str, Any]:  # Any: as above
        # Loops hold functions, which cannot be pickled; the program attaches them to a copy.
        return {name: value for name, value in self.__dict__.items() if not isinstance(value, Attached)}


class StackStep(ModuleGroup):
    """One step of a stack: the module that the stack's body runs in."""

    def forward(self, body: Body, *values: Any) -> tuple[Any, ...]:
        return body(self, *values)


# The least share of rows that are removed at a time: copying the remaining rows has a cost.
_LEAST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class RowSplit:
    """The rows of a batch that remain in it and those that leave, as indices."""

    remaining: Int[Tensor, " remaining"]
    leaving: Int[Tensor, " leaving"]


class Compaction:
    """The samples that remain in the batch of a loop, and the results of those that left.

    A sample leaves when none of its positions is live. The body must compute each sample independently of the others,
    and the halting block must not change what it holds of a halted sample."""

    def __init__(self) -> None:
        self._indices: Int[Tensor, " r"] | None = None  # of the rows in the full batch; None before rows leave
        self._left: list[tuple[Int[Tensor, " r"], tuple[Tensor, ...]]] = []

    def split(self, live: Bool[Tensor, "r *_n"]) -> RowSplit | None:
        """Returns which rows remain and which leave, or None if no row is live. No row leaves if too few would."""
        is_live = in_any_model(live if live.dim() == 1 else live.flatten(1).any(1))
        remaining = is_live.nonzero()[:, 0]
        if not len(remaining):
            return None
        enough = len(is_live) - len(remaining) >= max(1, _LEAST_SHARE * len(is_live))
        return RowSplit(remaining, (~is_live).nonzero()[:, 0] if enough else remaining[:0])

    def remove(self, rows: RowSplit, results: Sequence[Tensor], values: Sequence[Any]) -> list[Any]:
        """Stores the results of the leaving rows. Returns the values of the remaining rows."""  # Any: values of a loop
        size = len(rows.remaining) + len(rows.leaving)
        indices = torch.arange(size, device=rows.remaining.device) if self._indices is None else self._indices
        self._left.append((indices[rows.leaving], tuple(result.index_select(0, rows.leaving) for result in results)))
        self._indices = indices[rows.remaining]

        def remaining(tensor: Tensor) -> Tensor:
            # A field of a halting state without a row for each sample is a number of the loop.
            return tensor.index_select(0, rows.remaining) if tensor.shape[:1] == (size,) else tensor

        return [map_tensors(remaining, value) for value in values]

    def restore(self, results: Sequence[Tensor]) -> list[Tensor]:
        """Returns the results of all samples in their order; `results` are those of the remaining rows."""
        if self._indices is None:
            return list(results)
        parts = [*self._left, (self._indices, tuple(results))]
        order = torch.cat([indices for indices, _ in parts]).argsort()
        return [torch.cat(columns).index_select(0, order) for columns in zip(*(part for _, part in parts), strict=True)]


def map_tensors(change: Callable[[Tensor], Tensor], value: Any) -> Any:  # Any: a tensor, a mask, a number, chunks
    """Returns a value of a loop with each of its tensors changed, in their order."""
    match value:
        case Tensor():
            return change(value)
        case HaltingState():
            return replace(
                value, **{item.name: map_tensors(change, getattr(value, item.name)) for item in fields(value)}
            )
        case tuple() | list():
            return type(value)(map_tensors(change, item) for item in value)
    return value


# What the steps of a halting loop change: its halting state, its states, its emission, and the sums of its body's
# extra results.
Turn = tuple[HaltingState, list[Tensor], Tensor | None, Costs | None]
# Takes some steps: from a turn, the captured values and the mask.
Chunk = Callable[[Turn, tuple[Any, ...]], Turn]  # Any: as in `Body`


@dataclass(eq=False, kw_only=True)
class HaltingLoop(Loop):
    """Updates the states until the halting block of `path` halts everything, at most `limit` times.

    `states` counts the states, and `halted` is the index of the one that halts. With `emits`, each step returns a
    result beside them, of which the loop's is that of the last accepted step, or of the first if none is accepted.
    `ranks` has the number of axes of each state and of the emission. Where `has_positions` is true, it has the
    positions of the halted state, and changes only at those that took the step. `step_results` gathers the results
    after each step, unless it is None. With `compact`, halted samples leave the batch, which changes no result.
    With `all_steps`, the full batch is computed in all steps, as the work of a CUDA graph is fixed. With `run_chunks`,
    that takes chunks of steps of the full batch until everything has halted. `watch` is called with the halting state
    of the full batch after each step."""

    path: str
    limit: int
    states: int
    halted: int
    mixture: bool
    ranks: tuple[int, ...]
    has_positions: tuple[bool, ...]
    depth: bool
    emits: bool = False
    step_results: StepResults | None = None
    compact: bool = False
    all_steps: bool = False
    run_chunks: Callable[[Sequence[Chunk], Turn, tuple[Any, ...]], Turn] | None = None  # Any: as in `Chunk`
    watch: Callable[[HaltingState], None] | None = None

    def __post_init__(self) -> None:
        self._words = self.path.split(".")
        self._other_states = tuple(index for index in range(self.states) if index != self.halted)

    @property
    def block(self) -> HaltingBlock:
        """The block that halts the loop."""
        block: HaltingBlock = resolve(self.owner, self._words)
        return block

    def __call__(self, *values: Any, mask: Bool[Tensor, "b n"] | None) -> tuple[Any, ...]:
        halted, block, count = self.halted, self.block, self.states
        states, captured = list(values[:count]), values[count:]
        if is_exporting():
            return self._in_graph(states, captured, mask)
        halting = block.start(states[halted], mask)
        emitted: Tensor | None = None
        inner_costs: Costs | None = None
        if self.run_chunks is not None and self.step_results is None and self.watch is None:
            sizes = [
                min(STEPS_BETWEEN_CHECKS, self.limit - first) for first in range(0, self.limit, STEPS_BETWEEN_CHECKS)
            ]
            chunks = [partial(self._take_steps, size) for size in sizes]
            turn = self.run_chunks(chunks, (halting, states, emitted, inner_costs), (*captured, mask))
            return tuple(self._results(*turn, mask))
        batch = len(states[halted])
        leaves = self.compact and self.watch is None and self.step_results is None
        compaction = Compaction() if leaves and batch > 1 and not self._is_masked() else None
        step_weights = _StepWeights()
        if self.step_results is not None:
            self.step_results.values.clear()
        for step in range(self.limit):
            halting, states, emitted, inner_costs = self._step((halting, states, emitted, inner_costs), captured, mask)
            if self.watch is not None:
                self.watch(halting)
            if self.step_results is not None and emitted is not None:
                self.step_results.values.append(emitted)
                step_weights.add(halting)
            # A check waits for the device, so there is none after the last step.
            if step + 1 == self.limit or not self._checks_halted(step, halting.live.device):
                continue
            if compaction is None:
                if not in_any_model(halting.live).any():
                    break
                continue
            rows = compaction.split(halting.live)
            if rows is None:
                break
            if len(rows.leaving):
                leaving_results = self._results(halting, states, emitted, inner_costs, mask)
                halting, emitted, inner_costs, mask, *remaining = compaction.remove(
                    rows, leaving_results, [halting, emitted, inner_costs, mask, *states, *captured]
                )
                states, captured = remaining[:count], tuple(remaining[count:])
        if self.step_results is not None:
            self.step_results.weights = step_weights.probabilities()
        loop_results = self._results(halting, states, emitted, inner_costs, mask)
        return tuple(loop_results if compaction is None else compaction.restore(loop_results))

    def _take_steps(self, count: int, turn: Turn, fixed: tuple[Any, ...]) -> Turn:  # Any: as in `Chunk`
        for _ in range(count):
            turn = self._step(turn, fixed[:-1], fixed[-1])
        return turn

    def _step(self, turn: Turn, captured: tuple[Any, ...], mask: Bool[Tensor, "b n"] | None) -> Turn:
        halting, before, emitted, inner_costs = turn
        states = [*before]
        states[self.halted] = halting.state
        mixture = (halting.mixture,) if self.mixture else ()
        results = self.body(self.owner, *states, *mixture, *captured)
        halting = self.block.advance(halting, results[self.halted], mask)
        inner_costs = self._update(states, halting.accepted, results, inner_costs)
        return halting, states, self._emission(halting.accepted, results, emitted), inner_costs

    def _update(
        self, states: list[Tensor], accepted: Bool[Tensor, "b *n"], results: tuple[Any, ...], inner_costs: Costs | None
    ) -> Costs | None:
        """Updates the states other than the halted one by the results of a step. Returns the sums of the body's extra
        results; None if it has none."""
        for index in self._other_states:
            moved = broadcast_mask(accepted, self.ranks[index], self.has_positions[index])
            states[index] = torch.where(moved, results[index], states[index])
        if not self.extras:
            return None
        rejected = ~broadcast_mask(accepted, 1, has_positions=False)
        costs = tuple(cost.masked_fill(rejected, 0) for cost in results[len(self.ranks) :])
        return costs if inner_costs is None else tuple(map(operator.add, inner_costs, costs))

    def _emission(
        self, accepted: Bool[Tensor, "b *n"], results: tuple[Any, ...], emitted: Tensor | None
    ) -> Tensor | None:
        if not self.emits or emitted is None:
            return results[self.states] if self.emits else None
        moved = broadcast_mask(accepted, self.ranks[-1], self.has_positions[-1])
        return torch.where(moved, results[self.states], emitted)

    def _in_graph(
        self, states: Sequence[Tensor], captured: tuple[Any, ...], mask: Bool[Tensor, "b n"] | None
    ) -> tuple[Any, ...]:
        """The loop as one operation of torch, with the full batch in each step."""
        halted, block, count = self.halted, self.block, self.states
        first = block.start(states[halted], mask)
        if mask is None and first.live.dim() > 1:
            mask = torch.ones_like(first.live)
        names = [item.name for item in fields(first) if getattr(first, item.name) is not None]
        # Numbers of the loop, such as the step, are tensors in it.
        numbers = [getattr(first, name) for name in names]
        carried = [value if isinstance(value, Tensor) else torch.full((), value) for value in numbers]
        zeros = [first.ponder.new_zeros(first.ponder.shape) for _ in self.extras]

        def unpacked(values: Sequence[Tensor]) -> Turn:
            halting = replace(first, **dict(zip(names, values[1:], strict=False)))
            rest = list(values[1 + len(names) :])
            costs, emitted = rest[count : count + len(zeros)], rest[count + len(zeros) :]
            return halting, rest[:count], emitted[0] if emitted else None, tuple(costs) or None

        def continues(values: Sequence[Tensor]) -> Tensor:
            return (values[0] < self.limit) & values[1 + names.index("live")].any()

        def step(values: Sequence[Tensor]) -> Sequence[Tensor]:
            halting, states, emitted, inner_costs = self._step(unpacked(values), captured, mask)
            changed = [getattr(halting, name) for name in names]
            return [values[0] + 1, *changed, *states, *(inner_costs or ()), *([] if emitted is None else [emitted])]

        start = torch.zeros((), dtype=torch.int64, device=states[halted].device)
        initial: Sequence[Tensor] = [start, *carried, *states, *zeros]
        if self.emits:
            # The first step determines the shape of the emission.
            initial = [value if isinstance(value, Tensor) else torch.full((), value) for value in step(initial)]
        return tuple(self._results(*unpacked(while_steps(continues, step, initial)), mask))

    def _is_masked(self) -> bool:
        """Whether the loop computes all samples in all steps: torch.compile and vmap cannot trace a check of what has
        halted."""
        return self.all_steps or torch.compiler.is_compiling() or needs_plain_form()

    def _checks_halted(self, step: int, device: torch.device) -> bool:
        """Whether to check after a step what has halted. A check waits for a GPU, so there it is rare; the steps in
        between change no result, because nothing that has halted changes."""
        if self._is_masked():
            return False
        return not self.compact or device.type != "cuda" or step % STEPS_BETWEEN_CHECKS == STEPS_BETWEEN_CHECKS - 1

    def _results(
        self,
        halting: HaltingState,
        states: Sequence[Tensor],
        emitted: Tensor | None,
        inner_costs: Costs | None,
        mask: Bool[Tensor, "b n"] | None,
    ) -> list[Tensor]:
        """The results of the loop for the samples of a halting state."""
        results = [*states]
        results[self.halted] = halting.mixture
        if emitted is not None:
            results.append(emitted)
        costs = dict(zip(self.extras, inner_costs or (), strict=True))
        results.append(halting.ponder + costs.pop(PONDER) if PONDER in costs else halting.ponder)
        if self.depth:
            results.append(mean_steps(halting, mask))
        return [*results, *costs.values()]


class _StepWeights:
    """The probabilities of halting at the steps of a loop.

    With the probability r_t of not halting before step t, p_t = (r_t - r_{t+1}) / r_1, and p_T = r_T / r_1 for the last
    accepted step T. If no step is accepted, p_1 = 1."""

    def __init__(self) -> None:
        self._remaining: list[Float[Tensor, "b *n"]] = []

    def add(self, halting: HaltingState) -> None:
        """Adds a step."""
        if halting.remaining is not None:
            self._remaining.append(torch.where(halting.accepted, halting.remaining, 0 if self._remaining else 1))

    def probabilities(self) -> list[Float[Tensor, "b *n"]]:
        """Returns the probability of each step; nothing if the halting block has no probabilities."""
        if not self._remaining:
            return []
        following = [*self._remaining[1:], torch.zeros_like(self._remaining[0])]
        first = self._remaining[0]
        return [(before - after) / first for before, after in zip(self._remaining, following, strict=True)]


def _detached(value: Any) -> Any:  # Any: as in `Body`
    return value.detach() if isinstance(value, Tensor) else value


def drawn_loops(module: nn.Module) -> list[RepeatLoop]:
    """Returns every loop of a compiled module whose number of steps is drawn in training."""
    values = [value for runner in module.modules() for value in vars(runner).values()]
    return [value for value in values if isinstance(value, RepeatLoop) and value.drawn]


@contextmanager
def counts_drawn(module: nn.Module, seed: int, step: int) -> Iterator[None]:
    """Draws the numbers of steps that the loops of a module take inside. They depend on the seed and the training step
    alone: they are equal in all parts of a batch, in all processes and in a resumed run."""
    loops = drawn_loops(module)
    try:
        for index, loop in enumerate(loops):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(hash((seed, step, index)) % 2**63)
                loop.drawn_count = loop.draw()
        yield
    finally:
        for loop in loops:
            loop.drawn_count = None


def halting_loops(module: nn.Module) -> Iterator[HaltingLoop]:
    """Yields every halting loop in a compiled module, once for each step of the stacks around it. Set the `watch` of a
    loop to observe its halting states."""
    for runner in module.modules():
        yield from (value for value in vars(runner).values() if isinstance(value, HaltingLoop))


def broadcast_mask(moved: Bool[Tensor, "b *n"], rank: int, has_positions: bool) -> Bool[Tensor, "..."]:
    """Returns the mask of what took a step, with as many axes as a state. A state without the mask's positions moves
    if any of them does."""
    if moved.dim() > 1 and not has_positions:
        moved = moved.any(1)
    return moved.reshape(*moved.shape, *[1] * (rank - moved.dim()))


def _over_steps(names: Sequence[str], extras: Sequence[Costs]) -> Costs:
    """The sums of the steps' ponder and auxiliary losses, and the mean of their depths."""
    totals = map(total_of, zip(*extras, strict=True))
    return tuple(total / len(extras) if name == DEPTH else total for name, total in zip(names, totals, strict=True))


def total_of(values: Sequence[Float[Tensor, " b"]]) -> Float[Tensor, " b"]:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def mean_steps(halting: HaltingState, mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, " b"]:
    """The steps of each sample; the mean over its real positions if positions halt separately."""
    steps = halting.steps.float()
    if steps.dim() == 1:
        return steps
    if mask is None:
        return steps.mean(1).nan_to_num()  # of no positions
    return steps.masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)


# A loop whose emission can be the result of a model.
EmittingLoop = RepeatLoop | StackLoop | HaltingLoop
