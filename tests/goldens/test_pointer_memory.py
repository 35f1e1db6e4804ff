"""The golden arrays of Pointer-Augmented Neural Memory against the library's `recurrent_panm` and other programs."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.blocks.pointer_unit import PointerUnit, RelationalRead
from archlang.tasks.dyck import allowed
from archlang.tasks.kit.split import Ragged
from tests.goldens.golden import Calls, Golden, Program, Weights, close, network, pair, watch
from tests.tasks.every import Drawn, answers_of, page

TOLERANCE = 1e-5
MEMORY = "recurrent_panm.pointer_memory"

CODE = """
use archlang.models.panm

model program[hidden: int, bits: int, pointers: int, reads: int, network: symbol, scrambled = false](
    x: seq[n, e], target: tokens[t]) -> logits[t, vocab] {
    blank = zeros[e](target)
    y = recurrent_panm[hidden, bits, pointers, reads, encoder = network, scrambled = scrambled](x, blank)
    return linear[vocab](y)
}
"""
PAPER = """
use archlang.models.panm

model program[hidden: int, bits: int, pointers: int, reads: int, width: int](
    x: seq[n, e], target: tokens[t]) -> logits[t, vocab] {
    blank = zeros[vocab](target)
    y = recurrent_panm[hidden, bits, pointers, reads, encoder = lstm, form = paper, width = width](x, blank)
    return mlp[width, vocab](y)
}
"""
WALK = """
model walk[hidden: int, bits: int](memory: seq[n, d], target: tokens[t]) -> logits[t, 2 * d] {
    a = addresses[bits](memory)
    return dereference(pointer_unit[2, hidden](a, zeros[1](target)), memory)
}
"""


# Weights


def small_network(ours: str, theirs: str, index: str = "") -> Weights:
    """Returns the weights of a network with two linear maps."""
    return pair(f"{ours}.hidden{index}", f"{theirs}.{{}}1") | pair(f"{ours}.output{index}", f"{theirs}.{{}}2")


def pointer(ours: str, theirs: str, dereference: str, index: int) -> Weights:
    """Returns the weights of a pointer of the program, which scores addresses, and of its reads."""
    own = f"{ours}.pointers.{index}"
    weights = network(f"{own}.cell", f"{theirs}.gru.{{}}", "")
    weights |= pair(f"{own}.score.state_map", f"{theirs}.q.{{}}") | pair(f"{own}.score.address_map", f"{theirs}.g.{{}}")
    words = {f"{own}.score.query": "q", f"{own}.score.key": "k"}
    words |= {f"{dereference}.value.{index}": "v", f"{dereference}.output.{index}": "o"}
    for name, letter in words.items():
        weights |= pair(name, f"{theirs}.att.{{}}{letter}")
    return weights


def parts_behind(golden: Golden, prefix: str) -> list[str]:
    """Returns the sorted parts between a prefix and the next dot, such as `pu0`, `pu1`, … or `q0`, `q1`, …."""
    return sorted({name.split(".")[0] for name in golden.names(prefix)})


def code_weights(golden: Golden) -> Weights:
    """Returns the weights of the program's form."""
    encoder, read, controller = "recurrent_panm", f"{MEMORY}.relational_read.read", f"{MEMORY}.attentive_gru"
    if "p.enc.b.w_ih" in golden:
        weights = network(f"{encoder}.gru_from_zero.gru", "p.enc.f.{}")
        weights |= network(f"{encoder}.gru_from_zero_2.gru", "p.enc.b.{}")
    else:
        weights = network(f"{encoder}.lstm.lstm", "p.enc.f.{}")
    for index, name in enumerate(pointers(golden)):
        weights |= pointer(f"{MEMORY}.pointer_unit", f"p.{name}", f"{MEMORY}.dereference", index)
    for word in ("query", "key", "value", "output"):
        weights |= pair(f"{read}.{word}", f"p.m2.att.{{}}{word[0]}")
    # One parameter contains the maps L of all reads.
    for word in ("weight", "bias"):
        weights[f"{read}.pointed.{word}"] = torch.cat([golden[f"p.m2.{name}.{word[0]}"] for name in queries(golden)])
    weights |= pair(f"{controller}.attention", "p.ctrl.att.{}") | {f"{controller}.score": "p.ctrl.att.v"}
    weights |= network(f"{controller}.cell", "p.ctrl.gru.{}", "") | pair(f"{controller}.output", "p.ctrl.out.{}")
    return weights | pair("linear", "p.out.{}")


