"""Adaptive computation time."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.block import MaskN
from archlang.backend.runtime.halting import HaltingBlock, Tally
from archlang.backend.runtime.stacking import is_stacked


@dataclass(kw_only=True)
class Ledger(Tally):
    """A tally with the sum of probabilities, the weighted sum of states and the remainder of each column."""

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

    def advance(self, tally: Tally, state: Float[Tensor, "b n d"], mask: MaskN) -> Ledger:
        assert isinstance(tally, Ledger)
        running = tally.live
        logit: Tensor = self.halt(tally.state).squeeze(-1)
        p = torch.sigmoid(logit.to(tally.spent.dtype))
        left = 1 - tally.spent
        halts = running & (tally.spent + p > self.threshold)
        continues = running & ~halts
        if self.forced:
            # If this is the last step, the remaining probability goes to its state, as for a column that halts.
            mixture = tally.gathered + left[..., None] * state
            gathered = tally.gathered + torch.where(continues, p, left)[..., None] * state
            remainder = torch.where(running, left, tally.remainder)
        else:
            weight = torch.where(continues, p, left)[..., None]
            gathered = mixture = (1 - weight) * tally.gathered + weight * state
            remainder = torch.where(halts, left, tally.remainder)
        halted = ~running[..., None]
        gathered = torch.where(halted, tally.gathered, gathered)
        return Ledger(
            state=state,
            mixture=torch.where(halted, tally.mixture, mixture.to(state.dtype)),
            live=continues,
            accepted=running,
            ponder=self._per_sample(remainder, mask, tally.padded),
            steps=tally.steps + running,
            remaining=torch.where(running, left, tally.remaining),
            spent=torch.where(running, torch.where(continues, tally.spent + p, 1.0), tally.spent),
            gathered=gathered,
            remainder=remainder,
            padded=tally.padded,
        )

    def _per_sample(self, remainder: Float[Tensor, "b n"], mask: MaskN, padded: int | Tensor) -> Float[Tensor, " b"]:
        if self.ponder == "code" or mask is None:
            return remainder.sum(1) / padded
        return remainder.sum(1) / mask.sum(1).clamp(min=1)
