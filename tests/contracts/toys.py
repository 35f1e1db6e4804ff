"""Small blocks: some satisfy every property, the others violate one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from archlang.backend.runtime.halting import HaltingBlock, HaltingState

Mask = Tensor | None


class Toy(nn.Module):
    """A block of one sequence, without weights."""

    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.d = d


def toy(function: Callable[[Tensor, Mask], Any]) -> type[Toy]:  # Any: also what is not of the signature
    """Returns a block that applies a function."""

    class Applied(Toy):
        def forward(self, x: Tensor, mask_n: Mask = None) -> Any:
            return function(x, mask_n)

    return Applied


def real(x: Tensor, mask: Mask) -> Tensor:
    return x if mask is None else x.masked_fill(~mask[..., None], 0.0)


# Manners of reading


Nothing = toy(lambda x, mask_n: torch.zeros_like(x))
Own = toy(lambda x, mask_n: x.sin())
Opening = toy(lambda x, mask_n: x[:, :1].expand_as(x))
Earlier = toy(lambda x, mask_n: x.cumsum(1))


class Mirror(Toy):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        if mask_n is None:
            return x.flip(1)
        place = torch.arange(x.shape[1])
        source = (mask_n.sum(1, keepdim=True) - 1 - place).where(mask_n, place)
        return x.gather(1, source[..., None].expand_as(x))


Total = toy(lambda x, mask_n: real(x, mask_n).sum(1, keepdim=True).expand_as(x))
TotalVector = toy(lambda x, mask_n: real(x, mask_n).sum(1))
OpeningVector = toy(lambda x, mask_n: real(x, mask_n)[:, 0] if x.shape[1] else x.new_zeros(len(x), x.shape[2]))
# Results


class Raises(Toy):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        if x.shape[1] == 5:
            raise ValueError("five is too many\nand more")
        return x


class RaisesAtOnce(Toy):
    def __init__(self, *, d: int) -> None:
        raise ValueError("no")


class IsNotStarted(nn.Module):
    def __init__(self, *, d: int) -> None:
        pass


Narrow = toy(lambda x, mask_n: x[..., 1:])
FirstFour = toy(lambda x, mask_n: x.sin()[..., :4])
Doubles = toy(lambda x, mask_n: x.double())
Integers = toy(lambda x, mask_n: x.long())


class Grows(Toy):
    """Returns one more position; its mask has `more` more positions."""

    more = 1

    def forward(self, x: Tensor, mask_n: Mask = None) -> tuple[Tensor, Mask]:
        y = torch.cat((x[:, :1], x), dim=1) if x.shape[1] else x.new_zeros(len(x), 1, x.shape[2])
        if mask_n is None:
            return y, None
        place = torch.arange(x.shape[1] + 1)
        y = y.masked_fill((mask_n.sum(1) == 0)[:, None, None], 0.0)
        return y, place < mask_n.sum(1, keepdim=True) + self.more


class GrowsTooLittle(Grows):
    more = 0


class GrowsWithoutMask(Grows):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Any:  # Any: not the type of the base class
        return super().forward(x, mask_n)[0]


# Padding and batches


class ShowsNoMask(Toy):
    """`weights` takes no mask of the keys, which a recording of a padded batch passes."""

    def weights(self, x: Tensor) -> Tensor:
        return (x @ x.transpose(1, 2))[:, None]

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x


ReadsPadding = toy(lambda x, mask_n: x.sum(1, keepdim=True).expand_as(x))
CountsPadding = toy(lambda x, mask_n: x * x.shape[1])
MindsMask = toy(lambda x, mask_n: x if mask_n is None else 2 * x)
Mixes = toy(lambda x, mask_n: x - x.mean(0) + x[0])


class NormalizesBatch(nn.Module):
    """Mixes samples in training only."""

    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d)

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        result: Tensor = self.norm(x.flatten(0, 1)).view_as(x)
        return result


class WithoutShape(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.map = nn.LazyLinear(d)

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        result: Tensor = self.map(x)
        return result


# Gradients


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # Any: torch's
        return 2 * x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # Any: torch's
        return 3 * gradients[0]


class WrongBackward(Toy):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        y: Tensor = _Doubled.apply(x)  # type: ignore[no-untyped-call]  # torch's
        return y


Detaches = toy(lambda x, mask_n: x + x.detach())


class RootOfNothing(Toy):
    """A sample without positions has a finite result, but its gradients are NaN."""

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        x = x if mask_n is None else x.nan_to_num() * mask_n[..., None]
        return x.square().sum((1, 2), keepdim=True).sqrt().expand(len(x), 1, self.d)[:, 0]


class DetachesWeight(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x * self.gain.detach() * self.gain


# Purity and randomness


class Buffered(Toy):
    scale: Tensor

    def __init__(self, *, d: int) -> None:
        super().__init__(d=d)
        self.register_buffer("scale", torch.ones(d))

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x * self.scale


class TrainsOtherwise(Toy):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return 2 * x if self.training else x


class DrawsInTraining(Toy):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return nn.functional.dropout(x, 0.5, self.training)


class DrawsAlways(Toy):
    """Draws a number and discards it."""

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        torch.rand(1)
        return x


AddsNoise = toy(lambda x, mask_n: x + torch.randn_like(x))


class DrawsFromNumpy(Toy):
    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x + np.random.rand() if self.training else x


class Remembers(Toy):
    calls = 0

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        self.calls += 1
        return x + self.calls


class StartsByNumpy(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(np.random.rand(d)))

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x * self.gain.to(x.dtype)


class SeedsItself(nn.Module):
    def __init__(self, *, d: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.gain = nn.Parameter(torch.rand(d))

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x * self.gain


# Saving and numbers


class RefusesCopies(Toy):
    def __deepcopy__(self, memo: object) -> RefusesCopies:
        raise TypeError("no copies")

    def forward(self, x: Tensor, mask_n: Mask = None) -> Tensor:
        return x


Overflows = toy(lambda x, mask_n: x * 1e30 * 1e30 * 1e-30 * 1e-30)
# Halting


class TwoSteps(HaltingBlock):
    """Halts every position after two steps; the mixture is the last state."""

    def __init__(self, *, d: int) -> None:
        super().__init__()

    def start(self, state: Tensor, mask: Mask) -> HaltingState:
        live = state.new_ones(state.shape[:2], dtype=torch.bool) if mask is None else mask
        return HaltingState(
            state=state,
            mixture=real(state, mask),
            live=live,
            accepted=torch.zeros_like(live),
            ponder=state.new_zeros(len(state)),
            steps=torch.zeros_like(live, dtype=torch.int64),
        )

    def advance(self, halting: HaltingState, state: Tensor, mask: Mask) -> HaltingState:
        moved = torch.where(halting.live[..., None], state, halting.state)
        steps = halting.steps + halting.live
        return HaltingState(
            state=moved,
            mixture=torch.where(halting.live[..., None], state, halting.mixture),
            live=halting.live & (steps < 2),
            accepted=halting.live,
            ponder=steps.sum(1).to(state.dtype),
            steps=steps,
        )


def changed(change: Callable[[HaltingState, HaltingState], HaltingState]) -> type[HaltingBlock]:
    """Returns TwoSteps with `change(before, after)` applied to the halting states of each step."""

    class Changed(TwoSteps):
        def advance(self, halting: HaltingState, state: Tensor, mask: Mask) -> HaltingState:
            return change(halting, super().advance(halting, state, mask))

    return Changed


CountsInFloats = changed(lambda before, after: replace(after, steps=after.steps.float()))
Revives = changed(lambda before, after: replace(after, live=after.live | ((after.steps == 2) & ~before.live)))
LooksAside = changed(
    lambda before, after: replace(
        after, mixture=torch.where(before.live[..., None], after.mixture.cumsum(1), after.mixture)
    )
)
RemainsOfSamples = changed(lambda before, after: replace(after, remaining=after.ponder))
KeepsHalving = changed(
    lambda before, after: replace(
        after, remaining=0.5 * (after.live.float() + 1 if before.remaining is None else before.remaining)
    )
)
PondersPadding = changed(lambda before, after: replace(after, ponder=after.ponder * after.live.shape[1]))
