"""The golden arrays of The Devil is in the Detail, against the library's `seq2seq` and other programs in archlang."""

import json
import lzma
import os
from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import archlang
from archlang.backend.architecture import Architecture
from archlang.blocks.positions import sinusoid
from archlang.blocks.relative_attention import RelativeAttention
from archlang.tasks.kit.metrics import tally
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Unit
from archlang.tasks.scan import commands, published_iid
from archlang.tasks.scan import read as command
from archlang.train.loss import Smoothing
from tests.goldens.files import HERE, reference_file
from tests.goldens.golden import TOLERANCE, Golden, Program, Weights, close, page, pair
from tests.shipped_models import library_page
from tests.train.settings_of_a_run import settings_with

SCALINGS = {"none": "none", "teu": "token_upscaling", "ped": "position_downscaling"}

Config = Mapping[str, Any]  # Any: JSON


# Whole models


def weights_of(cfg: Config) -> Weights:
    """Returns the array in a golden file of each parameter of `seq2seq`."""
    relative = cfg["relative"]
    weights: Weights = {"read.weight": "p.src_emb", "table.weight": "p.tgt_emb", "unembed.bias": "p.out.b"}
    for layer in range(1 if cfg["universal"] else cfg["layers"]):
        stack = "" if cfg["universal"] else f"stack.{layer}."
        for side, norms, short in (("encoder", 2, "enc"), ("decoder", 3, "dec")):
            ours, theirs = f"{side}.{stack}{side}_layer", f"p.{short}.{layer}"
            attentions = {"relative_attention" if relative else "attention": "self"}
            if side == "decoder":
                attentions["attention" if relative else "attention_2"] = "cross"
            for name, array in attentions.items():
                for word in ("query", "key", "value", "output"):
                    weights[f"{ours}.{name}.{word}.weight"] = f"{theirs}.{array}.{word[0]}"
            if relative:
                weights[f"{ours}.relative_attention.position.weight"] = f"{theirs}.self.r"
                weights[f"{ours}.relative_attention.content_bias"] = f"{theirs}.self.u"
                weights[f"{ours}.relative_attention.position_bias"] = f"{theirs}.self.w"
            weights |= pair(f"{ours}.feedforward.hidden", f"{theirs}.ff1.{{}}")
            weights |= pair(f"{ours}.feedforward.output", f"{theirs}.ff2.{{}}")
            for index in range(1, norms + 1):
                norm = "norm" if index == 1 else f"norm_{index}"
                weights |= pair(f"{ours}.{norm}", f"{theirs}.ln{index}.{{}}", "gb")
    return weights


def program_of(golden: Golden) -> Program:
    cfg = golden.settings
    statics = {name: cfg[name] for name in ("d", "heads", "ff", "layers", "universal", "relative")}
    statics |= {"words": len(golden["p.src_emb"]), "vocab": len(golden["p.tgt_emb"]), "scaling": SCALINGS[cfg["scale"]]}
    return Program(page("seq2seq"), golden, weights_of(cfg), "seq2seq", **statics)


def source(golden: Golden) -> tuple[Tensor, Tensor]:
    """Returns [SOS] words [EOS], and the lengths."""
    cfg, words, lengths = golden.settings, golden["src"], golden["src_len"]
    framed = torch.zeros(len(words), words.shape[1] + 2, dtype=torch.int64)
    framed[:, 0], framed[:, 1:-1] = cfg["src_sos"], words
    framed[torch.arange(len(words)), lengths + 1] = cfg["src_eos"]
    return framed, lengths + 2


def shifted(golden: Golden, labels: Tensor) -> Tensor:
    """Returns the input of the decoder for each label."""
    return F.pad(labels, (1, -1), value=golden.settings["tgt_sos_eos"])


def scored(golden: Golden) -> Tensor:
    return torch.arange(golden["tf_labels"].shape[1]) <= golden["tgt_len"][:, None]


whole_models = pytest.mark.goldens("devil", "std_*", "uni_*")


