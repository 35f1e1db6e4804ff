"""Blocks that read the targets of a batch in training."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jaxtyping import Bool, Float
from torch import Tensor, nn

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
