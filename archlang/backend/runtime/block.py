"""What blocks share: the masks of their arguments, and the base of those without weights."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

Mask = Bool[Tensor, "b _n"] | None
"""The mask of a length; None if all positions are real. A block gets those of all lengths of its arguments."""
MaskN = Bool[Tensor, "b n"] | None
MaskM = Bool[Tensor, "b m"] | None


def real_only(x: Float[Tensor, "b *n d"], mask: Mask) -> Float[Tensor, "b *n d"]:
    """Returns x with 0 at padding: the product of a weight of 0 and a number that is not finite is NaN."""
    if mask is None:
        return x
    return x.masked_fill(~mask[..., None], 0)


class Weightless(nn.Module):
    """A block without weights: its attributes are its statics and the sizes of its inputs."""

    def __init__(self, **statics: object) -> None:
        super().__init__()
        vars(self).update(statics)
