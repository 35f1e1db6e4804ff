"""The loops at run time. Each runs a body that was written as Python, in the module that its instances belong to.

A loop is no module of its own: whatever has weights stands in the module tree once, under the instance's path. The
extra results of a body, behind its states, are the ponder of its halting loops for each sample, [b], and how deep the
outermost ones of them went, [b]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.runtime.compaction import Compaction
from archlang.backend.runtime.halting import HaltingBlock, Tally
from archlang.backend.runtime.stacking import anywhere

# Takes the module, the states, captured values and masks; gives the states after one step, then the extra results.
# Any: a value is a tensor, a mask or None for one, a number, or chunks.
Body = Callable[..., tuple[Any, ...]]
# On a GPU, so many steps go by before anybody asks who has halted.
_STEPS_BETWEEN = 4
# What chunks have ahead is computed for so many positions at once, or for one chunk: memory stays bounded.
_POSITIONS_AHEAD = 1 << 14


def find(owner: nn.Module, words: Sequence[str]) -> Any:  # Any: a stack's steps, or a halting block
    """What stands under a dotted name. Not `operator.attrgetter`, which torch.compile does not see through."""
    found = owner
    for word in words:
        found = getattr(found, word)
    return found


@dataclass(eq=False)
class Halves:
    """A body in two. `head` reads the values of the numbers `reads` alone; that of a first step may come ahead."""

    head: Body = field(repr=False)
    rest: Body = field(repr=False)
    reads: tuple[int, ...]

    def __call__(self, owner: nn.Module, *values: Any, ahead: tuple[Any, ...] | None = None) -> tuple[Any, ...]:
        if ahead is None:
            ahead = self.head(owner, *(values[index] for index in self.reads))
        return self.rest(owner, *values, *ahead)

    def begun(self, ahead: tuple[Any, ...] | None) -> Body:
        """The body of a first step."""
        return self if ahead is None else partial(self, ahead=ahead)


@dataclass(eq=False)
class Repeat:
    """Updates the states `count` times with the same weights."""

    owner: nn.Module = field(repr=False)
    body: Body = field(repr=False)
    count: int
    states: int
    extras: int
    halves: Halves | None = None

    def first(self, *values: Any) -> tuple[Any, ...]:
        """The head of the first step."""
        assert self.halves is not None
        return self.halves.head(self.owner, *values)

    def __call__(self, *values: Any, ahead: tuple[Any, ...] | None = None) -> Any:
        owner, body = self.owner, self.halves or self.body
        now = self.halves.begun(ahead) if self.halves is not None else body
        states, fixed = values[: self.states], values[self.states :]
        if not self.extras:
            for _ in range(self.count):
                states = now(owner, *states, *fixed)
                now = body
            return states if len(states) > 1 else states[0]
        extras: list[tuple[Float[Tensor, " b"], ...]] = []
        for _ in range(self.count):
            results = now(owner, *states, *fixed)
            now = body
            states = results[: self.states]
            extras.append(results[self.states :])
        return (*states, *_over_steps(extras))


@dataclass(eq=False)
class Stack:
    """Updates the states once in each step; each step has its own weights."""

    owner: nn.Module = field(repr=False)
    body: Body = field(repr=False)
    path: str
    states: int
    extras: int
    halves: Halves | None = None

    def __post_init__(self) -> None:
        self._words = self.path.split(".")

    def steps(self) -> nn.ModuleList:
        """Looked up each time, as a wrapper may have taken the place of a step."""
        steps: nn.ModuleList = find(self.owner, self._words)
        return steps

    def first(self, *values: Any) -> tuple[Any, ...]:
        """The head of the first step."""
        assert self.halves is not None
        found: tuple[Any, ...] = self.steps()[0](self.halves.head, *values)
        return found

    def __call__(self, *values: Any, ahead: tuple[Any, ...] | None = None) -> Any:
        body = self.halves or self.body
        now = self.halves.begun(ahead) if self.halves is not None else body
        states, fixed = values[: self.states], values[self.states :]
        if not self.extras:
            for step in self.steps():
                states = step(now, *states, *fixed)
                now = body
            return states if len(states) > 1 else states[0]
        extras: list[tuple[Float[Tensor, " b"], ...]] = []
        for step in self.steps():
            results = step(now, *states, *fixed)
            now = body
            states = results[: self.states]
            extras.append(results[self.states :])
        return (*states, *_over_steps(extras))


class Group(nn.Module):
    """A module that holds others. It finds them faster than torch's does, which looks among its weights first."""

    def __getattr__(self, name: str) -> Any:  # Any: as in torch
        found = self.__dict__.get("_modules", {}).get(name)
        return super().__getattr__(name) if found is None else found


