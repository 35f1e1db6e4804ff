"""What a position of a value may depend on: the order of dependences, and how they compose."""

from __future__ import annotations

from enum import Enum


class Dependence(Enum):
    """What position i of a value may depend on in a sequence.

    PAST lies strictly before i (what earlier chunks left); POINTWISE is i itself; CAUSAL is i and before; FULL is
    anything. A value without positions depends on NONE or on all."""

    NONE = "nothing"
    PAST = "earlier chunks"
    POINTWISE = "its own position"
    CAUSAL = "positions up to its own"
    FULL = "every position"

    def join(self, other: Dependence) -> Dependence:
        """The least dependence that covers both."""
        if self is other or other is Dependence.NONE:
            return self
        if self is Dependence.NONE:
            return other
        if Dependence.FULL in (self, other):
            return Dependence.FULL
        return Dependence.CAUSAL

    def through(self, reads: Dependence) -> Dependence:
        """What results when a value that depends so is read pointwise, causally or fully."""
        if Dependence.NONE in (self, reads):
            return Dependence.NONE
        if self is Dependence.PAST:
            return self
        if Dependence.FULL in (self, reads):
            return Dependence.FULL
        if reads in (Dependence.CAUSAL, Dependence.PAST):
            return Dependence.CAUSAL
        return self


# How a block may say that it reads an input.
MODES = {
    "pointwise": Dependence.POINTWISE,
    "causal": Dependence.CAUSAL,
    "full": Dependence.FULL,
    "length": Dependence.NONE,
    "first": Dependence.FULL,
    "mirrored": Dependence.FULL,
}
