"""Linear maps by oneDNN: outputs and gradients equal torch's, and they are used only where they are faster."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

from archlang.kernels import linear as kernel
from archlang.kernels.linear import Linear, linear


@pytest.fixture
def by_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses oneDNN on any processor and for any sizes."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this torch has no products by oneDNN")
    monkeypatch.setattr(kernel, "_LEAST", 1)
    monkeypatch.setattr(kernel, "has_slow_products", lambda: True)


class Calls:
    """Counts the products that oneDNN computes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = kernel._product

        def counted(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
            self.count += 1
            return original(x, weight, bias)

        monkeypatch.setattr(kernel, "_product", counted)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def inputs(*shape: int, out: int = 24) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    x = torch.randn(*shape, requires_grad=True)
    return x, torch.randn(out, shape[-1], requires_grad=True), torch.randn(out, requires_grad=True)


@pytest.mark.usefixtures("by_onednn")
@pytest.mark.parametrize("shape", [(1, 16), (384, 16), (5, 7, 16), (2, 3, 5, 33), (0, 16), (16,)])
@pytest.mark.parametrize("biased", [True, False])
def test_outputs_and_gradients_are_those_of_torch(shape: tuple[int, ...], biased: bool, calls: Calls) -> None:
    x, weight, bias = inputs(*shape)
    arguments = (x, weight, bias) if biased else (x, weight)
    ours, theirs = linear(*arguments), F.linear(*arguments)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    by = torch.randn_like(theirs)
    gradients = (torch.autograd.grad(result, arguments, by) for result in (ours, theirs))
    for our, their in zip(*gradients, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-5, atol=3e-5)
    assert calls.count or not x.numel()


@pytest.mark.usefixtures("by_onednn")
def test_tensors_need_not_be_contiguous() -> None:
    x, weight, bias = inputs(6, 16, 5)
    weight = torch.randn(16, 24).t().requires_grad_()
    turned = x.transpose(1, 2)
    ours, theirs = linear(turned, weight, bias), F.linear(turned, weight, bias)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    by = torch.randn(5, 6, 24).transpose(0, 1)
    gradients = torch.autograd.grad(ours, (x, weight), by)
    for our, their in zip(gradients, torch.autograd.grad(theirs, (x, weight), by), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-5, atol=3e-5)


@pytest.mark.usefixtures("by_onednn")
def test_only_required_gradients_are_computed() -> None:
    x, weight, bias = inputs(8, 16)
    linear(x.detach(), weight, bias.detach()).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    linear(x, weight.detach(), None).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None


@pytest.mark.usefixtures("by_onednn")
def test_it_has_a_second_derivative() -> None:
    x, weight, bias = inputs(8, 16)

    def second(way: object) -> tuple[Tensor, ...]:
        assert callable(way)
        (first,) = torch.autograd.grad((way(x, weight, bias) ** 3).sum(), x, create_graph=True)
        return torch.autograd.grad((first**2).sum(), (x, weight, bias))

    for our, their in zip(second(linear), second(F.linear), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-2)


@pytest.mark.usefixtures("by_onednn")
def test_torch_computes_forward_mode_derivatives(calls: Calls) -> None:
    x, weight, bias = inputs(8, 16)
    direction = torch.randn_like(x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, direction)  # type: ignore[no-untyped-call]  # torch's own
        tangent = forward_ad.unpack_dual(linear(dual, weight, bias)).tangent  # type: ignore[no-untyped-call]  # as above
    torch.testing.assert_close(tangent, F.linear(direction, weight))
    assert calls.count == 0


@pytest.mark.usefixtures("by_onednn")
def test_without_gradients_nothing_is_saved() -> None:
    with torch.no_grad():
        x, weight, bias = inputs(8, 16)
        torch.testing.assert_close(linear(x, weight, bias), F.linear(x, weight, bias), rtol=1e-5, atol=1e-5)
        assert linear(x, weight, bias).grad_fn is None


@pytest.mark.usefixtures("by_onednn")
def test_torch_computes_other_dtypes_and_transforms(calls: Calls) -> None:
    x, weight, bias = inputs(8, 16)
    assert torch.equal(linear(x.double(), weight.double(), bias.double()), F.linear(*_doubled(x, weight, bias)))
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    together = torch.func.vmap(linear)(x.expand(3, 8, 16), weight.expand(3, 24, 16), bias.expand(3, 24))
    torch.testing.assert_close(together[1], F.linear(x, weight, bias))
    assert calls.count == 0


def _doubled(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.double() for tensor in tensors)


def test_torch_computes_small_products(monkeypatch: pytest.MonkeyPatch, calls: Calls) -> None:
    monkeypatch.setattr(kernel, "has_slow_products", lambda: True)
    assert torch.equal(linear(*inputs(8, 16)), F.linear(*inputs(8, 16)))
    assert calls.count == 0


@pytest.mark.usefixtures("by_onednn")
def test_the_module_has_the_interface_of_torch(calls: Calls) -> None:
    torch.manual_seed(0)
    ours = Linear(16, 24)
    torch.manual_seed(0)
    theirs = torch.nn.Linear(16, 24)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    x = torch.randn(8, 16)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-5)
    assert calls.count == 1
