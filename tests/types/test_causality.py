"""Horizons are upper bounds: they cover sets of positions, and join and compose like these sets."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil

import pytest

from archlang.types.causality import CAUSAL, MIRRORED, NOTHING, PAIRED, POINTWISE, Horizon, Manner, Reach, within

# Eight positions in chunks of four, these in chunks of two.
LENGTH, SIZES = 8, (8, 4, 2)


def window(scan: int, position: int) -> range:
    """The positions of the chunk around a position, of the scan of this number; 0 is the whole sequence."""
    first = position // SIZES[scan] * SIZES[scan]
    return range(first, first + SIZES[scan])


def meaning(horizon: Horizon, position: int, depth: int, column: int = 0) -> set[int]:
    """The positions of the input on which a value may depend at a position, inside of `depth` scans. That of a map is
    its row; it has a column too."""
    chunk = window(horizon.scan, position)
    innermost = window(depth, position)
    match horizon.reach:
        case Reach.NOTHING:
            return set()
        case Reach.BEFORE:
            return set(range(chunk[0]))
        case Reach.START:
            return set(range(chunk[0] + 1))
        case Reach.POINTWISE:
            return {position}
        case Reach.CAUSAL | Reach.PAIRED:
            last = max(position, column) if horizon.reach is Reach.PAIRED else position
            end = innermost[0] + ceil((last - innermost[0] + 1) * horizon.rate)
            return set(range(min(end, innermost[-1] + 1)))
        case Reach.MIRRORED:
            return set(range(innermost[0] + innermost[-1] - position + 1))
        case Reach.WITHIN:
            return set(range(chunk[-1] + 1))


RATED = [Horizon(Reach.CAUSAL, rate=Fraction(rate)) for rate in ("1/4", "1/2", "2", "4")]
RATED_MAPS = [replace(horizon, reach=Reach.PAIRED) for horizon in (CAUSAL, *RATED)]


def horizons(depth: int) -> Iterator[Horizon]:
    yield from (NOTHING, POINTWISE, CAUSAL, MIRRORED)
    for scan in range(depth + 1):
        yield Horizon(Reach.START, scan)
        yield within(scan)
        if scan:
            yield Horizon(Reach.BEFORE, scan)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_join_covers_both_sides_and_nothing_smaller_does(depth: int) -> None:
    for left, right in product(horizons(depth), repeat=2):
        joined = left.join(right, depth)
        covers = [
            horizon
            for horizon in horizons(depth)
            if all(
                meaning(left, p, depth) | meaning(right, p, depth) <= meaning(horizon, p, depth) for p in range(LENGTH)
            )
        ]
        assert joined in covers
        # Only causal and what is joined with a mirrored value may be larger than another cover.
        smaller = [horizon for horizon in covers if horizon != joined and _is_below(horizon, joined, depth)]
        assert smaller == [] or Reach.MIRRORED in (left.reach, right.reach)


def _is_below(small: Horizon, large: Horizon, depth: int) -> bool:
    return all(meaning(small, p, depth) <= meaning(large, p, depth) for p in range(LENGTH))


GROUP = 2


def read_positions(manner: Manner, position: int, depth: int) -> set[int]:
    """The positions of an argument, which is as long as the chunk at hand, that a block reads."""
    chunk = window(depth, position)
    place = position - chunk[0]
    return {
        Manner.GROUPED: set(chunk[: GROUP * (place + 1)]), Manner.SPLIT: {chunk[place // GROUP]},
        Manner.HELD: set(chunk[: (place + 1) // GROUP]),
        Manner.LENGTH: set[int](),
        Manner.POINTWISE: {position},
        Manner.CAUSAL: set(range(chunk[0], position + 1)),
        Manner.FIRST: {chunk[0]},
        Manner.MIRRORED: {chunk[0] + chunk[-1] - position},
        Manner.FULL: set(chunk),
    }[manner]  # fmt: skip


def read_entries(manner: Manner, row: int, column: int, depth: int) -> set[tuple[int, int]]:
    """The entries of a map that an entry of a map reads; both have the chunk's positions as rows and columns."""
    chunk = window(depth, row)
    match manner:
        case Manner.POINTWISE:
            return {(row, column)}
        case Manner.TRANSPOSED:
            return {(column, row)}
        case Manner.CAUSAL:
            return set(product(range(chunk[0], row + 1), range(chunk[0], column + 1)))
        case Manner.ROW:
            return {(row, other) for other in chunk}
        case Manner.PREFIX:
            return {(row, other) for other in chunk if other <= column}
        case Manner.TRIANGULAR:
            return set(product(range(chunk[0], row + 1), range(chunk[0], row + 1)))
    return set(product(read_positions(manner, row, depth), chunk))


def maps(depth: int) -> Iterator[tuple[int, int]]:
    """The rows and columns of the maps of all chunks."""
    for row in range(LENGTH):
        yield from ((row, column) for column in window(depth, row))


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("manner", Manner)
def test_a_map_depends_on_the_entries_that_the_block_reads(manner: Manner, depth: int) -> None:
    for horizon in (*horizons(depth), *RATED, *RATED_MAPS):
        result = horizon.read(manner, depth, GROUP)
        for row, column in maps(depth):
            entries = read_entries(manner, row, column, depth)
            read = set[int]().union(*(meaning(horizon, i, depth, j) for i, j in entries))
            assert read <= meaning(result, row, depth, column), (horizon, row, column)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_sequence_is_read_at_the_columns_of_a_map(depth: int) -> None:
    for horizon in (*horizons(depth), *RATED):
        result = horizon.read(Manner.TRANSPOSED, depth)
        assert result.reach is Reach.PAIRED or not horizon.is_of_position or horizon == MIRRORED
        for row, column in maps(depth):
            assert meaning(horizon, column, depth) <= meaning(result, row, depth, column)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_join_of_maps_covers_both(depth: int) -> None:
    for left, right in product((*horizons(depth), *RATED, *RATED_MAPS), repeat=2):
        joined = left.join(right, depth)
        assert joined == right.join(left, depth)
        for row, column in maps(depth):
            both = meaning(left, row, depth, column) | meaning(right, row, depth, column)
            assert both <= meaning(joined, row, depth, column)


