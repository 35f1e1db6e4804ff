"""Which passes become graphs, and that they compute the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang import compile as compiler
from archlang.backend.build import build
from archlang.run import graphs, runner
from archlang.run.graphs import Graphs, make_graphs
from archlang.run.mistakes import RunError


class Echo(nn.Module):
    """Says what it was called with."""

    def forward(self, *fields: Tensor, lengths: Any) -> Tensor:  # Any: a tensor or several by name
        total = lengths if isinstance(lengths, Tensor) else lengths["x"] + 10 * lengths["y"]
        return fields[0].sum(1) + total


class Captures:
    """In place of the GPU's: keeps what was captured."""

    def __init__(self) -> None:
        self.samples: list[tuple[Tensor, ...]] = []

    def __call__(self, module: nn.Module, samples: tuple[Tensor, ...]) -> nn.Module:
        self.samples.append(samples)
        return module


def test_a_shape_becomes_a_graph_when_it_has_come_often() -> None:
    captures = Captures()
    called = Graphs(Echo(), captures)
    for width in (4, 5, 4, 4, 4, 5, 5):
        x, lengths = torch.ones(2, width), torch.tensor([1, 2])
        assert called(x, lengths=lengths).tolist() == [width + 1, width + 2]
    assert [samples[0].shape[1] for samples in captures.samples] == [4, 5]


def test_a_graph_has_inputs_of_its_own() -> None:
    captures = Captures()
    called = Graphs(Echo(), captures)
    x, lengths = torch.ones(2, 3), torch.tensor([1, 2])
    for _ in range(3):
        called(x, lengths=lengths)
    (samples,) = captures.samples
    assert all(one.data_ptr() != other.data_ptr() for one, other in zip(samples, (x, lengths), strict=True))


def test_lengths_of_several_fields_keep_their_names() -> None:
    captures = Captures()
    called = Graphs(Echo(), captures)
    for _ in range(4):
        lengths = {"x": torch.tensor([1, 2]), "y": torch.tensor([3, 4])}
        assert called(torch.ones(2, 3), torch.ones(2, 1), lengths=lengths).tolist() == [34, 45]
    assert len(captures.samples) == 1


def test_not_every_shape_becomes_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_MOST", 2)
    captures = Captures()
    called = Graphs(Echo(), captures)
    for width in (1, 2, 3):
        for _ in range(5):
            called(torch.ones(2, width), lengths=torch.tensor([1, 1]))
    assert len(captures.samples) == 2


PROGRAM = """
model small[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 { h <- norm(h + geometric_attention[2](h)) }
    return linear[classes](last(h))
}

model halting[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 halting h by token_halt { h <- h + feedforward[8](norm(h)) }
    return linear[classes](last(h))
}

recipe small {
    task  ctl[symbols = 3, functions = 2, new_functions = 0, reserved = 0, balanced = true, train = 1..3, valid = 4..4,
              test = 5..6, train_size = 30, iid_size = 3, valid_size = 20, test_size = 40]
    model small
    train adamw[lr = 1e-2, clip = 1.0, batch = 8, steps = 40, every = 20]
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "small.arch"
    file.write_text(PROGRAM)
    return file


def test_a_processor_has_no_graphs(program: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no CUDA graphs of this run: `cpu` has none"):
        runner.train(compiler.plan(program), tmp_path / "run", device="cpu", graphs=True)
    assert not (tmp_path / "run").exists()


def test_a_halting_loop_is_no_graph(program: Path) -> None:
    module = build(compiler.graph(program, "halting", {"vocab": 5, "classes": 2}))
    with pytest.raises(RunError, match="a halting loop ends by what it computes"):
        make_graphs(module, torch.device("cuda"), "32")


def test_graphs_are_of_one_device_and_of_single_precision() -> None:
    for precision, processes in (("bf16", 1), ("32", 2)):
        with pytest.raises(RunError, match="of one device, and of precision 32"):
            make_graphs(nn.Linear(1, 1), torch.device("cuda"), precision, processes)


def test_parts_of_a_batch_are_no_graphs(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    captures = Captures()
    monkeypatch.setattr(runner, "make_graphs", lambda module, *_: Graphs(module, captures))
    for micro, graphs_made in (("0", True), ("4", False)):
        captures.samples.clear()
        plan = compiler.plan(program, sets={"train.micro": micro})
        runner.train(plan, tmp_path / micro, device="cpu", graphs=True)
        assert bool(captures.samples) is graphs_made


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_run_with_graphs_has_the_curve_of_one_without(program: Path, tmp_path: Path) -> None:
    curves = []
    for with_graphs in (False, True):
        folder = tmp_path / str(with_graphs)
        runner.train(compiler.plan(program), folder, device="cuda", graphs=with_graphs)
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        curves.append([float(line.partition('"loss": ')[2].partition(",")[0].rstrip("}")) for line in lines])
    torch.testing.assert_close(curves[1], curves[0], rtol=1e-3, atol=1e-4)
