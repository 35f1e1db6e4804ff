"""Our blocks against arrays of Dynamic Halt's program: attention, layers, and whole encoders put together by hand.

The tolerances are those of the arrays: 2e-5, for gradients 2e-5 of the array's largest number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.backend.halting import Tally
from archlang.blocks.activations import Abs, Relu
from archlang.blocks.attention import Attention
from archlang.blocks.chunks import Chunks
from archlang.blocks.concat import Concat
from archlang.blocks.copy_gate import CopyGate
from archlang.blocks.embed import Embed
from archlang.blocks.feedforward import Feedforward
from archlang.blocks.gate import Gate
from archlang.blocks.halting import GlobalHalt, TokenHalt
from archlang.blocks.learned import Learned
from archlang.blocks.linear import Linear
from archlang.blocks.norm import Norm
from archlang.blocks.pooling import First, Last, Mean
from archlang.blocks.positions import StartEnd

DTYPES = [torch.float32, torch.float64]
Golden = Mapping[str, np.ndarray]


class Case:
    """One golden file: its arrays as tensors, and blocks made with its parameters."""

    def __init__(self, golden: Golden, dtype: torch.dtype) -> None:
        self.golden = golden
        self.dtype = dtype
        self.parameters: dict[str, nn.Parameter] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.golden

    def __getitem__(self, name: str) -> Tensor:
        array = torch.from_numpy(self.golden[name])
        return array.to(self.dtype) if array.is_floating_point() else array

    def number(self, name: str) -> int:
        return int(self.golden[name])

    def mask(self, name: str) -> Tensor:
        return self[name].bool()

    def load(self, block: nn.Module, **names: str) -> None:
        """Copies arrays into a block: its parameter's name (dots as `__`) to the array's."""
        block.to(self.dtype)
        for name, array in names.items():
            parameter = block.get_parameter(name.replace("__", "."))
            parameter.data.copy_(self[f"p.{array}"].reshape(parameter.shape))
            self.parameters[array] = parameter

    def attention(
        self, prefix: str, *, position: str = "none", causal: bool = False, rule: str = "always"
    ) -> Attention:
        q, kv = self[f"p.{prefix}wq"].shape[1], self[f"p.{prefix}wk"].shape[1]
        block = Attention(
            heads=self.number("cfg.heads"),
            position=position,
            causal=causal,
            dropout=0.0,
            output_dropout=0.0,
            head_dim=self.number("cfg.head_dim"),
            causal_rule=rule,
            padded="zero",
            init="scaled",
            d=q,
            e=kv,
        )
        self.load(
            block,
            query__weight=f"{prefix}wq",
            key__weight=f"{prefix}wk",
            value__weight=f"{prefix}wv",
            output__weight=f"{prefix}wo",
        )
        return block

    def norm(self, name: str) -> Norm:
        block = Norm(epsilon=1e-5, d=len(self[f"p.{name}.g"]))
        self.load(block, weight=f"{name}.g", bias=f"{name}.b")
        return block

    def feedforward(self, prefix: str) -> Feedforward:
        ff, d = self[f"p.{prefix}w1"].shape
        block = Feedforward(
            ff=ff,
            activation="gelu",
            dropout=0.0,
            output_dropout=0.0,
            bias=0.0,
            bias_init="drawn",
            init="xavier",
            gain=1.0,
            d=d,
        )
        self._maps(block, prefix)
        return block

    def gate(self, prefix: str) -> Gate:
        ff, d = self[f"p.{prefix}w1"].shape
        block = Gate(ff=ff, dropout=0.0, init="xavier", d=d)
        self._maps(block, prefix)
        return block

    def linear(self, weight: str, bias: str) -> Linear:
        out, d = self[f"p.{weight}"].shape
        block = Linear(out=out, bias=True, init="torch", d=d)
        self.load(block, weight=weight, bias=bias)
        return block

    def halt(self) -> TokenHalt | GlobalHalt:
        transition = bool(self.number("cfg.transition_based_halt"))
        d = len(self["p.halt.b1"])
        block: TokenHalt | GlobalHalt
        if self.number("cfg.global_halt"):
            causal = bool(self.number("cfg.causal"))
            block = GlobalHalt(
                threshold=0.999, transition=transition, causal=causal, length_cap=True, ponder="code", d=d
            )
        else:
            block = TokenHalt(threshold=0.999, transition=transition, length_cap=True, ponder="code", d=d)
        self._maps(block, "halt.")
        return block

    def _maps(self, block: nn.Module, prefix: str) -> None:
        self.load(
            block,
            hidden__weight=f"{prefix}w1",
            hidden__bias=f"{prefix}b1",
            output__weight=f"{prefix}w2",
            output__bias=f"{prefix}b2",
        )

    def close(self, actual: Tensor, name: str, where: Tensor | None = None) -> None:
        expected = self[name]
        if where is not None:
            actual, expected = actual[where], expected[where]
        torch.testing.assert_close(actual, expected, atol=2e-5, rtol=0, msg=lambda text: f"{name}: {text}")

    def gradients_agree(self, objective: Tensor, x: Tensor) -> None:
        """Every gradient of the file, that of the input and those of the parameters that have one."""
        expected = {name[5:]: self[name] for name in self.golden if name.startswith("grad.")}
        leaves = {"in.x": x} | {f"p.{name}": parameter for name, parameter in self.parameters.items()}
        assert set(expected) <= set(leaves)
        actual = torch.autograd.grad(objective, list(leaves.values()), allow_unused=True)
        for name, gradient in zip(leaves, actual, strict=True):
            if name in expected:
                assert gradient is not None, name
                wanted = expected[name].reshape(gradient.shape)
                atol = 2e-5 * max(1e-30, wanted.abs().max().item())
                said = partial("gradient of {}: {}".format, name)
                torch.testing.assert_close(gradient, wanted, atol=atol, rtol=0, msg=said)
            else:
                assert gradient is None or gradient.eq(0).all(), name


class Layer(nn.Module):
    """Attention, attention to a memory where there is one, the feedforward map, and a gate where there is one."""

    def __init__(self, case: Case, prefix: str, causal: bool) -> None:
        super().__init__()
        self.attention = case.attention(f"{prefix}self_attn.", position="xpos", causal=causal)
        self.norm = case.norm(f"{prefix}ln_attn")
        if f"p.{prefix}cross_attn.wq" in case:
            self.cross = case.attention(f"{prefix}cross_attn.", causal=causal, rule="equal_lengths")
            self.norm_query = case.norm(f"{prefix}ln_cross_q")
            self.norm_memory = case.norm(f"{prefix}ln_cross_mem")
        self.norm_feedforward = case.norm(f"{prefix}ln_ff")
        self.feedforward = case.feedforward(f"{prefix}ff.")
        self.gated = f"p.{prefix}gate.w1" in case
        if self.gated:
            self.gate = case.gate(f"{prefix}gate.")
            self.copy = CopyGate(column_dropout=0.0, d=len(case[f"p.{prefix}ff.b2"]))

    def forward(self, x: Tensor, kv: Tensor, mask: Tensor, memory: Tensor | None = None) -> Tensor:
        a: Tensor = x + self.attention(self.norm(x), self.norm(kv), mask_n=mask, mask_m=mask)
        if memory is not None:
            a = a + self.cross(self.norm_query(a), self.norm_memory(memory), mask_n=mask)
        u = self.norm_feedforward(a)
        y: Tensor = a + self.feedforward(u)
        if self.gated:
            y = self.copy(self.gate(u), y, x)
        return y


class Update(nn.Module):
    """The memory after a chunk."""

    def __init__(self, case: Case, prefix: str, causal: bool) -> None:
        super().__init__()
        self.attention = case.attention(f"{prefix}attn.", causal=causal, rule="equal_lengths")
        self.norm_query = case.norm(f"{prefix}ln_q")
        self.norm_key = case.norm(f"{prefix}ln_kv")
        self.norm_feedforward = case.norm(f"{prefix}ln_ff")
        self.feedforward = case.feedforward(f"{prefix}ff.")

    def forward(self, memory: Tensor, chunk: Tensor, mask: Tensor | None) -> Tensor:
        m: Tensor = memory + self.attention(self.norm_query(memory), self.norm_key(chunk), mask_m=mask)
        y: Tensor = m + self.feedforward(self.norm_feedforward(m))
        return y


def run_halting(
    halt: TokenHalt | GlobalHalt, body: Callable[[Tensor, Tensor], Tensor], h: Tensor, mask: Tensor, limit: int
) -> tuple[Tally, int]:
    """The loop of the halting protocol: its last tally, and how many bodies it computed."""
    tally = halt.start(h, mask)
    for step in range(limit):
        if not tally.live.any():
            return tally, step
        tally = halt.advance(tally, body(tally.state, tally.mixture), mask)
    return tally, limit


POOLING = {"mean": Mean, "end": Last, "cls": First}


def readout(case: Case, sequence: Tensor, mask: Tensor | None) -> Tensor:
    y: Tensor = POOLING[str(case.golden["cfg.pooling"])](d=sequence.shape[-1])(sequence, mask_n=mask)
    return y


def objective(case: Case, sequence: Tensor, mask: Tensor, pooled: Tensor, ponder: Tensor | None) -> Tensor:
    total = (sequence * case["obj.r_seq"])[mask].sum() + (pooled * case["obj.r_glob"]).sum()
    return total if ponder is None else total + ponder.sum()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "a_attn_*")
def test_attention(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    position = "xpos" if case.number("cfg.xpos") else "none"
    rule = "always" if position == "xpos" else "equal_lengths"
    block = case.attention("", position=position, causal=bool(case.number("cfg.causal_config")), rule=rule)
    q, kv, q_mask, kv_mask = case["in.q"], case["in.kv"], case.mask("in.q_mask"), case.mask("in.kv_mask")
    if position == "xpos":
        # Positions that are far apart are columns that stand far apart, with padding between.
        places = case["in.positions"].long()
        q, kv = (_spread(one, real, places) for one, real in ((q, q_mask), (kv, kv_mask)))
        spread_q, spread_kv = (_spread(real[..., None], real, places)[..., 0] for real in (q_mask, kv_mask))
        y = block(q, kv, mask_n=spread_q, mask_m=spread_kv)
        out = torch.zeros_like(case["out"])
        for b in range(len(out)):
            out[b, q_mask[b]] = y[b, places[b, q_mask[b]]]
    else:
        out = block(q, kv, mask_n=q_mask, mask_m=kv_mask)
    case.close(out, "out", q_mask)


def _spread(values: Tensor, real: Tensor, places: Tensor) -> Tensor:
    spread = values.new_zeros(len(values), int(places.max()) + 1, values.shape[-1])
    for b in range(len(values)):
        spread[b, places[b, real[b]]] = values[b, real[b]]
    return spread


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "b_block_*")
def test_layer(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    causal = bool(case.number("cfg.causal"))
    mask = case.mask("in.mask")
    if "p.ln_kv.g" in case:
        out = Update(case, "", causal)(case["in.memory"], case["in.x"], mask)
        case.close(out, "out")
    else:
        memory = case["in.memory"] if "p.cross_attn.wq" in case else None
        out = Layer(case, "", causal)(case["in.x"], case["in.kv"], mask, memory)
        case.close(out, "out", mask)


def encode(case: Case, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The plain Transformer of a file; START and END stand around the sequence where the model is not causal."""
    causal = bool(case.number("cfg.causal")) if "cfg.causal" in case else "in.raw_tokens" in case
    h, real = surround(case, x, mask, causal)
    for index in range(case.number("cfg.layers")):
        h = Layer(case, f"layer{index}.", causal)(h, h, real)
    return h, real