@whole_models
def test_answers_losses_and_gradients_with_teacher_forcing(golden: Golden) -> None:
    program, labels, here = program_of(golden), golden["tf_labels"], scored(golden)
    words, lengths = source(golden)
    logits = program(words, shifted(golden, labels), source=lengths)
    close(golden, logits, "tf_logits", where=here)
    close(golden, F.cross_entropy(logits[here], labels[here]), "tf_loss")
    for name in golden.names("tf_loss_smooth"):
        smoothed = Smoothing(other_class_weight=float(name)).losses(logits[here], labels[here]).mean()
        close(golden, smoothed, f"tf_loss_smooth{name}")
    # With the target's lengths, which mask its padding, the decoder's real positions are the same.
    masked = program(words, shifted(golden, labels), source=lengths, target=golden["tgt_len"] + 1)
    close(golden, masked, "tf_logits", where=here)
    gradients = golden.gradients(F.cross_entropy(logits[here], labels[here]), golden.names("gnorm."))
    assert set(gradients) == set(golden.names("p."))
    for name, gradient in gradients.items():
        flat = gradient.flatten()
        norm = golden[f"gnorm.{name}"].item()
        projection = flat @ torch.cos(torch.arange(len(flat), dtype=flat.dtype))
        assert flat.norm().item() == pytest.approx(norm, rel=TOLERANCE, abs=2e-6), name
        assert projection.item() == pytest.approx(golden[f"gproj.{name}"].item(), abs=TOLERANCE * max(norm, 1)), name


@whole_models
@pytest.mark.parametrize("cache", [True, False], ids=["cached", "recomputed"])
def test_decoding_equals_the_program(golden: Golden, cache: bool) -> None:
    program, stop = program_of(golden), golden.settings["tgt_sos_eos"]
    words, lengths = source(golden)
    steps = int(golden["tgt_len"].max()) + 1
    # The program never stops before the length of the batch's longest target.
    run = program.module.decode(words, lengths=lengths, begin=stop, limit=steps, cache=cache)
    assert run.choices.equal(golden["greedy_tokens"][:, :steps])
    torch.testing.assert_close(run.logits, golden["greedy_logits"][:, :steps], atol=TOLERANCE, rtol=0)
    ended = program.module.decode(words, lengths=lengths, begin=stop, end=stop, limit=steps, cache=cache)
    assert ended.lengths.equal(golden["greedy_len"])
    for answer, length, expected in zip(ended.tokens, ended.lengths, golden["greedy_tokens"], strict=True):
        assert answer[:length].equal(expected[:length])
    best = run.logits.topk(2).values
    assert (best[..., 0] - best[..., 1]).min().item() == pytest.approx(golden["greedy_margin"].item(), abs=4e-5)
    here = scored(golden)[:, :steps]
    close(golden, F.cross_entropy(run.logits[here], golden["tf_labels"][:, :steps][here]), "greedy_loss")


@whole_models
def test_an_answer_is_correct_if_every_word_and_the_end_are_correct(golden: Golden) -> None:
    stop = golden.settings["tgt_sos_eos"]

    def ended(name: str, width: int) -> np.ndarray:
        """Returns the rows, each followed by stop tokens."""
        rows = np.full((len(golden[name]), width), stop)
        for row, words, length in zip(rows, golden.arrays[name], golden.arrays[f"{name}_len"], strict=True):
            row[:length] = words[:length]
        return rows

    width = max(int(golden[f"{name}_len"].max()) for name in ("acc_tgt", "acc_pred")) + 1
    targets, predictions = ended("acc_tgt", width), ended("acc_pred", width)
    lengths = golden.arrays["acc_tgt_len"] + 1
    inside = np.arange(width) < lengths[:, None]
    split = Split({}, Ragged(targets[inside], np.concatenate(([0], np.cumsum(lengths)))))
    right = tally("accuracy", Unit.SEQUENCE, split, predictions[inside])
    assert (right.hits == golden.arrays["acc_ok"]).all()


# Relative attention alone

RELATIVE = """
model attend[heads: int, causal = false](x: seq[n, d]) -> seq[n, d] {
    return relative_attention[heads, causal = causal](x)
}
"""


