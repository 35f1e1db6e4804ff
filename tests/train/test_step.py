"""A step does not wait for the device without need; micro-batches add up; running out of memory halves them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from archlang.backend.runtime.loops import HaltingLoop
from archlang.plan.from_file import plan_recipe
from archlang.train import loss
from archlang.train.record.mistakes import RunError, RunWarning
from archlang.train.runs import training
from archlang.train.step import EagerStep
from tests.tiny_run import StopAfter
from tests.train.runs.test_training import losses

# Operations whose value or shape the host waits for.
SYNCHRONIZING = (
    "_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique", "equal", "is_nonzero",
    "repeat_interleave.Tensor", "_linalg_check_errors", "_linalg_eigh", "linalg_eig", "bincount", "histc",
    "_pack_padded_sequence",
)  # fmt: skip
INDEXING = ("index.", "index_put", "_index_put", "_unsafe_index")


def synchronizes(function: Any, arguments: Any) -> bool:  # Any: as torch hands them over
    """Whether the host waits for an operation on a GPU. It counts the marks of an index."""
    name = str(function).removeprefix("aten.")
    if name.startswith(INDEXING):
        return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in arguments[1])
    return name.startswith(SYNCHRONIZING)


# Items have different numbers of scored positions.
RECIPE = """
recipe small {
    task  flipflop[length = 16, train_size = 64, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model small
    train adamw[lr = 1e-3, clip = 1.0, batch = 16, steps = 4, every = 4, ponder = 0.1]
}
"""
STATIC = """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat 3 { h <- copy_gate(gate[d](h), feedforward[8](norm(h + geometric_attention[2, causal = true](h))), h) }
    return linear[vocab](h)
}
"""
CHUNKS = """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    m = learned[2, d]()
    y = scan c in chunks[4](h) carry m {
        a = c + attention[2, causal = true](norm(c))
        b = a + dropout[0.1](attention[2](norm(a), m))
        m <- m + attention[2](norm(m), c)
        emit b
    }
    return linear[vocab](y)
}
"""
HALTING = """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat 9 halting h by global_halt[causal = true] { h <- norm(h + attention[1, causal = true](h)) }
    return linear[vocab](h)
}
"""


class Synchronizations(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own
    """Records the operations that synchronize."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: torch's
        if synchronizes(func, args):
            self.names.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def synchronizations(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The synchronizing operations of each step, with loops that act as on a GPU."""
    names_by_step: list[list[str]] = []
    step, checks = EagerStep.take, HaltingLoop._checks_halted

    def counted(self: EagerStep, number: int, items: Any) -> Any:
        with Synchronizations() as synchronizations:
            result = step(self, number, items)
        names_by_step.append(synchronizations.names)
        return result

    monkeypatch.setattr(EagerStep, "take", counted)
    monkeypatch.setattr(
        HaltingLoop, "_checks_halted", lambda self, number, device: checks(self, number, torch.device("cuda"))
    )
    return names_by_step


def train(program: str, folder: Path, device: str = "cpu") -> None:
    file = folder / "small.arch"
    file.write_text(program + RECIPE)
    training.train(plan_recipe(file), folder / "run", device=device, eager=True)


@pytest.mark.parametrize("program", [STATIC, CHUNKS], ids=["static", "chunks"])
def test_a_step_without_halting_does_not_synchronize(
    program: str, tmp_path: Path, synchronizations: list[list[str]]
) -> None:
    train(program, tmp_path)
    assert synchronizations == [[]] * 4


def test_a_halting_loop_synchronizes_every_fourth_step(tmp_path: Path, synchronizations: list[list[str]]) -> None:
    train(HALTING, tmp_path)
    # Of the loop's nine steps, after the fourth and the eighth: the rows that continue, and the rows that have halted.
    assert len(synchronizations) == 4
    assert all(1 <= len(names) <= 4 for names in synchronizations)
    assert {name for names in synchronizations for name in names} == {"nonzero.default"}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("program", [STATIC, CHUNKS], ids=["static", "chunks"])
def test_on_a_gpu_a_step_does_not_synchronize(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = EagerStep.take

    def strict(self: EagerStep, number: int, items: Any) -> Any:
        torch.cuda.set_sync_debug_mode("error")
        try:
            return step(self, number, items)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(EagerStep, "take", strict)
    train(program, tmp_path, "cuda")


QUIETLY = pytest.mark.filterwarnings("ignore::archlang.train.step.RunWarning")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "small.arch"
    path.write_text(HALTING + RECIPE.replace("adamw[lr = 1e-3, clip = 1.0,", "sgd[lr = 0.5,"))
    return path


def train_losses(program: Path, folder: Path, **sets: str) -> list[float]:
    settings = {name.replace("__", "."): value for name, value in sets.items()}
    training.train(plan_recipe(program, sets=settings), folder, device="cpu")
    return losses(folder)


@pytest.mark.parametrize("micro", ["1", "5", "8"])
def test_micro_batches_train_as_the_batch_does(program: Path, tmp_path: Path, micro: str) -> None:
    full = train_losses(program, tmp_path / "full")
    parts = train_losses(program, tmp_path / "parts", train__micro=micro)
    torch.testing.assert_close(parts, full, rtol=1e-5, atol=1e-6)


def short_of_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Makes larger batches than `most` samples run out of memory. Returns the sizes that were tried."""
    tried: list[int] = []
    forward = loss.forward

    def narrow(module: Any, batch: Any) -> Any:
        tried.append(len(batch.items))
        if len(batch.items) > most:
            raise torch.OutOfMemoryError("no room")
        return forward(module, batch)

    monkeypatch.setattr(loss, "forward", narrow)
    return tried


def test_a_lack_of_memory_halves_micro_batches_and_does_not_change_the_curve(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = train_losses(program, tmp_path / "full")
    tried = short_of_memory(monkeypatch, most=5)
    with pytest.warns(RunWarning) as warned:
        parts = train_losses(program, tmp_path / "parts")
    assert "continuing with 8" in str(warned[0].message)
    assert "continuing with 4" in str(warned[1].message)
    assert tried[:4] == [16, 8, 4, 4]
    assert set(tried[4:]) == {4}
    torch.testing.assert_close(parts, full, rtol=1e-5, atol=1e-6)


@QUIETLY
def test_a_resumed_run_keeps_its_micro_batches(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    plan = plan_recipe(program)
    tried = short_of_memory(monkeypatch, most=8)
    assert training.train(plan, folder, device="cpu", stop=StopAfter(3)).stopped
    tried.clear()
    training.train(plan, folder, device="cpu")
    assert set(tried) == {8}


@QUIETLY
def test_a_single_sample_that_does_not_fit_ends_the_run_with_an_error(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_of_memory(monkeypatch, most=0)
    with pytest.raises(RunError, match="memory"):
        train_losses(program, tmp_path / "run")
