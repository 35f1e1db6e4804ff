"""Compares a shipped page with a slow version that a test writes from the equations of its paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import sqrt

import torch
from torch import Tensor, nn

from archlang.compile import compile_named
from archlang.errors import Source
from archlang.graph.card import card
from archlang.plan.check import check_text
from tests.closeness import close, same_gradients
from tests.conftest import Compiled
from tests.graph.test_card import moves, words

D, N = 8, 7
Slow = Callable[["Weights", Tensor], Tensor]
RECIPE = "recipe r {\n    task  flipflop\n    model m\n    train adamw[steps = 1]\n}\n"


class Weights:
    """The weights of a block, by their names, and what the pages do with them."""

    def __init__(self, block: nn.Module) -> None:
        self.of = dict(block.named_parameters())

    def __getitem__(self, name: str) -> Tensor:
        return self.of[f"{name}.weight"]

    def map(self, name: str, x: Tensor) -> Tensor:
        return x @ self[name].T + self.of.get(f"{name}.bias", torch.zeros(()))

    def convolved(self, name: str, x: Tensor) -> Tensor:
        """A causal convolution of each feature."""
        kernel = self[name][:, 0]
        width = kernel.shape[1]
        rows = [sum((kernel[:, -1 - a] * x[i - a] for a in range(min(width, i + 1))), x[0] * 0) for i in range(len(x))]
        return torch.stack(rows) + self.of.get(f"{name}.bias", torch.zeros(()))

    def rms(self, name: str, x: Tensor, groups: int = 1, epsilon: float = 1e-5) -> Tensor:
        parts = x.reshape(*x.shape[:-1], groups, -1)
        root = (parts.square().mean(-1, keepdim=True) + epsilon).sqrt()
        return (parts / root * self.of.get(f"{name}.weight", torch.ones(()))).flatten(-2)

    def layer_norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * self[name] + self.of[f"{name}.bias"]

    def network(self, name: str, x: Tensor) -> Tensor:
        return self.map(f"{name}.output", self.map(f"{name}.hidden", x).relu())


def unit(x: Tensor, groups: int = 1) -> Tensor:
    parts = x.reshape(*x.shape[:-1], groups, -1)
    return (parts / parts.square().sum(-1, keepdim=True).sqrt()).flatten(-2)


def silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def of_heads(x: Tensor, heads: int) -> Tensor:
    """[positions features] as [heads positions features]."""
    return x.reshape(len(x), heads, -1).transpose(0, 1)


def rotated(x: Tensor, heads: int, *, adjacent: bool = False) -> Tensor:
    """Turns pairs of features: those of the halves of a head, or adjacent ones."""
    y = of_heads(x, heads).clone()
    width = y.shape[-1]
    for i in range(len(x)):
        for c in range(width // 2):
            a, b = (2 * c, 2 * c + 1) if adjacent else (c, c + width // 2)
            angle = torch.tensor(i * 10_000 ** (-2 * c / width))
            one, two = of_heads(x, heads)[:, i, a], of_heads(x, heads)[:, i, b]
            y[:, i, a], y[:, i, b] = one * angle.cos() - two * angle.sin(), two * angle.cos() + one * angle.sin()
    return y.transpose(0, 1).reshape(x.shape)


def scored(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """Scaled products [heads queries keys]."""
    return torch.einsum("hid,hjd->hij", of_heads(q, heads), of_heads(k, heads)) / sqrt(q.shape[1] / heads)


def past(n: int, diagonal: int = 0) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril(diagonal)


def softmax_past(s: Tensor) -> Tensor:
    return s.masked_fill(~past(s.shape[-1]), float("-inf")).softmax(-1)


def weighed(a: Tensor, v: Tensor) -> Tensor:
    return (a @ of_heads(v, len(a))).transpose(0, 1).reshape(len(v), -1)


def random_model(compiled: Compiled, file: str, call: str, std: float) -> tuple[nn.Module, Tensor]:
    """Returns a model of one call with normal weights, and an input, in double precision."""
    text = f"use archlang.models.{file}\nmodel m[d = {D}](x: seq[n, d]) -> logits[n, {D}] {{ return {call} }}\n"
    module = compiled(text).double()
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=std)
    return module, torch.randn(1, N, D, dtype=torch.float64, requires_grad=True)


def equals_slow(compiled: Compiled, file: str, call: str, slow: Slow, *, causal: bool = True) -> None:
    """Asserts that `call` has the outputs and gradients of `slow`, ignores padding and, if causal, later positions."""
    name = re.findall(r"(\w+)\[", call)
    module, x = random_model(compiled, file, call, std=0.5)
    torch.set_default_dtype(torch.float64)
    try:
        expected = slow(Weights(module.get_submodule(name[0])), x[0])[None]
    finally:
        torch.set_default_dtype(torch.float32)
    actual = module(x, lengths=[N])
    same_gradients(actual, expected, [*module.parameters(), x])
    with torch.no_grad():
        close(module(x.expand(2, -1, -1), lengths=[N, 4])[1, :4], module(x[:, :4], lengths=[4])[0])
        if causal:
            close(module(torch.cat((x[:, :4], 1 - x[:, 4:]), 1), lengths=[N])[0, :4], actual[0, :4])
    mistakes = [mistake.code for mistake in check_text(language_model(file, call) + RECIPE) if mistake.is_error]
    assert mistakes == ([] if causal else ["E0501"])


def language_model(file: str, call: str) -> str:
    of_states = re.sub(r"\bx\b", "h", call)
    h = f"h = embed[{D}](x) return linear[vocab]({of_states})"
    return f"use archlang.models.{file}\nmodel m(x: tokens[n]) -> logits[n, vocab] {{ {h} }}\n"


def card_in_words(file: str, call: str) -> tuple[str, str]:
    """What the card says of transitions, and of theorems."""
    made = card(compile_named(Source("m.arch", language_model(file, call)), "m", None, {"vocab": "6"}))
    return moves(made.transitions), words(made)