class Step(Group):
    """One step of a stack: the module that the stack's body runs in."""

    def forward(self, body: Body, *values: Any) -> tuple[Any, ...]:
        return body(self, *values)


@dataclass(eq=False)
class Halting:
    """Updates the states until the halting block stops all positions, at most `limit` times.

    `halted` is the state that halts, and `ranks` has the number of axes of each state; where `along` is true, a state
    has the positions that the halted one has, and moves only at those that took the step. With `compact`, samples that
    have halted leave the batch, which changes no result; `computed` counts the steps of samples that were computed, and
    `masked` those that would have been without it. `watch` sees each tally, of the whole batch."""

    owner: nn.Module = field(repr=False)
    body: Body = field(repr=False)
    path: str
    limit: int
    halted: int
    mixture: bool
    ranks: tuple[int, ...]
    along: tuple[bool, ...]
    extras: int
    depth: bool
    compact: bool = False
    watch: Callable[[Tally], None] | None = None
    computed: int = 0
    masked: int = 0
    halves: Halves | None = None

    def __post_init__(self) -> None:
        self._words = self.path.split(".")
        self._others = tuple(index for index in range(len(self.ranks)) if index != self.halted)

    @property
    def block(self) -> HaltingBlock:
        """What the loop halts by."""
        block: HaltingBlock = find(self.owner, self._words)
        return block

    def first(self, *values: Any) -> tuple[Any, ...]:
        """The head of the first step."""
        assert self.halves is not None
        return self.halves.head(self.owner, *values)

    def __call__(
        self, *values: Any, mask: Bool[Tensor, "b n"] | None, ahead: tuple[Any, ...] | None = None
    ) -> tuple[Any, ...]:
        owner, body, halted = self.owner, self.halves or self.body, self.halted
        block = self.block
        count = len(self.ranks)
        states, fixed = list(values[:count]), values[count:]
        tally = block.start(states[halted], mask)
        now = body
        if self.halves is not None and tally.state is states[halted]:
            now = self.halves.begun(ahead)
        inner: Float[Tensor, " b"] | None = None
        batch = len(states[halted])
        compaction = Compaction() if self.compact and self.watch is None and batch > 1 else None
        for step in range(self.limit):
            states[halted] = tally.state
            self.computed += len(tally.state)
            self.masked += batch
            mixture = (tally.mixture,) if self.mixture else ()
            results = now(owner, *states, *mixture, *fixed)
            now = body
            tally = block.advance(tally, results[halted], mask)
            accepted = tally.accepted
            for index in self._others:
                moved = spread(accepted, self.ranks[index], self.along[index])
                states[index] = torch.where(moved, results[index], states[index])
            if self.extras:
                added = results[count].masked_fill(~spread(accepted, 1, along=False), 0)
                inner = added if inner is None else inner + added
            if self.watch is not None:
                self.watch(tally)
            # Asking the device for an answer is slow, so not after the last step.
            if step + 1 == self.limit or not self._asks(step, tally.live.device):
                continue
            if compaction is None:
                if not anywhere(tally.live).any():
                    break
                continue
            rows = compaction.rows(tally.live)
            if rows is None:
                break
            if len(rows.go):
                ending = self._ending(tally, states, inner, mask)
                given = compaction.take(rows, ending, [tally, inner, mask, *states, *fixed])
                tally, inner, mask, *others = given
                states, fixed = others[:count], tuple(others[count:])
        ending = self._ending(tally, states, inner, mask)
        return tuple(ending if compaction is None else compaction.together(ending))

    def _asks(self, step: int, device: torch.device) -> bool:
        """Whether it is time to see who has halted. A GPU would have to be waited for, so there only after some steps;
        what is computed meanwhile changes nothing, if nothing that has halted is changed any more."""
        return not self.compact or device.type != "cuda" or step % _STEPS_BETWEEN == _STEPS_BETWEEN - 1

    def _ending(
        self,
        tally: Tally,
        states: Sequence[Tensor],
        inner: Float[Tensor, " b"] | None,
        mask: Bool[Tensor, "b n"] | None,
    ) -> list[Tensor]:
        """The results of the loop for the samples of a tally."""
        results = [*states]
        results[self.halted] = tally.mixture
        results.append(tally.ponder if inner is None else tally.ponder + inner)
        if self.depth:
            results.append(_mean_steps(tally, mask))
        return results


Chunk = tuple[Float[Tensor, "b _c d"], Bool[Tensor, "b _c"] | None]