def surround(case: Case, x: Tensor, mask: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    if causal:
        return x, mask
    block = StartEnd(d=x.shape[-1])
    case.load(block, start="start", end="end")
    h, real = block(x, mask_n=mask)
    assert real is not None
    return h, real


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "b_transformer_*")
def test_transformer(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    x = case["in.x"].requires_grad_()
    sequence, mask = encode(case, x, case.mask("in.mask"))
    pooled = readout(case, sequence, mask)
    assert mask.equal(case.mask("out.mask"))
    case.close(sequence, "out.sequence", mask)
    case.close(pooled, "out.global")
    case.gradients_agree(objective(case, sequence, mask, pooled, None), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "c_*", "d_*", "e_*")
def test_universal_transformers_that_halt(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    causal = bool(case.number("cfg.causal"))
    x = case["in.x"].requires_grad_()
    h, mask = surround(case, x, case.mask("in.mask"), causal)
    layer, halt = Layer(case, "layer.", causal), case.halt()
    conditional: list[Tensor] = []
    halt.output.register_forward_hook(lambda _, __, logit: conditional.append(torch.sigmoid(logit[..., 0]).detach()))

    def body(state: Tensor, mixture: Tensor) -> Tensor:
        y: Tensor = layer(state, state if case.number("cfg.global_halt") else mixture, mask)
        return y

    tally, steps = run_halting(halt, body, h, mask, case.number("cfg.layers"))
    pooled = readout(case, tally.mixture, mask)
    assert mask.equal(case.mask("out.mask"))
    case.close(tally.mixture, "out.sequence", mask)
    case.close(pooled, "out.global")
    case.close(tally.ponder, "out.act_loss")
    accepted = case["out.accepted_layers"]
    assert tally.steps.equal(accepted if accepted.dim() == 1 else accepted.clamp(min=0))
    # A batch whose last samples ran out of length ends one body earlier with us.
    assert case.number("out.layers_run") - 1 <= steps <= case.number("out.layers_run")
    wanted = case["out.cond_halt"]
    for step, probability in enumerate(conditional):
        known = wanted[step].isfinite()
        torch.testing.assert_close(probability[known], wanted[step][known], atol=2e-5, rtol=0)
    case.gradients_agree(objective(case, tally.mixture, mask, pooled, tally.ponder), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "f_*", "g_*", "h_*")
def test_latent_bottlenecks(golden: Golden, dtype: torch.dtype, request: pytest.FixtureRequest) -> None:
    case = Case(golden, dtype)
    causal = bool(case.number("cfg.causal"))
    x, mask = case["in.x"].requires_grad_(), case.mask("in.mask")
    d = x.shape[-1]
    memory_block = Learned(slots=case.number("cfg.memory_size"), d=d, init="zeros")
    case.load(memory_block, weight="mem_init")
    updates = [Update(case, f"mem_update{u}.", causal) for u in range(case.number("cfg.update_layers"))]
    fixed = "fixed" in request.node.name
    chunks = Chunks(size=0 if fixed else case.number("cfg.model_chunk_size"), balanced=not fixed, count=5 * fixed, d=d)
    halting = "p.halt.w1" in case
    shared = Layer(case, "layer.", causal) if halting else None
    layers = [] if halting else [Layer(case, f"layer{i}.", causal) for i in range(case.number("cfg.layers"))]
    halt = case.halt() if halting else None

    m = memory_block(len(x))
    parts, ponders, present, accepted = [], [], [], []
    for c, real in chunks(x, mask_n=mask):
        assert real is not None
        if halt is not None and shared is not None:
            body = partial(_without_mixture, shared, real, m)
            tally, _ = run_halting(halt, body, c, real, case.number("cfg.layers"))
            c = tally.mixture
            ponders.append(tally.ponder)
            accepted.append(tally.steps)
        for layer in layers:
            c = layer(c, c, real, m)
        parts.append(c)
        moved = m
        for update in updates:
            moved = update(moved, c, real)
        present.append(real.any(1))
        m = torch.where(present[-1][:, None, None], moved, m)

    sequence = torch.cat(parts, dim=1)
    norm = case.norm("readout_ln")
    pooled = readout(case, norm(m), None)
    ponder = None
    case.close(sequence, "out.sequence", mask)
    case.close(pooled, "out.global")
    if halting:
        there = torch.stack(present, dim=1)
        ponder = (torch.stack(ponders, dim=1) * there).sum(1) / there.sum(1)
        case.close(ponder, "out.act_loss")
        steps = torch.cat(accepted, dim=1) if causal else torch.stack(accepted, dim=1)
        assert steps.equal(case["out.accepted_layers"].clamp(min=0))
    case.gradients_agree(objective(case, sequence, mask, pooled, ponder), x)


def _without_mixture(layer: Layer, mask: Tensor, memory: Tensor, state: Tensor, mixture: Tensor) -> Tensor:
    y: Tensor = layer(state, state, mask, memory)
    return y


def embed(case: Case, tokens: Tensor) -> Tensor:
    vocab, d = case["p.embed"].shape
    block = Embed(d=d, init="small", scaling="none", dropout=0.0, frozen=-1, frozen_start="drawn", vocab=vocab)
    case.load(block, weight="embed")
    y: Tensor = block(tokens)
    return y


def head(case: Case, features: Tensor) -> Tensor:
    hidden, output = case.linear("head.w1", "head.b1"), case.linear("head.w2", "head.b2")
    y: Tensor = output(Relu(d=hidden.out_features)(hidden(features)))
    return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "heads_siamese*")
def test_siamese_classifier(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    sides = []
    for side in "12":
        mask = case.mask(f"in.mask{side}")
        sequence, real = encode(case, embed(case, case[f"in.tokens{side}"]), mask)
        sides.append(Mean(d=sequence.shape[-1])(sequence, mask_n=real))
    u, v = sides
    logits = head(case, Concat()(u, v, u * v, Abs(d=u.shape[-1])(u - v)))
    case.close(logits, "out.logits")
    case.close(F.cross_entropy(logits, case["in.labels"])[None], "out.loss")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("halt", "heads_flipflop*")
def test_flipflop_language_model(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    tokens = case["in.model_tokens"]
    sequence, _ = encode(case, embed(case, tokens), torch.ones_like(tokens, dtype=torch.bool))
    logits = head(case, sequence)
    case.close(logits, "out.logits")
    mask = case["in.loss_mask"]
    losses = F.binary_cross_entropy_with_logits(logits[..., 0], case["in.labels"].to(dtype), reduction="none")
    case.close(((losses * mask).sum() / mask.sum())[None], "out.loss")
