"""Claims about linear recurrences in chunks: precision in float32 for any decay, higher derivatives, transforms."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.runtime import linear_recurrence as kernel
from archlang.backend.runtime.linear_recurrence import linear_recurrence
from archlang.backend.runtime.stacking import stacked_models

HALVED = 2
Arguments = dict[str, Tensor]


def arguments(
    n: int, strength: float, width: int, erases: bool, dtype: torch.dtype = torch.float64, batch: int = 2
) -> Arguments:
    torch.manual_seed(n)
    b, h, k, v = batch, 2, 4, 3
    q, key, a = (F.normalize(torch.randn(b, h, n, k, dtype=dtype), dim=-1) for _ in range(3))
    result = {"q": q, "k": key, "v": torch.randn(b, h, n, v, dtype=dtype)}
    result["log_decay"] = -strength * torch.rand(b, h, n, width, dtype=dtype)
    result["state"] = torch.randn(b, h, k, v, dtype=dtype)
    return result | ({"a": a, "b": -a * torch.rand(b, h, n, 1, dtype=dtype)} if erases else {})


def step_by_step(**inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Calls the kernel for one position at a time."""
    state, results = inputs.pop("state"), []
    for i in range(inputs["q"].shape[2]):
        o, state = linear_recurrence(**{name: x[:, :, i : i + 1] for name, x in inputs.items()}, state=state)
        results.append(o)
    return torch.cat(results, 2), state


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0, 1e4])
def test_float32_is_precise_for_weak_and_strong_decays(strength: float, width: int, erases: bool) -> None:
    exact = arguments(70, strength, width, erases)
    single = {name: x.float().requires_grad_() for name, x in exact.items()}
    exact = {name: x.detach().double().requires_grad_() for name, x in single.items()}
    probes = [torch.randn_like(x) for x in (exact["v"], exact["state"])]
    expected, actual = step_by_step(**exact), linear_recurrence(**single)
    torch.autograd.backward(expected, probes)
    torch.autograd.backward(actual, [probe.float() for probe in probes])
    pairs = [*zip(expected, actual, strict=True), *((exact[name].grad, single[name].grad) for name in exact)]
    for their, our in pairs:
        assert their is not None
        assert our is not None
        largest = float(their.detach().abs().max()) + 1e-3
        torch.testing.assert_close(our.double() / largest, their / largest, atol=2e-5, rtol=0)


@pytest.mark.parametrize("strength", [0.1, 200.0])
@pytest.mark.parametrize("n", [1, 3])
def test_second_derivatives_are_those_of_the_equations(
    n: int, strength: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "CHUNK", 2)
    inputs = {name: x.requires_grad_() for name, x in arguments(n, strength, 4, True, batch=1).items()}
    names = list(inputs)

    def results(*values: Tensor) -> tuple[Tensor, Tensor]:
        return linear_recurrence(**dict(zip(names, values, strict=True)))

    assert torch.autograd.gradgradcheck(results, tuple(inputs.values()), fast_mode=True)


def test_a_sequence_without_positions_keeps_the_state() -> None:
    inputs = arguments(0, 1.0, 4, True)
    o, last = linear_recurrence(**inputs)
    assert o.shape == (2, 2, 0, 3)
    assert last.equal(inputs["state"])


def test_half_precision_is_computed_in_single_precision() -> None:
    inputs = {name: x.bfloat16() for name, x in arguments(70, 0.1, 4, True).items()}
    o, last = linear_recurrence(**inputs)
    exact, exact_last = linear_recurrence(**{name: x.float() for name, x in inputs.items()})
    assert o.equal(exact.bfloat16())
    assert last.equal(exact_last.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        single = arguments(70, 0.1, 4, True, torch.float32)
        assert linear_recurrence(**single)[0].dtype == torch.float32


@pytest.mark.parametrize("strength", [0.1, 200.0])
def test_vmap_computes_what_single_calls_compute(strength: float) -> None:
    inputs = arguments(20, strength, 4, True)
    names, values = list(inputs), [torch.stack((x, x / HALVED)) for x in inputs.values()]

    def results(*values: Tensor) -> Tensor:
        return linear_recurrence(**dict(zip(names, values, strict=True)))[0]

    expected = torch.stack([results(*(value[model] for value in values)) for model in range(2)])
    torch.testing.assert_close(torch.func.vmap(results)(*values), expected, atol=1e-12, rtol=1e-12)
    with stacked_models():
        torch.testing.assert_close(torch.func.vmap(results)(*values), expected, atol=1e-12, rtol=1e-12)
