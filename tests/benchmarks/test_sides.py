"""Both sides of a comparison compute the same: a compiled page, and a module written by hand."""

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from archlang.backend.runtime.linear_recurrence import linear_recurrence
from benchmarks import dynamic_halt, language, loading, mixers, ndr, operators, panm, seq2seq, written
from benchmarks.comparison import hand_name, share_weights
from benchmarks.handwritten_seq2seq import shift
from benchmarks.measure import Setting


def same_sides(
    modules: Sequence[nn.Module],
    results: Sequence[Tensor],
    losses: Sequence[Tensor],
    names: Mapping[str, str],
    tolerance: float = 1e-10,
) -> None:
    """Asserts that two results agree, and the gradients of all weights; `names` are the parts written by hand."""
    assert_close(*results, rtol=tolerance, atol=tolerance)
    ours, theirs = (
        dict(zip(dict(module.named_parameters()), torch.autograd.grad(loss, list(module.parameters())), strict=True))
        for module, loss in zip(modules, losses, strict=True)
    )
    for own, gradient in ours.items():
        hand = theirs.pop(hand_name(own, names)).view_as(gradient)
        assert_close(gradient, hand, rtol=100 * tolerance, atol=tolerance, msg=partial("{}: {}".format, own))
    assert not theirs


def recurrence(q: Tensor, k: Tensor, v: Tensor, g: Tensor, a: Tensor, b: Tensor, scale: float) -> tuple[Tensor, None]:
    """The definition that flash-linear-attention gives, with positions before heads: a stand-in of its kernels."""
    state = torch.zeros(*k.shape[:1], *k.shape[2:], v.shape[-1])
    results = []
    for i in range(q.shape[1]):
        read = torch.einsum("bhkv,bhk->bhv", state, a[:, i])
        state = g[:, i].exp()[..., None] * state + b[:, i, :, :, None] * read[:, :, None]
        state = state + k[:, i, :, :, None] * v[:, i, :, None]
        results.append(scale * torch.einsum("bhkv,bhk->bhv", state, q[:, i]))
    return torch.stack(results, 1), None


@pytest.mark.parametrize("name", mixers.RECURRENCES)
def test_a_recurrence_is_that_of_the_kernel_of_flash_linear_attention(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gated(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, scale: float) -> tuple[Tensor, None]:
        decay = g[..., None].expand_as(k)
        return recurrence(q, k, beta[..., None] * v, decay, k, -(beta * g.exp())[..., None] * k, scale)

    def delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, *, scale: float) -> tuple[Tensor, None]:
        return gated(q, k, v, torch.zeros_like(beta), beta, scale=scale)

    def gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, scale: float) -> tuple[Tensor, None]:
        return recurrence(q, k, v, g, torch.zeros_like(k), k, scale)

    def by_head(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, scale: float) -> tuple[Tensor, None]:
        return gla(q, k, v, g[..., None].expand_as(k), scale=scale)

    def dplr(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, gk: Tensor, *, scale: float) -> tuple[Tensor, None]:
        return recurrence(q, k, v, gk, a, b, scale)

    ops = {"chunk_delta_rule": delta, "chunk_gated_delta_rule": gated, "chunk_gla": gla, "chunk_simple_gla": by_head}
    monkeypatch.setitem(sys.modules, "fla.ops", SimpleNamespace(**ops))
    general = SimpleNamespace(chunk_dplr_delta_rule=dplr)
    monkeypatch.setitem(sys.modules, "fla.ops.generalized_delta_rule", general)
    monkeypatch.setitem(sys.modules, "fla", SimpleNamespace())
    terms, theirs = mixers.recurrences(7, Setting(torch.device("cpu"), tiny=True))[name]
    assert_close(linear_recurrence(*terms)[0].transpose(1, 2), theirs()[0], rtol=1e-4, atol=1e-5)


def test_gpt2_by_hand_has_the_outputs_and_gradients_of_its_page() -> None:
    modules = [language.page(language.TINY).double(), language.Gpt2(language.TINY).double()]
    named = [dict(module.named_parameters()) for module in modules]
    names = {
        name: name.replace("stack.", "layers.").replace("attn.c_attn", "attention").replace("attn.c_proj", "projection")
        .replace("mlp.c_fc", "mlp.0").replace("mlp.c_proj", "mlp.2")
        for name in named[0]
    }  # fmt: skip
    share_weights(modules[0], modules[1], names)
    tokens = torch.randint(language.TINY.vocab, (2, 8))
    results = [module(tokens) for module in modules]
    same_sides(modules, results, [logits.square().mean() for logits in results], names)


@pytest.mark.parametrize("heads", [1, 2])
def test_ndr_has_the_outputs_and_gradients_of_its_page(heads: int) -> None:
    size = ndr.Size(vocab=9, classes=5, d=16, heads=heads, ff=24, steps=3, batch=4, length=7)
    modules = [module.double() for module in ndr.pair(size)]
    tokens, lengths, answers = ndr.batch(size)
    results = [module(tokens, lengths=lengths) for module in modules]
    same_sides(modules, results, [F.cross_entropy(logits, answers) for logits in results], ndr.NAMES)


def test_panm_has_the_outputs_and_gradients_of_its_page() -> None:
    modules = [module.eval() for module in panm.pair()]
    results = []
    for module in modules:
        torch.manual_seed(3)
        results.append(module(*panm.batch()))
    losses = [(logits * torch.arange(logits.shape[-1])).mean() for logits in results]
    same_sides(modules, results, losses, panm.NAMES, tolerance=5e-6)


