"""Numbers in per cent, and as fractions with the same digits; and numbers with prefixes of SI."""

from decimal import Decimal

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")


def share_of(percent: str) -> str:
    """Returns a number in per cent as a fraction with the same digits: `0.50` for `50`."""
    return f"{Decimal(percent).scaleb(-2):f}"


def percent_of(share: str) -> str:
    """Returns a fraction in per cent with the same digits: `98.50` for `0.9850`, `100` for `1.00`."""
    return f"{Decimal(share).scaleb(2):f}"


def rounded(number: float, gap: str = "") -> str:
    """Returns a number with three digits and, after `gap`, a prefix of SI.

    >>> rounded(640), rounded(65_925), rounded(999_999), rounded(126_222_336), rounded(3.2e15, " ")
    ('640', '65.9k', '1M', '126M', '3.2 P')"""
    power = 0
    while number >= 999.5 and power < len(PREFIXES) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g}{gap}{PREFIXES[power]}"
