"""What flash-linear-attention is asked for is what our own form computes; a stand-in follows its definition."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.kernels import flash_recurrence
from archlang.backend.kernels.flash_recurrence import is_asked_for
from archlang.backend.runtime import linear_recurrence as ours
from archlang.backend.runtime.linear_recurrence import linear_recurrence


def dplr(
    q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, gk: Tensor, *, initial_state: Any = None, **options: Any
) -> tuple[Tensor, Tensor]:  # Any: as the package's
    """The definition, with positions before heads."""
    assert options == {"scale": 1.0, "output_final_state": True}
    state = k.new_zeros(k.shape[0], k.shape[2], k.shape[3], v.shape[3]) if initial_state is None else initial_state
    results = []
    for i in range(q.shape[1]):
        read = torch.einsum("bhkv,bhk->bhv", state, a[:, i])
        state = gk[:, i].exp()[..., None] * state + b[:, i, :, :, None] * read[:, :, None]
        state = state + k[:, i, :, :, None] * v[:, i, :, None]
        results.append(torch.einsum("bhkv,bhk->bhv", state, q[:, i]))
    return torch.stack(results, 1), state


def gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor, **options: Any) -> tuple[Tensor, Tensor]:  # Any: as above
    return dplr(q, k, v, torch.zeros_like(k), torch.zeros_like(k), g, **options)


def simple(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None, **options: Any) -> tuple[Tensor, Tensor]:  # Any: as above
    return gla(q, k, v, torch.zeros_like(k) if g is None else g[..., None].expand(k.shape), **options)


def drawn(width: int) -> Tensor:
    return 0.4 * torch.randn(2, 3, 7, width)


TERMS: dict[str, Callable[[], tuple[Tensor | None, Tensor | None, Tensor | None]]] = {
    "no decay": lambda: (None, None, None),
    "a decay for each head": lambda: (-drawn(1).abs(), None, None),
    "a decay for each feature": lambda: (-drawn(4).abs(), None, None),
    "the delta rule": lambda: (None, drawn(4), drawn(1)),
    "the gated delta rule": lambda: (-drawn(1).abs(), drawn(4), drawn(1)),
    "a product of two vectors": lambda: (-drawn(4).abs(), drawn(4), drawn(4)),
}


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("is_first", [True, False], ids=["from zero", "from a state, with padding"])
def test_what_the_kernels_are_asked_for_is_our_recurrence(
    name: str, is_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    operations = SimpleNamespace(chunk_dplr_delta_rule=dplr, chunk_gla=gla, chunk_simple_gla=simple)
    monkeypatch.setitem(sys.modules, "fla.ops", operations)
    monkeypatch.setitem(sys.modules, "fla", SimpleNamespace())
    torch.manual_seed(0)
    g, a, b = TERMS[name]()
    terms = [term for term in (drawn(4), drawn(4), drawn(5), g, a, b) if term is not None]
    places = [index for index, term in enumerate((1, 1, 1, g, a, b)) if term is not None]
    state = None if is_first else torch.randn(2, 3, 4, 5)
    mask = None if is_first else torch.arange(7) < torch.tensor([[7], [4]])
    results = []
    for is_on in (False, True):
        monkeypatch.setattr(ours, "is_asked_for", lambda _, is_on=is_on: is_on)
        leaves = [term.clone().requires_grad_() for term in terms]
        arguments: list[Tensor | None] = [None] * 6
        for place, leaf in zip(places, leaves, strict=True):
            arguments[place] = leaf
        q, k, v, *others = arguments
        assert q is not None
        assert k is not None
        assert v is not None
        o, last = linear_recurrence(q, k, v, *others, state=state, mask=mask)
        gradients = torch.autograd.grad(o.square().sum() + last.sum(), leaves)
        results.append([o.detach(), last.detach(), *gradients])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


class OnGpu(Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


def test_they_are_asked_only_by_the_switch_in_half_precision_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_recurrence, "find_spec", lambda _: SimpleNamespace())
    values = torch.zeros(2, 3, 7, 4, dtype=torch.bfloat16)
    on_gpu = values.as_subclass(OnGpu)
    assert not is_asked_for(on_gpu)
    monkeypatch.setenv("ARCHLANG_FLA", "1")
    assert is_asked_for(on_gpu)
    for other in (values, values.float().as_subclass(OnGpu), on_gpu[:, :, :0]):
        assert not is_asked_for(other)
    monkeypatch.setattr(flash_recurrence, "find_spec", lambda _: None)
    assert not is_asked_for(on_gpu)