def relative_program(golden: Golden, causal: bool) -> tuple[Program, RelativeAttention]:
    words = {"query": "q", "key": "k", "value": "v", "output": "o", "position": "r"}
    weights: Weights = {f"relative_attention.{ours}.weight": f"p.{theirs}" for ours, theirs in words.items()}
    weights |= {"relative_attention.content_bias": "p.u", "relative_attention.position_bias": "p.w"}
    d, heads = golden["p.q"].shape[1], golden.number("heads")
    program = Program(RELATIVE, golden, weights, d=d, heads=heads, causal=causal)
    block = program.module.get_submodule("relative_attention")
    assert isinstance(block, RelativeAttention)
    return program, block


@pytest.mark.goldens("devil", "rel_attention*")
def test_bidirectional_relative_attention(golden: Golden) -> None:
    program, block = relative_program(golden, causal=False)
    x, lengths = golden["enc_x"], golden["enc_len"]
    real = torch.arange(x.shape[1]) < lengths[:, None]
    close(golden, program(x, x=lengths), "enc_y", where=real)
    weights = block.weights(x, x, mask_m=real)
    close(golden, weights, "enc_w", where=real[:, None, :, None].expand_as(weights))


@pytest.mark.goldens("devil", "rel_attention*")
def test_causal_relative_attention(golden: Golden) -> None:
    program, block = relative_program(golden, causal=True)
    x = golden["dec_x"]
    close(golden, program(x), "dec_y")
    close(golden, block.weights(x, x), "dec_w")
    steps = [program(x[:, : step + 1])[:, -1] for step in range(x.shape[1])]
    close(golden, torch.stack(steps, dim=1), "dec_y_stepwise")


# Tables

PLACED = "model placed(x: seq[n, d]) -> seq[n, d] { return absolute_positions(x) }"


@pytest.mark.goldens("devil", "tables")
def test_sinusoids(golden: Golden) -> None:
    for name in golden.names("pe_"):
        d, rows = int(name), golden[f"pe_{name}"]
        half = len(rows) // 2
        close(golden, sinusoid(torch.arange(-half, half + 1, dtype=golden.dtype), d), f"pe_{name}", 2e-6)
        program = Program(PLACED, golden, {}, d=d)
        placed = program(torch.zeros(1, half + 1, d, dtype=golden.dtype))[0]
        torch.testing.assert_close(placed, rows[half:], atol=2e-6, rtol=0)


@pytest.mark.goldens("devil", "tables")
def test_noams_schedule_is_root_with_a_rate_divided_by_the_root_of_the_width(golden: Golden) -> None:
    for (rate, width, warmup), expected in zip(golden["noam_cfg"].tolist(), golden["noam_lr"].tolist(), strict=True):
        settings = settings_with(lr=rate / sqrt(width), schedule="root", warmup=int(warmup))
        for step, expected_rate in zip(golden["noam_steps"].tolist(), expected, strict=True):
            assert settings.learning_rate(step, 10**9) == pytest.approx(expected_rate, rel=1e-6)


@pytest.mark.goldens("devil", "tables")
def test_label_smoothing(golden: Golden) -> None:
    names = [name for name in golden.names("ls_") if name not in ("logits", "target")]
    assert names
    for name in names:
        smoothed = Smoothing(other_class_weight=float(name)).losses(golden["ls_logits"], golden["ls_target"])
        close(golden, smoothed, f"ls_{name}", 1e-6)


# SCAN's length splits


@pytest.mark.goldens("devil", "scan_resplit*")
def test_the_number_of_held_out_commands_equals_the_programs(golden: Golden) -> None:
    lengths = np.asarray([len(actions) for _, actions in commands()])
    for cutoff in map(int, golden.names("sizes_")):
        held_out = golden.arrays[f"iid_lines_{cutoff}"]
        short = int((lengths <= cutoff).sum())
        assert golden[f"sizes_{cutoff}"].tolist() == [short - len(held_out), len(held_out), len(lengths) - short]
        assert len(published_iid(lengths, cutoff)) == len(set(held_out.tolist())) == len(held_out)


