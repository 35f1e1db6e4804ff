"""What blocks share: the masks of their arguments, the base of those without weights, and the targets of a batch in
training."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.kernels.elementwise import kept_where

Mask = Bool[Tensor, "b _n"] | None
"""The mask of a length; None if all positions are real. A block gets those of all lengths of its arguments."""
MaskN = Bool[Tensor, "b n"] | None
MaskM = Bool[Tensor, "b m"] | None


def real_only(x: Float[Tensor, "b *n d"], mask: Mask) -> Float[Tensor, "b *n d"]:
    """Returns x with 0 at padding: the product of a weight of 0 and a number that is not finite is NaN."""
    if mask is None:
        return x
    return kept_where(x, mask[..., None])


class Weightless(nn.Module):
    """A block without weights: its attributes are its statics and the sizes of its inputs."""

    def __init__(self, **statics: object) -> None:
        super().__init__()
        vars(self).update(statics)


# Takes the logits of a batch; returns whether the prediction for each sample is right.
Judge = Callable[[Float[Tensor, "b *_"]], Bool[Tensor, " b"]]


class TargetReader(nn.Module):
    """A block that reads the targets through `judge`, which is None outside of training."""

    judge: Judge | None = None


@contextmanager
def judging(module: nn.Module, judge: Judge) -> Iterator[None]:
    """Inside, the blocks of a module that read targets read those of `judge`."""
    readers = [reader for reader in module.modules() if isinstance(reader, TargetReader)]
    for reader in readers:
        reader.judge = judge
    try:
        yield
    finally:
        for reader in readers:
            reader.judge = None
