"""Halting by probabilities that the model computes."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.halting import HaltingBlock, Tally
from archlang.blocks.weightless import Weightless


@dataclass(kw_only=True)
class Trials(Tally):
    """A tally of the trials of a sample so far."""

    remaining: Tensor
    """[b]: Π_{k<t} (1 - λ_k) of the last step t"""
    unhalted: Tensor
    """[b]: Π_{k<=t} (1 - λ_k)"""
    gathered: Tensor
    """[b, 1]: Σ_{k<=t} p_k λ_k, without the last step's remaining probability"""

    @property
    def spent(self) -> Tensor:
        """[b]: Σ_{k<=t} p_k"""
        return 1 - self.unhalted


class BernoulliHalt(HaltingBlock, Weightless):
    """Halts each sample by a probability that the model computes.

        p_t = λ_t Π_{k<t} (1 - λ_k),    and Π_{k<t} (1 - λ_k) at the last step

    The state is λ. In training all steps are taken; `evaluation` says which are taken otherwise.

    Banino, Balaguer, Blundell, "PonderNet: learning to ponder", 2021, section 2. The paper halts by `drawn`."""

    evaluation: str

    def start(self, state: Float[Tensor, "b 1"], mask: Bool[Tensor, "b n"] | None) -> Trials:
        ones = torch.ones(len(state), dtype=torch.promote_types(state.dtype, torch.float32), device=state.device)
        live = ones.bool()
        return Trials(
            state=state,
            mixture=state,
            live=live,
            accepted=~live,
            ponder=torch.zeros_like(ones),
            steps=torch.zeros_like(live, dtype=torch.int64),
            remaining=ones,
            unhalted=ones,
            gathered=torch.zeros_like(ones)[:, None],
        )

    def advance(self, tally: Tally, state: Float[Tensor, "b 1"], mask: Bool[Tensor, "b n"] | None) -> Trials:
        assert isinstance(tally, Trials)
        live, remaining = tally.live, tally.unhalted
        chance = state[:, 0].to(remaining.dtype)
        unhalted = remaining * (1 - chance)
        mixture = (tally.gathered + (remaining * chance)[:, None]).to(state.dtype)
        gathered = tally.gathered + (remaining * chance * chance)[:, None]
        return Trials(
            state=torch.where(live[:, None], state, tally.state),
            mixture=torch.where(live[:, None], mixture, tally.mixture),
            live=live & self._continues(chance, unhalted),
            accepted=live,
            # Σ_t t p_t = Σ_t Π_{k<t} (1 - λ_k)
            ponder=torch.where(live, tally.ponder + remaining, tally.ponder),
            steps=tally.steps + live,
            remaining=torch.where(live, remaining, tally.remaining),
            unhalted=torch.where(live, unhalted, tally.unhalted),
            gathered=torch.where(live[:, None], gathered, tally.gathered),
        )

    def _continues(self, chance: Float[Tensor, " b"], unhalted: Float[Tensor, " b"]) -> Bool[Tensor, " b"]:
        """Returns which samples take another step."""
        if self.training or self.evaluation == "never":
            return torch.ones_like(chance, dtype=torch.bool)
        if self.evaluation == "median":
            return unhalted > 0.5
        return torch.rand_like(chance) >= chance
