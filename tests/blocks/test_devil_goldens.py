"""Our blocks against arrays of the program of "The Devil is in the Detail": relative attention and whole models.

The tolerance is that of the arrays, 2e-5."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.blocks.attention import Attention
from archlang.blocks.embed import Embed
from archlang.blocks.feedforward import Feedforward
from archlang.blocks.norm import Norm
from archlang.blocks.positions import AbsolutePositions, sinusoid
from archlang.blocks.relative_attention import RelativeAttention
from archlang.blocks.unembed import Unembed

DTYPES = [torch.float32, torch.float64]
Golden = Mapping[str, np.ndarray]
SCALINGS = {"none": "none", "teu": "token_upscaling", "ped": "position_downscaling"}


class Case:
    """One golden file: its arrays as tensors, and blocks made with its parameters."""

    def __init__(self, golden: Golden, dtype: torch.dtype, heads: int) -> None:
        self.golden = golden
        self.dtype = dtype
        self.heads = heads
        self.parameters: dict[str, nn.Parameter] = {}

    def __getitem__(self, name: str) -> Tensor:
        array = torch.from_numpy(self.golden[name])
        return array.to(self.dtype) if array.is_floating_point() else array

    def close(self, actual: Tensor, name: str, where: Tensor | None = None) -> None:
        expected = self[name]
        if where is not None:
            actual, expected = actual[where], expected[where]
        torch.testing.assert_close(actual, expected, atol=2e-5, rtol=0, msg=lambda text: f"{name}: {text}")

    def load(self, block: nn.Module, **names: str) -> None:
        """Copies arrays into a block: its parameter's name (dots as `__`) to the array's."""
        block.to(self.dtype)
        for name, array in names.items():
            parameter = block.get_parameter(name.replace("__", "."))
            parameter.data.copy_(self[f"p.{array}"])
            self.parameters[array] = parameter

    def attention(self, prefix: str, causal: bool) -> Attention | RelativeAttention:
        d = self[f"p.{prefix}q"].shape[1]
        block: Attention | RelativeAttention
        if f"p.{prefix}r" in self.golden:
            block = RelativeAttention(
                heads=self.heads,
                scale="fixed",
                causal=causal,
                dropout=0.0,
                key_dropout=0.0,
                output_dropout=0.0,
                head_dim=0,
                init="torch",
                d=d,
                e=d,
            )
            self.load(block, position__weight=f"{prefix}r", content_bias=f"{prefix}u", position_bias=f"{prefix}w")
        else:
            block = Attention(
                heads=self.heads,
                position="none",
                causal=causal,
                dropout=0.0,
                output_dropout=0.0,
                head_dim=0,
                causal_rule="always",
                padded="computed",
                init="xavier",
                d=d,
                e=d,
            )
        self.load(
            block,
            query__weight=f"{prefix}q",
            key__weight=f"{prefix}k",
            value__weight=f"{prefix}v",
            output__weight=f"{prefix}o",
        )
        return block

    def norm(self, name: str) -> Norm:
        block = Norm(epsilon=1e-5, d=len(self[f"p.{name}.g"]))
        self.load(block, weight=f"{name}.g", bias=f"{name}.b")
        return block

    def feedforward(self, prefix: str) -> Feedforward:
        ff, d = self[f"p.{prefix}ff1.w"].shape
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
            hidden__weight=f"{prefix}ff1.w",
            hidden__bias=f"{prefix}ff1.b",
            output__weight=f"{prefix}ff2.w",
            output__bias=f"{prefix}ff2.b",
        )
        return block

    def embed(self, name: str, scaling: str) -> Embed:
        vocab, d = self[f"p.{name}"].shape
        block = Embed(d=d, init="normal", scaling=scaling, dropout=0.0, frozen=-1, frozen_start="drawn", vocab=vocab)
        self.load(block, weight=name)
        return block


class Model:
    """The encoder-decoder of a file."""

    def __init__(self, golden: Golden, dtype: torch.dtype) -> None:
        self.cfg = json.loads(str(golden["cfg"]))
        self.case = Case(golden, dtype, self.cfg["heads"])
        scaling = SCALINGS[self.cfg["scale"]]
        self.source = self.case.embed("src_emb", scaling)
        self.target = self.case.embed("tgt_emb", scaling)
        self.places = AbsolutePositions(scaling=scaling, dropout=0.0, d=self.cfg["d"])
        self.scores = Unembed(table=self.target, bias=True, d=self.cfg["d"])
        self.case.load(self.scores, bias="out.b")
        own, times = (1, self.cfg["layers"]) if self.cfg["universal"] else (self.cfg["layers"], 1)
        self.encoder = [self._encoder_layer(f"enc.{layer}.") for layer in range(own)] * times
        self.decoder = [self._decoder_layer(f"dec.{layer}.") for layer in range(own)] * times

    def _encoder_layer(self, prefix: str) -> list[nn.Module]:
        case = self.case
        norms = [case.norm(f"{prefix}ln{i}") for i in (1, 2)]
        return [case.attention(f"{prefix}self.", False), case.feedforward(prefix), *norms]

    def _decoder_layer(self, prefix: str) -> list[nn.Module]:
        case = self.case
        norms = [case.norm(f"{prefix}ln{i}") for i in (1, 2, 3)]
        attentions = [case.attention(f"{prefix}self.", True), case.attention(f"{prefix}cross.", False)]
        return [*attentions, case.feedforward(prefix), *norms]

    def _placed(self, h: Tensor) -> Tensor:
        y: Tensor = h if self.cfg["relative"] else self.places(h)
        return y

    def encode(self) -> tuple[Tensor, Tensor]:
        tokens, lengths = self.case["src"], self.case["src_len"]
        framed = torch.zeros(len(tokens), tokens.shape[1] + 2, dtype=torch.int64)
        framed[:, 0] = self.cfg["src_sos"]
        for row, length in enumerate(lengths.tolist()):
            framed[row, 1 : length + 1] = tokens[row, :length]
            framed[row, length + 1] = self.cfg["src_eos"]
        real = torch.arange(framed.shape[1]) < (lengths + 2)[:, None]
        h = self._placed(self.source(framed))
        for attention, feedforward, *norms in self.encoder:
            h = norms[0](h + attention(h, h, mask_m=real))
            h = norms[1](h + feedforward(h))
        return h, real

    def decode(self, tokens: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        h = self._placed(self.target(tokens))
        for attention, cross, feedforward, *norms in self.decoder:
            h = norms[0](h + attention(h, h))
            h = norms[1](h + cross(h, memory, mask_m=real))
            h = norms[2](h + feedforward(h))
        y: Tensor = self.scores(h)
        return y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("devil", "std_*", "uni_*")
def test_encoder_decoders(golden: Golden, dtype: torch.dtype) -> None:
    model = Model(golden, dtype)
    case = model.case
    memory, real = model.encode()
    labels, stop = case["tf_labels"], model.cfg["tgt_sos_eos"]
    shifted = torch.cat((torch.full_like(labels[:, :1], stop), labels[:, :-1]), dim=1)
    logits = model.decode(shifted, memory, real)
    scored = torch.arange(labels.shape[1]) <= case["tgt_len"][:, None]
    case.close(logits, "tf_logits", scored)
    loss = F.cross_entropy(logits[scored], labels[scored])
    case.close(loss, "tf_loss")
    gradients = torch.autograd.grad(loss, list(case.parameters.values()), retain_graph=True)
    for name, gradient in zip(case.parameters, gradients, strict=True):
        flat = gradient.flatten()
        projection = flat @ torch.cos(torch.arange(len(flat), dtype=dtype))
        norm = case[f"gnorm.{name}"].item()
        assert flat.norm().item() == pytest.approx(norm, rel=2e-5, abs=2e-6), name
        assert projection.item() == pytest.approx(float(golden[f"gproj.{name}"]), rel=0, abs=2e-5 * max(norm, 1)), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("devil", "std_*", "uni_*")
def test_greedy_decoding(golden: Golden, dtype: torch.dtype) -> None:
    model = Model(golden, dtype)
    case = model.case
    memory, real = model.encode()
    expected = case["greedy_tokens"]
    tokens = torch.full((len(expected), 1), model.cfg["tgt_sos_eos"])
    for _ in range(expected.shape[1]):
        logits = model.decode(tokens, memory, real)
        tokens = torch.cat((tokens, logits[:, -1:].argmax(-1)), dim=1)
    assert tokens[:, 1:].equal(expected)
    case.close(logits, "greedy_logits")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("devil", "rel_attention*")
def test_relative_attention(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype, int(golden["heads"]))
    x = case["enc_x"]
    real = torch.arange(x.shape[1]) < case["enc_len"][:, None]
    both, causal = case.attention("", False), case.attention("", True)
    case.close(both(x, x, mask_m=real), "enc_y")
    case.close(both.weights(x, x, mask_m=real), "enc_w")
    y = case["dec_x"]
    case.close(causal(y, y), "dec_y")
    case.close(causal.weights(y, y), "dec_w")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("devil", "tables")
def test_sinusoids(golden: Golden, dtype: torch.dtype) -> None:
    for name, table in golden.items():
        if name.startswith("pe_"):
            expected = torch.from_numpy(table).to(dtype)
            positions = torch.arange(-20, 21, dtype=dtype)
            torch.testing.assert_close(sinusoid(positions, expected.shape[1]), expected, atol=2e-6, rtol=0)


def started(variant: str) -> dict[str, nn.Parameter]:
    """The weights that our defaults start with at the size of SCAN, by the program's names."""
    relative = "rel" in variant
    scaling = SCALINGS.get(variant.split("_")[2], "none") if not relative else "none"
    init = {"none": "normal", "token_upscaling": "xavier", "position_downscaling": "kaiming"}[scaling]

    def embed(vocab: int) -> Embed:
        return Embed(
            d=128,
            init="xavier" if relative else init,
            scaling=scaling,
            dropout=0.0,
            frozen=-1,
            frozen_start="drawn",
            vocab=vocab,
        )

    def plain() -> Attention:
        return Attention(
            heads=8,
            position="none",
            causal=False,
            dropout=0.0,
            output_dropout=0.0,
            head_dim=0,
            causal_rule="always",
            padded="zero",
            init="xavier",
            d=128,
            e=128,
        )

    def itself() -> Attention | RelativeAttention:
        if not relative:
            return plain()
        return RelativeAttention(
            heads=8,
            scale="fixed",
            causal=False,
            dropout=0.0,
            key_dropout=0.0,
            output_dropout=0.0,
            head_dim=0,
            init="torch",
            d=128,
            e=128,
        )

    target = embed(7)
    found = {"input_embedding.weight": embed(15).weight, "output_embedding.weight": target.weight}
    bias = Unembed(table=target, bias=True, d=128).bias
    assert bias is not None
    found["output_map.bias"] = bias
    parts: dict[str, nn.Module] = {"trafo.decoder.L.multihead_attn": plain()}
    for side, norms in (("encoder", 2), ("decoder", 3)):
        parts[f"trafo.{side}.L.self_attn"] = itself()
        feedforward = Feedforward(
            ff=256,
            activation="relu",
            dropout=0.0,
            output_dropout=0.0,
            bias=0.0,
            bias_init="drawn",
            init="relu",
            gain=1.0,
            d=128,
        )
        parts |= {f"trafo.{side}.L.linear1": feedforward.hidden, f"trafo.{side}.L.linear2": feedforward.output}
        parts |= {f"trafo.{side}.L.norm{i + 1}": Norm(epsilon=1e-5, d=128) for i in range(norms)}
    theirs = {
        "query.weight": "data_to_q.weight",
        "key.weight": "data_to_kv.weight",
        "value.weight": "data_to_kv.weight",
        "position.weight": "pos_to_pq.weight",
        "output.weight": "multi_head_merge.weight",
        "content_bias": "global_content_bias",
        "position_bias": "global_pos_bias",
    }
    for prefix, part in parts.items():
        found |= {f"{prefix}.{theirs.get(name, name)}": value for name, value in part.named_parameters()}
    return found


def test_weights_start_as_in_the_program(references: Path) -> None:
    file = references / "devil" / "goldens" / "init_stats.json"
    if not file.is_file():
        pytest.skip(f"no {file}: set ARCHLANG_GOLDENS to the folder of references")
    for variant in json.loads(file.read_text()):
        found = started(variant.pop("variant"))
        assert variant.pop("params") > 0
        assert set(found) == set(variant)
        for name, (deviation, largest) in variant.items():
            value = found[name].detach()
            # Few numbers in a small tensor: the deviation of their deviation is about 1/sqrt(2 n).
            loose = 5 / (2 * value.numel()) ** 0.5
            assert value.std(unbiased=False).item() == pytest.approx(deviation, rel=loose, abs=1e-12), name
            if "embedding" not in name:
                assert value.abs().max().item() == pytest.approx(largest, rel=0.05, abs=1e-12), name
