"""Dependences join and compose like sets of positions do."""

from itertools import product

from archlang.types.causality import Dependence

# A dependence as a set of pairs (i, j): position i depends on position j; three positions, in chunks of one.
MEANING = {
    Dependence.NONE: set(),
    Dependence.PAST: {(i, j) for i in range(3) for j in range(i)},
    Dependence.POINTWISE: {(i, i) for i in range(3)},
    Dependence.CAUSAL: {(i, j) for i in range(3) for j in range(i + 1)},
    Dependence.FULL: set(product(range(3), range(3))),
}


def test_a_join_covers_both_sides_and_nothing_smaller_does() -> None:
    for a, b in product(Dependence, Dependence):
        union = MEANING[a] | MEANING[b]
        joined = MEANING[a.join(b)]
        assert union <= joined
        assert not any(union <= meaning < joined for meaning in MEANING.values())


def test_reading_a_value_depends_on_what_it_depends_on() -> None:
    for value, reads in product(Dependence, (Dependence.POINTWISE, Dependence.CAUSAL)):
        pairs = {(i, k) for i, j in MEANING[reads] for j2, k in MEANING[value] if j == j2}
        assert pairs <= MEANING[value.through(reads)]


def test_what_lies_in_the_past_stays_there_however_it_is_read() -> None:
    assert Dependence.PAST.through(Dependence.FULL) is Dependence.PAST