@pytest.mark.parametrize(("name", "chunk"), [("UT", 0), ("GUT", 0), ("TLB", 4), ("TLB", 6), ("GUTLB", 4), ("GUTLB", 6)])
def test_a_model_that_halts_has_the_outputs_costs_and_gradients_of_its_page(name: str, chunk: int) -> None:
    size = replace(dynamic_halt.tiny(dynamic_halt.SIZES[name]), chunk=chunk)
    modules = [module.double() for module in dynamic_halt.pair(size)]
    tokens, lengths, answers = dynamic_halt.batch(size)
    lengths[1], lengths[2] = 2, 5  # some chunks have no real position
    results, losses = [], []
    for module in modules:
        logits = module(tokens, lengths=lengths)
        assert isinstance(module.ponder, torch.Tensor)
        results.append(torch.cat((logits.flatten(), module.ponder[None])))
        losses.append(F.cross_entropy(logits, answers) + 0.1 * module.ponder)
    same_sides(modules, results, losses, dynamic_halt.NAMES)


@pytest.mark.parametrize("name", ["UT", "GUT", "GUTLB"])
def test_samples_halt_at_different_depths(name: str) -> None:
    size = dynamic_halt.tiny(dynamic_halt.SIZES[name])
    ours, _ = dynamic_halt.pair(size)
    tokens, lengths, _ = dynamic_halt.batch(size)
    ours(tokens, lengths=lengths)
    assert ours.sample_depth is not None
    assert len(set(ours.sample_depth.tolist())) > 1
    assert 0 < float(ours.sample_depth.mean()) < size.depth


WRITTEN = [(name, beside) for name, beside in operators.OPERATORS if "hand" in beside]


@pytest.mark.parametrize(("name", "beside"), WRITTEN, ids=[name for name, _ in WRITTEN])
@pytest.mark.parametrize("length", [7, 30])
def test_an_operator_has_the_output_and_the_gradient_of_its_form_by_hand(name: str, beside: str, length: int) -> None:
    size = replace(operators.TINY, length=length)
    x = operators.operand(size).double().requires_grad_(name != "chunk recurrence")
    results = []
    for module, call in operators.pair(name, beside, size):
        module.double()
        result = call(x)
        weights = torch.arange(result.shape[-1], dtype=result.dtype)
        sources = [x] if x.requires_grad else [module.get_parameter("embed.weight")]
        results.append((result, *torch.autograd.grad((result * weights).sum(), sources)))
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_an_encoder_decoder_has_the_outputs_and_gradients_of_its_page() -> None:
    modules = [module.double().eval() for module in seq2seq.pair(seq2seq.TINY)]
    source, seen, lengths, answers = seq2seq.batch(seq2seq.TINY)
    results = [module(source, seen, lengths=lengths) for module in modules]
    losses = [F.cross_entropy(logits.flatten(0, 1), answers.flatten()) for logits in results]
    same_sides(modules, [logits[answers >= 0] for logits in results], losses, seq2seq.NAMES)


def test_both_sides_decode_the_same_tokens() -> None:
    sides = seq2seq.decoders(seq2seq.TINY, Setting(torch.device("cpu")))
    ours, theirs = sides.ours(), sides.theirs()
    assert ours.shape == (seq2seq.TINY.batch, seq2seq.TINY.target)
    assert ours.equal(theirs)


@pytest.mark.parametrize("name", written.RNNS.values())
def test_a_plain_loop_has_the_outputs_and_gradients_of_its_page(name: str) -> None:
    pair = written.rnn_pair(name, (3, 16, 5), False, Setting(torch.device("cpu"), tiny=True))
    share_weights(pair.ours, pair.theirs, written.RNN_NAMES)
    modules = [module.double() for module in (pair.ours, pair.theirs)]
    tokens = torch.randint(16, (3, 5))
    results = [module(tokens) for module in modules]
    losses = [(logits * torch.arange(logits.shape[-1])).mean() for logits in results]
    same_sides(modules, results, losses, written.RNN_NAMES)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 5), (2, 5), (4, 4)])
def test_shift_selects_the_score_of_the_distance_to_each_key(queries: int, keys: int) -> None:
    scores = torch.arange(1 - keys, keys) + 100 * torch.arange(queries)[:, None]
    places = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]
    assert shift(scores).equal(places + 100 * torch.arange(queries)[:, None])


@pytest.mark.parametrize("name", loading.SMALL)
def test_both_sides_yield_every_item_once_per_epoch(name: str) -> None:
    split = loading.split_of(loading.SMALL[name][0])
    size = next(size for size in range(2, len(split) + 1) if len(split) % size == 0)
    items = []
    for batches in (loading.ours, loading.theirs):
        rows = []
        for *fields, targets in itertools.islice(batches(split, size, torch.device("cpu")), len(split) // size):
            tokens, lengths = fields[0], fields[len(fields) // 2]
            for row, length, target in zip(tokens.tolist(), lengths.tolist(), targets.tolist(), strict=True):
                assert not any(row[length:])
                answer = [token for token in target if token] if isinstance(target, list) else target
                rows.append((row[:length], answer))
        items.append(sorted(rows, key=repr))
    assert items[0] == items[1]
    assert len(items[0]) == len(split)
