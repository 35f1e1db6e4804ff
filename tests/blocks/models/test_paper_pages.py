"""Pages of docs/architectures.md for which no library has weights equal slow versions from their equations."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.closeness import same_gradients
from tests.conftest import Compiled
from tests.test_architectures_page import PAGE
from tests.test_docs import fences

Slow = Callable[[nn.Module, Tensor], Tensor]
D, N, STREAMS, STEPS = 6, 7, 3, 2


def weight(block: nn.Module, name: str) -> Tensor:
    return block.get_parameter(name)


def reflection(w: Tensor, beta: Tensor) -> Tensor:
    w = w / w.square().sum().sqrt()
    return torch.eye(len(w)) - beta * torch.outer(w, w)


def path_attention(block: nn.Module, x: Tensor) -> Tensor:
    q, k, v, w = (x @ weight(block, f"{name}.weight").T for name in ("query", "key", "value", "direction"))
    beta = 2 * torch.sigmoid(x @ weight(block, "strength.weight").T + weight(block, "strength.bias"))
    rows = []
    for i in range(N):
        logits = []
        for j in range(i + 1):
            moved = torch.eye(D)
            for s in range(j + 1, i + 1):
                moved = reflection(w[s], beta[s]) @ moved
            logits.append(0.35 * q[i] @ moved @ k[j])
        powers = torch.stack(logits).exp()
        rows.append((powers / powers.sum()) @ v[: i + 1])
    return torch.stack(rows)


def abacus(block: nn.Module, x: Tensor) -> Tensor:
    rows, place = [], 0
    for token in x.tolist():
        row = weight(block, "table.weight")[token]
        is_digit = token < 10
        rows.append(row + weight(block, "places.weight")[place] if is_digit else row)
        place = place + 1 if is_digit else 0
    return torch.stack(rows)


def normed(block: nn.Module, name: str, row: Tensor) -> Tensor:
    norm: Any = block.get_submodule(name)  # Any: mypy knows no attributes of modules
    root: Tensor = (row.square().mean() + norm.epsilon).sqrt()
    return weight(norm, "weight") * row / root


def one_hot(token: int) -> Tensor:
    return torch.eye(13)[token, :D]


def hyper_connection(block: nn.Module, x: Tensor) -> Tensor:
    rows = []
    for row in x:
        u = normed(block, "rms_norm", row)
        pre, post, mixing = (
            weight(block, f"{name}.weight") @ u + weight(block, f"{name}.bias") for name in ("pre", "post", "mixing")
        )
        m = mixing.reshape(STREAMS, STREAMS).exp()
        for _ in range(20):
            m = m / m.sum(0)
            m = m / m.sum(1, keepdim=True)
        streams = row.reshape(STREAMS, D // STREAMS)
        y = torch.tanh(torch.sigmoid(pre) @ streams)
        rows.append((m @ streams + torch.outer(2 * torch.sigmoid(post), y)).flatten())
    return torch.stack(rows)


def delta_product(block: nn.Module, x: Tensor) -> Tensor:
    q, k, v = (x @ weight(block, f"{name}.weight").T for name in ("query", "key", "value"))
    beta = 2 * torch.sigmoid(x @ weight(block, "strength.weight").T + weight(block, "strength.bias"))
    state, rows = torch.zeros(D, D), []
    for i in range(N):
        for key, value, b in zip(k[i].chunk(STEPS), v[i].chunk(STEPS), beta[i], strict=True):
            unit = key / key.square().sum().sqrt()
            state = reflection(key, b) @ state + b * torch.outer(unit, value)
        rows.append(q[i] @ state)
    return torch.stack(rows)


def hashed(token: int, seed: int) -> int:
    draw, prime = Random(seed), 2**31 - 1
    high, low, constant = draw.randrange(1, prime), draw.randrange(1, prime), draw.randrange(prime)
    return (high * (token // prime) + low * (token % prime) + constant) % prime % 11


def engram(block: nn.Module, x: Tensor) -> Tensor:
    """Source: Cheng et al., "Conditional memory via scalable lookup", arXiv 2601.07372, equations 1 to 5."""
    tokens, values = x.tolist(), []
    for i, token in enumerate(tokens):
        before, second = (tokens[i - by] if i >= by else 13 for by in (1, 2))
        bigram = before * 13 + token
        ngrams = (bigram, second * 14 * 13 + bigram)
        tables = [weight(block, f"embed{suffix}.weight") for suffix in ("", "_2", "_3", "_4")]
        ids = [hashed(ngram, seed) for ngram in ngrams for seed in (0, 1)]
        e = torch.cat([table[z] for table, z in zip(tables, ids, strict=True)])
        q = normed(block, "query_norm", one_hot(token))
        k = normed(block, "key_norm", weight(block, "key.weight") @ e)
        values.append(torch.sigmoid(0.25 * (q * k).sum()) * (weight(block, "value.weight") @ e))
    rows, kernel, bias = [], weight(block, "filter.weight"), weight(block, "filter.bias")
    for i, token in enumerate(tokens):
        y = bias
        for tap in range(4):
            place = i - 3 * (3 - tap)
            if place >= 0:
                y = y + kernel[..., tap].flatten() * normed(block, "value_norm", values[place])
        rows.append(one_hot(token) + values[i] + y * torch.sigmoid(y))
    return torch.stack(rows)


PAGES: dict[str, tuple[str, Slow]] = {
    "path_attention": ("path_attention(x)", path_attention),
    "abacus": ("abacus[d, most = 9](x)", abacus),
    "hyper_connection": (f"hyper_connection[tanh, streams = {STREAMS}](x)", hyper_connection),
    "engram": ("engram[buckets = 11](x, slice_features[0, d](one_hot(x)))", engram),
    "delta_product": (f"delta_product[steps = {STEPS}](x)", delta_product),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_results_and_gradients_of_its_equations(name: str, compiled: Compiled) -> None:
    call, slow = PAGES[name]
    (text,) = (text for text in fences(PAGE, "arch") if f"block {name}[" in text)
    (page,) = (part for part in re.split(r"\n(?=block )", text) if part.startswith(f"block {name}["))
    assert len(page.splitlines()) <= 30
    takes_tokens = name in ("abacus", "engram")
    field = "tokens[n]" if takes_tokens else f"seq[n, {D}]"
    text = f"{page}\nmodel m[d = {D}](x: {field}) -> logits[n, {D}] {{ return {call} }}\n"
    module = compiled(text, **({"vocab": 13} if takes_tokens else {})).double()
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    tokens = torch.tensor([[3, 11, 0, 9, 9, 12, 1]])
    x = tokens if takes_tokens else torch.randn(1, N, D, dtype=torch.float64, requires_grad=True)
    torch.set_default_dtype(torch.float64)
    try:
        expected = slow(module.get_submodule(name), x[0])[None]
    finally:
        torch.set_default_dtype(torch.float32)
    leaves = [*module.parameters(), *([] if takes_tokens else [x])]
    same_gradients(module(x, lengths=[N]), expected, leaves)
