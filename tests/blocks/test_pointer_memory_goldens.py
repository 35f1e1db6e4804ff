"""Our blocks against arrays of the program of "Pointer-Augmented Neural Memory", and of the paper's equations.

The tolerance is that of the arrays, 1e-5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.blocks.addresses import Addresses
from archlang.blocks.attentive_gru import AttentiveGru
from archlang.blocks.dereference import Dereference
from archlang.blocks.mlp import Mlp
from archlang.blocks.pointer_unit import DotScore, Pointer, PointerUnit
from archlang.blocks.pooling import Last, Sum
from archlang.blocks.recurrent import Gru, GruFromZero, Lstm, Reverse
from archlang.blocks.relational_read import DotRead, RelationalRead

DTYPES = [torch.float32, torch.float64]
Golden = Mapping[str, np.ndarray]


class Trace(NamedTuple):
    """What a model shows on its way."""

    memory: Tensor
    weights: Tensor
    first: Tensor
    second: Tensor
    controlled: Tensor
    logits: Tensor


class Case:
    """One golden file: its arrays as tensors, and blocks made with its parameters."""

    def __init__(self, golden: Golden, dtype: torch.dtype) -> None:
        self.golden = golden
        self.dtype = dtype
        self.parameters: dict[str, Tensor] = {}
        # Parameters that hold several arrays one after another.
        self.joined: dict[nn.Parameter, list[str]] = {}
        self.pointers = sorted({name.split(".")[1] for name in golden if name.startswith("p.pu")})
        self.reads = sorted({name.split(".")[2] for name in golden if name.startswith(("p.m2.q", "p.m2.g"))})

    def __getitem__(self, name: str) -> Tensor:
        array = torch.from_numpy(self.golden[name])
        return array.to(self.dtype) if array.is_floating_point() else array

    def close(self, actual: Tensor, name: str) -> None:
        torch.testing.assert_close(actual, self[name], atol=1e-5, rtol=0, msg=lambda text: f"{name}: {text}")

    def load(self, block: nn.Module, **names: str) -> None:
        """Copies arrays into a block: its parameter's name (dots as `__`) to the array's."""
        block.to(self.dtype)
        for name, array in names.items():
            parameter = block.get_parameter(name.replace("__", "."))
            parameter.data.copy_(self[f"p.{array}"].reshape(parameter.shape))
            self.parameters[array] = parameter

    def _cell(self, block: nn.Module, prefix: str, ending: str = "") -> None:
        names = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias_ih": "b_ih", "bias_hh": "b_hh"}
        self.load(block, **{f"{ours}{ending}": f"{prefix}{theirs}" for ours, theirs in names.items()})

    def gru(self, prefix: str) -> GruFromZero | Gru:
        width, d = self[f"p.{prefix}w_ih"].shape
        block = Gru(hidden=width // 3, d=d, s=width // 3) if "ctrl" in prefix else GruFromZero(hidden=width // 3, d=d)
        self._cell(block.gru, prefix, "_l0")
        return block

    def lstm(self, prefix: str) -> Lstm:
        width, d = self[f"p.{prefix}w_ih"].shape
        block = Lstm(hidden=width // 4, layers=1, dropout=0.0, d=d)
        self._cell(block.lstm, prefix, "_l0")
        return block

    def pointer_unit(self, form: str, scrambled: bool = False) -> PointerUnit:
        width, bits = self["p.pu0.gru.w_ih"].shape
        block = PointerUnit(
            pointers=len(self.pointers),
            hidden=width // 3,
            form=form,
            scrambled=scrambled,
            bits=bits,
            e=1,
            address_hidden=1 if form == "code" else len(self["p.pu0.g.b1"]),
        )
        for name, pointer in zip(self.pointers, block.pointers, strict=True):
            assert isinstance(pointer, Pointer)
            self._cell(pointer.cell, f"{name}.gru.")
            if isinstance(pointer.score, DotScore):
                self.load(
                    pointer.score,
                    state_map__weight=f"{name}.q.w",
                    state_map__bias=f"{name}.q.b",
                    address_map__weight=f"{name}.g.w",
                    address_map__bias=f"{name}.g.b",
                    query__weight=f"{name}.att.wq",
                    query__bias=f"{name}.att.bq",
                    key__weight=f"{name}.att.wk",
                    key__bias=f"{name}.att.bk",
                )
            else:
                self._two_maps(pointer.score, f"{name}.g.")
        return block

    def _two_maps(self, block: nn.Module, prefix: str, place: str = "") -> None:
        ours = ("hidden", "weight"), ("hidden", "bias"), ("output", "weight"), ("output", "bias")
        theirs = ("w1", "b1", "w2", "b2")
        pairs = zip(ours, theirs, strict=True)
        self.load(block, **{f"{layer}__{place}{kind}": f"{prefix}{array}" for (layer, kind), array in pairs})

    def dereference(self, form: str) -> Dereference:
        d = self["memory" if "memory" in self.golden else "case0.memory"].shape[-1]
        block = Dereference(form=form, k=len(self.pointers), d=d)
        if form == "code":
            for i, name in enumerate(self.pointers):
                for ours, theirs in (("value", "v"), ("output", "o")):
                    arrays = {
                        f"{ours}__{i}__weight": f"{name}.att.w{theirs}",
                        f"{ours}__{i}__bias": f"{name}.att.b{theirs}",
                    }
                    self.load(block, **arrays)
        return block

    def relational_read(self, form: str, d: int) -> RelationalRead:
        first = self[f"p.m2.{self.reads[0]}.{'w' if form == 'code' else 'w1'}"]
        hidden, k = first.shape
        block = RelationalRead(reads=len(self.reads), hidden=hidden, form=form, dropout=0.0, k=k, d=d)
        if isinstance(block.read, DotRead):
            maps = {"query": "q", "key": "k", "value": "v", "output": "o"}
            weights = {f"{ours}__weight": f"m2.att.w{theirs}" for ours, theirs in maps.items()}
            biases = {f"{ours}__bias": f"m2.att.b{theirs}" for ours, theirs in maps.items()}
            self.load(block.read, **weights, **biases)
            for ours, theirs in (("weight", "w"), ("bias", "b")):
                parameter = block.read.pointed.get_parameter(ours)
                parameter.data.copy_(torch.cat([self[f"p.m2.{name}.{theirs}"] for name in self.reads]))
                self.joined[parameter] = [f"m2.{name}.{theirs}" for name in self.reads]
        else:
            for i, name in enumerate(self.reads):
                self._two_maps(block.read, f"m2.{name}.", f"{i}__")
        return block

    def controller(self) -> AttentiveGru:
        hidden, both = self["p.ctrl.att.w"].shape
        d = both - hidden
        block = AttentiveGru(hidden=hidden, e=self["p.ctrl.gru.w_ih"].shape[1] - d, d=d, s=hidden)
        self._cell(block.cell, "ctrl.gru.")
        self.load(
            block,
            attention__weight="ctrl.att.w",
            attention__bias="ctrl.att.b",
            score="ctrl.att.v",
            output__weight="ctrl.out.w",
            output__bias="ctrl.out.b",
        )
        return block

    def gradients(self, loss: Tensor) -> dict[str, Tensor]:
        """That of every array."""
        leaves = [*self.parameters.values(), *self.joined]
        found = list(torch.autograd.grad(loss, leaves))
        named = dict(zip(self.parameters, found, strict=False))
        for names, gradient in zip(self.joined.values(), found[len(named) :], strict=True):
            named |= zip(names, gradient.chunk(len(names)), strict=True)
        assert {f"p.{name}" for name in named} == {name for name in self.golden if name.startswith("p.")}
        return named

    def addresses(self, bases: Tensor, n: int) -> Tensor:
        bits = self["p.pu0.gru.w_ih"].shape[1]
        return Addresses(bits=bits, base="zero", d=1).bank(bases[:, None], n).to(self.dtype)


def program(case: Case, x: Tensor, bases: Tensor, steps: int, scrambled: bool = False) -> Trace:
    """The model of the program: a controller with attention of its own, and one linear map at the end."""
    reverse = Reverse(d=x.shape[-1])
    if "p.enc.b.w_ih" in case.golden:
        ahead, back = case.gru("enc.f."), case.gru("enc.b.")
        forward = ahead(x)
        memory = forward + reverse(back(reverse(x)))
        start = Last(d=memory.shape[-1])(forward)
    else:
        memory = case.lstm("enc.f.")(x)
        start = Sum(d=memory.shape[-1])(memory)
    b, n, d = memory.shape
    weights = case.pointer_unit("code", scrambled)(case.addresses(bases, n), memory.new_zeros(b, steps, 1))
    first = case.dereference("code")(weights, memory)
    second = case.relational_read("code", d)(first, memory)
    inputs = torch.cat((x.new_zeros(b, steps, x.shape[-1]), first), dim=-1)
    controlled = case.controller()(inputs, memory, start)
    case.parameters |= {"out.w": case["p.out.w"].requires_grad_(), "out.b": case["p.out.b"].requires_grad_()}
    features = torch.cat((controlled, first, second), dim=-1)
    logits = F.linear(features, case.parameters["out.w"], case.parameters["out.b"])
    return Trace(memory, weights, first, second, controlled, logits)


def equations(case: Case, x: Tensor, bases: Tensor, steps: int) -> Trace:
    """The model of the paper's equations."""
    memory = case.lstm("enc.f.")(x)
    b, n, d = memory.shape
    weights = case.pointer_unit("paper")(case.addresses(bases, n), memory.new_zeros(b, steps, 1))
    first = case.dereference("paper")(weights, memory)
    second = case.relational_read("paper", d)(first, memory)
    controller = case.gru("ctrl.gru.")
    blank = controller.gru.input_size - first.shape[-1] - second.shape[-1]
    inputs = torch.cat((first, second, x.new_zeros(b, steps, blank)), dim=-1)
    controlled = controller(inputs, Sum(d=d)(memory))
    hidden, k = case["p.out.w1"].shape
    readout = Mlp(hidden=hidden, out=len(case["p.out.b2"]), activation="relu", dropout=0.0, d=k)
    case._two_maps(readout, "out.")
    logits = readout(torch.cat((first, second, controlled), dim=-1))
    return Trace(memory, weights, first, second, controlled, logits)