def test_a_causal_map_has_entries_up_to_the_row() -> None:
    assert POINTWISE.join(POINTWISE.read(Manner.TRANSPOSED, 0), 0) == PAIRED
    assert PAIRED.sees_future
    assert PAIRED.read(Manner.TRIANGULAR, 0) == CAUSAL
    assert CAUSAL.read(Manner.ROW, 0) == CAUSAL
    assert PAIRED.read(Manner.ROW, 0) == within(0)


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize(
    "manner",
    [manner for manner in Manner if manner not in (Manner.TRANSPOSED, Manner.ROW, Manner.PREFIX, Manner.TRIANGULAR)],
)
def test_a_result_depends_on_the_argument_at_the_positions_that_the_block_reads(manner: Manner, depth: int) -> None:
    for horizon in (*horizons(depth), *RATED):
        result = horizon.read(manner, depth, GROUP)
        for position in range(LENGTH):
            read = set[int]().union(*(meaning(horizon, q, depth) for q in read_positions(manner, position, depth)))
            assert read <= meaning(result, position, depth), (horizon, position)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_value_from_outside_a_scan_can_be_read_at_any_position(depth: int) -> None:
    for horizon in horizons(depth):
        for position in range(LENGTH):
            read = set[int]().union(*(meaning(horizon, q, depth) for q in window(depth, position)))
            assert read <= meaning(horizon.enter(depth), position, depth + 1)


@pytest.mark.parametrize("depth", [0, 1])
def test_positions_of_a_chunk_are_positions_of_the_sequence(depth: int) -> None:
    for horizon in horizons(depth):
        for position in range(LENGTH):
            assert meaning(horizon, position, depth) <= meaning(horizon.cut(depth), position, depth + 1)
        for inside in (*horizons(depth + 1), *RATED):
            outside = inside.joined(depth, single_positions=False)
            for position in range(LENGTH):
                assert meaning(inside, position, depth + 1) <= meaning(outside, position, depth)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_state_continues_in_the_next_chunk_and_after_the_last(depth: int) -> None:
    size = SIZES[depth + 1]
    for inside in horizons(depth + 1):
        for position in range(LENGTH):
            moved = set[int]().union(*(meaning(inside, q, depth + 1) for q in window(depth + 1, position)))
            assert moved <= meaning(inside.last(depth), position, depth)
            if position + size < LENGTH and position + size in window(depth, position):
                assert moved <= meaning(inside.next_chunk(depth), position + size, depth + 1)


@pytest.mark.parametrize("depth", [0, 1])
def test_a_map_is_carried_to_the_next_chunk_and_read_from_outside(depth: int) -> None:
    size = SIZES[depth + 1]
    for row, column in maps(depth + 1):
        assert meaning(PAIRED, row, depth + 1, column) <= meaning(PAIRED.last(depth), row, depth)
        if row + size < LENGTH and row + size in window(depth, row):
            assert meaning(PAIRED, row, depth + 1, column) <= meaning(PAIRED.next_chunk(depth), row + size, depth + 1)
    for row, column in maps(depth):
        assert meaning(PAIRED, row, depth, column) <= meaning(PAIRED.enter(depth), row, depth + 1)


def test_chunks_of_one_position_are_causal() -> None:
    for horizon in (MIRRORED, within(1), Horizon(Reach.START, 1)):
        assert not horizon.joined(0, single_positions=True).sees_future
    assert within(1).joined(0, single_positions=False).sees_future
    assert within(0).joined(0, single_positions=True).sees_future


def test_groups_that_are_held_and_groups_of_what_was_split_are_causal() -> None:
    groups = CAUSAL.read(Manner.GROUPED, 0, 4)
    assert groups.sees_future
    assert groups.read(Manner.CAUSAL, 0).read(Manner.HELD, 0, 4) == CAUSAL
    assert groups.read(Manner.HELD, 0, 2).sees_future
    assert groups.read(Manner.SPLIT, 0, 4) == within(0)
    assert POINTWISE.read(Manner.SPLIT, 0, 4).read(Manner.GROUPED, 0, 4) == CAUSAL


def test_the_joined_chunks_of_groups_are_as_far_ahead_as_the_groups() -> None:
    groups = POINTWISE.read(Manner.GROUPED, 0, 4)
    assert groups.cut(0) == CAUSAL
    assert POINTWISE.joined(0, single_positions=False).scaled(groups.rate) == groups
    assert within(0).scaled(groups.rate) == within(0)


def test_a_reversed_reverse_is_causal_again() -> None:
    assert CAUSAL.read(Manner.MIRRORED, 0) == MIRRORED
    assert MIRRORED.sees_future
    assert MIRRORED.read(Manner.MIRRORED, 0) == CAUSAL
