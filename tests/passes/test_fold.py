"""Claims about folding."""

from __future__ import annotations

from collections.abc import Callable

from archlang.graph import Graph
from archlang.passes.fold import fold

Becomes = Callable[[Callable[[Graph], Graph], str, str], None]


def test_arithmetic_on_literals_is_done(becomes: Becomes) -> None:
    becomes(
        fold,
        """
        graph g
        input %1 x: vec[4]
        %2: number = number[value = 3]()
        %3: number = number[value = 4]()
        %4: number = divide(%2, %3)
        %5: number = negate(%4)
        %6: vec[4] = multiply(%5, %1)
        return %6
        """,
        """
        graph g
        input %1 x: vec[4]
        %2: number = number[value = 3]()
        %3: number = number[value = 4]()
        %4: number = number[value = 0.75]()
        %5: number = number[value = -0.75]()
        %6: vec[4] = multiply(%5, %1)
        return %6
        """,
    )


def test_what_changes_nothing_goes(becomes: Becomes) -> None:
    becomes(
        fold,
        """
        graph g
        input %1 x: vec[4]
        %2: number = number[value = 1]()
        %3: number = number[value = 0]()
        %4: vec[4] = multiply(%2, %1)
        %5: vec[4] = divide(%4, %2)
        %6: vec[4] = add(%3, %5)
        %7: vec[4] = subtract(%6, %3)
        %8: vec[4] = negate(%7)
        %9: vec[4] = negate(%8)
        %10: vec[4] = subtract(%3, %9)
        return %10
        """,
        """
        graph g
        input %1 x: vec[4]
        %2: number = number[value = 1]()
        %3: number = number[value = 0]()
        %8: vec[4] = negate(%1)
        %10: vec[4] = subtract(%3, %1)
        return %10
        """,
    )


def test_bodies_of_loops_are_folded(becomes: Becomes) -> None:
    becomes(
        fold,
        """
        graph g
        input %1 x: vec[4]
        %3: vec[4] = repeat[count = 2](%1) {
            input %4: vec[4]
            %5: number = number[value = 1.0]()
            %6: vec[4] = multiply(%4, %5)
            return %6
        }
        return %3
        """,
        """
        graph g
        input %1 x: vec[4]
        %3: vec[4] = repeat[count = 2](%1) {
            input %4: vec[4]
            %5: number = number[value = 1.0]()
            return %4
        }
        return %3
        """,
    )


def test_a_division_by_zero_is_infinite(becomes: Becomes) -> None:
    text = """
        graph g
        input %1 x: vec[4]
        %2: number = number[value = -1]()
        %3: number = number[value = 0]()
        %4: number = {}
        %5: vec[4] = multiply(%1, %4)
        return %5
        """
    becomes(fold, text.format("divide(%2, %3)"), text.format("number[value = -inf]()"))
