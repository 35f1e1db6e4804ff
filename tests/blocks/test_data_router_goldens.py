"""Our blocks against arrays of the Neural Data Router's program.

Tolerances: 1e-5 for weights and results, 5e-5 for gradients, 1e-4 for those through several steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.absrel_attention import AbsrelAttention
from archlang.blocks.act import Act
from archlang.blocks.attention import Attention
from archlang.blocks.copy_gate import CopyGate
from archlang.blocks.embed import Embed
from archlang.blocks.feedforward import Feedforward
from archlang.blocks.geometric_attention import GeometricAttention, nearest_match
from archlang.blocks.linear import Linear
from archlang.blocks.norm import Norm
from archlang.blocks.pooling import First, Last
from archlang.blocks.positions import AbsolutePositions
from archlang.blocks.relative_attention import RelativeAttention

DTYPES = [torch.float32, torch.float64]
Golden = Mapping[str, np.ndarray]


class Case:
    """One golden file: its arrays as tensors, and blocks made with its parameters."""

    def __init__(self, golden: Golden, dtype: torch.dtype) -> None:
        self.golden = golden
        self.dtype = dtype

    def __contains__(self, name: str) -> bool:
        return name in self.golden

    def __getitem__(self, name: str) -> Tensor:
        array = torch.from_numpy(self.golden[name])
        return array.to(self.dtype) if array.is_floating_point() else array

    def close(self, actual: Tensor, name: str, atol: float = 1e-5) -> None:
        torch.testing.assert_close(actual, self[name], atol=atol, rtol=0, msg=lambda text: f"{name}: {text}")

    def load(self, block: nn.Module, **arrays: Tensor) -> None:
        """Copies arrays into the parameters of a block by their names (dots as `__`)."""
        block.to(self.dtype)
        for name, array in arrays.items():
            parameter = block.get_parameter(name.replace("__", "."))
            parameter.data.copy_(array.reshape(parameter.shape))

    def _projections(self, block: nn.Module) -> None:
        self.load(
            block,
            query__weight=self["p_wq"],
            key__weight=self["p_wk"],
            value__weight=self["p_wv"],
            output__weight=self["p_wo"],
        )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """heads, head_dim, d"""
        heads, head_dim, d = self["p_wq"].shape
        return heads, head_dim, d

    def geometric(self, normalised: bool) -> GeometricAttention:
        heads, head_dim, d = self.sizes
        block = GeometricAttention(
            heads=heads,
            normalised=normalised,
            key_dropout=0.0,
            output_dropout=0.0,
            head_dim=head_dim,
            causal=False,
            offset=0,
            d=d,
            e=d,
        )
        self._projections(block)
        self.load(
            block,
            query_bias=self["p_bq"],
            direction__weight=torch.cat((self["p_w_dir_left"], self["p_w_dir_right"])),
            direction__bias=torch.cat((self["p_b_dir_left"], self["p_b_dir_right"])),
            content_scale=self["p_alpha"],
            direction_scale=self["p_beta"],
            score_bias=self["p_gamma"],
        )
        return block

    def attention(self) -> Attention:
        heads, head_dim, d = self.sizes
        block = Attention(
            heads=heads,
            position="none",
            causal=False,
            dropout=0.0,
            output_dropout=0.0,
            head_dim=head_dim,
            causal_rule="always",
            padded="computed",
            init="fused",
            d=d,
            e=d,
        )
        self._projections(block)
        return block

    def relative(self) -> RelativeAttention:
        heads, head_dim, d = self.sizes
        block: RelativeAttention
        if "p_w_rel_gate" in self:
            block = AbsrelAttention(
                heads=heads,
                gates="per_head",
                scale="learned",
                causal=False,
                dropout=0.0,
                key_dropout=0.0,
                output_dropout=0.0,
                head_dim=head_dim,
                init="fused",
                d=d,
                e=d,
            )
            self.load(block, relative_gate__weight=self["p_w_rel_gate"], relative_gate__bias=self["p_b_rel_gate"])
        else:
            block = RelativeAttention(
                heads=heads,
                scale="learned",
                causal=False,
                dropout=0.0,
                key_dropout=0.0,
                output_dropout=0.0,
                head_dim=head_dim,
                init="fused",
                d=d,
                e=d,
            )
        self._projections(block)
        self.load(
            block,
            position__weight=self["p_wk_pos"],
            content_bias=self["p_bq_content"],
            position_bias=self["p_bq_pos"],
            scale=self["p_alpha"],
        )
        return block

    def norm(self, name: str) -> Norm:
        block = Norm(epsilon=1e-5, d=len(self[f"p_{name}_g"]))
        self.load(block, weight=self[f"p_{name}_g"], bias=self[f"p_{name}_b"])
        return block

    def feedforward(self, name: str) -> Feedforward:
        ff, d = self[f"p_w_{name}1"].shape
        block = Feedforward(
            ff=ff,
            activation="relu",
            dropout=0.0,
            output_dropout=0.0,
            bias=0.0,
            bias_init="drawn",
            init="relu",
            gain=1.0,
            d=d,
        )
        self.load(
            block,
            hidden__weight=self[f"p_w_{name}1"],
            hidden__bias=self[f"p_b_{name}1"],
            output__weight=self[f"p_w_{name}2"],
            output__bias=self[f"p_b_{name}2"],
        )
        return block


class CopyGateLayer(nn.Module):
    """a = LN(h + attention(h)), u = LN(FF(a)) or tanh(FF(a)), g = σ(FF(a)), then the copy gate."""

    def __init__(self, case: Case, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.norm_attention = case.norm("ln_attn")
        self.norm_update = case.norm("ln_update") if "p_ln_update_g" in case else None
        self.feedforward = case.feedforward("ff")
        self.gate = case.feedforward("gate")
        self.copy = CopyGate(column_dropout=0.0, d=case.sizes[2])
        self.seen: dict[str, Tensor] = {}

    def forward(self, h: Tensor, real: Tensor) -> Tensor:
        attended: Tensor = self.attention(h, h, mask_m=real)
        merged = self.norm_attention(h + attended)
        update: Tensor = self.feedforward(merged)
        update = torch.tanh(update) if self.norm_update is None else self.norm_update(update)
        gate = torch.sigmoid(self.gate(merged))
        self.seen = {"attn_out": attended, "merged": merged, "update": update, "gate": gate}
        out: Tensor = self.copy(gate, update, h)
        return out


class PlainLayer(nn.Module):
    """m = LN(h + attention(h)), LN(m + FF(m))"""

    def __init__(self, case: Case, attention: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.norm_attention = case.norm("ln_attn")
        self.norm_feedforward = case.norm("ln_ff")
        self.feedforward = case.feedforward("ff")

    def forward(self, h: Tensor, real: Tensor) -> Tensor:
        # Padded queries are computed by the program, and are part of the arrays: mask_n stays away.
        m = self.norm_attention(h + self.attention(h, h, mask_m=real))
        out: Tensor = self.norm_feedforward(m + self.feedforward(m))
        return out


def gradient(result: Tensor, case: Case, x: Tensor) -> Tensor:
    return torch.autograd.grad((result * case["probe"]).sum(), x)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("ndr", "a_*")
def test_nearest_match(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    for prefix in sorted(
        name.removesuffix("_logits") for name in golden if name.endswith("_logits") and "grad" not in name
    ):
        logits = case[f"{prefix}_logits"].requires_grad_()
        n = logits.shape[-1]
        hidden = torch.eye(n, dtype=torch.bool) | (torch.arange(n) >= case[f"{prefix}_lens"][:, None])[:, None]
        weights = nearest_match(logits.masked_fill(hidden, -torch.inf))
        # The program's own sums are 2e-5 off where logits are extreme.
        atol = 1e-4 if "extreme" in prefix else 1e-5
        case.close(weights, f"{prefix}_weights", atol)
        normalised = weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
        case.close(normalised, f"{prefix}_weights_l1", atol)
        for result, name in ((weights, "grad_logits"), (normalised, "grad_logits_l1")):
            (found,) = torch.autograd.grad((result * case[f"{prefix}_probe"]).sum(), logits, retain_graph=True)
            case.close(found, f"{prefix}_{name}", max(atol, 5e-5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("ndr", "b_*", "b2_*")
def test_geometric_attention(golden: Golden, dtype: torch.dtype, request: pytest.FixtureRequest) -> None:
    case = Case(golden, dtype)
    block = case.geometric(normalised="l1norm" in request.node.name)
    x, real = case["x"].requires_grad_(), ~case["pad_mask"].bool()
    case.close(block.weights(x, x, mask_m=real), "weights")
    out = block(x, x, mask_n=real, mask_m=real)
    case.close(out, "out")
    case.close(gradient(out, case, x), "grad_x", 5e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("ndr", "e_*", "f_*")
def test_relative_attention(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    block = case.relative()
    x, real = case["x"].requires_grad_(), ~case["pad_mask"].bool()
    case.close(block.weights(x, x, mask_m=real), "weights")
    out = block(x, x, mask_n=real, mask_m=real)
    case.close(out, "out")
    case.close(gradient(out, case, x), "grad_x", 5e-5)


def attention_of(case: Case, name: str) -> nn.Module:
    """The attention that a file's parameters are those of."""
    if "p_w_dir_left" in case:
        return case.geometric(normalised="nogate" in name)
    if "p_wk_pos" in case:
        return case.relative()
    return case.attention()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("ndr", "c_*", "d_*", "g_*", "g2_*")
