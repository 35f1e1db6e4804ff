"""Halting by probabilities, and whether the answers of a model are right, which training knows."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.runtime.block import MaskN, TargetReader, Weightless, real_only
from archlang.backend.runtime.halting import HaltingBlock, HaltingState
from archlang.backend.runtime.stacking import is_stacked


@dataclass(kw_only=True)
class Account(HaltingState):
    """A halting state with the distribution of the halting probability. Its fields have the shape of `live`, except
    `weighted`."""

    remaining: Tensor
    """1 - Σ α at the last accepted step"""
    room: Tensor | None
    """int [b]: how many steps the length of a sample allows; None if any number"""
    step: int
    """l, the number of computed steps"""
    rest: Tensor
    """Π (1 - â), the probability of not having halted"""
    spent: Tensor
    """Σ α"""
    weighted: Tensor
    """Σ α h, with the shape of the state"""
    charged: Tensor
    """the cost of the α so far"""
    cost: Tensor
    """the cost of the α and of the remaining probability, at the last accepted step"""


class _Halt(HaltingBlock):
    """The common part of token and global halting, without the choice of the state that a probability is computed from.
    Weights are initialised as in torch."""

    def __init__(self, *, threshold: float, transition: bool, length_cap: bool, ponder: str, d: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * d if transition else d, d)
        self.output = nn.Linear(d, 1)
        self.threshold = threshold
        self.transition = transition
        self.length_cap = length_cap
        self.ponder = ponder

    # Whether each position has a probability of its own.
    per_position = True

    def _pool(self, state: Float[Tensor, "b n d"], mask: MaskN) -> Float[Tensor, "b ... d"]:
        raise NotImplementedError

    def _halt(
        self, before: Float[Tensor, "b n d"], after: Float[Tensor, "b n d"], mask: MaskN
    ) -> Float[Tensor, "b ..."]:
        """Returns â of the state before the body."""
        features = self._pool(before, mask)
        if self.transition:
            features = torch.cat((features, self._pool(after, mask)), dim=-1)
        logit: Tensor = self.output(F.gelu(self.hidden(features))).squeeze(-1)
        # 0.999 rounds to 1 in half precision.
        return torch.sigmoid(logit.to(torch.promote_types(logit.dtype, torch.float32)))

    def _broadcast_over_states(self, values: Float[Tensor, "b ..."]) -> Float[Tensor, "b _n 1"]:
        return values[..., None] if self.per_position else values[:, None, None]

    def regime(self, total: int, limit: int) -> int:
        """Returns the number of steps that a growing sequence may take at `total` positions."""
        return min(total + 1, limit) if self.length_cap else limit

    def start(self, state: Float[Tensor, "b n d"], mask: MaskN) -> Account:
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
            ponder=zeros.new_zeros(state.shape[0]),
            steps=torch.zeros_like(live, dtype=torch.int64),
            remaining=torch.ones_like(zeros),
            room=mask.sum(1) + 1 if self.length_cap else None,
            step=0,
            rest=torch.ones_like(zeros),
            spent=zeros,
            weighted=torch.zeros_like(state, dtype=dtype),
            charged=zeros,
            cost=zeros,
        )

    def advance(self, halting: HaltingState, state: Float[Tensor, "b n d"], mask: MaskN) -> Account:
        assert isinstance(halting, Account)
        step = halting.step + 1
        halt = self._halt(halting.state, state, mask)
        alpha = halting.rest * halt
        spent = halting.spent + alpha
        weighted = halting.weighted + self._broadcast_over_states(alpha) * halting.state
        if self.ponder == "code":
            charged = halting.charged + step * alpha
            cost = charged + step * (1 - spent)
        else:
            charged = cost = halting.charged + (step - 1) * alpha
        accepted = halting.live & (spent < self.threshold)
        moved = accepted[..., None] if self.per_position else accepted[:, None, None]
        mixture = (self._broadcast_over_states(1 - spent) * state + weighted).to(state.dtype)
        cost = torch.where(accepted, cost, halting.cost)
        live = accepted
        if halting.room is not None:
            has_room = step < halting.room
            live = accepted & (has_room[:, None] if self.per_position else has_room)
        return Account(
            state=torch.where(moved, state, halting.state),
            mixture=torch.where(moved, mixture, halting.mixture),
            live=live,
            accepted=accepted,
            ponder=self._per_sample(cost, mask),
            steps=halting.steps + accepted,
            remaining=torch.where(accepted, 1 - spent, halting.remaining),
            room=halting.room,
            step=step,
            rest=halting.rest * (1 - halt),
            spent=spent,
            weighted=weighted,
            charged=charged,
            cost=cost,
        )

    def _per_sample(self, cost: Float[Tensor, "b ..."], mask: MaskN) -> Float[Tensor, " b"]:
        if not self.per_position:
            return cost
        if mask is None:
            return cost.sum(1) / max(1, cost.shape[1])
        return cost.masked_fill(~mask, 0).sum(1) / mask.sum(1).clamp(min=1)


class TokenHalt(_Halt):
    """Halts each position on its own, by a probability computed from its state.

        â_{l-1} = halt(h_{l-1}),  or with `transition`  halt([h_{l-1}; h_l])
        α_{l-1} = â_{l-1} Π_{k<l-1} (1 - â_k),     halt(f) = σ(W2 gelu(W1 f + b1) + b2)
        s_l = (1 - Σ_{k<l} α_k) h_l + Σ_{k<l} α_k h_k

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 1, Eqs. 5-8. The equations are those of its program:
    the sum that is compared with the threshold starts with α_0, it is tested after the body, and the step that reaches
    the threshold is discarded; n real positions allow n + 1 steps; the ponder weighs α_{l-1} by l and the remaining
    probability by the number of steps, whereas Eq. 8 weighs α_l by l and ignores the rest (`ponder = equation`)."""

    def _pool(self, state: Float[Tensor, "b n d"], mask: MaskN) -> Float[Tensor, "b n d"]:
        return state


class GlobalHalt(_Halt):
    """Halts all positions of a sample at once, by a probability computed from the mean of its states.

        â_{l-1} = halt(mean(h_{l-1})),  or with `transition`  halt([mean(h_{l-1}); mean(h_l)])

    The rest is as in TokenHalt. With `causal` the mean at a position is over the positions up to it, and each position
    halts on its own.

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 3, Eqs. 12-17; the causal form is only in its
    program."""

    def __init__(
        self, *, threshold: float, transition: bool, causal: bool, length_cap: bool, ponder: str, d: int
    ) -> None:
        super().__init__(threshold=threshold, transition=transition, length_cap=length_cap, ponder=ponder, d=d)
        self.per_position = causal

    def _pool(self, state: Float[Tensor, "b n d"], mask: MaskN) -> Float[Tensor, "b ... d"]:
        real = state.new_ones(state.shape[:2]) if mask is None else mask.to(state.dtype)
        total = real_only(state, mask)
        if self.per_position:
            return total.cumsum(1) / real.cumsum(1).clamp(min=1)[..., None]
        return total.sum(1) / real.sum(1).clamp(min=1)[:, None]


@dataclass(kw_only=True)
class Ledger(HaltingState):
    """A halting state with the sum of probabilities, the weighted sum of states and the remainder of each column."""

    remaining: Tensor
    """[b, n]: 1 - Σ p before the last step that a column took"""
    spent: Tensor
    """[b, n]: Σ p, or 1 for a halted column"""
    gathered: Tensor
    """[b, n, d]: the weighted sum of states, without the term that a forced halt adds"""
    remainder: Tensor
    """[b, n]: R"""
    padded: int | Tensor
    """the padded length of the batch; if batches are stacked, [b] with the length of the longest sample of each
    batch"""


class Act(HaltingBlock):
    """Adaptive computation time: columns halt by the sum of their probabilities, and are still transformed after that.

        p_t = σ(w · h_{t-1} + b)
        w_t = p_t while Σ_{k<=t} p_k <= 1 - ε;  R = 1 - Σ_{k<t} p_k at the first t where it is more;  then 0
        graves      o = Σ_t w_t h_t; columns that have not halted halt at the last step
        dehghani    o <- (1 - w_t) o + w_t h_t

    Graves, "Adaptive computation time for recurrent neural networks", 2016; Dehghani et al., "Universal Transformers",
    2019; NDR (Csordás, Irie, Schmidhuber, ICLR 2022), Appendix A, Eqs. 11-15. As in NDR's program, p is computed from
    the state before the step that it weighs, a column halts above the threshold, not at it, and R is averaged over
    padding too. w and b are initialised as in torch."""

    def __init__(self, *, variant: str, epsilon: float, ponder: str, d: int) -> None:
        super().__init__()
        self.halt = nn.Linear(d, 1)
        self.forced = variant == "graves"
        self.threshold = 1 - epsilon
        self.ponder = ponder

    def start(self, state: Float[Tensor, "b n d"], mask: MaskN) -> Ledger:
        live = state.new_ones(state.shape[:2], dtype=torch.bool) if mask is None else mask
        dtype = torch.promote_types(state.dtype, torch.float32)
        padded: int | Tensor = max(1, state.shape[1])
        if is_stacked() and mask is not None:
            padded = mask.sum(1).amax().clamp(min=1).expand(state.shape[0])
        return Ledger(
            state=state,
            mixture=state.masked_fill(~live[..., None], 0.0),
            live=live,
            accepted=torch.zeros_like(live),
            ponder=torch.zeros(state.shape[0], dtype=dtype, device=state.device),
            steps=torch.zeros_like(live, dtype=torch.int64),
            remaining=torch.ones(live.shape, dtype=dtype, device=state.device),
            spent=(~live).to(dtype),
            gathered=torch.zeros_like(state, dtype=dtype),
            remainder=torch.zeros(live.shape, dtype=dtype, device=state.device),
            padded=padded,
        )

    def advance(self, halting: HaltingState, state: Float[Tensor, "b n d"], mask: MaskN) -> Ledger:
        assert isinstance(halting, Ledger)
        running = halting.live
        logit: Tensor = self.halt(halting.state).squeeze(-1)
        p = torch.sigmoid(logit.to(halting.spent.dtype))
        left = 1 - halting.spent
        halts = running & (halting.spent + p > self.threshold)
        continues = running & ~halts
        if self.forced:
            # If this is the last step, the remaining probability goes to its state, as for a column that halts.
            mixture = halting.gathered + left[..., None] * state
            gathered = halting.gathered + torch.where(continues, p, left)[..., None] * state
            remainder = torch.where(running, left, halting.remainder)
        else:
            weight = torch.where(continues, p, left)[..., None]
            gathered = mixture = (1 - weight) * halting.gathered + weight * state
            remainder = torch.where(halts, left, halting.remainder)
        halted = ~running[..., None]
        gathered = torch.where(halted, halting.gathered, gathered)
        return Ledger(
            state=state,
            mixture=torch.where(halted, halting.mixture, mixture.to(state.dtype)),
            live=continues,
            accepted=running,
            ponder=self._per_sample(remainder, mask, halting.padded),
            steps=halting.steps + running,
            remaining=torch.where(running, left, halting.remaining),
            spent=torch.where(running, torch.where(continues, halting.spent + p, 1.0), halting.spent),
            gathered=gathered,
            remainder=remainder,
            padded=halting.padded,
        )

    def _per_sample(self, remainder: Float[Tensor, "b n"], mask: MaskN, padded: int | Tensor) -> Float[Tensor, " b"]:
        if self.ponder == "code" or mask is None:
            return remainder.sum(1) / padded
        return remainder.sum(1) / mask.sum(1).clamp(min=1)


@dataclass(kw_only=True)
class Trials(HaltingState):
    """A halting state of the trials so far of a sample or a position. Its fields have the shape of `live`, except
    `gathered`."""

    remaining: Tensor
    """Π_{k<t} (1 - λ_k) of the last step t"""
    unhalted: Tensor
    """Π_{k<=t} (1 - λ_k)"""
    gathered: Tensor
    """Σ_{k<=t} p_k λ_k, without the last step's remaining probability, with the shape of the state"""

    @property
    def spent(self) -> Tensor:
        """Σ_{k<=t} p_k"""
        return 1 - self.unhalted


