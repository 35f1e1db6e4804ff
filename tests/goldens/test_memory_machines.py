"""Networks with a memory of cells against the programs of the papers' baselines: NTM, DNC, NRAM.

Their pages run from given states, on inputs followed by blank inputs. The states of a page's scan are compared step by
step; in `case1` each sample has its own length."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.loops import RepeatLoop
from archlang.backend.runtime.scans import PositionScan
from archlang.graph.graph import loop_layout
from tests.goldens.golden import Golden, Program, Weights, cell, close, gradients_close, page, pair

CASES = ("case0", "case1")


def collecting(
    body: Callable[..., tuple[Any, ...]], names: list[str], states: Mapping[str, list[Tensor]]
) -> Callable[..., tuple[Any, ...]]:  # Any: as in the runtime
    """Returns the body of a loop that also collects its states."""

    def collect(*values: Any) -> tuple[Any, ...]:
        results = body(*values)
        for name, state in zip(names, results, strict=False):
            states[name].append(state)
        return results

    return collect


@contextmanager
def carried_states(module: Architecture) -> Iterator[Mapping[str, list[Tensor]]]:
    """Collects the states of loops after each step or position, by their names in the page."""
    states: dict[str, list[Tensor]] = defaultdict(list)
    with pytest.MonkeyPatch.context() as patch:
        for loop in module.program.code.loops:
            runtime = module.__dict__[loop.name]
            assert isinstance(runtime, PositionScan | RepeatLoop)
            layout = loop_layout(loop.node)
            inputs = loop.node.regions[0].inputs[layout.inner : layout.inner + layout.states]

            names = [value.name for value in inputs]
            patch.setattr(runtime, "body", collecting(runtime.body, names, states))
            patch.setattr(runtime, "split", None)
        yield states


def real_steps(lengths: Tensor, steps: int) -> Tensor:
    return torch.arange(steps) < lengths[:, None]


def compare_states(golden: Golden, case: str, states: Mapping[str, Tensor], lengths: Tensor) -> None:
    """Compares states [b step …] at the real steps of each sample."""
    for name, state in states.items():
        array = f"{case}.{name}"
        close(golden, state, array, where=real_steps(lengths, golden[array].shape[1]))


def compare_answers(golden: Golden, case: str, logits: Tensor) -> None:
    """Compares logits, loss and gradients."""
    target = golden[f"{case}.target"]
    close(golden, logits, f"{case}.logits", where=target >= 0)
    loss = F.cross_entropy(logits[target >= 0], target[target >= 0])
    close(golden, loss, f"{case}.loss")
    gradients_close(golden, loss, f"{case}.grad.")


def fields_of(golden: Golden, case: str) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Returns the inputs, the blank inputs, and their lengths."""
    x, length = golden[f"{case}.x"], golden[f"{case}.len"]
    blank = x.new_zeros(x.shape[0], golden[f"{case}.target"].shape[1], x.shape[2])
    return x, blank, {"x": length + 2, "blank": length}


NTM = """\
use archlang.models.cells
use archlang.models.neural_turing_machine

model m[hidden: int, slots: int, width: int, heads: int, out: int](
    x: seq[n, d], blank: seq[t, d], memory: seq[slots, width]) -> seq[t, out] {
    state = concat(mean(learned[1, hidden]()), mean(learned[1, hidden]()))
    reads = mean(learned[1, heads * width]())
    y = turing_machine[hidden, slots, heads](append(x, blank), state, memory, reads)
    return linear[out](answers(y, x, blank))
}
"""


