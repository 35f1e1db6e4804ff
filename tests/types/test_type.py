"""The type of elementwise arithmetic."""

import pytest

from archlang.types import Dim, Type


def seq(length: str, width: int | str) -> Type:
    return Type("seq", (Dim.of(length), Dim.of(width)))


def vec(width: int | str) -> Type:
    return Type("vec", (Dim.of(width),))


NUMBER = Type("number")
MAP = Type("map", (Dim.of("n"), Dim.of("m"), Dim.of("h")))
ONE = Type("map", (Dim.of("n"), Dim.of("m"), Dim.of(1)))


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (NUMBER, NUMBER, NUMBER),
        (NUMBER, MAP, MAP),
        (MAP, MAP, MAP),
        (MAP, ONE, MAP),
        (MAP, vec("h"), MAP),
        (ONE, vec("h"), MAP),
        (MAP, vec(1), MAP),
        (seq("n", "d"), seq("n", 1), seq("n", "d")),
        (seq("n", "d"), vec("d"), seq("n", "d")),
        (seq("n", "d"), vec(1), seq("n", "d")),
        (seq("n", 1), vec("d"), seq("n", "d")),
        (vec("d"), vec(1), vec("d")),
    ],
)
def test_operands_broadcast_in_either_order(left: Type, right: Type, result: Type) -> None:
    assert left.broadcast(right) == right.broadcast(left) == result


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (seq("n", "d"), seq("m", "d")),
        (seq("n", "d"), seq("n", "e")),
        (seq("n", 3), vec(2)),
        (vec("d"), vec("e")),
        (MAP, vec("m")),
        (MAP, seq("n", "h")),
        (MAP, MAP.substitute({"h": Dim.of(2)})),
        (MAP, MAP.substitute({"m": Dim.of(1)})),
    ],
)
def test_other_operands_do_not_broadcast(left: Type, right: Type) -> None:
    assert left.broadcast(right) is None
    assert right.broadcast(left) is None
