"""Claims about the gradients of weights that loops use many times."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from archlang.backend.runtime import weight_gradients
from archlang.backend.runtime.weight_gradients import LinearMaps, shared_linear
from tests.closeness import close
from tests.conftest import Compiled

PROGRAMS = {
    "repeat": """
model looped[d = 4](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 { h <- copy_gate(gate[6](h), norm(feedforward[8](h)), h) }
    return linear[classes](mean(h))
}
""",
    "halting": """
model halted[d = 4](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    repeat 4 halting h by global_halt[0.6] { h <- norm(h + feedforward[8](h)) }
    return linear[classes](h)
}
""",
    "chunks": """
model chunked[d = 4](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    m = learned[2, d]()
    y = scan c in chunks[3](h) carry m {
        stack 2 { c <- norm(c + attention[2](c, m) + attention[2, causal = true](c)) }
        m <- norm(m + attention[2](m, c))
        emit c
    }
    return linear[classes](y)
}
""",
    "positions": """
model stepped[d = 4](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    m = learned[1, d, init = normal]() |> first
    y = scan c in h carry m {
        m <- tanh(linear[d](c) + linear[d, bias = false](m))
        emit m
    }
    return linear[classes](y)
}
""",
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gathers the factors of all weights, at most 20 rows."""
    monkeypatch.setattr(weight_gradients, "LEAST", 1)
    monkeypatch.setattr(weight_gradients, "_MOST_ROWS", 20)


@contextmanager
def _plain() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weight_gradients, "LEAST", 1 << 60)
        yield


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each use of a weight whose factors are gathered in backward."""
    rows: list[int] = []
    add = weight_gradients._Sums.add

    def noted(sums: weight_gradients._Sums, by: Tensor, x: Tensor) -> None:
        rows.append(len(x))
        add(sums, by, x)

    monkeypatch.setattr(weight_gradients._Sums, "add", noted)
    return rows


def _gradients(module: nn.Module, run: Callable[[], Tensor]) -> dict[str, Tensor]:
    """The gradients of the module's weights after a backward of what `run` returns."""
    module.zero_grad()
    run().square().sum().backward()  # type: ignore[no-untyped-call]
    return {name: weight.grad.clone() for name, weight in module.named_parameters() if weight.grad is not None}