@pytest.mark.goldens("baselines", "ntm")
@pytest.mark.parametrize("case", CASES)
def test_a_neural_turing_machine_equals_the_program_of_panm(golden: Golden, case: str) -> None:
    sizes = golden.settings
    weights: Weights = {
        "learned.weight": "p.h0",
        "learned_2.weight": "p.c0",
        "learned_3.weight": torch.cat([golden[f"p.head{head}.r0"] for head in range(sizes["heads"])], 1),
        **pair("linear", "p.out.{}"),
        **cell("turing_machine.cell", "p.lstm.{}"),
    }
    for head in range(sizes["heads"]):
        for name, array in (("linear", "read"), ("linear_2", "write")):
            weights |= pair(f"turing_machine.stack.{head}.{name}", f"p.head{head}.{array}.{{}}")
    x, blank, lengths = fields_of(golden, case)
    sizes_of_model = {"hidden": "H", "slots": "N", "width": "M", "out": "V", "heads": "heads"}
    statics = {name: sizes[theirs] for name, theirs in sizes_of_model.items()}
    program = Program(NTM, golden, weights, "m", d=x.shape[2], **statics)
    memory = golden["p.mem0"].expand(x.shape[0], -1, -1)
    with carried_states(program.module) as states:
        logits = program(x, blank, memory, **lengths)
    compare_answers(golden, case, logits)
    trace = {name: torch.stack(values, 1) for name, values in states.items()}
    trace["h"], trace["c"] = trace.pop("state").chunk(2, -1)
    for name, source in (("w_read", "read_weights"), ("w_write", "write_weights")):
        trace[name] = trace.pop(source).transpose(2, 3)
    compare_states(golden, case, trace, lengths["x"] + lengths["blank"])


DNC = """\
use archlang.models.cells
use archlang.models.differentiable_neural_computer

model m[hidden: int, slots: int, width: int, heads: int, out: int, form: symbol](
    x: seq[n, d], blank: seq[t, d], state: vec[2 * hidden], memory: seq[slots, width], usage: seq[slots, 1],
    link: map[slots, slots], precedence: seq[slots, 1], read_weights: seq[slots, heads], write_weights: seq[slots, 1],
    reads: vec[heads * width]) -> seq[t, out] {
    both = append(x, blank)
    if form == paper {
        fed = 0 * indices(both) + 1
    } else {
        fed = append(0 * indices(x), equal(indices(blank)))
    }
    y = memory_computer[hidden, slots, heads, form](
        both, fed, state, memory, usage, link, precedence, read_weights, write_weights, reads)
    return linear[out](answers(y, x, blank))
}
"""
STATES = ("memory", "usage", "link", "precedence", "w_read", "w_write")


@pytest.mark.goldens("baselines", "dnc_panm*", "dnc_paper")
@pytest.mark.parametrize("case", CASES)
def test_a_differentiable_neural_computer(golden: Golden, case: str) -> None:
    sizes = golden.settings
    weights = pair("linear", "p.out.{}") | cell("memory_computer.cell", "p.lstm.{}")
    weights |= pair("memory_computer.interface", "p.iface.{}")
    x, blank, lengths = fields_of(golden, case)
    batch, cells, width, heads = x.shape[0], sizes["N"], sizes["M"], sizes["R"]
    form = "paper" if golden.name == "dnc_paper" else "panm"
    statics = {"hidden": sizes["H"], "slots": cells, "width": width, "heads": heads, "out": sizes["V"], "form": form}
    program = Program(DNC, golden, weights, "m", d=x.shape[2], **statics)

    def start(name: str, *shape: int) -> Tensor:
        """Returns a given first state, zeros without one, as [b *shape]."""
        array = f"{case}.start.{name}"
        return golden[array].reshape(batch, *shape) if array in golden else x.new_zeros(batch, *shape)

    first = [
        start("h0", sizes["H"]).repeat(1, 2),
        start("memory", cells, width),
        start("usage_vector", cells, 1),
        start("link_matrix", cells, cells, 1),
        start("precedence", cells, 1),
        start("read_weights", heads, cells).transpose(1, 2),
        start("write_weights", cells, 1),
        start("last_read", heads * width),
    ]
    with carried_states(program.module) as states:
        logits = program(x, blank, *first, **lengths)
    compare_answers(golden, case, logits)
    trace = {name: torch.stack(values, 1) for name, values in states.items()}
    trace["h"], _ = trace.pop("state").chunk(2, -1)
    trace["w_read"], trace["w_write"] = trace.pop("read_weights").transpose(2, 3), trace.pop("write_weights")
    del trace["seen"]
    if not golden.name.endswith(("_warm", "_heads")):  # which of equally free cells comes first changes these
        trace = {name: values for name, values in trace.items() if name not in STATES}
    compare_states(golden, case, trace, lengths["x"] + lengths["blank"])