def holds(case: Case, trace: Trace, prefix: str, controlled: str) -> None:
    case.close(trace.memory, f"{prefix}memory")
    case.close(trace.weights, f"{prefix}addr_w")
    case.close(trace.first, f"{prefix}val1_flat")
    case.close(trace.second, f"{prefix}val2_flat")
    case.close(trace.controlled, f"{prefix}{controlled}")
    case.close(trace.logits, f"{prefix}logits")


def flattened(golden: Golden) -> Golden:
    """The arrays, with the values of several pointers or reads side by side."""
    flat = {
        f"{name}_flat": array.reshape(*array.shape[:2], -1) for name, array in golden.items() if ".val" in f".{name}"
    }
    return {**golden, **flat}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("panm", "pointer_unit*")
def test_pointer_trajectories(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(golden, dtype)
    unit = case.pointer_unit("code")
    cell = unit.pointers[0]
    read = case.dereference("code")
    for prefix in sorted(name.removesuffix("bank") for name in golden if name.endswith(".bank")):
        bank = case[f"{prefix}bank"][None]
        # A pointer that starts at the end is the second of two: both with the same weights.
        unit.pointers = nn.ModuleList([cell, cell])
        steps = len(golden[f"{prefix}ptr"])
        weights = unit(bank, bank.new_zeros(1, steps, 1))[:, :, [int(".end." in prefix)]]
        case.close(weights[0, :, 0], f"{prefix}w")
        case.close((weights @ bank[:, None])[0, :, 0], f"{prefix}ptr")
        case.close(read(weights, case["memory"][None])[0], f"{prefix}val")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("panm", "panm_bigru*", "panm_lstm*")
def test_the_programs_model(golden: Golden, dtype: torch.dtype) -> None:
    arrays = flattened(golden)
    for prefix in sorted(name.removesuffix("bases") for name in golden if name.endswith(".bases")):
        case = Case(arrays, dtype)
        bases = case[f"{prefix}bases"].long()
        x, target = case["x"][: len(bases)], case["target"][: len(bases)]
        trace = program(case, x, bases, target.shape[1])
        holds(case, trace, prefix, "ctrl_out")
        loss = F.cross_entropy(trace.logits.flatten(0, 1), target.flatten())
        case.close(loss, f"{prefix}loss")
        for name, gradient in case.gradients(loss).items():
            norm = float(golden[f"{prefix}gnorm.{name}"])
            assert gradient.norm().item() == pytest.approx(norm, rel=1e-4, abs=1e-6), name
            if f"{prefix}grad.{name}" in golden:
                case.close(gradient.reshape(golden[f"{prefix}grad.{name}"].shape), f"{prefix}grad.{name}")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("panm", "panm_bigru*", "panm_lstm*")
def test_the_programs_batch_is_the_scrambled_one(golden: Golden, dtype: torch.dtype) -> None:
    for prefix in sorted(name.removesuffix("bases") for name in golden if name.endswith(".bases")):
        case = Case(golden, dtype)
        bases = case[f"{prefix}bases"].long()
        trace = program(case, case["x"][: len(bases)], bases, case["target"].shape[1], scrambled=True)
        case.close(trace.logits, f"{prefix}logits_official_batch")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.goldens("panm", "panm_paper*")
def test_the_papers_model(golden: Golden, dtype: torch.dtype) -> None:
    case = Case(flattened(golden), dtype)
    trace = equations(case, case["x"], case["bases"].long(), case["logits"].shape[1])
    holds(case, trace, "", "ctrl")