@dataclass(eq=False)
class Scan:
    """Walks chunks in order. A sample without a real position in a chunk keeps its carried states there."""

    owner: nn.Module = field(repr=False)
    body: Body = field(repr=False)
    carried: int
    emits: bool
    extras: int
    halves: Halves | None = None

    def __call__(self, chunks: Sequence[Chunk], *values: Any) -> Any:
        owner, body, count = self.owner, self.halves or self.body, self.carried
        states, fixed = values[:count], values[count:]
        emitted: list[Float[Tensor, "b _c d"]] = []
        extras: list[tuple[Float[Tensor, " b"], ...]] = []
        reals: list[Bool[Tensor, " b"] | None] = []
        ahead: list[tuple[Any, ...]] = []
        for index, (chunk, mask) in enumerate(chunks):
            if self.halves is not None:
                if index == len(ahead):
                    ahead += self._ahead(self.halves, chunks[index:], fixed)
                body = self.halves.begun(ahead[index])
            results = body(owner, chunk, mask, *states, *fixed)
            real = mask.any(1) if mask is not None and (count or self.extras) else None
            if real is None:
                states = results[:count]
            else:
                states = tuple(
                    torch.where(spread(real, new.dim(), along=False), new, old)
                    for new, old in zip(results[:count], states, strict=True)
                )
            if self.emits:
                emitted.append(results[count])
            if self.extras:
                extras.append(results[count + self.emits :])
                reals.append(real)
        results = (*states, torch.cat(emitted, 1)) if self.emits else states
        if self.extras:
            return (*results, *_over_chunks(extras, reals))
        return results if len(results) > 1 else results[0]

    def _ahead(self, halves: Halves, chunks: Sequence[Chunk], fixed: Sequence[Any]) -> list[tuple[Any, ...]]:
        """What the head gives for the next chunks, as many as it takes at once."""
        first = chunks[0][0]
        batch, length = first.shape[:2]
        most = max(1, _POSITIONS_AHEAD // max(1, batch * length))
        group = list(takewhile(lambda one: one[0].shape[1] == length, chunks[:most]))
        count = len(group)
        given = [*zip(*group, strict=True), *((one,) * count for one in ((None,) * self.carried + (*fixed,)))]
        found = halves.head(self.owner, *(_behind(given[index]) for index in halves.reads))
        return list(zip(*(_apart(one, batch, count) for one in found), strict=True))


def _behind(values: Sequence[Any]) -> Any:
    """Values of one chunk after the other as those of one batch; a number, or None for a mask, is that of all."""
    return torch.cat(list(values)) if isinstance(values[0], Tensor) and len(values) > 1 else values[0]


def _apart(found: Any, batch: int, count: int) -> Sequence[Any]:
    """The opposite."""
    if isinstance(found, tuple):
        return list(zip(*(_apart(one, batch, count) for one in found), strict=True))
    return torch.split(found, batch) if isinstance(found, Tensor) else (found,) * count


def halting_loops(module: nn.Module) -> Iterator[Halting]:
    """Every halting loop in a compiled module, once for each step of the stacks that it is in; set its `watch` to see
    where it halts."""
    for runner in module.modules():
        yield from (value for value in vars(runner).values() if isinstance(value, Halting))


def spread(moved: Bool[Tensor, "b *n"], rank: int, along: bool) -> Bool[Tensor, "..."]:
    """What took a step, with as many axes as a state; a state without those positions moves if any of them does."""
    if moved.dim() > 1 and not along:
        moved = moved.any(1)
    return moved.reshape(*moved.shape, *[1] * (rank - moved.dim()))


def _over_steps(extras: Sequence[tuple[Float[Tensor, " b"], ...]]) -> tuple[Float[Tensor, " b"], ...]:
    """Ponder adds up; depth is the mean of the steps'."""
    ponder, *depths = (_sum(values) for values in zip(*extras, strict=True))
    return (ponder, *(depth / len(extras) for depth in depths))


def _over_chunks(
    extras: Sequence[tuple[Float[Tensor, " b"], ...]], reals: Sequence[Bool[Tensor, " b"] | None]
) -> tuple[Float[Tensor, " b"], ...]:
    """Ponder and depth are means over a sample's real chunks."""
    if reals[0] is None:
        return tuple(_sum(values) / len(extras) for values in zip(*extras, strict=True))
    real = torch.stack([one for one in reals if one is not None])
    count = real.sum(0).clamp(min=1)
    return tuple(torch.stack(values).masked_fill(~real, 0).sum(0) / count for values in zip(*extras, strict=True))


def _sum(values: Sequence[Float[Tensor, " b"]]) -> Float[Tensor, " b"]:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _mean_steps(tally: Tally, mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, " b"]:
    """The steps of each sample; where positions halt by themselves, the mean over the real ones."""
    steps = tally.steps.float()
    if steps.dim() == 1:
        return steps
    if mask is None:
        return steps.mean(1)
    return steps.masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)