FREE = """\
use archlang.models.differentiable_neural_computer

model m[slots: int](usage: seq[slots, 1]) -> seq[slots, 1] {
    return free_cells[slots](usage)
}
"""


@pytest.mark.goldens("baselines", "dnc_*")
def test_the_allocation_of_a_dnc_follows_from_its_usage(golden: Golden) -> None:
    for case in ("", "case0.", "case1."):
        if f"{case}usage" not in golden:
            continue
        # In the precision of the program: rounding decides which cells are equally free.
        usage = golden[f"{case}usage"].float()
        program = Program(FREE, golden, {}, "m", slots=usage.shape[2])
        allocation = program.module.float()(usage.flatten(0, 1)[..., None])
        lengths = golden[f"{case}len"] if f"{case}len" in golden else torch.full(usage.shape[:1], usage.shape[1])
        lengths = 2 * lengths + 2 if case else lengths
        close(golden, allocation, f"{case}alloc", where=real_steps(lengths, usage.shape[1]))


# The DNC of NDR's program

NDR_DNC = """\
use archlang.models.differentiable_neural_computer

model warm[hidden: int, slots: int, heads: int](
    x: seq[n, d], state: vec[2 * hidden], memory: seq[slots, hidden], usage: seq[slots, 1], link: map[slots, slots],
    precedence: seq[slots, 1], read_weights: seq[slots, heads], write_weights: seq[slots, 1],
    reads: vec[heads * hidden]) -> seq[n, hidden] {
    return deallocating_computer[hidden, slots, heads](
        x, state, memory, usage, link, precedence, read_weights, write_weights, reads)
}

model outputs[hidden: int, embedding: int, slots: int, heads: int](x: tokens[n]) -> seq[n, hidden] {
    return deallocating_computer_from_zero[hidden, slots, heads](embed[embedding](x))
}
"""


def sorted_gates(array: Tensor) -> Tensor:
    """Returns the rows of gates f, i, o, candidate in the order i, f, candidate, o."""
    forget, entry, output, candidate = array.chunk(4)
    return torch.cat((entry, forget, candidate, output))


def weights_of_ndr(golden: Golden, block: str) -> Weights:
    gates = {"linear.weight": "in.w", "linear.bias": "in.b", "linear_2.weight": "rec.w"}
    weights: Weights = {f"{block}.cell.{name}": sorted_gates(golden[f"p.ctrl.{gates[name]}"]) for name in gates}
    for name, array in (("control", "controls"), ("out", "ctrl_out"), ("out_of_reads", "read_out")):
        weights |= pair(f"{block}.{name}", f"p.{array}.{{}}")
    return weights


@pytest.mark.goldens("baselines", "dnc_ndr_warm")
def test_the_dnc_of_ndr_from_given_states(golden: Golden) -> None:
    sizes, x = golden.settings, golden["x"]
    statics = {"hidden": sizes["H"], "slots": sizes["cells"], "heads": sizes["R"], "d": x.shape[2]}
    program = Program(NDR_DNC, golden, weights_of_ndr(golden, "deallocating_computer"), "warm", **statics)
    first = [
        torch.cat((golden["start.h"], golden["start.c"]), 1),
        golden["start.memory"],
        golden["start.usage"][..., None],
        golden["start.link"][..., None],
        golden["start.precedence"][..., None],
        golden["start.w_read"].transpose(1, 2),
        golden["start.w_write"][..., None],
        golden["start.reads"].flatten(1),
    ]
    with carried_states(program.module) as states:
        result = program(x, *first)
    close(golden, result, "out")
    trace = {name: torch.stack(values, 1) for name, values in states.items()}
    trace["h"], _ = trace.pop("state").chunk(2, -1)
    trace["w_read"], trace["w_write"] = trace.pop("read_weights").transpose(2, 3), trace.pop("write_weights")
    for name, values in trace.items():
        close(golden, values, name)
    gradients_close(golden, (result * golden["probe"]).sum())