def test_copy_gate_layers(golden: Golden, dtype: torch.dtype, request: pytest.FixtureRequest) -> None:
    case = Case(golden, dtype)
    layer = CopyGateLayer(case, attention_of(case, request.node.name))
    x, real = case["x"].requires_grad_(), ~case["pad_mask"].bool()
    steps = len(golden["states"]) if "states" in golden else 1
    h, seen = x, []
    for _ in range(steps):
        h = layer(h, real)
        seen.append({"states": h, **layer.seen})
    if "states" in golden:
        for name in seen[0]:
            case.close(torch.stack([one[name] for one in seen]), name)
    else:
        case.close(h, "out")
        for name, value in layer.seen.items():
            case.close(value, name)
    case.close(gradient(h, case, x), "grad_x", 5e-5 if steps == 1 else 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("ndr", "i_*", "i2_*", "j_*", "k_*")
def test_universal_layers(golden: Golden, dtype: torch.dtype, request: pytest.FixtureRequest) -> None:
    case = Case(golden, dtype)
    layer = PlainLayer(case, attention_of(case, request.node.name))
    x, real = case["x"].requires_grad_(), ~case["pad_mask"].bool()
    h = x
    if "pos_table" in golden:
        h = AbsolutePositions(scaling="none", dropout=0.0, d=case.sizes[2])(x)
        case.close(h, "layer_in")
    states = []
    for _ in range(len(golden["states"])):
        states.append(h := layer(h, real))
    case.close(torch.stack(states), "states")
    case.close(gradient(h, case, x), "grad_x", 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("letter", "variant"), [("A", "graves"), ("U", "dehghani")])
@pytest.mark.goldens("ndr", "h_*", "h2_*")
def test_adaptive_computation_time(golden: Golden, dtype: torch.dtype, letter: str, variant: str) -> None:
    case = Case(golden, dtype)
    real = ~case["pad_mask"].bool()
    d = len(case["p_w_halt"])
    epsilon = 1 - float(golden["threshold"])
    block = Act(variant=variant, epsilon=epsilon, ponder="code", d=d)
    case.load(block, halt__weight=case["p_w_halt"], halt__bias=case["p_b_halt"])
    layer = None
    if "states" in case:
        scripted = iter(case["states"])
        h = next(scripted)
    else:
        layer = PlainLayer(case, case.attention())
        h = case["x"].requires_grad_()
    tally = block.start(h, real)
    steps = 0
    while steps < int(golden["max_steps"]) and tally.live.any():
        tally = block.advance(tally, next(scripted) if layer is None else layer(tally.state, real), real)
        steps += 1
    case.close(tally.mixture, f"{letter}_out")
    case.close(tally.steps.to(dtype), f"{letter}_n_updates")
    case.close(tally.remainder, f"{letter}_remainder")
    loss = tally.ponder.mean() * case["loss_weight"]
    case.close(loss, f"{letter}_reg_loss")
    assert steps == int(golden[f"{letter}_steps_run"])
    # What the last step forced to halt counts as spent in the program; we cannot know which step is the last.
    decided = ~tally.live
    torch.testing.assert_close(tally.spent[decided], case[f"{letter}_p_cum"][decided], atol=1e-5, rtol=0)
    if layer is not None:
        found = torch.autograd.grad((tally.mixture * case["probe"]).sum() + loss, h)[0]
        case.close(found, f"{letter}_grad_x", 1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("ndr", "l_*", "l2_*")
def test_classifiers(golden: Golden, dtype: torch.dtype, request: pytest.FixtureRequest) -> None:
    case = Case(golden, dtype)
    rows, d = case["p_embedding"].shape
    tokens, lengths = case["tokens"].long(), case["lens"].long()
    end, begin = rows - 2, rows - 1
    sequence = torch.zeros(len(tokens), tokens.shape[1] + 2, dtype=torch.int64)
    sequence[:, 0] = begin
    for row, length in enumerate(lengths.tolist()):
        sequence[row, 1 : length + 1] = tokens[row, :length]
        sequence[row, length + 1] = end
    real = torch.arange(sequence.shape[1]) < (lengths + 2)[:, None]
    table = Embed(d=d, init="normal", scaling="none", dropout=0.0, frozen=-1, frozen_start="drawn", vocab=rows)
    case.load(table, weight=case["p_embedding"])
    layer = CopyGateLayer(case, case.geometric(normalised=False))
    h = table(sequence)
    for _ in range(int(golden["n_steps"])):
        h = layer(h, real)
    readout = Linear(out=len(golden["p_b_out"]), bias=True, init="torch", d=d)
    case.load(readout, weight=case["p_w_out"], bias=case["p_b_out"])
    column = (First if "first" in request.node.name else Last)(d=d)(h, mask_n=real)
    case.close(readout(column), "logits")