def paper_weights(golden: Golden) -> Weights:
    """Returns the weights of the paper's form."""
    weights = network("recurrent_panm.lstm.lstm", "p.enc.f.{}")
    for index, name in enumerate(pointers(golden)):
        own = f"{MEMORY}.pointer_unit.pointers.{index}"
        weights |= network(f"{own}.cell", f"p.{name}.gru.{{}}", "") | small_network(f"{own}.score", f"p.{name}.g")
    for index, name in enumerate(parts_behind(golden, "p.m2.")):
        weights |= small_network(f"{MEMORY}.relational_read.read", f"p.m2.{name}", f".{index}")
    return weights | network(f"{MEMORY}.gru.gru", "p.ctrl.gru.{}") | small_network("mlp", "p.out")


def pointers(golden: Golden) -> list[str]:
    return [name for name in parts_behind(golden, "p.") if name.startswith("pu")]


def queries(golden: Golden) -> list[str]:
    return [name for name in parts_behind(golden, "p.m2.") if name.startswith("q")]


def sizes(golden: Golden) -> dict[str, Any]:  # Any: as Program takes statics
    width, bits = golden["p.pu0.gru.w_ih"].shape
    return {"hidden": width // 3, "bits": bits, "pointers": len(pointers(golden)), "e": golden["x"].shape[2]}


# Intermediate results


def part(module: nn.Module, path: str) -> nn.Module:
    return module.get_submodule(path)


def watch_method(block: nn.Module, name: str) -> Calls:
    calls, method = Calls([], [], []), getattr(block, name)

    def recorded(*inputs: Any) -> Any:
        calls.inputs.append(inputs)
        calls.results.append(method(*inputs))
        return calls.results[-1]

    setattr(block, name, recorded)
    return calls


class Watched:
    """A program with fixed base addresses, and the recorded calls of its blocks."""

    def __init__(self, module: Architecture, bases: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = module
        monkeypatch.setattr(part(module, f"{MEMORY}.addresses"), "bases", lambda b, device: bases)
        self.calls = {name: watch(block) for name, block in part(module, MEMORY).named_modules() if name}
        self.walk = watch_method(part(module, f"{MEMORY}.pointer_unit"), "walk")
        if "attentive_gru" in self.calls:
            self.controller = watch_method(part(module, f"{MEMORY}.attentive_gru"), "states")

    def result(self, name: str) -> Tensor:
        result: Tensor
        (result,) = self.calls[name].results
        return result

    def compare(self, golden: Golden, prefix: str) -> None:
        """Compares the recorded results with the traces of a golden file."""
        close(golden, self.calls["addresses"].inputs[0][0], f"{prefix}memory", TOLERANCE)
        weights = self.result("pointer_unit")
        close(golden, weights, f"{prefix}addr_w", TOLERANCE)
        close(golden, weights @ self.result("addresses")[:, None], f"{prefix}pointer", TOLERANCE)
        close(golden, self.result("dereference"), f"{prefix}val1", TOLERANCE)
        close(golden, self.result("relational_read"), f"{prefix}val2", TOLERANCE)
        read = part(self.module, f"{MEMORY}.relational_read")
        assert isinstance(read, RelationalRead)
        p, memory, *_ = self.calls["relational_read"].inputs[0]
        close(golden, read.read.weights(p, memory, None), f"{prefix}w2", TOLERANCE)
        if "attentive_gru" in self.calls:
            close(golden, self.controller.results[0][0], f"{prefix}ctrl", TOLERANCE)
            close(golden, self.result("attentive_gru"), f"{prefix}ctrl_out", TOLERANCE)
        else:
            close(golden, self.result("gru"), f"{prefix}ctrl", TOLERANCE)


# The program's form

the_program = pytest.mark.goldens("panm", "panm_bigru*", "panm_lstm*")


def code_program(golden: Golden, scrambled: bool = False) -> Program:
    return Program(
        CODE,
        golden,
        code_weights(golden),
        vocab=len(golden["p.out.b"]),
        reads=len(queries(golden)),
        network="bigru" if "p.enc.b.w_ih" in golden else "lstm",
        scrambled=scrambled,
        **sizes(golden),
    )


TRACES = {"memory", "pointer", "addr_w", "val1", "val2", "w2", "ctrl", "ctrl_out"}
COMPARED = {*TRACES, "bases", "logits", "logits_official_batch", "loss"}


def cases(golden: Golden) -> list[str]:
    names = sorted({name.split(".")[0] for name in golden.names("") if name.endswith(".bases")})
    assert names
    return [f"{name}." for name in names]


@the_program
def test_the_programs_model_and_its_intermediate_results(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix in cases(golden):
        bases = golden[f"{prefix}bases"].long()
        x, target = golden["x"][: len(bases)], golden["target"][: len(bases)]
        program = code_program(golden)
        watched = Watched(program.module, bases, monkeypatch)
        logits = program(x, target)
        close(golden, logits, f"{prefix}logits", TOLERANCE)
        watched.compare(golden, prefix)
        assert {name for name in golden.names(prefix) if not name.startswith(("gnorm.", "grad."))} <= COMPARED
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten())
        close(golden, loss, f"{prefix}loss", TOLERANCE)
        gradients = golden.gradients(loss, golden.names("p."))
        for name in golden.names(f"{prefix}gnorm."):
            norm = golden[f"{prefix}gnorm.{name}"].item()
            assert gradients[name].norm().item() == pytest.approx(norm, rel=1e-4, abs=1e-6), name
        for name in golden.names(f"{prefix}grad."):
            close(golden, gradients[name], f"{prefix}grad.{name}", TOLERANCE)


@the_program
def test_the_programs_batch_is_the_scrambled_one(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix in cases(golden):
        bases = golden[f"{prefix}bases"].long()
        program = code_program(golden, scrambled=True)
        Watched(program.module, bases, monkeypatch)
        logits = program(golden["x"][: len(bases)], golden["target"][: len(bases)])
        close(golden, logits, f"{prefix}logits_official_batch", TOLERANCE)


# The paper's form


@pytest.mark.goldens("panm", "panm_paper*")
def test_the_papers_equations(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    width = len(golden["p.out.b1"])
    reads = len(parts_behind(golden, "p.m2."))
    vocab = len(golden["p.out.b2"])
    weights = paper_weights(golden)
    program = Program(PAPER, golden, weights, vocab=vocab, reads=reads, width=width, **sizes(golden))
    watched = Watched(program.module, golden["bases"].long(), monkeypatch)
    steps = golden["logits"].shape[1]
    close(golden, program(golden["x"], torch.zeros(len(golden["x"]), steps, dtype=torch.int64)), "logits", TOLERANCE)
    watched.compare(golden, "")


# Pointers alone


@pytest.mark.goldens("panm", "pointer_unit*")
def test_pointer_trajectories(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = golden["memory"]
    width, bits = golden["p.pu0.gru.w_ih"].shape
    weights: Weights = {}
    for index in (0, 1):  # pointers begin at the first and at the last address, with the same weights
        weights |= pointer("pointer_unit", "p.pu0", "dereference", index)
    walks = {name.split(".")[0] for name in golden.names("base")}
    assert walks
    for walk in sorted(walks):
        program = Program(WALK, golden, weights, vocab=1, d=memory.shape[1], hidden=width // 3, bits=bits)
        block, unit = part(program.module, "addresses"), part(program.module, "pointer_unit")
        assert isinstance(unit, PointerUnit)
        monkeypatch.setattr(block, "bases", lambda b, device, start=int(walk): torch.full((b,), start))
        banks, trajectories = watch(block), watch(unit)
        walked = watch_method(unit, "walk")
        steps = golden[f"base{walk}.base.ptr"].shape[0]
        values = program(memory[None], torch.zeros(1, steps, dtype=torch.int64))
        bank, w = banks.results[0], trajectories.results[0]
        for index, start in enumerate(("base", "end")):
            prefix = f"base{walk}.{start}."
            close(golden, bank, f"{prefix}bank", 0)
            close(golden, w[:, :, index], f"{prefix}w", TOLERANCE)
            close(golden, w[:, :, index] @ bank, f"{prefix}ptr", TOLERANCE)
            close(golden, walked.results[0][1][:, :, index], f"{prefix}h", TOLERANCE)
            close(golden, values.chunk(2, dim=-1)[index], f"{prefix}val", TOLERANCE)


# Tasks


@pytest.mark.goldens("panm", "task_samples*")
def test_the_targets_of_copy_and_reverse_equal_the_programs(golden: Golden) -> None:
    tasks = {name: page(name)() for name in ("copy", "reverse")}
    assert set(tasks) == {name.split(".")[0] for name in golden.names("")}
    for name, task in tasks.items():
        # Time, batch, channels: the symbols, then START and END.
        inputs, targets = golden[f"{name}.input"].transpose(0, 1), golden[f"{name}.target"].transpose(0, 1)
        channels = inputs.argmax(-1)
        symbols = inputs.shape[-1] - 2
        assert F.one_hot(channels, symbols + 2).equal(inputs.long())
        assert channels[:, 0].eq(symbols).all()
        assert channels[:, -1].eq(symbols + 1).all()
        written = channels[:, 1:-1]
        items = task.items(Drawn(written.flatten().tolist()), np.full(len(written), written.shape[1]))
        assert task.statics["symbols"] == symbols
        for row, tokens in enumerate(channels.tolist()):
            ours = {symbols: symbols + 1, symbols + 1: symbols}
            assert items.inputs["source"][row].tolist() == [ours.get(token, token) for token in tokens]
            assert answers_of(items)[row].tolist() == targets[row].argmax(-1).tolist()


SRNN = """
model srnn[hidden: int, slots: int, width: int](x: tokens[n]) -> logits[n, vocab] {
    return one_hot(x) |> stack_rnn[hidden, slots, width] |> linear[vocab]
}
"""


def words(golden: Golden) -> tuple[Tensor, Tensor]:
    """Returns the strings as token indices, and the mask of real positions."""
    vocab = golden.arrays["vocab"].tolist()
    lengths = golden["len"]
    rows = torch.zeros(golden["x"].shape[:2], dtype=torch.int64)
    for row, string in zip(rows, golden.arrays["strings"].tolist(), strict=True):
        row[: len(string)] = torch.tensor([vocab.index(symbol) for symbol in string])
    assert lengths.tolist() == [len(string) for string in golden.arrays["strings"].tolist()]
    return rows, torch.arange(rows.shape[1]) < lengths[:, None]


@pytest.mark.goldens("panm", "dyck*")
def test_allowed_next_brackets(golden: Golden) -> None:
    rows, real = words(golden)
    pairs = len(golden.arrays["vocab"]) // 2
    assert F.one_hot(rows, 2 * pairs)[real].equal(golden["x"][real].long())
    offsets = np.concatenate(([0], np.cumsum(golden.arrays["len"])))
    targets = torch.from_numpy(allowed(Ragged(rows[real].numpy(), offsets), pairs))
    assert targets.equal(golden["y"][real].bool())


@pytest.mark.goldens("panm", "dyck*")
def test_the_stack_network(golden: Golden) -> None:
    weights = network("stack_rnn.cell", "srnn.p.{}", "") | pair("linear", "srnn.p.y.{}")
    for ours, theirs in (("top", "s"), ("action", "a"), ("element", "n")):
        weights |= pair(f"stack_rnn.{ours}", f"srnn.p.{theirs}.{{}}")
    width, hidden = golden["srnn.p.n.w"].shape
    vocab = len(golden.arrays["vocab"])
    # The stack is deeper than the longest string, so it never overflows.
    program = Program(SRNN, golden, weights, vocab=vocab, hidden=hidden, slots=104, width=width)
    rows, real = words(golden)
    count = len(golden["srnn.out"])
    probabilities = program(rows[:count], x=golden["len"][:count]).sigmoid()
    close(golden, probabilities, "srnn.out", TOLERANCE, real[:count])