@pytest.mark.goldens("baselines", "dnc_ndr")
def test_the_classifier_with_the_dnc_of_ndr(golden: Golden) -> None:
    sizes, tokens, length = golden.settings, golden["tokens"], golden["len"]
    weights = weights_of_ndr(golden, "deallocating_computer_from_zero.deallocating_computer")
    weights["embed.weight"] = "p.emb"
    vocab = len(golden["p.emb"])
    names = {"hidden": "H", "embedding": "E", "slots": "cells", "heads": "R"}
    statics = {name: sizes[theirs] for name, theirs in names.items()} | {"vocab": vocab}
    text, own = page("differentiable_neural_computer"), {"frozen": 1, "classes": sizes["classes"], **statics}
    program = Program(text, golden, weights | pair("linear", "p.out.{}"), "dnc_classifier", **own)
    logits = program.module(tokens, lengths=length)
    close(golden, logits, "logits")
    loss = F.cross_entropy(logits, golden["target"])
    close(golden, loss, "loss")
    gradients_close(golden, loss)

    # The program appends an end token, the last of its embedding, and does not read what follows from it.
    ended = F.pad(tokens, (0, 1)).scatter(1, length[:, None], vocab - 1)
    program = Program(NDR_DNC, golden, weights, "outputs", **statics)
    with carried_states(program.module) as states:
        outputs = program.module(ended, lengths=length + 1)
    real = real_steps(length + 1, outputs.shape[1])
    close(golden, outputs, "seq_out", where=real)
    close(golden, torch.stack(states["reads"], 1), "reads", where=real)
    close(golden, torch.stack(states["state"], 1)[..., : sizes["H"]], "h", where=real)


NRAM = """\
use archlang.models.neural_random_access_machine

model m[cells: int, count: int, steps: int, hidden: int, controller: symbol](
    memory: seq[cells, cells], registers: seq[count, cells]) -> seq[cells, cells] {
    return random_access_machine[cells, count, steps, hidden, controller](memory, registers)
}
"""


@pytest.mark.goldens("baselines", "nram_*")
@pytest.mark.parametrize("case", CASES)
def test_a_neural_random_access_machine(golden: Golden, case: str) -> None:
    sizes, block = golden.settings, "random_access_machine"
    weights = pair(f"{block}.connect", "p.out.{}")
    is_lstm = sizes["ctrl"] == "lstm"
    weights |= cell(f"{block}.cell", "p.ctrl.{}") if is_lstm else pair(f"{block}.network", "p.ctrl.{}")
    statics = {"cells": sizes["M"], "count": sizes["R"], "steps": sizes["T"], "hidden": sizes["H"]}
    controller = "lstm" if is_lstm else "feedforward"
    program = Program(NRAM, golden, weights, "m", controller=controller, **statics)
    # Two-argument modules multiply the rounding of their inputs, so that float32 drifts.
    tolerance = 1e-10 if golden.dtype == torch.float64 else 1e-3
    with carried_states(program.module) as states:
        scores = program(golden[f"{case}.memory0"], golden[f"{case}.registers0"])
    trace = {name: torch.stack(values, 1) for name, values in states.items()}
    close(golden, trace["memory"], f"{case}.memory", tolerance)
    close(golden, trace["registers"], f"{case}.registers", tolerance)
    rest = F.pad(trace["rest"][..., 0], (1, 0), value=1.0)
    rest[:, -1] = 0.0  # the last step takes the rest
    close(golden, rest[:, :-1] - rest[:, 1:], f"{case}.p", tolerance)
    target = golden[f"{case}.target"]
    chosen = scores.gather(2, target.clamp(min=0)[..., None])[..., 0]
    loss = -chosen.masked_fill(target < 0, 0.0).sum(1).mean()
    close(golden, loss, f"{case}.loss", tolerance)
    gradients_close(golden, loss, f"{case}.grad.", tolerance)
