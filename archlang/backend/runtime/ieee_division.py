"""Division of a program's numbers, which are 64-bit floats, by IEEE 754: it never raises."""

from math import copysign, inf, nan


def divide(left: float, right: float) -> float:
    """Returns the quotient of two numbers: 1 / 0 is infinite, and 0 / 0 is NaN."""
    if right == 0:
        return nan if left == 0 or left != left else copysign(inf, left) * copysign(1.0, right)
    return left / right
