"""Pages of positions, streams, inner gradients and halting equal slow versions from their equations."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.compile import build
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.train.data import Batch
from archlang.train.loss import training_loss
from archlang.train.optimizers import make_optimizer
from tests.closeness import close, same_gradients
from tests.conftest import Compiled
from tests.slow_pages import Weights, card_in_words, unit
from tests.test_architectures_page import PAGE
from tests.test_docs import fences
from tests.train.settings_of_a_run import settings_with

Slow = Callable[[nn.Module, Tensor], Tensor]
D, N, STREAMS, STEPS = 6, 7, 3, 2


def weight(block: nn.Module, name: str) -> Tensor:
    return block.get_parameter(name)


def reflection(w: Tensor, beta: Tensor) -> Tensor:
    w = w / w.square().sum().sqrt()
    return torch.eye(len(w)) - beta * torch.outer(w, w)


def path_attention(block: nn.Module, x: Tensor) -> Tensor:
    w = Weights(block)
    direction = unit(silu(w.convolved("filter", w.map("linear_2", w.map("linear", x)))), 2)
    beta = 2 * torch.sigmoid(w.map("strength", x))
    q, k, v = (w.map(f"linear_{i}", x) for i in (3, 4, 5))
    rows = torch.zeros(N, D)
    for h, part in enumerate((slice(3), slice(3, 6))):
        for i in range(N):
            logits = []
            for j in range(i + 1):
                moved = torch.eye(3)
                for s in range(j + 1, i + 1):
                    moved = reflection(direction[s, part], beta[s, h]) @ moved
                logits.append(q[i, part] @ moved @ k[j, part] / 3**0.5)
            rows[i, part] = torch.stack(logits).softmax(0) @ v[: i + 1, part]
    return w.map("linear_6", rows)


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


def gated_delta_product(block: nn.Module, x: Tensor) -> Tensor:
    w = Weights(block)
    q, k, v = (
        silu(w.convolved(f"{name}.filter", w.map(f"{name}.linear", x)))
        for name in ("filtered", "filtered_2", "filtered_3")
    )
    decay = torch.exp(-w["learned"][0].exp() * nn.functional.softplus(w.map("linear", x)))
    beta, rows = 2 * torch.sigmoid(w.map("rate", x)), torch.zeros(N, D)
    for h, part in enumerate((slice(3), slice(3, 6))):
        state = torch.zeros(3, 3)
        for i in range(N):
            state = decay[i, h] * state
            for step in range(STEPS):
                key, value, rate = k[i, step * D :][part], v[i, step * D :][part], beta[i, 2 * step + h]
                state = reflection(key, rate) @ state + rate * torch.outer(unit(key), value)
            rows[i, part] = unit(q, 2)[i, part] @ state / 3**0.5
    return w.map("linear_2", w.rms("rms_norm", rows, 2) * silu(w.map("gate", x)))


def mamba3(block: nn.Module, u: Tensor) -> Tensor:
    """Turns the state itself, as complex numbers, where the page turns B and C."""
    sizes = [8, 8, 4, 4, 2, 2, 2, 2]
    gate, x, b, c, turns, step, a, share = torch.split(u @ weight(block, "in_proj.weight").T, sizes, -1)
    step = nn.functional.softplus(step + weight(block, "dt_bias.weight"))
    rate, share = torch.where(a < 0, -1 / (1 - a), -(1 + a)), torch.sigmoid(share)
    heads = []
    for head in range(2):
        values = x[:, 4 * head : 4 * head + 4]
        state, before = torch.zeros(2, 4, dtype=torch.complex128), torch.zeros(2, 4, dtype=torch.complex128)
        rows = []
        for i in range(N):
            key, query = (
                torch.view_as_complex((normed(block, f"{name}_norm", row[i]) + 1 + bias).view(2, 2))
                for name, row in (("b", b), ("c", c))
                for bias in [weight(block, f"{name}_bias.weight").view(2, 4)[head]]
            )
            dt, angle = step[i, head], step[i, head] * torch.pi * torch.tanh(turns[i])
            written = key[:, None] * values[i]
            kept = torch.exp(torch.complex(rate[i, head] * dt, torch.zeros(())) - 1j * angle)[:, None]
            state = kept * (state + (1 - share[i, head]) * dt * before) + share[i, head] * dt * written
            rows.append((query.conj() @ state).real + (1 + weight(block, "skip.weight")[0, head]) * values[i])
            before = written
        heads.append(torch.stack(rows))
    return (torch.cat(heads, -1) * silu(gate)) @ weight(block, "out_proj.weight").T


def layer_norm(block: nn.Module, x: Tensor, name: str = "post") -> Tensor:
    norm = block.get_submodule(name)
    centred = x - x.mean()
    return centred / (centred.square().mean() + 1e-5).sqrt() * weight(norm, "weight") + weight(norm, "bias")


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / 2**0.5)) / 2


def silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def ttt_mlp(block: nn.Module, x: Tensor) -> Tensor:
    w1, w2 = (factor * weight(block, f"{name}.weight") for factor, name in ((0.02, "learned"), (0.02, "learned_2")))
    rows = []

    def network(v: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
        return v + layer_norm(block, gelu(v @ w1) @ w2)

    for row in x:
        q, k, v = (weight(block, f"{name}.weight") @ row for name in ("query", "key", "value"))
        loss = (network(k, w1, w2) - v).square().sum()
        g1, g2 = torch.autograd.grad(loss, (w1, w2), create_graph=True)
        step = 0.1 * torch.sigmoid(weight(block, "strength.weight") @ row + weight(block, "strength.bias"))
        w1, w2 = w1 - step * g1, w2 - step * g2
        rows.append(network(q, w1, w2))
    return torch.stack(rows)


def titans_mlp(block: nn.Module, x: Tensor) -> Tensor:
    """With the gradients of the memory by hand."""
    w1, w2 = (0.1 * weight(block, f"{name}.weight") for name in ("learned", "learned_2"))
    s1, s2, rows = torch.zeros_like(w1), torch.zeros_like(w2), []
    for row in x:
        q, k, v = (silu(weight(block, f"{name}.weight") @ row) for name in ("query", "key", "value"))
        q, k = q / q.square().sum().sqrt(), k / k.square().sum().sqrt()
        rates = torch.sigmoid(weight(block, "rates.weight") @ row + weight(block, "rates.bias"))
        forgetting, momentum, step = rates
        a = k @ w1
        error = silu(a) @ w2 - v
        slope = torch.sigmoid(a) * (1 + a * (1 - torch.sigmoid(a)))
        g1, g2 = torch.outer(k, 2 * (w2 @ error) * slope), torch.outer(silu(a), 2 * error)
        s1, s2 = momentum * s1 - step * g1, momentum * s2 - step * g2
        w1, w2 = (1 - forgetting) * w1 + s1, (1 - forgetting) * w2 + s2
        rows.append(silu(q @ w1) @ w2)
    return torch.stack(rows)


def energy_based(block: nn.Module, x: Tensor) -> Tensor:
    q, k, v, out = (weight(block, f"attend.{name}.weight") for name in ("query", "key", "value", "output"))
    hidden, bias, energy = (weight(block, name) for name in ("hidden.weight", "hidden.bias", "energy.weight"))
    rows = []
    for i in range(N):
        context, y = x[: i + 1], torch.zeros(D, requires_grad=True)
        for _ in range(3):
            powers = ((context @ k.T) @ (q @ y) / D**0.5).exp()
            u = y + out @ ((powers / powers.sum()) @ (context @ v.T))
            (slope,) = torch.autograd.grad((energy @ silu(hidden @ u + bias)).sum(), y, create_graph=True)
            y = y - 0.5 * slope
        rows.append(y)
    return torch.stack(rows)


def deep_equilibrium(block: nn.Module, x: Tensor) -> Tensor:
    """The fixed point by many steps, and its gradient by a linear system."""
    names = ("query", "key", "value", "output")
    q, k, v, o = (weight(block, f"attend.{name}.weight") for name in names)
    e = x @ weight(block, "inject.weight").T + weight(block, "inject.bias")
    w1, b1, w2, b2 = (weight(block, f"{name}.{kind}") for name in ("hidden", "output") for kind in ("weight", "bias"))

    def step(z: Tensor) -> Tensor:
        rows = []
        for i in range(N):
            powers = ((z[: i + 1] @ k.T) @ (q @ z[i]) / D**0.5).exp()
            a = layer_norm(block, e[i] + z[i] + o @ ((powers / powers.sum()) @ (z[: i + 1] @ v.T)), "norm")
            rows.append(layer_norm(block, e[i] + a + w2 @ torch.relu(w1 @ a + b1) + b2, "norm_2"))
        return torch.stack(rows)

    z = torch.zeros_like(x)
    with torch.no_grad():
        for _ in range(100):
            z = step(z)
    jacobian = torch.func.jacrev(step)(z).detach().reshape(N * D, N * D)
    moved: Tensor = torch.linalg.solve(torch.eye(N * D) - jacobian, (step(z) - z).flatten())
    return z + moved.reshape(N, D)


def affine(block: nn.Module, name: str, x: Tensor) -> Tensor:
    return x @ weight(block, f"{name}.weight").T + weight(block, f"{name}.bias")


def rotated(row: Tensor, place: int, pairs: list[tuple[int, int]]) -> Tensor:
    y = row.clone()
    for c, (a, b) in enumerate(pairs):
        angle = torch.tensor(place * 10_000 ** (-2 * c / D))
        y[a] = row[a] * angle.cos() - row[b] * angle.sin()
        y[b] = row[b] * angle.cos() + row[a] * angle.sin()
    return y


def attended(q: Tensor, k: Tensor, v: Tensor, pairs: list[tuple[int, int]]) -> Tensor:
    """Causal attention of one head with rotary positions."""
    rows = []
    for i in range(len(q)):
        powers = torch.stack([rotated(q[i], i, pairs) @ rotated(k[j], j, pairs) / D**0.5 for j in range(i + 1)]).exp()
        rows.append((powers / powers.sum()) @ v[: i + 1])
    return torch.stack(rows)


def h_net(block: nn.Module, x: Tensor) -> Tensor:
    """With a sequence of chunks. Source: Hwang, Wang, Gu, "Dynamic chunking", arXiv 2507.07955, equations 4 to 9."""
    q, k = (x @ weight(block, f"{name}.weight").T for name in ("query", "key"))
    p = [torch.ones(())]
    for t in range(1, N):
        p.append((1 - q[t] @ k[t - 1] / (q[t].square().sum() * k[t - 1].square().sum()).sqrt()) / 2)
    starts = [t for t in range(N) if p[t] >= 0.5]
    assert 1 < len(starts) < N
    z, pairs = x[starts], [(c, c + D // 2) for c in range(D // 2)]
    u = torch.stack([normed(block, "stack.0.rms_norm", row) for row in z])
    keys, values = (affine(block, f"stack.0.linear_{i}", u) for i in (2, 3))
    z = z + affine(block, "stack.0.linear_4", attended(affine(block, "stack.0.linear", u), keys, values, pairs))
    u = torch.stack([normed(block, "stack.0.rms_norm_2", row) for row in z])
    z = z + affine(block, "stack.0.experts.0.linear_2", gelu(affine(block, "stack.0.experts.0.linear", u)))
    smooth = [z[0]]
    for j in range(1, len(starts)):
        smooth.append(p[starts[j]] * z[j] + (1 - p[starts[j]]) * smooth[-1])
    rows = []
    for t in range(N):
        sure = p[t] if t in starts else 1 - p[t]
        held = smooth[sum(start <= t for start in starts) - 1]
        rows.append(affine(block, "residual", x[t]) + (sure + (1 - sure).detach()) * held)
    return torch.stack(rows)


def placed_attention(block: nn.Module, x: Tensor) -> Tensor:
    """Documents of three positions, which have the places 0, 1 and 2."""
    u = x + torch.stack([weight(block, "places.weight")[i % 3] for i in range(N)])
    pairs, rows = [(c, c + D // 2) for c in range(D // 2)], []
    for first in range(0, N, 3):
        own = u[first : first + 3]
        q, k = (own @ weight(block, f"{name}.weight").T for name in ("query", "key"))
        rows.append(attended(q, k, x[first : first + 3] @ weight(block, "value.weight").T, pairs))
    return torch.cat(rows)


def ouro(block: nn.Module, h: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """The logits and the probability of leaving after each step, and the mean negative entropy."""
    pairs, logits, chances = [(2 * c, 2 * c + 1) for c in range(D // 2)], [], []
    for _ in range(4):
        for layer in ("stack.0", "stack.1"):

            def norms(name: str, x: Tensor, layer: str = layer) -> Tensor:
                return torch.stack([normed(block, f"{layer}.{name}", row) for row in x])

            u = norms("rms_norm", h)
            q, k, v = (u @ weight(block, f"{layer}.attention.{name}.weight").T for name in ("query", "key", "value"))
            a = h + norms("rms_norm_2", attended(q, k, v, pairs) @ weight(block, f"{layer}.attention.output.weight").T)
            w1, w2, w3 = (weight(block, f"{layer}.linear{suffix}.weight") for suffix in ("", "_2", "_3"))
            u = norms("rms_norm_3", a)
            h = a + norms("rms_norm_4", (silu(u @ w1.T) * (u @ w2.T)) @ w3.T)
        state = torch.stack([normed(block, "final", row) for row in h])
        logits.append(state @ weight(block, "head.weight").T)
        chances.append(torch.sigmoid(affine(block, "gate", state))[:, 0])
    stay = [torch.ones(N)]
    for chance in chances[:-1]:
        stay.append(stay[-1] * (1 - chance))
    p = [left * chance for left, chance in zip(stay, chances[:-1], strict=False)] + [stay[-1]]
    return logits, p, torch.stack([share * share.log() for share in p]).sum(0).mean()


def convolved(block: nn.Module, name: str, x: Tensor, stride: int = 1) -> Tensor:
    """Of an image [rows columns features], by three times three pixels."""
    kernel, rows = weight(block, f"{name}.weight"), []
    for i in range(0, x.shape[0], stride):
        for j in range(0, x.shape[1], stride):
            y = weight(block, f"{name}.bias")
            for a in (-1, 0, 1):
                for c in (-1, 0, 1):
                    if 0 <= i + a < x.shape[0] and 0 <= j + c < x.shape[1]:
                        y = y + kernel[..., a + 1, c + 1] @ x[i + a, j + c]
            rows.append(y)
    return torch.stack(rows).reshape(x.shape[0] // stride, x.shape[1] // stride, -1)


def normed_layer(block: nn.Module, name: str, x: Tensor) -> Tensor:
    return torch.stack([layer_norm(block, row, name) for row in x.reshape(-1, x.shape[-1])]).reshape(x.shape)


def residual_stage(block: nn.Module, name: str, h: Tensor) -> Tensor:
    u = torch.relu(normed_layer(block, f"{name}.norm", convolved(block, f"{name}.convolve_image", h)))
    return torch.relu(h + normed_layer(block, f"{name}.norm_2", convolved(block, f"{name}.convolve_image_2", u)))


def residual_network(block: nn.Module, x: Tensor) -> Tensor:
    h = torch.relu(normed_layer(block, "norm", convolved(block, "convolve_image", x)))
    h = residual_stage(block, "residual_stage.stack.0", h)
    h = torch.stack([torch.stack([h[i : i + 2, j : j + 2].amax((0, 1)) for j in (0, 2)]) for i in (0, 2)])
    h = residual_stage(block, "residual_stage_2.stack.0", h)
    h = torch.relu(normed_layer(block, "norm_2", convolved(block, "convolve_image_2", h, 2)))
    return affine(block, "head", residual_stage(block, "residual_stage_3.stack.0", h).mean((0, 1)))


def vision_transformer(block: nn.Module, x: Tensor) -> Tensor:
    squares = [x[i : i + 2, j : j + 2].permute(2, 0, 1).flatten() for i in (0, 2) for j in (0, 2)]
    h = torch.cat((weight(block, "class_vector.weight"), affine(block, "patch_embedding", torch.stack(squares))))
    h = h + weight(block, "positions.weight")[:5]
    for name in ("stack.0", "stack.1"):
        u = normed_layer(block, f"{name}.norm", h)
        q, k, v = (affine(block, f"{name}.attention.{part}", u) for part in ("query", "key", "value"))
        a = h + affine(block, f"{name}.attention.output", (q @ k.T / 2).softmax(-1) @ v)
        u = gelu(affine(block, f"{name}.linear", normed_layer(block, f"{name}.norm_2", a)))
        h = a + affine(block, f"{name}.linear_2", u)
    return affine(block, "head", layer_norm(block, h[0], "final_norm"))


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
    "ttt_mlp": ("ttt_mlp[inner = 9](x)", ttt_mlp),
    "titans_mlp": ("titans_mlp[inner = 9](x)", titans_mlp),
    "energy_based": ("energy_based[inner = 9](x)", energy_based),
    "deep_equilibrium": ("deep_equilibrium[inner = 9](x)", deep_equilibrium),
    "placed_attention": (
        "placed_attention(x, floor(indices(x) / 3), indices(x) - 3 * floor(indices(x) / 3))", placed_attention,
    ),
    "h_net": ("h_net[ff = 9](x)", h_net),
    "path_attention": ("path_attention[2, rank = 4](x)", path_attention),
    "abacus": ("abacus[d, most = 9, offset = 0](x)", abacus),
    "hyper_connection": (f"hyper_connection[tanh, streams = {STREAMS}](x)", hyper_connection),
    "engram": ("engram[buckets = 11](x, slice_features[0, d](one_hot(x)))", engram),
    "mamba3": ("mamba3(x)", mamba3),
    "gated_delta_product": (f"gated_delta_product[2, {STEPS}](x)", gated_delta_product),
}  # fmt: skip


FILES = {
    "abacus": "computed_positions", "placed_attention": "computed_positions", "h_net": "computed_positions",
    "ttt_mlp": "inner_gradients", "titans_mlp": "inner_gradients", "energy_based": "inner_gradients",
    "hyper_connection": "residual_streams", "engram": "attention_variants", "path_attention": "attention_variants",
    "deep_equilibrium": "equilibria", "ouro": "loops", "mamba3": "linear_mixers", "gated_delta_product": "delta_rules",
}  # fmt: skip


def page_of(name: str) -> str:
    return f"use archlang.models.{FILES[name]}" if name in FILES else block_of(name)


def block_of(name: str) -> str:
    (text,) = (text for text in fences(PAGE, "arch") if f"block {name}" in text)
    (page,) = (part for part in re.split(r"\n(?=block )", text) if re.match(rf"block {name}\b", part))
    return page


def test_engram_takes_the_vocabulary_of_a_language_model(compiled: Compiled) -> None:
    model = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] { return linear[vocab](engram[1_009](x, embed[d](x))) }\n"
    assert compiled(f"{page_of('engram')}\n{model}", vocab=50_257)(torch.tensor([[0, 50_256]])).isfinite().all()


def page_with(name: str, call: str, width: int, compiled: Compiled) -> Architecture:
    text = f"{page_of(name)}\nmodel m(x: seq[n, {D}]) -> logits[n, {width}] {{ return {call} }}\n"
    module = compiled(text).double().train()
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def test_ouro_weighs_the_losses_of_its_steps_and_has_their_entropy(compiled: Compiled) -> None:
    module = page_with("ouro", "ouro[1, 9, out = 5](x)", 5, compiled)
    x, targets = torch.randn(1, N, D, dtype=torch.float64), torch.tensor([1, 4, 0, 2, 2, 3, 0])
    scored = torch.ones(1, N, dtype=torch.bool)
    batch = Batch(torch.arange(1), {"x": x}, {"x": torch.tensor([N])}, targets[None], scored)
    with module.keeping_steps() as results:
        module(x)
    own = [nn.functional.cross_entropy(each[0], targets, reduction="none") for each in results.values]
    loss = sum((p[0] * each).mean() for p, each in zip(results.weights, own, strict=True))
    torch.set_default_dtype(torch.float64)
    try:
        logits, p, negative = ouro(module.get_submodule("ouro"), x[0])
        losses = [nn.functional.cross_entropy(each, targets, reduction="none") for each in logits]
        expected = torch.stack([share * own for share, own in zip(p, losses, strict=True)]).sum(0).mean()
    finally:
        torch.set_default_dtype(torch.float32)
    same_gradients(loss + 0.1 * module.losses["entropy"], expected + 0.1 * negative, list(module.parameters()))
    close(training_loss(module, batch, module, settings_with(supervise="every")).float(), expected.float())


def test_the_ratio_of_h_net_is_the_least_where_one_position_in_four_begins_a_chunk(compiled: Compiled) -> None:
    module = page_with("h_net", "h_net[ff = 9](x)", D, compiled)
    x = torch.randn(1, 40, D, dtype=torch.float64)
    module(x)
    q, k = (x[0] @ weight(module, f"h_net.{name}.weight").T for name in ("query", "key"))
    p = torch.cat((torch.ones(1), (1 - nn.functional.cosine_similarity(q[1:], k[:-1])) / 2))
    share, mean = (p >= 0.5).double().mean(), p.mean()
    close(module.losses["ratio"], 4 / 3 * (3 * share * mean + (1 - share) * (1 - mean)))


def test_abacus_begins_at_a_random_place_in_training_and_at_the_first_in_evaluation(compiled: Compiled) -> None:
    text = "model m[d = 5](x: tokens[n]) -> logits[n, 5] { return abacus[d, most = 6, offset = 3](x) }\n"
    module, tokens = compiled(f"{page_of('abacus')}\n{text}", vocab=13), torch.tensor([[3, 4, 11, 5]])
    places = module.get_parameter("abacus.places.weight")
    torch.manual_seed(1)
    rows = module.train()(tokens.expand(64, -1)) - module.get_parameter("abacus.table.weight")[tokens]
    starts = [next(s for s in range(3) if torch.allclose(row[:2], places[s : s + 2], atol=1e-6)) for row in rows]
    assert set(starts) == {0, 1, 2}
    for row, start in zip(rows, starts, strict=True):
        torch.testing.assert_close(row[2:], torch.stack((torch.zeros(5), places[start])), atol=1e-6, rtol=0)
    own = module.eval()(tokens) - module.get_parameter("abacus.table.weight")[tokens]
    torch.testing.assert_close(own[0, :2], places[:2], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "statics", "slow"),
    [
        ("vision_transformer", "3, 4, heads = 1, ff = 5, patch = 2, columns = 4, most = 9", vision_transformer),
        ("residual_network", "3, 4, columns = 4", residual_network),
    ],
)
def test_a_page_of_images_has_the_results_and_gradients_of_its_equations(
    name: str, statics: str, slow: Slow, compiled: Compiled
) -> None:
    pages = [page_of(name), page_of("residual_stage")]
    assert all(len(page.splitlines()) <= 30 for page in pages)
    model = f"model m(x: seq[n, 2]) -> logits[3] {{ return {name}[{statics}](x) }}\n"
    module = compiled("\n".join([*pages, model])).double()
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    x = torch.randn(1, 16, 2, dtype=torch.float64, requires_grad=True)
    expected = slow(module.get_submodule(name), x.reshape(4, 4, 2))[None]
    same_gradients(module(x), expected, [*module.parameters(), x])
    assert_learns(module, torch.randn(8, 16, 2, dtype=torch.float64), torch.arange(8) % 3)


def distance_of_logits(text: str, program: Path, width: int, rate: float) -> float:
    """How far six steps of the recipe move the logits of a width, as a root mean square."""
    program.write_text(text)
    plan = plan_recipe(program, "narrow", sets={"model.d": str(width), "train.rates.hidden": str(rate)})
    torch.manual_seed(1)
    tokens, module = torch.randint(5, (16, 33)), build(plan.graph)
    optimizer = make_optimizer(plan.train, module)
    with torch.no_grad():
        before = module(tokens[:, :-1])
    for _ in range(6):
        loss = nn.functional.cross_entropy(module(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    with torch.no_grad():
        return float((module(tokens[:, :-1]) - before).square().mean().sqrt())


def test_logits_move_alike_at_all_widths_with_mup_and_not_without(tmp_path: Path) -> None:
    (text,) = (text for text in fences(PAGE, "arch") if "block mup_layer[" in text)
    plain = text.replace("(base / d) * ", "").replace(", scale = 4.0 * heads / d", "").replace("base = 64, ", "")
    text, plain = (each.replace("= 4e-3", "= 1e-2") for each in (text, plain))
    program = tmp_path / "program.arch"
    narrow, *wide = (distance_of_logits(text, program, width, 1e-2 * 64 / width) for width in (64, 256, 512))
    assert wide == pytest.approx([narrow, narrow], rel=0.3)
    assert distance_of_logits(plain, program, 512, 1e-2) > 4 * narrow


CALLS = {
    "abacus": "abacus[d, base = 2](x)", "engram": "engram[1_009](x, h)", "ouro": "ouro[1, out = d](h)",
    "placed_attention": "placed_attention(h, 0 * indices(h), indices(h))", "path_attention": "path_attention[2](h)",
    "gated_delta_product": "gated_delta_product[2](h)",
}  # fmt: skip


@pytest.mark.parametrize("name", [*PAGES, "ouro"])
def test_a_page_is_causal_and_learns(name: str, compiled: Compiled) -> None:
    call = CALLS.get(name, f"{name}(h)")
    model = f"model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{ h = embed[d](x) return linear[vocab]({call}) }}\n"
    text = f"{page_of(name)}\n{model}"
    recipe = "recipe r {\n    task  flipflop\n    model m\n    train adamw[steps = 1]\n}\n"
    assert not [mistake for mistake in check_text(text + recipe) if mistake.is_error]
    torch.manual_seed(1)
    module, tokens = compiled(text, vocab=5), torch.randint(5, (4, N + 1))
    assert_learns(module, tokens[:, :-1], tokens[:, 1:])


def assert_learns(module: Architecture, inputs: Tensor, targets: Tensor) -> None:
    optimizer, losses = torch.optim.AdamW(module.parameters(), lr=0.02), []
    for _ in range(20):
        loss = nn.functional.cross_entropy(module(inputs).flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        torch.autograd.backward([loss, *(0.01 * own for own in module.losses.values())])
        assert all(parameter.grad is not None for parameter in module.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_results_and_gradients_of_its_equations(name: str, compiled: Compiled) -> None:
    call, slow = PAGES[name]
    page = page_of(name)
    takes_tokens = name in ("abacus", "engram")
    field = "tokens[n]" if takes_tokens else f"seq[n, {D}]"
    text = f"{page}\nmodel m[d = {D}](x: {field}) -> logits[n, {D}] {{ return {call} }}\n"
    module = compiled(text, **({"vocab": 13} if takes_tokens else {})).double()
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    if name == "deep_equilibrium":  # whose step has to be a contraction
        nn.init.normal_(module.get_parameter(f"{name}.inject.weight"), std=5.0)
    tokens = torch.tensor([[3, 11, 0, 9, 9, 12, 1]])
    x = tokens if takes_tokens else torch.randn(1, N, D, dtype=torch.float64, requires_grad=True)
    torch.set_default_dtype(torch.float64)
    try:
        expected = slow(module.get_submodule(name), x[0])[None]
    finally:
        torch.set_default_dtype(torch.float32)
    leaves = [*module.parameters(), *([] if takes_tokens else [x])]
    same_gradients(module(x, lengths=[N]), expected, leaves)


@pytest.mark.parametrize(
    ("name", "transitions", "theorems"),
    [
        ("ttt_mlp", "non-linear; non-linear", "L, regular"),
        ("titans_mlp", "non-linear; non-linear; non-linear; non-linear", "L, regular"),
        ("energy_based", "", "TC0, turns"),
        ("deep_equilibrium", "", "TC0, turns, parity is hard"),
        ("placed_attention", "", "TC0"),
        ("h_net", "diagonal [-inf, inf]", "scans in TC0"),
        ("path_attention", "matrix; grows", ""),
        ("hyper_connection", "", "TC0, regular"),
        ("mamba3", "diagonal [0, 1]; diagonal [0, 1]", "scans in TC0, regular"),
        ("gated_delta_product", "low rank 1 [-1, 1]", "regular"),
    ],
)
def test_the_card_says_what_a_page_can_do(name: str, transitions: str, theorems: str) -> None:
    call = CALLS.get(name, f"{name}(h)")
    assert card_in_words(FILES[name], re.sub(r"\bh\b", "x", call)) == (transitions, theorems)
