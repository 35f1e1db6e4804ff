"""Sizes are polynomials in a normal form."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archlang.types import Dim

sizes = st.recursive(
    st.one_of(st.integers(-5, 5).map(Dim.of), st.sampled_from(["n", "d", "ff"]).map(Dim.of)),
    lambda inner: st.tuples(inner, inner, st.sampled_from("+-*")).map(
        lambda t: t[0] + t[1] if t[2] == "+" else t[0] - t[1] if t[2] == "-" else t[0] * t[1]
    ),
    max_leaves=8,
)


@given(sizes, sizes, sizes)
def test_sizes_form_a_ring(a: Dim, b: Dim, c: Dim) -> None:
    assert a + b == b + a
    assert a * b == b * a
    assert a * (b + c) == a * b + a * c
    assert (a - a).constant == 0


@given(sizes, st.integers(1, 4), sizes, st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_quotient_is_rounded_down(a: Dim, first: int, b: Dim, second: int, n: int, d: int, ff: int) -> None:
    values = {"n": Dim.of(n), "d": Dim.of(d), "ff": Dim.of(ff)}
    size = (a.over(first) + b).over(second)
    left, right = a.substitute(values).constant, b.substitute(values).constant
    assert left is not None
    assert right is not None
    assert size.substitute(values).constant == (left // first + right) // second
    assert size.names <= {"n", "d", "ff"}
    assert pickle.loads(pickle.dumps(size)).substitute(values) == size.substitute(values)


@given(sizes, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_substitution_evaluates(size: Dim, n: int, d: int, ff: int) -> None:
    values = {"n": Dim.of(n), "d": Dim.of(d), "ff": Dim.of(ff)}
    text = str(size)
    assert size.substitute(values).constant == eval(text, {}, {"n": n, "d": d, "ff": ff})


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (Dim.of("n") + Dim.of(2), "n + 2"),
        (Dim.of(2) * Dim.of("d") * Dim.of("n"), "2*d*n"),
        (Dim.of(0) - Dim.of("n"), "-n"),
        (Dim.of("n") - Dim.of("n"), "0"),
        ((Dim.of(5) * Dim.of("n") + Dim.of(6)).over(4), "((n + 2)/4) + n + 1"),
        (Dim.of("n").over(2).over(3), "(n/6)"),
    ],
)
def test_a_size_prints_in_the_syntax_of_programs(size: Dim, text: str) -> None:
    assert str(size) == text


def test_a_single_name_is_a_symbol_and_a_number_a_constant() -> None:
    assert Dim.of("n").symbol == "n"
    assert (Dim.of("n") + Dim.of(1)).symbol is None
    assert Dim.of(7).constant == 7
    assert Dim.of("n").constant is None
