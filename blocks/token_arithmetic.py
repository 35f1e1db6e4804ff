"""Integer arithmetic on tokens; the type of each result has its number of tokens."""

from random import Random

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.block import Mask, Weightless

_PRIME = 2**31 - 1


class ShiftTokens(Weightless):
    """y_i = x_{i - by}, and `vocab` for i < by"""

    by: int
    vocab: int

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Int[Tensor, "b n"]:
        return torch.cat((x.new_full((x.shape[0], self.by), self.vocab), x), 1)[:, : x.shape[1]]

    def extend(self, cache: BlockCache, x: Int[Tensor, "b n"], **_: Mask) -> Int[Tensor, "b n"]:
        # The cache begins with zeros, which become -1.
        tokens = cache.with_last(self.by, x[..., None] + 1)[:, : x.shape[1], 0] - 1
        return tokens.masked_fill(tokens < 0, self.vocab)


class PairTokens(Weightless):
    """y_i = w a_i + b_i"""

    placeless = True
    w: int

    def forward(self, a: Int[Tensor, "b n"], b: Int[Tensor, "b n"], **_: Mask) -> Int[Tensor, "b n"]:
        return self.w * a.long() + b


class ModuloTokens(Weightless):
    """y_i = x_i mod m"""

    placeless = True
    m: int

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Int[Tensor, "b n"]:
        return x.long() % self.m


class HashTokens(Weightless):
    """y_i = ((α ⌊x_i / p⌋ + β (x_i mod p) + γ) mod p) mod buckets, p = 2³¹ - 1

    Carter, Wegman, "Universal classes of hash functions", Journal of Computer and System Sciences 18 (1979)."""

    placeless = True
    buckets: int
    seed: int

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Int[Tensor, "b n"]:
        random = Random(self.seed)
        high, low, constant = random.randrange(1, _PRIME), random.randrange(1, _PRIME), random.randrange(_PRIME)
        x = x.long()
        # Two products of numbers below 2³¹ - 1 and a third such number stay below 2⁶³.
        return (high * (x // _PRIME) + low * (x % _PRIME) + constant) % _PRIME % self.buckets


class TokenValues(nn.Module):
    """y_i = x_i"""

    one: Tensor
    placeless = True

    def __init__(self, *, vocab: int) -> None:
        super().__init__()
        self.register_buffer("one", torch.ones(1), persistent=False)  # has the dtype of the model

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Float[Tensor, "b n 1"]:
        return x[..., None] * self.one
