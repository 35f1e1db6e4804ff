"""Claims about scans that are LSTMs of torch."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.measured_costs import measure_costs
from tests.backend.lower.scan_forms import require_equal, results, with_and_without
from tests.closeness import close
from tests.conftest import Compiled

HEAD = """
model m[d = 6](x: tokens[n]) -> logits[n, classes] {
    let gates = linear[4 * d] let plain = linear[4 * d, bias = false] let own = linear[4 * d, bias = false]
    let two = linear[2 * d] let to_i = linear[d] let to_o = linear[d, bias = false]
    h = norm(embed[d](x))
    s = mean(learned[1, d, init = normal]())
    c = mean(learned[1, d, init = normal]())
"""
STEP = "c <- sigmoid(f) * c + sigmoid(i) * tanh(g) s <- sigmoid(o) * tanh(c)"
PARTS = " ".join(f"{gate} = slice_features[{place} * d, d](z)" for place, gate in enumerate("gfoi"))
# The states of a scan, and its body.
KNOWN = {
    "parts of one map": ("s, c", f"z = gates(concat(v, s)) {PARTS} {STEP} emit s"),
    "other orders": (
        "c, s",
        f"z = gates(concat(s, v)) {PARTS} c <- tanh(g) * sigmoid(i) + c * sigmoid(f) s <- tanh(c) * sigmoid(o) emit s",
    ),
    "a sum of maps": ("s, c", f"z = gates(v) + own(s) {PARTS} {STEP} emit s"),
    "two biases": ("s, c", f"z = gates(v) + linear[4 * d](s) {PARTS} {STEP} emit s"),
    "no bias": ("s, c", f"z = own(s) + plain(v) {PARTS} {STEP} emit s"),
    "maps of their own": (
        "s, c",
        "z = two(concat(v, s)) f = slice_features[d, d](z) g = slice_features[0, d](z) i = to_i(v) + to_o(s) "
        f"o = linear[d](concat(s, v)) {STEP} emit s",
    ),
    "parts that overlap, and some that nothing takes": (
        "s, c",
        "z = gates(concat(v, s)) i = slice_features[3, d](z) f = slice_features[5, d](z) "
        f"g = slice_features[0, d](z) o = slice_features[2 * d, d](z) {STEP} emit s",
    ),
    "several sequences": ("s, c", f"z = linear[4 * d](concat(w, s, v)) + plain(v) {PARTS} {STEP} emit s"),
    "a part of the sequence": (
        "s, c",
        f"z = linear[4 * d](concat(slice_features[2, 3](v), s)) + own(s) {PARTS} {STEP} emit s",
    ),
    "no emission": ("s, c", f"z = gates(concat(v, s)) {PARTS} {STEP}"),
}
# Bodies that look like one.
OTHERS = {
    "a view of the memory": f"z = gates(concat(v, s)) + concat(c, concat(c, concat(c, c))) {PARTS} {STEP} emit s",
    "one bias of two": f"z = plain(concat(v, s)) {PARTS} "
    "c <- sigmoid(f) * c + sigmoid(linear[d](concat(v, s))) * tanh(g) s <- sigmoid(o) * tanh(c) emit s",
    "coupled gates": f"z = gates(concat(v, s)) {PARTS} c <- (1 - sigmoid(i)) * c + sigmoid(i) * tanh(g) "
    "s <- sigmoid(o) * tanh(c) emit s",
    "the memory before the step": f"z = gates(concat(v, s)) {PARTS} s <- sigmoid(o) * tanh(c) "
    "c <- sigmoid(f) * c + sigmoid(i) * tanh(g) emit s",
    "a state in place of the memory": f"z = gates(concat(v, s)) {PARTS} c <- sigmoid(f) * s + sigmoid(i) * tanh(g) "
    "s <- sigmoid(o) * tanh(c) emit s",
    "another activation": f"z = gates(concat(v, s)) {PARTS} c <- sigmoid(f) * c + sigmoid(i) * relu(g) "
    "s <- sigmoid(o) * tanh(c) emit s",
    "no activation": f"z = gates(concat(v, s)) {PARTS} c <- sigmoid(f) * c + sigmoid(i) * tanh(g) "
    "s <- sigmoid(o) * c emit s",
    "another emission": f"z = gates(concat(v, s)) {PARTS} {STEP} emit c",
    "a map of another value": f"z = gates(concat(norm(v), s)) {PARTS} {STEP} emit s",
    "gates of the part alone": f"z = gates(v) {PARTS} {STEP} emit s",
    "a number more": f"z = gates(concat(v, s)) + 1 {PARTS} {STEP} emit s",
}  # fmt: skip


def modules(tmp_path: Path, body: str, states: str = "s, c") -> tuple[Architecture, Architecture]:
    result, y = ("y = ", "y") if "emit" in body else ("", "h + s + c")
    scanned = "v in h, w in linear[3](h)" if "w," in body else "v in h"
    text = f"{HEAD}    {result}scan {scanned} carry {states} {{ {body} }}\n    return linear[classes]({y} - s)\n}}\n"
    ours, plain = with_and_without(tmp_path, text, "scan_gradients", ("parallel_scans",))
    (loop,) = ours.program.code.loops
    assert loop.gradient is not None
    assert (loop.gradient.lstm is not None) == (body in [known for _, known in KNOWN.values()])
    return ours, plain


@pytest.mark.parametrize("name", KNOWN)
def test_an_lstm_in_any_form_equals_its_equations(tmp_path: Path, name: str) -> None:
    states, body = KNOWN[name]
    ours, plain = modules(tmp_path, body, states)
    require_equal(ours, plain, (9, 23))
    ours.float(), plain.float()
    for lengths in ([23, 23, 23], [23, 12, 0]):
        for own, expected in zip(results(ours, 23, lengths), results(plain, 23, lengths), strict=True):
            torch.testing.assert_close(own, expected, atol=2e-5, rtol=1e-4)


def test_padding_moves_no_memory_whatever_the_numbers(tmp_path: Path) -> None:
    ours, _ = modules(tmp_path, KNOWN["no emission"][1])
    ours.get_parameter("norm.weight").data.fill_(1e9)
    tokens = torch.randint(11, (2, 20))
    padded, alone = ours(tokens, lengths=[20, 9])[1, :9], ours(tokens[1:, :9])[0]
    close(padded, alone)


@pytest.mark.parametrize("name", OTHERS)
def test_what_looks_like_one_is_none(tmp_path: Path, name: str) -> None:
    require_equal(*modules(tmp_path, OTHERS[name]), (9,))


@pytest.mark.parametrize("batched", [False, True])
def test_an_lstm_in_32_bits_has_derivatives_of_both_kinds(tmp_path: Path, batched: bool) -> None:
    of_forms = []
    for module in modules(tmp_path, KNOWN["parts of one map"][1]):
        module.float()
        torch.manual_seed(2)
        y, weights = module(torch.randint(11, (2, 9))), [*module.parameters()]
        if batched:
            vectors = torch.randn(3, *y.shape)
            of_forms.append(torch.autograd.grad(y, weights, vectors, is_grads_batched=True))
            continue
        firsts = torch.autograd.grad(y.square().sum(), weights, create_graph=True)
        total = torch.stack([first.square().sum() for first in firsts]).sum()
        of_forms.append(torch.autograd.grad(total, weights))
    for ours, plain in zip(*of_forms, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-3, rtol=1e-3)


def test_an_lstm_under_autocast_is_computed_in_32_bits(tmp_path: Path) -> None:
    ours, plain = (module.float() for module in modules(tmp_path, KNOWN["two biases"][1]))
    expected, tokens = results(plain, 23, [23, 12, 0]), torch.randint(11, (2, 9))
    with torch.autocast("cpu", torch.bfloat16):
        assert ours(tokens).dtype == plain(tokens).dtype
        errors = [
            sum(
                (own - value).detach().abs().sum().item()
                for own, value in zip(results(module, 23, [23, 12, 0]), expected, strict=True)
            )
            for module in (ours, plain)
        ]
    assert errors[0] < errors[1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("lengths", [[23, 23, 23], [23, 12, 0]])
@pytest.mark.parametrize("name", ["parts of one map", "no bias"])
def test_an_lstm_on_a_gpu_equals_its_equations(tmp_path: Path, name: str, lengths: list[int]) -> None:
    with torch.device("cuda"):
        ours, plain = (module.float().cuda() for module in modules(tmp_path, KNOWN[name][1]))
        for own, expected in zip(results(ours, 23, lengths), results(plain, 23, lengths), strict=True):
            torch.testing.assert_close(own, expected, atol=1e-3, rtol=1e-3)


def test_a_sample_may_be_differentiated_twice_in_turn(tmp_path: Path) -> None:
    module, _ = modules(tmp_path, KNOWN["no bias"][1])
    loss, weights = module(torch.randint(11, (2, 9))).square().sum(), [*module.parameters()]
    first: tuple[Tensor, ...] = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
    for one, other in zip(first, torch.autograd.grad(loss, weights, allow_unused=True), strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_a_backward_pass_frees_what_an_lstm_keeps(tmp_path: Path) -> None:
    module, _ = modules(tmp_path, KNOWN["no bias"][1])
    loss = module(torch.randint(11, (2, 9))).square().sum()
    pending = [loss.grad_fn]
    while (node := pending.pop(0)).name() != "_LstmBackward":
        pending += [before for before, _ in node.next_functions if before is not None]
    loss.backward(retain_graph=True)
    assert hasattr(node, "graph")
    loss.backward()
    assert not hasattr(node, "graph")
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_the_measured_costs_of_an_lstm_are_those_of_the_block(compiled: Compiled) -> None:
    scan = f"y = scan v in h carry s, c {{ {KNOWN['parts of one map'][1]} }}"
    body = f"let gates = linear[4 * d] s = mean(constant[1, d]()) c = s {scan}"
    model = "model m[d = 6](x: tokens[n]) -> logits[n, vocab] {{ h = embed[d](x) {} return linear[vocab](y) }}"
    page, block = (
        measure_costs(compiled(model.format(text), vocab=5), 64, batch=4) for text in (body, "y = lstm[d](h)")
    )
    assert page["flops"] == block["flops"] == 4 * 64 * 2 * (6 * 24 * 2 + 6 * 5)
    assert page["activation_bytes"] <= 1.1 * block["activation_bytes"]