def _agree(module: nn.Module, run: Callable[[], Tensor]) -> None:
    with _plain():
        expected = _gradients(module, run)
    torch.testing.assert_close(_gradients(module, run), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("loop", PROGRAMS)
def test_the_gradients_of_a_loop_are_those_of_torch(loop: str, compiled: Compiled, gathered: list[int]) -> None:
    module = compiled(PROGRAMS[loop]).double()
    tokens, lengths = torch.randint(0, 11, (2, 8)), torch.tensor([8, 5])
    _agree(module, lambda: module(tokens, lengths=lengths))
    assert len(gathered) > 6


def test_a_model_without_shared_weights_is_left_as_it_is(compiled: Compiled, gathered: list[int]) -> None:
    module = compiled("model deep(x: seq[n, 4]) -> seq[n, 4] { h = x\nstack 2 { h <- linear[4](h) }\nreturn h }")
    module(torch.randn(2, 3, 4)).sum().backward()
    assert not gathered


def test_products_of_many_rows_are_those_of_torch(gathered: list[int]) -> None:
    linear = nn.Linear(4, 3)
    with LinearMaps([linear]).gathering():
        (linear(torch.randn(20, 4)).sum() + linear(torch.randn(19, 4)).sum()).backward()
    assert gathered == [19]


def test_few_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    add = weight_gradients._Sums.add

    def noted(sums: weight_gradients._Sums, by: Tensor, x: Tensor) -> None:
        add(sums, by, x)
        kept.append(sum(map(len, sums._x)))

    monkeypatch.setattr(weight_gradients._Sums, "add", noted)
    linear = nn.Linear(4, 3)
    with LinearMaps([linear]).gathering():
        torch.stack([linear(torch.randn(2, 3, 4)) for _ in range(7)]).sum().backward()  # type: ignore[no-untyped-call]
    assert kept == [6, 12, 18, 0, 6, 12, 18]


class _Tied(nn.Module):
    """Maps with one weight, of which one is frozen, another has no bias, and one is also used outside of a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third, self.frozen = (nn.Linear(4, 4) for _ in range(4))
        self.second.weight = self.third.weight = self.first.weight
        self.third.register_parameter("bias", None)
        self.frozen.requires_grad_(False)
        self.second.bias.requires_grad_(False)
        self.maps = LinearMaps([self.first, self.second, self.third, self.frozen])

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        with self.maps.gathering():
            for _ in range(3):
                for linear in (self.first, self.second, self.frozen, self.third):
                    h = torch.tanh(linear(h))
        result: Tensor = h @ self.first.weight
        return result


def test_tied_weights_have_the_gradients_of_all_uses() -> None:
    module = _Tied().double()
    _agree(module, lambda: module(torch.ones(2, 3, 4, dtype=torch.double)))


def test_second_derivatives_are_those_of_torch() -> None:
    linear = nn.Linear(2, 2).double()
    maps = LinearMaps([linear])

    def run(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        with maps.gathering():
            return torch.tanh(shared_linear(torch.tanh(shared_linear(x, weight, bias)), weight, bias))

    values = (torch.randn(3, 2).double().requires_grad_(), linear.weight, linear.bias)
    assert torch.autograd.gradcheck(run, values)
    assert torch.autograd.gradgradcheck(run, values)


def test_each_backward_has_its_own_factors() -> None:
    linear = nn.Linear(4, 4).double()
    x = torch.randn(3, 4).double().requires_grad_()
    with LinearMaps([linear]).gathering():
        y = linear(torch.tanh(linear(x))).square().sum()
    plain = linear(torch.tanh(linear(x))).square().sum()
    expected = torch.autograd.grad(plain, (linear.weight, linear.bias), retain_graph=True)
    torch.autograd.grad(y, x, retain_graph=True)
    for _ in range(2):
        close(torch.autograd.grad(y, (linear.weight, linear.bias), retain_graph=True), expected)
    # A hook that runs another backward of the same graph within this one.
    within: list[tuple[Tensor, ...]] = []

    def hook(_: Tensor) -> None:
        within.append(torch.autograd.grad(y, (linear.weight, linear.bias), retain_graph=True))

    x.register_hook(hook)  # type: ignore[no-untyped-call]
    y.backward(retain_graph=True)
    close((linear.weight.grad, linear.bias.grad), expected)
    close(within[0], expected)
    y.backward(inputs=[linear.bias])
    close(linear.bias.grad, 2 * expected[1])


PLAIN_LOOP = """
model looped(x: seq[n, 4]) -> seq[n, 4] {
    h = linear[4](x)
    repeat 3 { h <- norm(h + feedforward[8](h)) }
    return h
}
"""


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("place", ["around the model", "in the loop"])
def test_checkpoints_recompute_what_was_computed(place: str, reentrant: bool, compiled: Compiled) -> None:
    module = compiled(PLAIN_LOOP).double()
    x = torch.randn(2, 5, 4).double().requires_grad_()
    expected = _gradients(module, lambda: module(x))
    checkpointed = partial(checkpoint, use_reentrant=reentrant)
    if place == "in the loop":
        feedforward = module.get_submodule("feedforward")
        feedforward.__dict__["forward"] = partial(checkpointed, feedforward.forward)
        gradients = _gradients(module, lambda: module(x))
    else:
        gradients = _gradients(module, lambda: checkpointed(module, x))
    torch.testing.assert_close(gradients, expected, rtol=1e-10, atol=1e-10)


def _under_vmap(linear: nn.Linear, x: Tensor) -> Tensor:
    def loss(weight: Tensor) -> Tensor:
        return F.linear(x, weight).sum() + shared_linear(x, weight, None).sum()

    gradient: Tensor = torch.func.vmap(torch.func.grad(loss))(torch.stack([linear.weight.detach()] * 2))
    return gradient


def _with_hooks(linear: nn.Linear, x: Tensor) -> Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        y: Tensor = linear(x)
    return y


FALLBACKS: dict[str, Callable[[nn.Linear, Tensor], object]] = {
    "no gradients": torch.no_grad()(lambda linear, x: linear(x)),
    "a frozen weight": lambda linear, x: linear.requires_grad_(False)(x),
    "autocast": lambda linear, x: torch.autocast("cpu", torch.bfloat16)(linear)(x),
    "vmap and grad": _under_vmap,
    "another device": lambda linear, x: linear.to("meta")(x.to("meta")),
    "saved tensors with hooks": _with_hooks,
}


@pytest.mark.parametrize("case", FALLBACKS)
def test_torch_computes_what_has_no_fast_form(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_gradients._Linear, "forward", None)
    linear, x = nn.Linear(4, 4), torch.randn(4, 4)
    with LinearMaps([linear]).gathering():
        FALLBACKS[case](linear, x)


def test_a_call_leaves_the_maps_as_they_were(compiled: Compiled) -> None:
    module = compiled(PROGRAMS["repeat"])
    during: list[bool] = []
    hidden = module.get_submodule("feedforward.hidden")
    hidden.register_forward_hook(lambda *_: during.append("forward" in vars(hidden)))
    tokens = torch.randint(0, 11, (2, 5))
    module(tokens)
    module.get_submodule("norm").register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        module(tokens)
    assert during == [True] * 4
    assert not any("forward" in vars(part) for part in module.modules())
