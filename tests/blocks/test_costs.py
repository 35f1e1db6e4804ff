"""The activations that signatures state are about as many numbers as autograd keeps."""

from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.runtime.halting import HaltingBlock
from archlang.compile import build, compile_graph
from archlang.contracts import library_blocks, samples
from archlang.contracts.cases import Case, cases
from archlang.contracts.subject import Subject
from archlang.graph.facts import POSITIONS
from archlang.resolve.resolve import Declaration
from archlang.types import Dim
from tests.sampling import one_in

LENGTHS = (24, 17, 13)
# On the CPU torch pads the buffers of an LSTM, so small LSTMs keep many more numbers.
PADDED = ("lstm", "bilstm", "bilstm_final")
BLOCKS = [block for block in library_blocks() if block.name not in PADDED]


class Loop(nn.Module):
    """Some steps of a halting block, whose bodies keep no numbers."""

    def __init__(self, block: HaltingBlock, steps: int) -> None:
        super().__init__()
        self.block = block
        self.steps = steps

    def forward(self, state: Tensor) -> Tensor:
        halting = self.block.start(state, None)
        for _ in range(self.steps):
            halting = self.block.advance(halting, state + 0.0, None)
        return halting.mixture


def count_saved(module: nn.Module, arguments: list[Any]) -> float:
    """Counts the numbers that a call saves for backward, without weights, masks, arguments and the result."""
    storages: dict[int, int] = {}
    alive = []  # so that no address is reused

    def keep(tensor: Tensor) -> Tensor:
        if tensor.dtype not in (torch.bool, torch.int64):
            alive.append(tensor)
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = module(*arguments)
    result = (
        [part for part, _ in result]
        if isinstance(result, list)
        else [result[0] if isinstance(result, tuple) else result]
    )
    for tensor in (*module.parameters(), *arguments, *result):
        if isinstance(tensor, Tensor):
            storages.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storages.values()) / 4


def of_a_sample(module: nn.Module, case: Case, sizes: dict[str, int]) -> float:
    """Counts the numbers that each further sample of a batch adds."""

    def of_batch(count: int) -> float:
        torch.manual_seed(0)
        batch = [samples.draw(case.inputs, sizes, torch.Generator().manual_seed(row)) for row in range(count)]
        values = samples.collate(case.inputs, batch, sizes)
        values = [value.float().requires_grad_() if value.is_floating_point() else value for value in values]
        return count_saved(module, [values[index] for index in case.arguments] or [count])

    return (of_batch(6) - of_batch(2)) / 4


def stated(case: Case, sizes: dict[str, int]) -> int:
    """Returns the activations that the signature states for the lengths of a sample."""
    activations = case.instance.costs.activations
    assert activations is not None
    kinds = [case.inputs[index] for index in case.arguments]
    lengths = {name: Dim.of(size) for name, size in sizes.items()}
    named = {POSITIONS: Dim.of(prod(samples.shape(kinds[0], sizes)[: len(kinds[0].lengths)]) if kinds else 1)}
    for names, kind in zip(case.instance.axes, kinds, strict=True):
        named |= {name: dim.substitute(lengths) for name, dim in zip(names, kind.lengths, strict=False) if name}
    count = activations.substitute(named).constant
    assert count is not None
    return count


@pytest.mark.parametrize("block", one_in(4, BLOCKS), ids=lambda block: block.name)
def test_a_block_keeps_about_as_many_numbers_as_its_signature_states(block: Declaration) -> None:
    for case in cases(block):
        sizes = dict(zip(case.lengths, LENGTHS, strict=False))
        module = Subject(case, 0, LENGTHS).construct(0).train().get_submodule("block")
        if isinstance(module, HaltingBlock):
            measured = of_a_sample(Loop(module, 4), case, sizes) - of_a_sample(Loop(module, 3), case, sizes)
        else:
            measured = of_a_sample(module, case, sizes)
        count = stated(case, sizes)
        assert abs(measured - count) <= 0.4 * max(measured, count), (case.chosen, case.sizes, measured, count)


@pytest.mark.parametrize("name", PADDED)
def test_an_lstm_keeps_about_as_many_numbers_as_its_signature_states(name: str, tmp_path: Path) -> None:
    file = tmp_path / "m.arch"
    result = "vec[128]" if name == "bilstm_final" else "seq[n, 128]"
    file.write_text(f"model m(h: seq[n, 64]) -> {result} {{ return {name}[hidden = 128](h) }}")
    graph = compile_graph(file, "m")
    (instance,) = graph.instances.values()
    assert instance.costs.activations is not None
    block = build(graph).get_submodule(instance.path)
    many, few = (count_saved(block, [torch.randn(count, 64, 64, requires_grad=True)]) for count in (12, 4))
    stated = instance.costs.activations.substitute({"n": Dim.of(64)}).constant
    assert stated == pytest.approx((many - few) / 8, rel=0.4)
