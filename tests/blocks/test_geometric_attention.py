"""Geometric attention against explicit products, and its properties in the paper."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.kernels.nearest_match import nearest_match
from archlang.blocks import geometric_attention
from archlang.blocks.geometric_attention import GeometricAttention
from tests.blocks.conftest import agree
from tests.closeness import close

plain = partial(
    GeometricAttention, heads=2, normalised=False, key_dropout=0.0, output_dropout=0.0, head_dim=0, causal=False,
    offset=0, d=8, e=8,
)  # fmt: skip


def geometric(**statics: Any) -> GeometricAttention:  # Any: statics of several types
    block = plain(**statics)
    # The initial values hide missing terms.
    for parameter in (block.query_bias, block.content_scale, block.direction_scale, block.score_bias):
        nn.init.normal_(parameter)
    return block


def match(p: list[Tensor | float], i: int, j: int) -> Tensor:
    """Returns Eqs. 7 and 8 for a query at i, from the probabilities of all keys."""
    weight = torch.as_tensor(p[j], dtype=torch.float64)
    for k in range(len(p)):
        nearer = abs(i - k) < abs(i - j) if j > i else abs(i - k) <= abs(i - j)
        if k not in (i, j) and nearer:
            weight = weight * (1 - p[k])
    return weight if i != j else weight * 0


def slow_geometric(block: GeometricAttention, c: int) -> Callable[..., Tensor]:
    def slow(q: Tensor, kv: Tensor, mask_n: Tensor | None, mask_m: Tensor | None) -> Tensor:
        samples = []
        for b in range(len(q)):
            rows = []
            for row in range(q.shape[1]):
                i = row + block.offset
                heads = []
                for h in range(block.heads):
                    part = slice(h * c, (h + 1) * c)
                    query = block.query.weight[part] @ q[b, row] + block.query_bias[h]
                    left = block.direction.weight[h] @ q[b, row] + block.direction.bias[h]
                    right = block.direction.weight[block.heads + h] @ q[b, row] + block.direction.bias[block.heads + h]
                    p: list[Tensor | float] = []
                    for j in range(kv.shape[1]):
                        if j == i or (mask_m is not None and not mask_m[b, j]) or (block.causal and j > i):
                            p.append(0.0)
                            continue
                        content = query @ (block.key.weight[part] @ kv[b, j])
                        direction = right if j > i else left
                        logit = block.content_scale * content + block.direction_scale * direction + block.score_bias
                        p.append((1 / (1 + torch.exp(-logit)))[0])
                    weights = [match(p, i, j) for j in range(kv.shape[1])]
                    if block.normalised:
                        total = sum(weights, q.new_zeros(())).clamp(min=1e-12)
                        weights = [weight / total for weight in weights]
                    values = [block.value.weight[part] @ slot for slot in kv[b]]
                    heads.append(sum((w * v for w, v in zip(weights, values, strict=True)), q.new_zeros(c)))
                rows.append(block.output.weight @ torch.cat(heads))
            samples.append(torch.stack(rows))
        return torch.stack(samples)

    return slow


REAL = torch.arange(6) < torch.tensor([[6], [3], [0]])


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, REAL], ids=["no mask", "ragged"])
def test_a_key_receives_the_weight_that_nearer_keys_leave(normalised: bool, causal: bool, mask: Tensor | None) -> None:
    block = geometric(normalised=normalised, causal=causal).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    agree(block, slow_geometric(block, 4), x, x.clone(), mask_n=mask, mask_m=mask)


def test_keys_may_have_another_width_and_heads_another_size() -> None:
    block = geometric(e=5, head_dim=3, heads=3).double()
    q, kv = torch.randn(3, 4, 8, dtype=torch.float64), torch.randn(3, 6, 5, dtype=torch.float64)
    agree(block, slow_geometric(block, 3), q, kv, mask_n=None, mask_m=REAL)


def test_an_offset_places_the_queries_among_the_keys() -> None:
    block, full = geometric(offset=4).double(), geometric().double()
    full.load_state_dict(block.state_dict())
    x = torch.randn(2, 6, 8, dtype=torch.float64)
    torch.testing.assert_close(block(x[:, 4:], x), full(x, x)[:, 4:], atol=1e-12, rtol=1e-12)
    agree(block, slow_geometric(block, 4), x[:, 4:].clone(), x.clone(), mask_n=None, mask_m=None)


def test_the_nearest_match_wins() -> None:
    logits = torch.full((9, 9), -30.0)
    logits[:, [1, 6, 8]] = 30.0
    weights = nearest_match(logits.fill_diagonal_(-torch.inf))
    assert weights.argmax(-1).tolist() == [1, 6, 1, 1, 6, 6, 8, 8, 6]
    close(weights.amax(-1), torch.ones(9))


def test_of_two_keys_at_equal_distance_the_right_key_wins() -> None:
    weights = nearest_match(torch.full((5, 5), 30.0).fill_diagonal_(-torch.inf))
    assert weights.argmax(-1).tolist() == [1, 2, 3, 4, 3]


def test_large_logits_keep_their_precision() -> None:
    logits = 50 * torch.randn(2, 512, 512, dtype=torch.float64)
    single = nearest_match(logits.float())
    torch.testing.assert_close(single.double(), nearest_match(logits.float().double()), atol=5e-6, rtol=0)


def test_numbers_shared_by_the_heads_start_as_in_the_paper() -> None:
    block = plain(heads=4, d=256, e=256)
    assert (block.content_scale.item(), block.direction_scale.item(), block.score_bias.item()) == (1 / 8, 1, 0)


def test_dropout_is_on_the_keys_and_not_on_the_weights() -> None:
    block = geometric(key_dropout=0.5, heads=1).double()
    x = torch.randn(1, 2, 8, dtype=torch.float64)
    key = block.key(x)[0, 1]
    query = block.query(x)[0, 0] + block.query_bias[0]
    direction = block.direction(x)[0, 0, 1]
    seen = {round(block.weights(x, x)[0, 0, 0, 1].item(), 9) for _ in range(200)}
    masks = torch.cartesian_prod(*[torch.tensor([0.0, 2.0], dtype=torch.float64)] * 8)
    logits = block.content_scale * (masks * key) @ query + block.direction_scale * direction + block.score_bias
    possible = {round(weight, 9) for weight in torch.sigmoid(logits).tolist()}
    assert len(seen) > 20
    assert seen <= possible


def test_large_weights_are_computed_for_some_queries_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    block = geometric(normalised=True).double()
    x = torch.randn(2, 20, 8, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(20) < torch.tensor([[20], [7]])
    leaves = [x, *block.parameters()]
    sizes: list[int] = []

    def run() -> list[Tensor]:
        def keep(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        sizes.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = block(x, x, mask_m=mask)
        gradients = torch.autograd.grad(y.square().sum(), leaves, create_graph=True)
        penalty = sum((gradient.square().sum() for gradient in gradients), x.new_zeros(()))
        return [y, *gradients, *torch.autograd.grad(penalty, leaves)]

    whole = run()
    assert max(sizes) >= 2 * 2 * 20 * 20
    monkeypatch.setattr(geometric_attention, "_MOST_WEIGHTS", 400)
    monkeypatch.setattr(geometric_attention, "_WEIGHTS_OF_A_BLOCK", 400)
    for part, value in zip(run(), whole, strict=True):
        torch.testing.assert_close(part, value, atol=1e-10, rtol=1e-10)
    assert max(sizes) < 2 * 2 * 20 * 20


def test_half_precision_on_a_cpu_keeps_single_precision_sums_for_short_sequences() -> None:
    block = geometric()
    x = torch.randn(2, 7, 8)
    with torch.autocast("cpu", torch.bfloat16):
        weights = block.weights(x, x)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights, block.weights(x, x), atol=0.05, rtol=0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("n", [12, 64, 65, 100])
def test_a_gpu_has_the_results_and_gradients_of_the_cpu(n: int) -> None:
    torch.manual_seed(0)
    block = geometric(d=32, e=32)
    x, mask = torch.randn(3, n, 32), torch.arange(n) < torch.tensor([n, 2, n // 2])[:, None]

    def run(device: str) -> list[Tensor]:
        module, leaf = block.to(device), x.to(device).requires_grad_()
        y = module(leaf, leaf, mask_m=mask.to(device))
        gradients = torch.autograd.grad(y.square().sum(), [leaf, *module.parameters()])
        return [y.detach().cpu(), *(gradient.cpu() for gradient in gradients)]

    for actual, expected in zip(run("cuda"), run("cpu"), strict=True):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)
