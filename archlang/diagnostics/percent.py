"""Numbers in per cent as fractions."""

from decimal import Decimal


def share_of(percent: str) -> str:
    """Returns a number in per cent as a fraction with the same digits: `0.50` for `50`."""
    return f"{Decimal(percent).scaleb(-2):f}"
