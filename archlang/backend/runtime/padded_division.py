"""Division: that of a program's numbers, and that in which padding, whatever it holds, changes no real position."""

from math import copysign, inf, nan

from jaxtyping import Bool, Float
from torch import Tensor


def divide_numbers(left: float, right: float) -> float:
    """Returns a quotient of 64-bit floats by IEEE 754, which never raises: 1 / 0 is infinite, and 0 / 0 is NaN."""
    if right == 0:
        return nan if left == 0 or left != left else copysign(inf, left) * copysign(1.0, right)
    return left / right


def divide_where_real(
    dividend: Float[Tensor, "b *_"] | float, divisor: Float[Tensor, "b *_"], *masks: Bool[Tensor, "b _"] | None
) -> Float[Tensor, "b *_"]:
    """Returns the quotients; at padding the dividend. `masks` are those of the divisor's positions, axis by axis; None
    if all positions of an axis are real.

    Many blocks return zeros at padding. The quotient there would be infinite or NaN, and spread to real positions by
    products with weights of 0, and by gradients."""
    for axis, mask in enumerate(masks, start=1):
        if mask is not None:
            shape = [1] * divisor.dim()
            shape[0], shape[axis] = mask.shape
            divisor = divisor.masked_fill(~mask.reshape(shape), 1)
    return dividend / divisor
