"""Symbolic sizes: integer polynomials over names, such as `n`, `2*d` and `n + 2`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

Monomial = tuple[str, ...]
# A size of a program has a few terms of a few factors; these keep computing with sizes fast.
MOST_TERMS = 100
MOST_FACTORS = 64
_LARGEST = 2**53


@dataclass(frozen=True)
class Dim:
    """A polynomial: sorted pairs of a monomial (sorted names, with repetition) and its coefficient, never zero."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(value: int | str) -> Dim:
        """The size that is a number, or a name."""
        if isinstance(value, str):
            return Dim((((value,), 1),))
        return Dim((((), value),)) if value else Dim(())

    @staticmethod
    def _from(terms: Mapping[Monomial, int]) -> Dim:
        return Dim(tuple(sorted((monomial, k) for monomial, k in terms.items() if k)))

    @property
    def constant(self) -> int | None:
        """The number, if it is one."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def symbol(self) -> str | None:
        """The name, if it is a lone one."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            return self.terms[0][0][0]
        return None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for monomial, _ in self.terms for name in monomial)

    @property
    def is_unwieldy(self) -> bool:
        """Whether it has more terms, factors or digits than any size of a program."""
        return len(self.terms) > MOST_TERMS or any(
            abs(k) > _LARGEST or len(monomial) > MOST_FACTORS for monomial, k in self.terms
        )

    @staticmethod
    def total(sizes: Iterable[Dim]) -> Dim:
        """The sum of sizes."""
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
        """This size with names replaced."""
        if not self.names & values.keys():
            return self
        total = Dim(())
        for monomial, k in self.terms:
            factors = (values.get(name, Dim.of(name)) for name in monomial)
            total = total + reduce(Dim.__mul__, factors, Dim.of(k))
        return total

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, k in sorted(self.terms, key=lambda term: (-len(term[0]), term[0])):
            factors = "*".join(monomial)
            body = factors if abs(k) == 1 and monomial else "*".join(filter(None, (str(abs(k)), factors)))
            sign = "-" if k < 0 else "+"
            text += (f" {sign} " if text else ("-" if k < 0 else "")) + body
        return text

    def __repr__(self) -> str:
        return f"Dim({self})"
