"""Loops that end where their states say so."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.halting import HaltingBlock, Tally
from archlang.kernels.linear import Linear


@dataclass(kw_only=True)
class Account(Tally):
    """A tally that knows where each probability went. All fields here are as wide as `live`, but for `weighted`."""

    step: int
    """l, how many bodies were computed"""
    rest: Tensor
    """Π (1 - â): the probability of not having halted"""
    spent: Tensor
    """Σ α"""
    weighted: Tensor
    """Σ α h, as wide as the state"""
    charged: Tensor
    """what the α so far cost"""
    cost: Tensor
    """that, and what the leftover costs, at the last step taken"""


class _Halt(HaltingBlock):
    """What token and global halting share: everything but whose state a probability is computed from.

        â_{l-1} = halt(f_{l-1}),   α_{l-1} = â_{l-1} Π_{k<l-1} (1 - â_k),   halt(f) = σ(W2 gelu(W1 f + b1) + b2)
        s_l = (1 - Σ_{k<l} α_k) h_l + Σ_{k<l} α_k h_k

    Weights start as torch's."""

    def __init__(self, *, threshold: float, transition: bool, length_cap: bool, ponder: str, d: int) -> None:
        super().__init__()
        self.hidden = Linear(2 * d if transition else d, d)
        self.output = Linear(d, 1)
        self.threshold = threshold
        self.transition = transition
        self.length_cap = length_cap
        self.ponder = ponder

    # Whether each position has a probability of its own.
    per_position = True

    def _pool(self, state: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b ... d"]:
        """What a probability is computed from."""
        raise NotImplementedError

    def _halt(
        self, before: Float[Tensor, "b n d"], after: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None
    ) -> Float[Tensor, "b ..."]:
        """â of the state before the body."""
        features = self._pool(before, mask)
        if self.transition:
            features = torch.cat((features, self._pool(after, mask)), dim=-1)
        logit: Tensor = self.output(F.gelu(self.hidden(features))).squeeze(-1)
        # Half precision cannot tell 0.999 from 1.
        return torch.sigmoid(logit.to(torch.promote_types(logit.dtype, torch.float32)))

    def _beside(self, values: Float[Tensor, "b ..."]) -> Float[Tensor, "b _n 1"]:
        """Values of positions or samples, to be multiplied with states."""
        return values[..., None] if self.per_position else values[:, None, None]

    def regime(self, total: int, limit: int) -> int:
        """How many steps a sequence of so many positions may take, as it grows."""
        return min(total + 1, limit) if self.length_cap else limit

    def start(self, state: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Account:
        if mask is None:
            mask = state.new_ones(state.shape[:2], dtype=torch.bool)
        live = mask if self.per_position else mask.any(1)
        dtype = torch.promote_types(state.dtype, torch.float32)
        zeros = torch.zeros(live.shape, dtype=dtype, device=state.device)
        return Account(
            state=state,
            mixture=state,
            live=live,
            accepted=torch.zeros_like(live),
            ponder=zeros.new_zeros(len(state)),
            steps=torch.zeros_like(live, dtype=torch.int64),
            step=0,
            rest=torch.ones_like(zeros),
            spent=zeros,
            weighted=torch.zeros_like(state, dtype=dtype),
            charged=zeros,
            cost=zeros,
        )

    def advance(self, tally: Tally, state: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Account:
        assert isinstance(tally, Account)
        step = tally.step + 1
        halt = self._halt(tally.state, state, mask)
        alpha = tally.rest * halt
        spent = tally.spent + alpha
        weighted = tally.weighted + self._beside(alpha) * tally.state
        if self.ponder == "code":
            charged = tally.charged + step * alpha
            cost = charged + step * (1 - spent)
        else:
            charged = cost = tally.charged + (step - 1) * alpha
        room = self._room(step, state, mask)
        accepted = tally.live & (spent < self.threshold) & room
        moved = accepted[..., None] if self.per_position else accepted[:, None, None]
        mixture = (self._beside(1 - spent) * state + weighted).to(state.dtype)
        cost = torch.where(accepted, cost, tally.cost)
        return Account(
            state=torch.where(moved, state, tally.state),
            mixture=torch.where(moved, mixture, tally.mixture),
            live=accepted & self._room(step + 1, state, mask),
            accepted=accepted,
            ponder=self._per_sample(cost, mask),
            steps=tally.steps + accepted,
            step=step,
            rest=tally.rest * (1 - halt),
            spent=spent,
            weighted=weighted,
            charged=charged,
            cost=cost,
        )

    def _room(
        self, step: int, state: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None
    ) -> Bool[Tensor, " b"] | Bool[Tensor, "b 1"]:
        """Which samples are long enough for a step: n real positions allow n + 1 steps."""
        length = mask.sum(1) if mask is not None else torch.full((len(state),), state.shape[1], device=state.device)
        room = step <= length + 1 if self.length_cap else torch.ones_like(length, dtype=torch.bool)
        return room[:, None] if self.per_position else room

    def _per_sample(self, cost: Float[Tensor, "b ..."], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, " b"]:
        if not self.per_position:
            return cost
        if mask is None:
            return cost.sum(1) / max(1, cost.shape[1])
        return (cost * mask).sum(1) / mask.sum(1).clamp(min=1)


class TokenHalt(_Halt):
    """Each position decides by itself, from its own state, when its loop ends.

        â_{l-1} = halt(h_{l-1}),  or with `transition`  halt([h_{l-1}; h_l])
        α_{l-1} = â_{l-1} Π_{k<l-1} (1 - â_k),     halt(f) = σ(W2 gelu(W1 f + b1) + b2)
        s_l = (1 - Σ_{k<l} α_k) h_l + Σ_{k<l} α_k h_k

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 1, Eqs. 5-8; the equations are those of its program:
    the sum that is held against the threshold begins with α_0, it is tested after the body, and the step that reaches
    the threshold is thrown away; n real positions allow n + 1 steps; the ponder charges α_{l-1} with l and what is
    left with the number of steps, where Eq. 8 charges α_l with l and forgives the rest (`ponder = equation`)."""

    def _pool(self, state: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b n d"]:
        return state


class GlobalHalt(_Halt):
    """Each sample decides, from the mean of its states, when the loop ends for all of its positions.

        â_{l-1} = halt(mean(h_{l-1})),  or with `transition`  halt([mean(h_{l-1}); mean(h_l)])

    and the rest as in TokenHalt. With `causal` the mean at a position is that of the positions up to it, and each
    position halts by itself.

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 3, Eqs. 12-17; the causal form is only in its
    program."""

    def __init__(
        self, *, threshold: float, transition: bool, causal: bool, length_cap: bool, ponder: str, d: int
    ) -> None:
        super().__init__(threshold=threshold, transition=transition, length_cap=length_cap, ponder=ponder, d=d)
        self.per_position = causal

    def _pool(self, state: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b ... d"]:
        real = state.new_ones(state.shape[:2]) if mask is None else mask.to(state.dtype)
        total = state * real[..., None]
        if self.per_position:
            return total.cumsum(1) / real.cumsum(1).clamp(min=1)[..., None]
        return total.sum(1) / real.sum(1).clamp(min=1)[:, None]