class BernoulliHalt(Weightless, HaltingBlock):
    """Halts each sample by a probability that the model computes.

        p_t = λ_t Π_{k<t} (1 - λ_k),    and Π_{k<t} (1 - λ_k) at the last step

    The state is λ. In training all steps are taken; `evaluation` says which are taken otherwise.

    Banino, Balaguer, Blundell, "PonderNet: learning to ponder", 2021, section 2. The paper halts by `drawn`."""

    evaluation: str
    quantile = 0.5

    def start(self, state: Float[Tensor, "b *n 1"], mask: MaskN) -> Trials:
        ones = torch.ones_like(state[..., 0], dtype=torch.promote_types(state.dtype, torch.float32))
        live = ones.bool() if mask is None else mask
        return Trials(
            state=state,
            mixture=state.masked_fill(~live[..., None], 0),
            live=live,
            accepted=torch.zeros_like(live),
            ponder=ones.new_zeros(ones.shape[0]),
            steps=torch.zeros_like(live, dtype=torch.int64),
            remaining=ones,
            unhalted=ones,
            gathered=torch.zeros_like(ones)[..., None],
        )

    def advance(self, halting: HaltingState, state: Float[Tensor, "b *n 1"], mask: MaskN) -> Trials:
        assert isinstance(halting, Trials)
        live, remaining = halting.live, halting.unhalted
        chance = state[..., 0].to(remaining.dtype)
        unhalted = remaining * (1 - chance)
        mixture = (halting.gathered + (remaining * chance)[..., None]).to(state.dtype)
        gathered = halting.gathered + (remaining * chance * chance)[..., None]
        # Σ_t t p_t = Σ_t Π_{k<t} (1 - λ_k)
        ponder = torch.where(live, remaining, 0)
        if ponder.dim() > 1:
            ponder = ponder.sum(1) / (max(1, ponder.shape[1]) if mask is None else mask.sum(1).clamp(min=1))
        return Trials(
            state=torch.where(live[..., None], state, halting.state),
            mixture=torch.where(live[..., None], mixture, halting.mixture),
            live=live & self._continues(chance, unhalted),
            accepted=live,
            ponder=halting.ponder + ponder,
            steps=halting.steps + live,
            remaining=torch.where(live, remaining, halting.remaining),
            unhalted=torch.where(live, unhalted, halting.unhalted),
            gathered=torch.where(live[..., None], gathered, halting.gathered),
        )

    def _continues(self, chance: Float[Tensor, "b *n"], unhalted: Float[Tensor, "b *n"]) -> Bool[Tensor, "b *n"]:
        if self.training or self.evaluation == "never":
            return torch.ones_like(chance, dtype=torch.bool)
        if self.evaluation in ("median", "quantile"):
            return unhalted > 1 - self.quantile
        return torch.rand_like(chance) >= chance


class BernoulliTokenHalt(BernoulliHalt):
    """Halts each position by a probability that the model computes; the ponder of a sample is the mean over its
    positions. With `quantile`, evaluation halts at the first step with Σ_{k<=t} p_k >= quantile.

    The rest is as in BernoulliHalt. Zhu et al., "Scaling latent reasoning via looped language models", 2025,
    section 3."""


class ExactMatch(Weightless, TargetReader):
    """y = 1 if the prediction of x is the target in every scored position, else 0; 0 in evaluation"""

    def forward(self, x: Float[Tensor, "b *n d"], **masks: Bool[Tensor, "b _"] | None) -> Float[Tensor, "b 1"]:
        if self.judge is None:
            return x.new_zeros(x.shape[0], 1)
        return self.judge(x.detach()).to(x.dtype)[:, None]
