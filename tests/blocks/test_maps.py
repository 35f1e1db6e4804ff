"""Blocks of maps, entry by entry from their equations."""

from collections.abc import Callable
from itertools import product
from math import sqrt

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.maps import (
    AlibiBias,
    ConvolveMap,
    CumulativeSumKeys,
    Distances,
    Interpolate,
    LogsumexpKeys,
    LowerTriangle,
    MaskedSoftmaxKeys,
    MaxKeys,
    OuterSum,
    RelativeBias,
    Scores,
    SinkSoftmaxKeys,
    SoftmaxKeys,
    SoftmaxQueries,
    SumKeys,
    TopKKeys,
    TransposeMap,
    Weigh,
)
from archlang.blocks.positions import alibi_slopes
from tests.blocks.conftest import agree
from tests.closeness import close

B, N, M, H, D = 2, 4, 5, 2, 6
LENGTHS = [5, 3]
MASK = torch.arange(M) < torch.tensor(LENGTHS)[:, None]


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def entries(entry: Callable[[int, int, int, int], Tensor], n: int = N, m: int = M, heads: int = H) -> Tensor:
    """Returns the map of `entry(sample, row, column, head)`."""
    values = [entry(b, i, j, h) for b, i, j, h in product(range(B), range(n), range(m), range(heads))]
    return torch.stack(values).reshape(B, n, m, heads)


def keys(sample: int, row: int, causal: bool, window: int = 0) -> list[int]:
    """Returns the real keys of a row."""
    real = range(min(LENGTHS[sample], row + 1 if causal else M))
    return [key for key in real if not window or abs(row - key) < window]


