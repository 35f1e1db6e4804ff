"""Sampling: a model writes its answer token by token, and draws each token from its probabilities."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int
from torch import Tensor

from archlang.backend import mistakes

Choose = Callable[[Float[Tensor, "b vocab"]], Int[Tensor, " b"]]
"""Returns the next token of each sample, of its logits."""


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn: from softmax(logits / temperature), of which in this order remain the `top_k` likeliest; of
    these the likeliest whose sum reaches `top_p`; and of these those with at least `min_p` times the greatest
    probability. A temperature of 0 chooses the likeliest.

    An item draws the same tokens in every batch: its numbers depend on the seed and on the index of the item.

    Raises:
        ValueError: a number is out of its bounds."""

    temperature: float = 1.0
    top_k: int = 0
    """0 for all"""
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value, most = getattr(self, item.name), 1 if item.name.endswith("_p") else torch.inf
            if not 0 <= value <= most:
                raise mistakes.not_in_bounds(item.name, value, 0, most)

    def of_items(self, items: Sequence[int], number: int = 0) -> Choose:
        """Returns what draws the tokens of the samples with these indices, for the sample with a number of each."""
        generators = [torch.Generator().manual_seed(hash((self.seed, item, number)) % 2**63) for item in items]

        def choose(logits: Float[Tensor, "b vocab"]) -> Int[Tensor, " b"]:
            if not self.temperature:
                return logits.argmax(-1)
            # The greatest of p / e, where e are numbers of an exponential distribution, is drawn by p.
            noise = torch.stack([torch.empty(logits.shape[-1]).exponential_(generator=own) for own in generators])
            return (self.probabilities(logits) / noise.to(logits.device)).argmax(-1)

        return choose

    def probabilities(self, logits: Float[Tensor, "b vocab"]) -> Float[Tensor, "b vocab"]:
        """Returns the probabilities that tokens are drawn with."""
        scaled = logits.float() / self.temperature
        if 0 < self.top_k < scaled.shape[-1]:
            least = scaled.topk(self.top_k, -1).values[:, -1:]
            scaled = scaled.masked_fill(scaled < least, -torch.inf)
        if self.top_p < 1:
            values, order = scaled.sort(-1, descending=True)
            sums = values.softmax(-1).cumsum(-1)
            left_out = sums.roll(1, -1) >= self.top_p
            left_out[:, 0] = False
            scaled = scaled.masked_fill(left_out.scatter(-1, order, left_out), -torch.inf)
        chances = scaled.softmax(-1)
        if self.min_p:
            chances = chances.masked_fill(chances < self.min_p * chances.amax(-1, keepdim=True), 0.0)
            chances = chances / chances.sum(-1, keepdim=True)
        return chances