@pytest.mark.goldens("devil", "scan_resplit*")
def test_the_held_out_commands_equal_the_programs(golden: Golden) -> None:
    path = Path(os.environ.get("ARCHLANG_DATA") or HERE.parents[1].parent / "shared" / "data") / "scan" / "tasks.txt.xz"
    if not path.is_file():
        pytest.skip(f"{path} is missing; set ARCHLANG_DATA to the folder of published data")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        lengths = np.asarray([len(command(line)[1]) for line in file])
    for cutoff in map(int, golden.names("sizes_")):
        assert sorted(published_iid(lengths, cutoff)) == sorted(golden.arrays[f"iid_lines_{cutoff}"])


# Initial weights

PARAMETERS = {"std_abs": 992_007, "uni_abs": 332_551, "std_rel": 1_091_847, "uni_rel": 365_831}
VARIANTS = [*(f"{depth}_abs_{scaling}" for depth in ("std", "uni") for scaling in SCALINGS), *("std_rel", "uni_rel")]
# The program's names for arrays of the golden files.
TABLES = {"p.src_emb": "input_embedding.weight", "p.tgt_emb": "output_embedding.weight", "p.out.b": "output_map.bias"}
PARTS = {"self": "self_attn", "cross": "multihead_attn"}
WORDS = {
    "q": "data_to_q.weight", "k": "data_to_kv.weight", "v": "data_to_kv.weight", "o": "multi_head_merge.weight",
    "r": "pos_to_pq.weight", "u": "global_content_bias", "w": "global_pos_bias",
}  # fmt: skip


def scan_model(variant: str) -> Architecture:
    """Returns a model of the size of SCAN: 15 words with [SOS] and [EOS], six actions and one token for both."""
    depth, positions, *scaling = variant.split("_")
    path = library_page("seq2seq")
    return archlang.load(
        path,
        "seq2seq",
        words=15,
        vocab=7,
        universal=depth == "uni",
        relative=positions == "rel",
        scaling=SCALINGS[scaling[0]] if scaling else "none",
    )


def name_in_program(array: str) -> str:
    """Returns the program's name of an array such as `p.enc.0.self.q`, without its layer: all layers start alike."""
    if array in TABLES:
        return TABLES[array]
    _, side, _, part, word = array.split(".")
    layer = f"trafo.{'encoder' if side == 'enc' else 'decoder'}.L"
    if part in PARTS:
        return f"{layer}.{PARTS[part]}.{WORDS[word]}"
    kind = {"g": "weight", "w": "weight", "b": "bias"}[word]
    return f"{layer}.{part.replace('ff', 'linear').replace('ln', 'norm')}.{kind}"


@pytest.mark.parametrize("variant", VARIANTS)
def test_models_of_scan_have_the_published_size_and_initial_weights(variant: str) -> None:
    model = scan_model(variant)
    size = sum(parameter.numel() for parameter in model.parameters())
    assert size == PARAMETERS["_".join(variant.split("_")[:2])]
    file = reference_file("devil", "init_stats.json")
    expected = next(entry for entry in json.loads(file.read_text(encoding="utf-8")) if entry["variant"] == variant)
    assert size == expected["params"]
    arrays = weights_of({"universal": variant[:3] == "uni", "relative": variant[-3:] == "rel", "layers": 3})
    names = {ours: name_in_program(str(array)) for ours, array in arrays.items()}
    assert set(names.values()) == set(expected) - {"variant", "params"}
    for ours, value in model.named_parameters():
        deviation, largest = expected[names[ours]]
        # The standard error of a standard deviation of n values is about 1/sqrt(2 n).
        tolerance = 5 / (2 * value.numel()) ** 0.5
        assert value.std(unbiased=False).item() == pytest.approx(deviation, rel=tolerance, abs=1e-12), ours
        if "embedding" not in names[ours]:
            assert value.abs().max().item() == pytest.approx(largest, rel=0.05, abs=1e-12), ours
