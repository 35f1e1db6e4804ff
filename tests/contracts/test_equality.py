"""A page is compared with a module of the user's own, and what differs is found."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from archlang.compile import load_named
from archlang.contracts.equality import LENGTHS, Certificate, certify, pair_weights
from archlang.contracts.mistakes import EqualityError
from archlang.plugins import PluginError, Plugins

PAGE = """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    a = h + attention[2, causal = true](rms_norm(h))
    return linear[vocab](a + feedforward[2 * d](rms_norm(a)))
}
"""
# Another person's transformer, with names of its own.
MODULE = """
import torch
from torch import nn
from torch.nn.functional import relu, scaled_dot_product_attention

class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = (each(x).view(b, n, 2, d // 2).transpose(1, 2) for each in (self.q_proj, self.k_proj, self.v_proj))
        return self.o_proj(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, d))

class Small(nn.Module):
    def __init__(self, vocab, d, epsilon=1e-5):
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.norm1, self.norm2 = (nn.RMSNorm(d, eps=epsilon) for _ in range(2))
        self.attn = Attention(d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.head = nn.Linear(d, vocab)

    def forward(self, x):
        h = self.wte(x)
        h = h + self.attn(self.norm1(h))
        return self.head(h + self.down(relu(self.up(self.norm2(h)))))
"""
BY_HAND = {"embed.weight": "wte.weight"}
Compare = Callable[..., Certificate]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Returns a function that compares a page with a module, each given as text."""

    def run(page: str, module: str, name: str = "Small", by_hand: Mapping[str, str] = BY_HAND) -> Certificate:
        file, plugin = tmp_path / "page.arch", tmp_path / "mine.py"
        file.write_text(page, encoding="utf-8")
        plugin.write_text(module, encoding="utf-8")
        made = load_named(file, None, None, {"vocab": "7"})
        before = torch.get_rng_state()
        certificate = certify(made, Plugins.read([plugin]), f"mine:{name}", by_hand, LENGTHS, 0)
        assert torch.equal(torch.get_rng_state(), before)
        return certificate

    return run


def different(made: Certificate) -> list[str]:
    return [*made.different]


def test_the_same_architecture_written_by_another_person_is_equal(compare: Compare) -> None:
    made = compare(PAGE, MODULE)
    assert made.is_equal
    assert {pair.page: pair.other for pair in made.weights if pair.by == "similar names"} == {
        "rms_norm.weight": "norm1.weight", "rms_norm_2.weight": "norm2.weight",
        "attention.query.weight": "attn.q_proj.weight", "attention.key.weight": "attn.k_proj.weight",
        "attention.value.weight": "attn.v_proj.weight", "attention.output.weight": "attn.o_proj.weight",
        "feedforward.output.bias": "down.bias",
    }  # fmt: skip
    assert [each.at for each in made.comparisons if each.what == "causality"] == ["both are causal"]
    facts = json.loads(json.dumps(made.facts()))
    assert (facts["is_equal"], len(facts["weights"]), len(facts["plugins"]["mine.py"])) == (True, 13, 64)
    assert facts["versions"]["torch"] == torch.__version__


def test_the_page_of_llama_is_the_module_of_hugging_face(compare: Compare) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    text = (Path(__file__).parents[2] / "docs" / "architectures.md").read_text(encoding="utf-8")
    (page,) = (each for each in re.findall(r"^```arch\n(.*?)^```", text, re.M | re.S) if "model llama[" in each)
    module = """
from transformers import LlamaConfig, LlamaForCausalLM
def llama(vocab, d, heads, kv_heads, ff, depth):
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=vocab, hidden_size=d, intermediate_size=ff, num_hidden_layers=depth, num_attention_heads=heads,
        num_key_value_heads=kv_heads, tie_word_embeddings=False, rms_norm_eps=1e-6))
"""
    made = replace(compare(page, module, "llama", {}), tolerance=1e-5)
    assert made.is_equal
    assert len(made.weights) == 21
    assert all(pair.other.endswith(pair.page.replace("stack.", "layers.")) for pair in made.weights)
    other = replace(compare(page.replace("silu(", "gelu("), module, "llama", {}), tolerance=1e-5)
    assert different(other) == ["outputs", "gradients of weights", "padding"]


def test_the_page_of_gpt2_is_the_module_of_hugging_face_whose_projections_are_joined_and_transposed(
    compare: Compare,
) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    text = (Path(__file__).parents[2] / "docs" / "architectures.md").read_text(encoding="utf-8")
    (page,) = (each for each in re.findall(r"^```arch\n(.*?)^```", text, re.M | re.S) if "model gpt2[" in each)
    module = """
from transformers import GPT2Config, GPT2LMHeadModel
def gpt2(vocab, d, heads, depth, most):
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=vocab, n_positions=most, n_embd=d, n_layer=depth, n_head=heads, tie_word_embeddings=False))
"""
    for order, is_equal in (("query key value", True), ("key query value", False)):
        by_hand = {"wte.weight": "transformer.wte.weight"}
        for layer, part in product(range(2), ("weight", "bias")):
            ours, theirs, end = f"stack.{layer}", f"transformer.h.{layer}", f"{part}{'.T' * (part == 'weight')}"
            joined = "+".join(f"{ours}.attn.{name}.{part}" for name in order.split())
            by_hand |= {
                joined: f"{theirs}.attn.c_attn.{end}",
                f"{ours}.attn.output.{part}": f"{theirs}.attn.c_proj.{end}",
                f"{ours}.c_fc.{part}": f"{theirs}.mlp.c_fc.{end}",
                f"{ours}.c_proj.{part}": f"{theirs}.mlp.c_proj.{end}",
            }
        made = replace(compare(page, module, "gpt2", by_hand), tolerance=1e-5)
        assert made.is_equal == is_equal
        assert [pair.rows for pair in made.weights if pair.page.endswith("0.attn.value.weight")] == [(64, 96)]


def test_another_epsilon_of_a_norm_is_found(compare: Compare) -> None:
    made = compare(PAGE, MODULE.replace("epsilon=1e-5", "epsilon=1e-6"))
    assert different(made) == ["outputs", "gradients of weights", "padding"]
    largest = max(each.difference for each in made.comparisons)
    assert 1e-8 < largest < 1e-2
    assert (replace(made, tolerance=largest).is_equal, replace(made, tolerance=0.99 * largest).is_equal) == (
        True,
        False,
    )


def test_a_module_that_sees_the_future_is_found(compare: Compare) -> None:
    made = compare(PAGE, MODULE.replace("is_causal=True", "is_causal=False"))
    (causality,) = (each for each in made.comparisons if each.what == "causality")
    assert causality.at == "only the module reads position 1 at 0"


def test_equal_outputs_with_other_gradients_differ(compare: Compare) -> None:
    made = compare(PAGE, MODULE.replace("self.norm2(h)", "self.norm2(h.detach())"))
    assert different(made) == ["gradients of weights"]


def test_gradients_of_numeric_inputs_are_compared(compare: Compare) -> None:
    page = "model small(h: seq[n, 4]) -> seq[n, 4] { return h + linear[4](h) }"
    module = """
from torch import nn
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
    def forward(self, h):
        return h{} + self.a(h)
"""
    assert compare(page, module.format(""), by_hand={}).is_equal
    assert different(compare(page, module.format(".detach()"), by_hand={})) == ["gradients of inputs"]


MEAN = "model small[d = 8](x: tokens[n]) -> logits[vocab] { return linear[vocab](mean(embed[d](x))) }"
SMALL = """
from torch import nn
class Small(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.embed, self.linear = nn.Embedding(vocab, d), nn.Linear(d, vocab)"""


def test_padding_is_compared_by_the_masks_that_a_module_requires(compare: Compare) -> None:
    module = f"""{SMALL}
    def forward(self, x, mask, lengths):
        return self.linear((self.embed(x) * mask[..., None]).sum(1) / {{}})
"""
    assert compare(MEAN, module.format("mask.sum(1, keepdim=True)"), by_hand={}).is_equal
    wrong = compare(MEAN, module.format("x.shape[1]"), by_hand={})
    assert different(wrong) == ["padding"]
    assert [each.skipped for each in wrong.comparisons if each.what == "causality"] != [""]


def test_weights_that_are_no_numbers_are_not_equal(compare: Compare) -> None:
    made = compare(PAGE, MODULE.replace("return self.head(h", "return self.head(float('nan') * h"))
    assert "outputs" in different(made)
    assert json.dumps(made.facts(), allow_nan=False)


def test_a_transposed_weight_is_mapped_by_hand(compare: Compare) -> None:
    page = "model small(h: seq[n, 4]) -> seq[n, 6] { return linear[6, bias = false](h) }"
    module = """
import torch
from torch import nn
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.zeros(4, 6))
    def forward(self, h):
        return (h @ self.kernel,)
"""
    made = compare(page, module, by_hand={"linear.weight": "kernel.T"})
    assert made.is_equal
    with pytest.raises(EqualityError, match=r"weights without a partner.*--map linear.weight=kernel.T"):
        compare(page, module, by_hand={})
    with pytest.raises(EqualityError, match=r"has the shape \(6, 4\), and `kernel` \(4, 6\)"):
        compare(page, module, by_hand={"linear.weight": "kernel"})


@pytest.mark.parametrize(
    ("page", "other", "remedy"),
    [
        ({"a.weight": (6, 4)}, {"b": (4, 6)}, "write `--map a.weight=b.T`"),
        (
            {"q": (8, 8), "k": (8, 8), "v": (8, 8), "o": (8, 8)},
            {"qkv": (24, 8), "o": (8, 8)},
            "write `--map q+k+v=qkv`",
        ),
        ({"q": (8, 8), "k": (8, 8), "v": (8, 8)}, {"qkv": (8, 24)}, "write `--map q+k+v=qkv.T`"),
        ({"q.bias": (8,), "k.bias": (8,)}, {"qk.bias": (16,)}, "write `--map q.bias+k.bias=qk.bias`"),
        ({"a": (8, 4)}, {"a": (8, 4), "a.bias": (8,)}, "only the module has these, such as biases"),
        ({"a": (8, 4), "a.bias": (8,)}, {"a": (8, 4)}, "only the page has these, such as biases"),
        ({"a": (8, 4), "s": ()}, {"a": (9, 4)}, "give both the same sizes and biases; `--map a+b=c` joins"),
    ],
)
def test_weights_without_a_partner_have_the_remedy_that_their_shapes_allow(
    page: Mapping[str, tuple[int, ...]], other: Mapping[str, tuple[int, ...]], remedy: str
) -> None:
    with pytest.raises(EqualityError, match=re.escape(remedy)):
        pair_weights(page, other, {})


def test_joined_weights_fill_the_one_that_they_are_mapped_to() -> None:
    pairs = pair_weights({"q": (8, 4), "k": (2, 4)}, {"qk": (4, 10)}, {"q+k": "qk.T"})
    assert [str(pair) for pair in pairs] == ["q = qk.T[0:8], by hand", "k = qk.T[8:10], by hand"]
    with pytest.raises(EqualityError, match=r"`q\+k` has the shape \(10, 4\), and `qk` \(11, 4\)"):
        pair_weights({"q": (8, 4), "k": (2, 4)}, {"qk": (11, 4)}, {"q+k": "qk"})


def test_weights_of_one_shape_without_similar_names_are_ambiguous(compare: Compare) -> None:
    with pytest.raises(EqualityError, match=r"`embed.weight`, `linear.weight`, the module `head.weight`, `wte.weight`"):
        compare(PAGE, MODULE, by_hand={})
    with pytest.raises(EqualityError, match=r"the page has no weight `embedding.weight`.*did you mean `embed.weight`"):
        compare(PAGE, MODULE, by_hand={"embedding.weight": "wte.weight"})


def test_layers_belong_together_by_their_numbers() -> None:
    page = {f"stack.{layer}.{name}.weight": (4, 4) for layer in range(12) for name in ("query", "key")}
    other = {f"h.{layer}.attn.{name}.weight": (4, 4) for layer in range(12) for name in ("q", "k")}
    pairs = pair_weights(page, other, {})
    assert all(pair.page.split(".")[1] == pair.other.split(".")[1] for pair in pairs)
    assert all(pair.page.split(".")[2][0] == pair.other.split(".")[3] for pair in pairs)


def test_another_shape_of_the_result_is_said(compare: Compare) -> None:
    module = f"""{SMALL}
    def forward(self, x):
        return self.linear(self.embed(x))
"""
    with pytest.raises(EqualityError, match=r"the shape \(3, 7\), that of the module \(3, 1, 7\)"):
        compare(MEAN, module, by_hand={})


def test_errors_of_the_module_name_its_line(compare: Compare) -> None:
    with pytest.raises(PluginError, match=r"mine.py:\d+ fails: RuntimeError: too deep"):
        compare(PAGE, MODULE.replace("h = self.wte(x)", "raise RuntimeError('too deep')"))
    with pytest.raises(EqualityError, match="the module needs `width`, which the page does not have"):
        compare(PAGE, MODULE.replace("epsilon=1e-5", "width"))
    with pytest.raises(PluginError, match=r"returns int: return a torch.nn.Module"):
        compare(PAGE, "def Small():\n    return 3\n")
    with pytest.raises(EqualityError, match="the result of the module has no gradient"):
        compare(
            PAGE,
            MODULE.replace(
                "return self.head(",
                "return self.head.requires_grad_(False)(0 * x[..., None] + "
                "torch.zeros(1, 1, 8).double()) if True else (",
            ),
        )


def test_a_class_runs_only_if_its_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.arch").write_text(PAGE, encoding="utf-8")
    page = load_named(tmp_path / "page.arch", None, None, {"vocab": "7"})
    with pytest.raises(PluginError, match="runs only if you name its file"):
        certify(page, Plugins.read([]), "mine:Small", {}, LENGTHS, 0)
