"""Symbolic sizes: integer polynomials over names, such as `n`, `2*d` and `n + 2`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

Monomial = tuple[str, ...]


class Quotient(str):
    """The name of the size `dividend` / `divisor`, rounded down."""

    dividend: Dim
    divisor: int

    def __new__(cls, dividend: Dim, divisor: int) -> Quotient:
        text = f"({dividend})" if len(dividend.terms) > 1 else str(dividend)
        name = super().__new__(cls, f"({text}/{divisor})")
        name.dividend, name.divisor = dividend, divisor
        return name

    def __getnewargs__(self) -> tuple[Dim, int]:  # type: ignore[override]  # what `__new__` takes, in place of a text
        return self.dividend, self.divisor


# Limits that keep arithmetic with sizes fast; sizes of real programs have a few terms of a few factors.
MOST_TERMS = 100
MOST_FACTORS = 64
_LARGEST = 2**53


@dataclass(frozen=True)
class Dim:
    """A polynomial: sorted pairs of a monomial (sorted names, with repetition) and its nonzero coefficient."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(value: int | str) -> Dim:
        """Returns the size that is a constant or a single name."""
        if isinstance(value, str):
            return Dim((((value,), 1),))
        return Dim((((), value),)) if value else Dim(())

    @staticmethod
    def _from(terms: Mapping[Monomial, int]) -> Dim:
        return Dim(tuple(sorted((monomial, k) for monomial, k in terms.items() if k)))

    @property
    def constant(self) -> int | None:
        """The value of a constant size, or None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def symbol(self) -> str | None:
        """The name, if the size is a single name, or None."""
        match self.terms:
            case (((name,), 1),) if not isinstance(name, Quotient):
                return name
        return None

    @property
    def names(self) -> frozenset[str]:
        """The names in the polynomial, and in the dividends of its quotients."""
        factors = {name for monomial, _ in self.terms for name in monomial}
        inner = (factor.dividend.names if isinstance(factor, Quotient) else {factor} for factor in factors)
        return frozenset().union(*inner)

    @property
    def is_unwieldy(self) -> bool:
        """Whether the size exceeds the limits on terms, factors or coefficients."""
        return len(self.terms) > MOST_TERMS or any(
            abs(k) > _LARGEST or len(monomial) > MOST_FACTORS for monomial, k in self.terms
        )

    @staticmethod
    def total(sizes: Iterable[Dim]) -> Dim:
        """Returns the sum of sizes."""
        terms: dict[Monomial, int] = {}
        for size in sizes:
            for monomial, k in size.terms:
                terms[monomial] = terms.get(monomial, 0) + k
        return Dim._from(terms)

    def __add__(self, other: Dim) -> Dim:
        return Dim.total((self, other))

    def __neg__(self) -> Dim:
        return Dim(tuple((monomial, -k) for monomial, k in self.terms))

    def __sub__(self, other: Dim) -> Dim:
        return self + -other

    def __mul__(self, other: Dim) -> Dim:
        terms: dict[Monomial, int] = {}
        for left, i in self.terms:
            for right, j in other.terms:
                monomial = tuple(sorted(left + right))
                terms[monomial] = terms.get(monomial, 0) + i * j
        return Dim._from(terms)

    def substitute(self, values: Mapping[str, Dim]) -> Dim:
        """Returns this size with the names in `values` replaced."""
        if not self.names & values.keys():
            return self
        total = Dim(())
        for monomial, k in self.terms:
            factors = (_substituted(name, values) for name in monomial)
            total = total + reduce(Dim.__mul__, factors, Dim.of(k))
        return total

    def over(self, divisor: int) -> Dim:
        """Returns this size divided by a positive number, rounded down."""
        whole = Dim._from({monomial: k // divisor for monomial, k in self.terms})
        rest = Dim._from({monomial: k % divisor for monomial, k in self.terms})
        if rest.constant is not None:
            return whole
        match rest.terms:
            case (((Quotient() as inner,), 1),):
                return whole + inner.dividend.over(inner.divisor * divisor)
        return whole + Dim.of(Quotient(rest, divisor))

    def __str__(self) -> str:
        if self.constant is not None:
            return str(self.constant)
        text = ""
        for monomial, k in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            factors = "*".join(monomial)
            body = factors if abs(k) == 1 and monomial else "*".join(filter(None, (str(abs(k)), factors)))
            sign = "-" if k < 0 else "+"
            text += (f" {sign} " if text else ("-" if k < 0 else "")) + body
        return text

    def __repr__(self) -> str:
        return f"Dim({self})"


def _substituted(name: str, values: Mapping[str, Dim]) -> Dim:
    if isinstance(name, Quotient):
        return name.dividend.substitute(values).over(name.divisor)
    return values.get(name, Dim.of(name))
