"""Positions that move, are summed or are cut, by loops over lists of real positions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.activations import SoftmaxPositions
from archlang.blocks.sequences import (
    Append,
    Chunks,
    Convolve,
    CumulativeLogsumexp,
    CumulativeMax,
    CumulativeSum,
    Every,
    Expand,
    First,
    Gather,
    Hold,
    Indices,
    Interleave,
    Last,
    Logsumexp,
    Max,
    Mean,
    Min,
    Pad,
    Patches,
    Shift,
    Slice,
    Sum,
)
from tests.blocks.conftest import agree
from tests.closeness import same_gradients

RAGGED = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
RAGGED_2 = torch.tensor([[True, False], [True, True], [True, False]])
MASKS = pytest.mark.parametrize("mask", [None, RAGGED], ids=["no mask", "ragged"])


def samples(x: Tensor, mask: Tensor | None) -> list[list[Tensor]]:
    """The states at the real positions of each sample."""
    return [[x[b, i] for i in range(x.shape[1]) if mask is None or mask[b, i]] for b in range(len(x))]


def batch(rows: list[list[Tensor]], length: int, like: Tensor) -> Tensor:
    """The states as a batch with zeros as padding."""
    zero = like.new_zeros(like.shape[-1])
    states = torch.stack([torch.stack([*row, *[zero] * (length - len(row))]) for row in rows])
    return states + 0 * like.sum()  # so that zeros have a gradient too


def at(states: list[Tensor], index: int) -> Tensor:
    """The state at a position, zeros if there is none."""
    return states[index] if 0 <= index < len(states) else torch.zeros(3, dtype=torch.float64)


def values(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@MASKS
@pytest.mark.parametrize("by", [0, 1, 3, 9, -1, -3, -9])
def test_shift_moves_real_positions(by: int, mask: Tensor | None) -> None:
    shift = Shift(by=by, d=3)

    def real_only(x: Tensor, mask_n: Tensor | None) -> Tensor:
        y: Tensor = shift(x, mask_n=mask_n)
        return y if mask_n is None else y * mask_n[..., None]

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = [[at(states, i - by) for i in range(len(states))] for states in samples(x, mask_n)]
        return batch(rows, 4, x)

    agree(real_only, slow, values(3, 4, 3), mask_n=mask)


@MASKS
@pytest.mark.parametrize(("start", "length"), [(0, 1), (1, 2), (3, 5), (-1, 1), (-3, 3), (-9, 4), (-2, 4)])
def test_slice_counts_from_the_start_or_from_the_end_of_each_sample(
    start: int, length: int, mask: Tensor | None
) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = []
        for states in samples(x, mask_n):
            begin = start if start >= 0 else start + len(states)
            rows.append([at(states, begin + i) for i in range(length)])
        return batch(rows, length, x)

    agree(Slice(start=start, length=length, d=3), slow, values(3, 4, 3), mask_n=mask)


@MASKS
@pytest.mark.parametrize("mask_2", [None, RAGGED_2], ids=["second full", "second ragged"])
def test_append_leaves_no_padding_between_real_positions(mask: Tensor | None, mask_2: Tensor | None) -> None:
    append = Append(d=3)

    def real_only(x: Tensor, y: Tensor, mask_n: Tensor | None, mask_m: Tensor | None) -> Tensor:
        z, mask = append(x, y, mask_n=mask_n, mask_m=mask_m)
        result: Tensor = z if mask is None else z * mask[..., None]
        return result

    def slow(x: Tensor, y: Tensor, mask_n: Tensor | None, mask_m: Tensor | None) -> Tensor:
        rows = [[*one, *two] for one, two in zip(samples(x, mask_n), samples(y, mask_m), strict=True)]
        return batch(rows, 6, x)

    agree(real_only, slow, values(3, 4, 3), values(3, 2, 3), mask_n=mask, mask_m=mask_2)
    _, result_mask = append(values(3, 4, 3), values(3, 2, 3), mask_n=mask, mask_m=mask_2)
    lengths = (4 if mask is None else mask.sum(1)) + (2 if mask_2 is None else mask_2.sum(1))
    if result_mask is None:
        assert mask is mask_2 is None
    else:
        assert result_mask.equal(torch.arange(6) < torch.as_tensor(lengths)[:, None])


@MASKS
def test_pad_adds_zeros_around_the_real_positions(mask: Tensor | None) -> None:
    pad = Pad(before=1, after=2, d=3)

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        return batch([[x.new_zeros(3), *states] for states in samples(x, mask_n)], 7, x)

    agree(lambda x, mask_n: pad(x, mask_n=mask_n)[0], slow, values(3, 4, 3), mask_n=mask)
    _, result_mask = pad(values(3, 4, 3), mask_n=mask)
    assert result_mask is None if mask is None else result_mask.sum(1).tolist() == [7, 5, 3]


def grouped(states: list[Tensor], k: int) -> list[list[Tensor]]:
    """The whole groups of k states."""
    return [states[j : j + k] for j in range(0, len(states) - k + 1, k)]


def split(states: list[Tensor], k: int) -> list[list[Tensor]]:
    return [[part] for state in states for part in state.tensor_split(k)]


Split = Callable[[list[Tensor], int], list[Tensor]]
GROUPS: dict[str, tuple[Callable[..., nn.Module], Split]] = {
    "patches": (Patches, lambda states, k: [torch.cat(group) for group in grouped(states, k)]),
    "every": (Every, lambda states, k: [group[-1] for group in grouped(states, k)]),
    "interleave": (Interleave, lambda states, k: [part for (part,) in split(states, k)]),
}


@MASKS
@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_positions_are_whole_and_real(name: str, k: int, mask: Tensor | None) -> None:
    kind, group = GROUPS[name]
    x = values(3, 4, 6)
    _, result_mask = kind(k=k, d=6)(x, mask_n=mask)
    counts = [len(group(states, k)) for states in samples(x, mask)]
    assert result_mask is None if mask is None else result_mask.sum(1).tolist() == counts

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = [group(states, k) for states in samples(x, mask_n)]
        width = next((len(state) for row in rows for state in row), 6)
        return batch(rows, max(counts), x.new_zeros(width) + 0 * x.sum())

    def real_only(x: Tensor, mask_n: Tensor | None) -> Tensor:
        y, own = kind(k=k, d=6)(x, mask_n=mask_n)
        real: Tensor = y if own is None else y.masked_fill(~own[..., None], 0.0)
        return real

    if max(counts):
        agree(real_only, slow, x, mask_n=mask)


@MASKS
@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_group_is_held_from_its_end_to_that_of_the_next(k: int, mask: Tensor | None) -> None:
    def slow(x: Tensor, like: Tensor, mask_n: Tensor | None) -> Tensor:
        ended = [i // k for i in range(1, 9)]
        return (
            batch([[at(states, count - 1) for count in ended] for states in samples(x, mask_n)], 8, x) + 0 * like.sum()
        )

    agree(Hold(k=k, d=3, e=2), slow, values(3, 4, 3), values(3, 8, 2), mask_n=mask)


@MASKS
@pytest.mark.parametrize("causal", [False, True])
def test_gather_rounds_and_has_zeros_outside_of_a_sample_and_if_causal_after_the_position(
    mask: Tensor | None, causal: bool
) -> None:
    places = torch.tensor([[0.0, 1.2, 2.9], [-0.4, -0.6, 1.0], [3.6, torch.nan, torch.inf]]).double()[..., None]

    def slow(x: Tensor, places: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = []
        for states, row in zip(samples(x, mask_n), places[..., 0].tolist(), strict=True):
            known = [states[: i + 1] if causal else states for i in range(3)]
            rows.append([at(known[i], round(place)) if abs(place) < 9 else at([], 0) for i, place in enumerate(row)])
        return batch(rows, 3, x)

    agree(Gather(causal=causal, d=3), slow, values(3, 4, 3), places, mask_n=mask)


def each_feature(function: Callable[[tuple[Tensor, ...]], Tensor]) -> Callable[[list[Tensor]], Tensor]:
    return lambda states: torch.stack([function(numbers) for numbers in zip(*states, strict=True)])


POOLS: dict[type[nn.Module], Callable[[list[Tensor]], Tensor]] = {
    First: lambda states: states[0],
    Last: lambda states: states[-1],
    Sum: each_feature(lambda numbers: sum(numbers[1:], numbers[0])),
    Mean: each_feature(lambda numbers: sum(numbers[1:], numbers[0]) / len(numbers)),
    Max: each_feature(max),
    Min: each_feature(min),
    Logsumexp: each_feature(lambda numbers: torch.stack(numbers).exp().sum().log()),
}


@MASKS
@pytest.mark.parametrize("kind", POOLS)
def test_one_vector_is_taken_of_the_real_positions(kind: type[nn.Module], mask: Tensor | None) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = [[POOLS[kind](states)] if states else [] for states in samples(x, mask_n)]
        return batch(rows, 1, x)[:, 0]

    agree(kind(d=3), slow, values(3, 4, 3), mask_n=mask)


@MASKS
def test_the_softmax_of_each_feature_is_over_the_real_positions(mask: Tensor | None) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        powers = [[state.exp() for state in states] for states in samples(x, mask_n)]
        return batch([[power / sum(row, torch.zeros(3)) for power in row] for row in powers], 4, x)

    agree(SoftmaxPositions(d=3), slow, values(3, 4, 3), mask_n=mask)


@pytest.mark.parametrize(
    ("kind", "pool"), [(CumulativeSum, Sum), (CumulativeMax, Max), (CumulativeLogsumexp, Logsumexp)]
)
def test_each_position_has_what_a_vector_takes_of_the_positions_up_to_it(
    kind: type[nn.Module], pool: type[nn.Module]
) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([torch.stack([POOLS[pool](list(row[: i + 1])) for i in range(4)]) for row in x])

    agree(kind(d=3), slow, values(2, 4, 3))


@MASKS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("width", "dilation", "stride", "groups"), [(1, 1, 1, 1), (3, 1, 1, 2), (2, 3, 1, 1), (4, 1, 2, 4), (1, 2, 3, 2)]
)
def test_a_convolution_reads_positions_around_or_before_of_its_group(
    width: int, dilation: int, stride: int, groups: int, causal: bool, mask: Tensor | None
) -> None:
    block = Convolve(
        out=8, width=width, dilation=dilation, stride=stride, groups=groups, causal=causal, bias=stride > 1, d=4
    )
    first, before = (stride - 1, width - 1) if causal else (0, (width - 1) // 2)

    def result(x: Tensor, mask_n: Tensor | None) -> Tensor:
        y, own = (block(x, mask_n=mask_n), mask_n) if stride == 1 else block(x, mask_n=mask_n)
        real: Tensor = y if own is None else y.masked_fill(~own[..., None], 0.0)
        return real

    def state(states: list[Tensor], i: int) -> Tensor:
        parts = [block.weight.new_zeros(8) if block.bias is None else block.bias]
        for a in range(width):
            place = i + dilation * (a - before)
            if 0 <= place < len(states):
                reads = states[place].chunk(groups)
                parts.append(torch.cat([w[..., a] @ x for w, x in zip(block.weight.chunk(groups), reads, strict=True)]))
        return torch.stack(parts).sum(0)

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = [[state(row, i) for i in range(first, len(row), stride)] for row in samples(x, mask_n)]
        return batch(rows, len(range(first, 4, stride)), x.new_zeros(8) + 0 * x.sum())

    block.double()
    leaves = [block.weight] if block.bias is None else [block.weight, block.bias]
    x = values(3, 4, 4).requires_grad_()
    same_gradients(result(x, mask), slow(x, mask), [x, *leaves])


def test_indices_count_and_expand_adds_an_axis() -> None:
    x = values(2, 4, 3)
    assert Indices(d=3)(x)[..., 0].tolist() == [[0, 1, 2, 3]] * 2
    assert Expand(d=3)(x[:, 0]).equal(x[:, :1])


# Chunks


def sizes(total: int, size: int = 0, count: int = 0, *, balanced: bool = False) -> list[int]:
    parts = Chunks(size=size, balanced=balanced, count=count, d=2)(torch.zeros(1, total, 2))
    return [part.shape[1] for part, _ in parts]


@pytest.mark.parametrize(
    ("total", "chunks", "expected"),
    [
        (9, (4, 0), [4, 4, 1]), (8, (4, 0), [4, 4]), (3, (4, 0), [3]),
        (512, (0, 5), [103] * 4 + [100]), (1024, (0, 5), [205] * 4 + [204]), (6, (0, 5), [2] * 3),
        (13, (0, 5), [3] * 4 + [1]), (3, (0, 5), [1] * 3),
    ],
)  # fmt: skip
def test_chunks_have_a_size_or_at_most_a_number(total: int, chunks: tuple[int, int], expected: list[int]) -> None:
    assert sizes(total, *chunks) == expected


@pytest.mark.parametrize(("total", "size"), [(9, 4), (512, 100), (1024, 100), (8, 4), (13, 4)])
def test_balanced_chunks_are_those_of_torch_chunk(total: int, size: int) -> None:
    expected = [len(part) for part in torch.zeros(total).chunk(-(-total // size))]
    assert sizes(total, size=size, balanced=True) == expected


@pytest.mark.parametrize(("size", "balanced", "count"), [(4, False, 0), (4, True, 0), (0, False, 5)])
def test_chunks_in_order_are_the_sequence(size: int, balanced: bool, count: int) -> None:
    block = Chunks(size=size, balanced=balanced, count=count, d=3)
    for total in range(12):
        x = torch.randn(2, total, 3)
        mask = torch.rand(2, total) < 0.5
        parts = block(x, mask_n=mask)
        assert torch.cat([part for part, _ in parts], dim=1).equal(x)
        assert torch.cat([real for _, real in parts], dim=1).equal(mask)
        # A chunk without positions belongs to no sample.
        assert all(real is None for _, real in block(x)) == (total > 0)