@pytest.mark.parametrize(("heads", "key_heads"), [(2, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize(("scale", "softcap"), [(0.0, 0.0), (0.3, 0.0), (0.0, 0.5)])
def test_scores_are_scaled_dot_products_of_heads(heads: int, key_heads: int, scale: float, softcap: float) -> None:
    c = 3

    def slow(q: Tensor, k: Tensor) -> Tensor:
        def entry(b: int, i: int, j: int, h: int) -> Tensor:
            own = h // (heads // key_heads) * c
            y = sum((q[b, i, h * c + x] * k[b, j, own + x] for x in range(c)), torch.zeros(())) * (scale or 1 / sqrt(c))
            return softcap * torch.tanh(y / softcap) if softcap else y

        return entries(entry, heads=heads)

    block = Scores(heads=heads, scale=scale, softcap=softcap, d=heads * c, e=key_heads * c)
    agree(block, slow, normal(B, N, heads * c), normal(B, M, key_heads * c))


def test_an_outer_sum_has_a_value_of_each_row_and_column() -> None:
    def slow(a: Tensor, b: Tensor) -> Tensor:
        return entries(lambda s, i, j, h: a[s, i, h] + b[s, j, h])

    agree(OuterSum(h=H), slow, normal(B, N, H), normal(B, M, H))


@pytest.mark.parametrize("has_sinks", [False, True])
@pytest.mark.parametrize("window", [0, 1, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_a_softmax_over_keys_ignores_padding_later_and_far_keys(causal: bool, window: int, has_sinks: bool) -> None:
    def slow(x: Tensor, *sinks: Tensor, mask_m: Tensor) -> Tensor:
        def entry(b: int, i: int, j: int, h: int) -> Tensor:
            real = keys(b, i, causal, window)
            total = sum((x[b, i, key, h].exp() for key in real), sinks[0][b, h].exp() if sinks else torch.zeros(()))
            return x[b, i, j, h].exp() / total if j in real else x.new_zeros(())

        return entries(entry)

    block = (SinkSoftmaxKeys if has_sinks else SoftmaxKeys)(causal=causal, window=window, h=H)
    agree(block, slow, normal(B, N, M, H), *([normal(B, H)] if has_sinks else []), mask_m=MASK)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("k", [1, H])
def test_a_masked_softmax_keeps_what_the_other_map_keeps(causal: bool, k: int) -> None:
    keep = (torch.rand(B, N, M, k) < 0.5).double()
    keep[0, 0] = 0  # a row without keys

    def slow(x: Tensor, mask_m: Tensor) -> Tensor:
        def entry(b: int, i: int, j: int, h: int) -> Tensor:
            real = [key for key in keys(b, i, causal) if keep[b, i, key, h % k] > 0]
            total = sum((x[b, i, key, h].exp() for key in real), torch.zeros(()))
            return x[b, i, j, h].exp() / total if j in real else x.new_zeros(())

        return entries(entry)

    block = MaskedSoftmaxKeys(causal=causal, h=H, k=k)
    agree(lambda x, mask_m: block(x, keep, mask_m=mask_m), slow, normal(B, N, M, H), mask_m=MASK)


def test_a_softmax_over_queries_is_that_over_keys_of_the_transpose() -> None:
    x = normal(B, N, M, H)
    mask = torch.arange(N) < torch.tensor([4, 2])[:, None]
    transposed = TransposeMap(h=H)
    expected = transposed(SoftmaxKeys(causal=False, window=0, h=H)(transposed(x), mask_m=mask))
    close(SoftmaxQueries(h=H)(x, mask_n=mask), expected)
    assert torch.equal(transposed(x)[1, 3, 2], x[1, 2, 3])


@pytest.mark.parametrize(("heads", "times"), [(2, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_map_weighs_the_values_of_its_heads(causal: bool, heads: int, times: int) -> None:
    c = 3

    def slow(a: Tensor, v: Tensor, mask_m: Tensor) -> Tensor:
        rows = [
            sum((a[b, i, j, h] * v[b, j, h // times * c + x] for j in keys(b, i, causal)), a.new_zeros(()))
            for b, i, h, x in product(range(B), range(N), range(heads), range(c))
        ]
        return torch.stack(rows).reshape(B, N, heads * c)

    width = heads // times * c
    block = Weigh(causal=causal, times=times, h=heads, d=width)
    agree(block, slow, normal(B, N, M, heads), normal(B, M, width), mask_m=MASK)


REDUCTIONS: dict[type[nn.Module], Callable[[list[Tensor]], Tensor]] = {
    SumKeys: lambda numbers: sum(numbers[1:], numbers[0]),
    MaxKeys: max,
    LogsumexpKeys: lambda numbers: torch.stack(numbers).exp().sum().log(),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("causal", [False, True])
def test_a_reduction_of_keys_ignores_padding_and_if_causal_later_keys(causal: bool, kind: type[nn.Module]) -> None:
    def slow(x: Tensor, mask_m: Tensor) -> Tensor:
        reduced = [
            REDUCTIONS[kind]([x[b, i, j, h] for j in keys(b, i, causal)])
            for b, i, h in product(range(B), range(N), range(H))
        ]
        return torch.stack(reduced).reshape(B, N, H)

    agree(kind(causal=causal, h=H), slow, normal(B, N, M, H), mask_m=MASK)


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_a_row_without_keys_is_zero_and_has_finite_gradients(kind: type[nn.Module]) -> None:
    x = normal(1, 2, 3, H).requires_grad_()
    y = kind(causal=False, h=H)(x, mask_m=torch.zeros(1, 3, dtype=torch.bool))
    y.sum().backward()
    assert not y.any()
    assert x.grad is not None
    assert not x.grad.any()


@pytest.mark.parametrize("block", [LogsumexpKeys(causal=False, h=H), MaxKeys(causal=False, h=H)])
def test_the_largest_scores_do_not_overflow(block: nn.Module) -> None:
    assert block(torch.full((1, 2, 3, H), 3e38)).isfinite().all()


@pytest.mark.parametrize("diagonal", [-1, 0, 1])
def test_a_lower_triangle_is_zero_after_its_diagonal(diagonal: int) -> None:
    def slow(x: Tensor) -> Tensor:
        return entries(lambda b, i, j, h: x[b, i, j, h] if j <= i + diagonal else x.new_zeros(()))

    agree(LowerTriangle(diagonal=diagonal, h=H), slow, normal(B, N, M, H))


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_sums_of_keys_so_far_begin_at_either_end(backward: bool, exclusive: bool, causal: bool) -> None:
    def slow(x: Tensor, mask_m: Tensor) -> Tensor:
        def entry(b: int, i: int, j: int, h: int) -> Tensor:
            summed = [key for key in keys(b, i, causal) if (key >= j if backward else key <= j)]
            return sum((x[b, i, key, h] for key in summed if not (exclusive and key == j)), x.new_zeros(()))

        return entries(entry)

    block = CumulativeSumKeys(backward=backward, exclusive=exclusive, causal=causal, h=H)
    agree(block, slow, normal(B, N, M, H), mask_m=MASK)


def test_a_convolution_is_the_identity_at_first_and_reads_earlier_queries_and_keys() -> None:
    block = ConvolveMap(width=3, h=H).double()
    x = normal(B, N, M, H)
    assert torch.equal(block(x), x)
    nn.init.normal_(block.weight)

    def slow(x: Tensor) -> Tensor:
        def entry(b: int, i: int, j: int, h: int) -> Tensor:
            places = [(s, t) for s, t in product(range(3), repeat=2) if s <= i and t <= j]
            return sum((block.weight[h, s, t] * x[b, i - s, j - t, h] for s, t in places), x.new_zeros(()))

        return entries(entry)

    agree(block, slow, x)


@pytest.mark.parametrize("causal", [False, True])
def test_the_largest_keys_are_chosen_among_the_real_ones(causal: bool) -> None:
    x = torch.randint(3, (B, N, M, H)).double()  # with ties

    def entry(b: int, i: int, j: int, h: int) -> Tensor:
        order = sorted(keys(b, i, causal), key=lambda key: -float(x[b, i, key, h]))
        return torch.tensor(float(j in order[:2]), dtype=torch.float64)

    assert torch.equal(TopKKeys(k=2, causal=causal, h=H)(x, mask_m=MASK), entries(entry))


def test_distances_are_counted_from_the_query_back() -> None:
    y = Distances(d=D, e=3)(normal(B, N, D), normal(B, M, 3))
    assert y.shape == (B, N, M, 1)
    assert [[int(y[1, i, j, 0]) for j in range(M)] for i in (0, 3)] == [[0, -1, -2, -3, -4], [3, 2, 1, 0, -1]]


def test_the_slopes_of_alibi_are_those_of_its_program() -> None:
    assert alibi_slopes(8) == [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(1) == [2.0**-8]
    assert alibi_slopes(6) == [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3]
    bias = AlibiBias(heads=6, d=D, e=D)(normal(B, N, D), normal(B, M, D))
    assert float(bias[0, 3, 1, 4]) == -2 * 0.5
    assert float(bias[1, 0, 4, 0]) == -4 * 0.25


@pytest.mark.parametrize(("rows", "is_exported"), [(2, False), (128, False), (128, True)])
def test_a_relative_bias_is_learned_for_distances_up_to_its_span(
    rows: int, is_exported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archlang.blocks.maps._ROWS_OF_SUM", rows)  # of the gradient, which may be added in parts
    monkeypatch.setattr("archlang.blocks.maps.is_exporting", lambda: is_exported)
    block = RelativeBias(heads=H, span=2, d=D, e=D).double()
    nn.init.normal_(block.bias)

    def slow(q: Tensor, k: Tensor) -> Tensor:
        return entries(lambda b, i, j, h: block.bias[min(max(i - j, -2), 2) + 2, h])

    agree(block, slow, normal(B, N, D), normal(B, M, D))


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 0), (3, 0), (1, 1)])
def test_a_relative_bias_of_few_positions_has_a_gradient(n: int, m: int) -> None:
    block = RelativeBias(heads=H, span=2, d=D, e=D).double()
    block(normal(B, n, D), normal(B, m, D)).sum().backward()
    assert block.bias.grad is not None
    assert float(block.bias.grad.sum()) == B * n * m * H


def test_places_between_two_entries_are_interpolated() -> None:
    counts = [3, 2]
    mask = torch.arange(3) < torch.tensor(counts)[:, None]

    def slow(t: Tensor, p: Tensor, mask_k: Tensor) -> Tensor:
        def entry(b: int, i: int, j: int, h: int) -> Tensor:
            place = p[b, i, j, h].clamp(0, counts[b] - 1)
            low = min(int(place), counts[b] - 2)
            table = t[b, i, :, h]
            return table[low] + (place - low) * (table[low + 1] - table[low])

        return entries(entry)

    places = 3 * torch.rand(B, N, M, H, dtype=torch.float64) - 0.5
    agree(Interpolate(h=H), slow, normal(B, N, 3, H), places, mask_k=mask)


def test_places_that_heads_share_are_looked_up_as_those_of_each_head() -> None:
    def of_each(t: Tensor, p: Tensor) -> Tensor:
        result: Tensor = Interpolate(h=H)(t, p.expand(-1, -1, -1, H).clone())
        return result

    def shared(t: Tensor, p: Tensor) -> Tensor:
        result: Tensor = Interpolate(h=H)(t, p.expand(-1, -1, -1, H))
        return result

    agree(shared, of_each, normal(B, N, 3, H), 3 * torch.rand(B, N, M, 1, dtype=torch.float64) - 0.5)


@pytest.mark.parametrize("last", [0, 1, M])
def test_first_columns_at_the_last_place_are_those_of_one_entry(last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_few(t: Tensor, p: Tensor) -> Tensor:
        with monkeypatch.context() as patched:
            patched.setattr("archlang.blocks.maps._MANY_PLACES", 10**9)
            result: Tensor = Interpolate(h=H)(t, p)
        return result

    monkeypatch.setattr("archlang.blocks.maps._MANY_PLACES", 1)
    places = 1.9 * torch.rand(B, N, M, H, dtype=torch.float64)
    places[:, :, :last] += 2.0
    agree(Interpolate(h=H), in_few, normal(B, N, 3, H), places)


def test_a_place_that_is_nan_is_interpolated_to_nan() -> None:
    result = Interpolate(h=1)(normal(1, 1, 3, 1), torch.tensor([[[[torch.nan], [1.0]]]], dtype=torch.float64))
    assert result.flatten().isnan().tolist() == [True, False]


def test_a_map_without_rows_is_interpolated() -> None:
    assert Interpolate(h=H)(normal(B, 0, 3, H), normal(B, 0, M, H)).shape == (B, 0, M, H)
