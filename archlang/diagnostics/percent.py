"""Numbers in per cent, and as fractions with the same digits."""

from decimal import Decimal


def share_of(percent: str) -> str:
    """Returns a number in per cent as a fraction with the same digits: `0.50` for `50`."""
    return f"{Decimal(percent).scaleb(-2):f}"


def percent_of(share: str) -> str:
    """Returns a fraction in per cent with the same digits: `98.50` for `0.9850`, `100` for `1.00`."""
    return f"{Decimal(share).scaleb(2):f}"
