"""Steps of frequent shapes become CUDA graphs, and do not change the curve of a run."""

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from archlang.backend.runtime import linear_recurrence, parallel_scans, row_blocks
from archlang.backend.runtime.loops import halting_loops
from archlang.backend.runtime.stacking import answering
from archlang.blocks.halting import TokenHalt
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.train import cuda_graph, data, score
from archlang.train.cuda_graph import CudaGraphStep, Result
from archlang.train.devices import fixed_randomness
from archlang.train.record.mistakes import RunWarning
from archlang.train.refusals import describe_steps
from archlang.train.runs import evaluation, training
from archlang.train.step import EagerStep, LossAndNorm
from archlang.train.step_pieces import Cut, Launch, Pieces
from archlang.train.stop import Stop
from archlang.train.trainer import Watcher
from tests.sampling import one_in
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model
from tests.tiny_run import TASK, StopAfter, latest_weights
from tests.train.test_deep_supervision import MODEL as DEEP_MODEL
from tests.train.test_deep_supervision import RECIPE as DEEP_RECIPE
from tests.train.test_refusals import HALTING as ADAPTIVE
from tests.train.test_step import synchronizes
from tests.train.test_streams import PROGRAM as STREAM
from tests.train.test_streams import write
from tests.unchecked_shapes import unchecked_shapes

# Functions that make a tensor on the host, if they are not told where.
FACTORIES = frozenset(
    {torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones, torch.rand, torch.randint,
     torch.randn, torch.randperm, torch.zeros}
)  # fmt: skip
# Functions that copy from the host, or to it: dispatch modes do not see all of them.
COPIES = frozenset(
    {torch.tensor, torch.as_tensor, torch.from_numpy, Tensor.new_tensor, Tensor.cpu, Tensor.numpy, Tensor.tolist}
)
REFUSAL = "operation not permitted when stream is capturing\nand a second line of details"


class HostRules(TorchFunctionMode):
    """Refuses what a GPU would refuse in a capture, or freeze in the graph, of the functions that Python calls."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: torch's
        kwargs = kwargs or {}
        device = kwargs.get("device")
        # Kernels for the CPU draw there by intention, and optimizers count on the host what is on the host.
        if (func in COPIES and device != "cpu") or (
            func in FACTORIES and device is None and not is_in_kernel_for_the_cpu()
        ):
            raise RuntimeError(REFUSAL)
        return func(*args, **kwargs)


def is_in_kernel_for_the_cpu() -> bool:
    return sys._getframe(2).f_code.co_filename.endswith(("kernels/dropout.py", "row_blocks.py"))


@dataclass(frozen=True, eq=False)
class Outside:
    """A tensor that a graph reads and has not made. The graph knows its address and keeps nothing alive."""

    storage: torch.UntypedStorage
    layout: tuple[Any, ...]  # Any: offset, size and stride
    dtype: torch.dtype

    def tensor(self) -> Tensor:
        # One reference is that of this object.
        assert torch._C._storage_Use_Count(self.storage._cdata) > 1, "a graph reads memory that was freed"
        return torch.empty(0, dtype=self.dtype).set_(self.storage, *self.layout)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own
    """Records operations as a CUDA graph does: with the memory that each reads and writes, and with its Python
    arguments frozen."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[tuple[Any, Any, Any, Any]] = []  # Any: as torch hands them over
        self.before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self.own: dict[int, Tensor] = {}
        self.rules: Any = HostRules()  # Any: torch does not type its modes

    def __enter__(self) -> Any:  # Any: torch's own
        self.rules.__enter__()
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *error: Any) -> None:  # Any: torch's own
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.rules.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # Any: torch's
        if synchronizes(func, args):
            raise RuntimeError(REFUSAL)
        kwargs = kwargs or {}
        storages = [storage_of(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if func._schema.is_mutable:
            for storage in storages:
                if storage.data_ptr() not in {*self.own, *self.before}:
                    copy = storage.clone()  # type: ignore[no-untyped-call] # torch's own
                    self.before[storage.data_ptr()] = storage, copy
        results = func(*args, **kwargs)
        read = {storage.data_ptr() for storage in storages}
        for leaf in tree_leaves(results):
            if isinstance(leaf, Tensor) and storage_of(leaf).data_ptr() not in read:
                self.own[storage_of(leaf).data_ptr()] = leaf.detach()
        self.operations.append(tree_map_only(Tensor, Tensor.detach, (func, args, kwargs, results)))
        return results

    def undo(self) -> None:
        """Restores the memory that the recorded operations changed: a capture takes no step."""
        for storage, copy in self.before.values():
            storage.copy_(copy)
        self.before.clear()

    def let_go(self, pool: set[int]) -> None:
        """Keeps nothing alive that is not in the memory of the graphs."""

        def outside(tensor: Tensor) -> Tensor | Outside:
            storage = storage_of(tensor)
            # A number is no memory of a GPU.
            if storage.data_ptr() in pool or not tensor.dim():
                return tensor
            return Outside(storage, (tensor.storage_offset(), tensor.size(), tensor.stride()), tensor.dtype)

        self.operations = tree_map_only(Tensor, outside, self.operations)

    def spoil(self) -> None:
        """Overwrites the results, as another graph of the same memory pool does."""
        for tensor in self.own.values():
            if tensor.is_floating_point():
                tensor.fill_(torch.nan)
            elif tensor.dtype == torch.bool:
                tensor.logical_not_()
            else:
                tensor.fill_(-(1 << 40) if tensor.dtype == torch.int64 else 0)

    @torch.enable_grad()  # without it an LSTM does not store what its backward needs
    def launch(self) -> None:
        for operation in self.operations:
            func, args, kwargs, results = tree_map_only(Outside, Outside.tensor, operation)
            new_results = func(*args, **kwargs)
            for old, new in zip(tree_leaves(results), tree_leaves(new_results), strict=True):
                if isinstance(old, Tensor) and storage_of(old).data_ptr() != storage_of(new).data_ptr():
                    old.copy_(new)


def storage_of(tensor: Tensor) -> torch.UntypedStorage:
    return tensor.untyped_storage()


class Captures:
    """A fake capture: graphs on the CPU that share one memory pool, which has room for the pieces of `room` steps."""

    def __init__(self, room: int = 100) -> None:
        self.room = room
        self.recorded: list[list[Recorder]] = []
        self.launched: list[int] = []
        self.pieces: list[Recorder] = []
        self.evaluations: list[list[Recorder]] = []
        self.launched_evaluations: list[int] = []
        self.pool: set[int] = set()

    def __call__(self, function: Callable[[Cut], Result]) -> tuple[Result, Launch]:
        random, recorders = torch.get_rng_state(), [Recorder()]
        recorded, launched = self.recorded, self.launched
        if not torch.is_grad_enabled():
            recorded, launched = self.evaluations, self.launched_evaluations
        number = len(recorded)

        def launch_of(recorder: Recorder) -> Launch:
            return partial(
                self.launch, recorder, partial(launched.append, number) if recorder is recorders[0] else None
            )

        def cut() -> Launch:
            piece.close()
            launch = launch_of(recorders[-1])
            recorders.append(Recorder())
            piece.enter_context(recorders[-1])
            return launch

        try:
            with ExitStack() as piece:
                piece.enter_context(recorders[-1])
                result = function(cut)
        finally:
            for recorder in reversed(recorders):
                recorder.undo()
            self.pool.update(pointer for recorder in recorders for pointer in recorder.own)
            for recorder in recorders:
                recorder.let_go(self.pool)
            torch.set_rng_state(random)
        if recorded is self.recorded and len(recorded) == self.room:
            raise torch.OutOfMemoryError("no room")
        recorded.append(recorders)
        return result, launch_of(recorders[-1])

    def launch(self, recorder: Recorder, begin: Callable[[], None] | None) -> None:
        """Launches a piece; the first one of a pass overwrites what all others have written."""
        if begin is not None:
            begin()
            for other in (other for recorders in (*self.recorded, *self.evaluations) for other in recorders):
                other.spoil()
        self.pieces.append(recorder)
        recorder.launch()


# Runs

Runs = Callable[[str], Path]
PROGRAM = """
model small[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 { h <- norm(h + dropout[0.1](geometric_attention[2](h))) }
    return linear[classes](last(h))
}

model halting[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 6 halting h by token_halt { h <- h + feedforward[8](norm(h)) }
    return linear[classes](last(h))
}

recipe small {
    task  TASK
    model small
    train TRAIN
}
""".replace("TASK", TASK)
# Learning rates with few binary digits, as graphs hold them as 32-bit floats.
SETTINGS = "batch = 4, steps = 24, every = 12, schedule = warmup, warmup = 8, clip = 1.0, ponder = 0.5"
OPTIMIZERS = {
    "adamw": f"adamw[lr = 0.0078125, weight_decay = 0.01, label_smoothing = 0.1, {SETTINGS}]",
    "adam": f"adam[lr = 0.0078125, weight_decay = 0.01, clip_value = 0.1, {SETTINGS}]",
    "rmsprop": f"rmsprop[lr = 0.0078125, alpha = 0.95, momentum = 0.9, weight_decay = 0.01, {SETTINGS}]",
    "rmsprop without momentum": f"rmsprop[lr = 0.0078125, {SETTINGS}]",
    "sgd": f"sgd[lr = 0.5, momentum = 0.9, weight_decay = 0.01, {SETTINGS}]",
    "sgd without momentum": f"sgd[lr = 0.5, {SETTINGS}]",
    "onecycle": "adamw[lr = 0.01, batch = 4, steps = 24, every = 12, schedule = onecycle, warmup = 8]",
}
# Their graphs end before the optimizer, which reads its learning rate on the host.
OUTSIDE = {
    "lion": f"lion[lr = 0.0078125, weight_decay = 0.01, {SETTINGS}]",
    "muon": f"muon[lr = 0.0078125, {SETTINGS}]",
    "schedule_free": f"schedule_free[lr = 0.0078125, {SETTINGS}]",
}
# For capture torch uses other kernels for these, which round in another order.
ROUNDED_DIFFERENTLY = ("rmsprop", "rmsprop without momentum", "onecycle")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return written(tmp_path, "adamw")


def written(folder: Path, optimizer: str) -> Path:
    file = folder / "small.arch"
    file.write_text(PROGRAM.replace("TRAIN", {**OPTIMIZERS, **OUTSIDE}[optimizer]))
    return file


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Captures:
    """Fake graphs on the CPU, where torch otherwise refuses its kernels for capture."""
    captures = Captures()
    monkeypatch.setattr(training, "why_eager", lambda *_, eager, **__: "as asked" if eager else "")
    monkeypatch.setattr(training, "make_capture", lambda *_: captures)
    # The third shape of these runs is not captured.
    monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", 2)
    for module in (sys.modules["torch.optim.adam"], sys.modules["torch.optim.rmsprop"]):
        monkeypatch.setattr(module, "_get_capturable_supported_devices", lambda **_: ["cpu"])
    return captures


def train(plan: Plan, folder: Path, with_graphs: bool = True, stop: Stop | None = None, device: str = "cpu") -> str:
    """Trains a run, and returns its curve."""
    training.train(plan, folder, device=device, eager=not with_graphs, stop=stop)
    return curve_of(folder)


def curve_of(folder: Path) -> str:
    return (folder / "metrics.jsonl").read_text()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Trains the program without graphs, once with each optimizer, and returns the folder of the run."""

    @cache
    def trained(optimizer: str) -> Path:
        folder = tmp_path_factory.mktemp("plain")
        train(plan_recipe(written(folder, optimizer)), folder / "run", with_graphs=False)
        return folder / "run"

    return trained


def numbers(curve: str) -> list[float]:
    return [number for line in curve.splitlines() for number in json.loads(line).values() if isinstance(number, float)]


@pytest.mark.parametrize("optimizer", one_in(5, [*OPTIMIZERS, *OUTSIDE]))
def test_a_run_with_graphs_has_the_curve_of_one_without(
    optimizer: str, plain: Runs, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_recipe(written(tmp_path, optimizer))
    curve = train(plan, tmp_path / "graphs")
    assert set(captures.launched) == {0, 1}
    assert len(captures.launched) > 12
    without = curve_of(plain(optimizer))
    if optimizer in ROUNDED_DIFFERENTLY:
        torch.testing.assert_close(numbers(curve), numbers(without), rtol=1e-3, atol=1e-4)
        monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", 0)
        assert curve == train(plan, tmp_path / "unrecorded")
        assert len(captures.recorded) == 2
        return
    assert curve == without
    torch.testing.assert_close(latest_weights(tmp_path / "graphs"), latest_weights(plain(optimizer)), rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", one_in(2, ["adamw", "muon"]))
def test_graphs_in_bf16_have_the_curve_of_a_run_without(optimizer: str, tmp_path: Path, captures: Captures) -> None:
    plan = plan_recipe(written(tmp_path, optimizer))
    for name, eager in (("graphs", False), ("plain", True)):
        training.train(plan, tmp_path / name, device="cpu", precision="bf16", eager=eager)
    assert len(captures.launched) > 12
    assert (tmp_path / "graphs" / "metrics.jsonl").read_text() == (tmp_path / "plain" / "metrics.jsonl").read_text()


HALTING = {
    "positions that halt": "repeat 9 halting h by token_halt { h <- h + feedforward[8](norm(h)) }",
    "samples that halt": "repeat 13 halting h by global_halt[0.9] { h <- norm(h + attention[1](h)) }",
    "ACT in chunks": """m = learned[2, d]()
    y = scan c in chunks[2](h) carry m {
        repeat 6 halting c by act { c <- norm(c + attention[2](c, m)) }
        m <- m + attention[2](norm(m), c)
        emit c
    }""",
    "a drawn number of steps": "repeat 3 drawn by uniform_steps[low = 1, high = 3] { h <- norm(h + linear[d](h)) }",
}


def with_loop(folder: Path, loop: str) -> Path:
    """Writes a program with a loop of `HALTING`."""
    file = written(folder, "adamw")
    body = PROGRAM[PROGRAM.index("repeat") : PROGRAM.index("return")]
    text = file.read_text().replace(body, f"{HALTING[loop]}\n    ", 1).replace("steps = 24", "steps = 40")
    file.write_text(text.replace("last(h)", "last(y)", 1) if "y = scan" in text else text)
    return file


@pytest.mark.parametrize("loop", one_in(2, HALTING))
def test_loops_whose_number_of_steps_varies_become_graphs(
    loop: str, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs compute the full batch, where an eager step leaves out what has halted."""
    plan = plan_recipe(with_loop(tmp_path, loop))
    curve = train(plan, tmp_path / "graphs")
    assert len(captures.launched) > 5
    plain = train(plan, tmp_path / "plain", with_graphs=False)
    assert ("mean_depth" in curve) == ("halting" in HALTING[loop])
    torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-4, atol=1e-5)
    stopped = train(plan, tmp_path / "stopped", stop=StopAfter(15))
    assert stopped != curve == train(plan, tmp_path / "stopped")
    monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", 0)
    count = len(captures.launched)
    assert curve == train(plan, tmp_path / "unrecorded")
    assert count == len(captures.launched)


@pytest.mark.parametrize("loop", ["samples that halt", "ACT in chunks"])
def test_the_graphs_of_a_halting_loop_are_launched_until_all_have_halted(
    loop: str, tmp_path: Path, captures: Captures
) -> None:
    train(plan_recipe(with_loop(tmp_path, loop)), tmp_path / "graphs")
    pieces = [piece for recorders in captures.recorded for piece in recorders]
    launched = sum(piece in pieces for piece in captures.pieces)
    all_pieces = sum(len(captures.recorded[number]) for number in captures.launched)
    assert len(captures.launched) < launched < all_pieces - 2 * len(captures.launched)


@pytest.mark.parametrize("name", one_in(5, [*SHIPPED]))
def test_the_shipped_models_have_nothing_that_a_capture_refuses(name: str) -> None:
    module = shipped_model(name).train()
    fields, lengths = shipped_batch(module, 3, 7)
    weights = list(module.parameters())

    def gradients(cut: Cut) -> list[Tensor]:
        module.zero_grad()
        pieces = Pieces(weights, cut, is_captured=True)
        with pieces.running(module), answering(lambda _: False):
            (module(*fields, lengths=lengths).square().mean() + module.ponder).backward(retain_graph=True)
        pieces.backward()
        return [weight.grad for weight in weights if weight.grad is not None]

    assert Captures()(gradients)[0]


@pytest.mark.parametrize("name", one_in(3, sorted(ADAPTIVE)))
def test_a_model_that_takes_all_steps_has_the_results_and_gradients_of_one_that_leaves_them_out(name: str) -> None:
    module = shipped_model(name).double()
    fields, lengths = shipped_batch(module, 3, 7)
    sides = []
    for all_steps in (False, True):
        for loop in halting_loops(module):
            loop.all_steps = all_steps
        module.zero_grad()
        with fixed_randomness(torch.device("cpu")):
            (module(*fields, lengths=lengths).square().mean() + module.ponder).backward()
        sides.append([module.ponder.detach(), *(weight.grad for weight in module.parameters())])
    torch.testing.assert_close(*sides, rtol=0, atol=1e-10)


OTHERS = {
    "answers of several tokens": """
use archlang.models.seq2seq

recipe small {
    task  copy[symbols = 2, train = 1..3, valid = 4..4, test = [5], train_size = 40, valid_size = 8, test_size = 8]
    model seq2seq[d = 16, heads = 2, ff = 16, layers = 1, dropout = 0.1]
    train adamw[lr = 0.0078125, batch = 4, steps = 30, every = 30]
}
""",
    "chunks and an LSTM": """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = lstm[8](embed[d](x))
    m = learned[2, d]()
    y = scan c in chunks[4](h) carry m {
        b = c + dropout[0.1](attention[2](norm(c), m))
        m <- m + attention[2](norm(m), c)
        emit b
    }
    return linear[vocab](y)
}

recipe small {
    task  flipflop[length = 16, train_size = 64, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model small
    train adamw[lr = 0.0078125, clip = 1.0, batch = 16, steps = 20, every = 10]
}
""",
    "slopes of heads": """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    return linear[vocab](h + attention[2, causal = true, position = alibi](h))
}

recipe small {
    task  flipflop[length = 16, train_size = 64, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model small
    train adamw[lr = 0.0078125, clip = 1.0, batch = 16, steps = 20, every = 10]
}
""",
}


RECURRENT = {
    "the delta rule in a scan": """
block correct[heads: int](
    memory: seq[d / heads, d], key: vec[d], value: vec[d], rate: vec[heads]) -> seq[d / heads, d] {
    let each = repeat_features[d / heads]
    column = each(head_columns[heads](unit_norm[heads](key)))
    return memory + column * each(rate) * (value - sum(column * memory))
}

block delta_rule[heads: int](h: seq[n, d]) -> seq[n, d] {
    memory = constant[d / heads, d]()
    y = scan v in h carry memory {
        memory <- correct[heads](
            sigmoid(linear[1](v)) * memory, linear[d](v), linear[d](v), sigmoid(linear[heads](v)))
        emit sum(repeat_features[d / heads](head_columns[heads](linear[d](v))) * memory)
    }
    return y
}

model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    return linear[vocab](h + delta_rule[2](h))
}
""",
    "a decay for each feature": """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    y = linear_attention[2](linear[d](h), linear[d](h), linear[d](h), -softplus(linear[d](h)))
    return linear[vocab](h + y)
}
""",
}
FLIPFLOP = """
recipe small {
    task  flipflop[length = 16, train_size = 64, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model small
    train adamw[lr = 0.0078125, clip = 1.0, batch = 16, steps = 24, every = 4]
}
"""


@pytest.mark.parametrize("program", RECURRENT)
def test_a_graph_takes_the_fast_form_of_a_recurrence_and_checks_that_it_may(
    program: str, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.arch"
    file.write_text(RECURRENT[program] + FLIPFLOP)
    with monkeypatch.context() as patch:
        patch.setattr(linear_recurrence, "_Decay", None)  # the slow form
        patch.setattr(parallel_scans._Terms, "in_order", None)
        curve = train(plan_recipe(file), tmp_path / "graphs")
    assert len(captures.launched) > 18
    assert len(captures.launched_evaluations) > 6
    assert curve == train(plan_recipe(file), tmp_path / "plain", with_graphs=False)


def test_a_step_whose_graph_assumes_what_is_wrong_runs_eagerly_with_the_same_random_numbers(
    tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.arch"
    text = RECURRENT["a decay for each feature"].replace("h = embed[d](x)", "h = dropout[0.1](embed[d](x))")
    file.write_text(text + FLIPFLOP)
    sums, choose = list[float](), linear_recurrence._chunk_size_and_decay

    def noted(n: int, g: Tensor | None) -> Any:  # Any: as the function
        assert g is not None
        sums.append(float(g.detach().abs().sum(2).max()))
        return choose(n, g)

    with monkeypatch.context() as patch:
        patch.setattr(linear_recurrence, "_chunk_size_and_decay", noted)
        train(plan_recipe(file), tmp_path / "noted", with_graphs=False)
    monkeypatch.setattr(linear_recurrence, "LARGEST_EXPONENT", median(sums[:24]) / 2)
    curve = train(plan_recipe(file), tmp_path / "graphs")
    assert 1 < len(captures.recorded) < len(captures.launched) < 22
    assert curve == train(plan_recipe(file), tmp_path / "plain", with_graphs=False)


@pytest.mark.parametrize("program", OTHERS)
def test_every_launch_reads_all_tensors_of_its_batch(program: str, tmp_path: Path, captures: Captures) -> None:
    file = tmp_path / "small.arch"
    file.write_text(OTHERS[program])
    curve = train(plan_recipe(file), tmp_path / "graphs")
    assert len(captures.launched) > 10
    assert curve == train(plan_recipe(file), tmp_path / "plain", with_graphs=False)


def test_each_part_of_a_stream_has_graphs_of_its_own(tmp_path: Path, captures: Captures) -> None:
    (tmp_path / "train").mkdir()
    write(tmp_path / "train" / "0.jsonl", 0, 400)
    write(tmp_path / "valid.jsonl", 500, 9)
    file = tmp_path / "tiny.arch"
    file.write_text(STREAM.replace("lr = 1e-2", "lr = 0.0078125"))
    plan = plan_recipe(file)
    curve = train(plan, tmp_path / "graphs")
    assert len({*captures.launched}) > 2
    assert len(captures.launched) > 22
    assert curve == train(plan, tmp_path / "plain", with_graphs=False)


def test_under_deep_supervision_a_graph_reads_the_states_of_the_step_before(
    tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "deep.arch"
    file.write_text(DEEP_MODEL + DEEP_RECIPE.replace("lr = 1e-2", "lr = 0.0078125").replace("steps = 12", "steps = 24"))
    plan = plan_recipe(file)
    curve = train(plan, tmp_path / "graphs")
    assert len(captures.launched) > 12
    assert curve == train(plan, tmp_path / "plain", with_graphs=False)
    assert train(plan, tmp_path / "stopped", stop=StopAfter(15)) != curve
    assert train(plan, tmp_path / "stopped") == curve


@pytest.mark.parametrize("optimizer", one_in(4, ["adamw", "rmsprop", "sgd", "onecycle"]))
@pytest.mark.parametrize(("first", "then"), [(True, True), (True, False), (False, True)])
def test_a_run_resumes_with_or_without_graphs(
    optimizer: str, first: bool, then: bool, plain: Runs, tmp_path: Path, captures: Captures
) -> None:
    plan = plan_recipe(written(tmp_path, optimizer))
    whole = train(plan, tmp_path / "whole") if first and then else curve_of(plain(optimizer))
    train(plan, tmp_path / "run", with_graphs=first, stop=StopAfter(15))
    count = len(captures.recorded)
    curve = train(plan, tmp_path / "run", with_graphs=then)
    assert (len(captures.recorded) > count) == then
    if optimizer in ROUNDED_DIFFERENTLY and first != then:
        torch.testing.assert_close(numbers(curve), numbers(whole), rtol=1e-3, atol=1e-4)
    else:
        assert curve == whole


@pytest.mark.parametrize("model", ["small", "halting"])
@pytest.mark.parametrize("in_pieces", [False, True])
def test_no_part_of_the_autograd_graph_outlives_a_step(
    model: str, in_pieces: bool, program: Path, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node that accumulates a weight's gradient belongs to the stream that created it. If such a node outlived an
    eager step, a capture would accumulate on a stream that is not captured."""
    step, left = EagerStep.take, list[dict[str, int]]()

    def accumulators(self: EagerStep) -> list[Any]:  # Any: a node, which torch declares without its metadata
        return [torch.autograd.graph.get_gradient_edge(weight).node for weight in self.run.module.parameters()]

    def marked(self: EagerStep, number: int, items: Any) -> Any:  # Any: as the step's
        # Kept alive during the step, so that its backward uses them.
        nodes = accumulators(self)
        for node in nodes:
            node.metadata["step"] = number
        result = step(self, number, items)
        del nodes, node
        left.extend(dict(node.metadata) for node in accumulators(self))
        return result

    monkeypatch.setattr(EagerStep, "take", marked)
    program.write_text(program.read_text().replace("model small\n    train", f"model {model}\n    train"))
    monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", 0)
    train(plan_recipe(program), tmp_path / "run", with_graphs=in_pieces)
    assert left
    assert not any(left)


class Notes(Watcher):
    """Keeps the first lines of runs."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def test_the_first_lines_and_the_record_say_how_steps_run(
    program: Path, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "describe_steps", lambda _, *facts: describe_steps("cuda", *facts))
    notes, plan, folder = Notes(), plan_recipe(program), tmp_path / "run"
    training.train(plan, folder, device="cpu", watcher=notes, stop=StopAfter(3))
    assert notes.lines == ["steps run as CUDA graphs"]
    assert json.loads((folder / "versions.json").read_text())["steps"] == "as CUDA graphs"
    with pytest.warns(
        RunWarning, match="resumes with steps one operation at a time: as asked instead of as CUDA graphs"
    ):
        training.train(plan, folder, device="cpu", eager=True, watcher=notes, stop=StopAfter(5))
    assert notes.lines[1:] == ["resuming at step 3", "steps run one operation at a time: as asked"]


# Seeds together


def train_seeds(
    file: Path, folder: Path, eager: bool = False, stop: Stop | None = None, device: str = "cpu"
) -> list[str]:
    """Trains two seeds together, and returns their curves."""
    plans = [plan_recipe(file, sets={"seed": seed}) for seed in "12"]
    folders = [folder / str(plan.seed) for plan in plans]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "training draws random numbers", RunWarning)
        training.train_together(plans, folders, device=device, eager=eager, stop=stop)
    return [curve_of(folder) for folder in folders]


SEEDS_TOGETHER = {
    "dropout and geometric attention": PROGRAM.replace("TRAIN", OPTIMIZERS["adamw"]),
    "positions that halt": PROGRAM.replace("model small\n    train", "model halting\n    train").replace(
        "TRAIN", OPTIMIZERS["adamw"]
    ),
    "a recurrence": RECURRENT["a decay for each feature"] + FLIPFLOP,
}


@pytest.mark.parametrize("name", SEEDS_TOGETHER)
def test_seeds_that_train_together_are_one_graph(
    name: str, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.arch"
    file.write_text(SEEDS_TOGETHER[name])
    curves = train_seeds(file, tmp_path / "graphs")
    assert len(captures.launched) > 8
    assert captures.launched_evaluations
    for curve, plain in zip(curves, train_seeds(file, tmp_path / "plain", eager=True), strict=True):
        torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-4, atol=1e-5)
    assert train_seeds(file, tmp_path / "stopped", stop=StopAfter(15)) != curves
    assert train_seeds(file, tmp_path / "stopped") == curves
    monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", 0)
    assert train_seeds(file, tmp_path / "unrecorded") == curves


# Evaluations


@pytest.mark.parametrize("loop", one_in(2, ["samples that halt", "ACT in chunks"]))
def test_evaluations_become_graphs_that_do_not_change_their_results(
    loop: str, tmp_path: Path, captures: Captures
) -> None:
    file = with_loop(tmp_path, loop)
    file.write_text(file.read_text().replace("every = 12", "every = 4").replace("lr = 0.0078125", "lr = 0.125"))
    plan = plan_recipe(file)
    curve = train(plan, tmp_path / "graphs")
    assert len(captures.launched_evaluations) > 8
    assert any(len(recorders) > 2 for recorders in captures.evaluations)
    results = (tmp_path / "graphs" / "results.json").read_text()
    # A resumed run counts shapes anew.
    train(plan, tmp_path / "resumed", stop=StopAfter(15))
    assert train(plan, tmp_path / "resumed") == curve
    assert (tmp_path / "resumed" / "results.json").read_text() == results
    plain = train(plan, tmp_path / "plain", with_graphs=False)
    torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("eager", [False, True])
def test_a_run_is_evaluated_with_graphs_where_batches_of_a_shape_recur(
    eager: bool, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.arch"
    file.write_text(
        OTHERS["chunks and an LSTM"]
        .replace("[16], test_size = 8", "[64], test_size = 700")
        .replace("lstm[8]", "linear[8]")
    )
    train(plan_recipe(file), tmp_path / "run", with_graphs=False)
    plain = evaluation.evaluate_run(tmp_path / "run", device="cpu")
    monkeypatch.setattr(evaluation, "why_evaluated_eagerly", lambda *_, eager, **__: "as asked" if eager else "")
    monkeypatch.setattr(evaluation, "make_capture", lambda *_: captures)
    assert evaluation.evaluate_run(tmp_path / "run", device="cpu", eager=eager).splits == plain.splits
    assert bool(captures.launched_evaluations) == (not eager)


# A decoder whose positions halt.
WRITER = """
model writer[d = 8](source: tokens[n, words], target: tokens[m]) -> logits[m, vocab] {
    e = embed[d](source)
    h = embed[d](target)
    repeat 6 halting h by token_halt { h <- norm(h + attention[2, causal = true](h) + attention[2](h, e)) }
    return linear[vocab](h)
}
"""


@pytest.mark.parametrize("model", ["seq2seq[", "seq2seq[universal = true, relative = true, ", "writer["])
def test_answers_are_written_by_graphs_where_batches_of_a_shape_recur(
    model: str, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.arch"
    text = OTHERS["answers of several tokens"].replace("test_size = 8", "test_size = 32, eos = true")
    small = text.replace("seq2seq[d = 16, heads = 2, ff = 16, layers = 1, dropout = 0.1]", "writer") + WRITER
    file.write_text(small if model == "writer[" else text.replace("seq2seq[", model))
    train(plan_recipe(file), tmp_path / "run", with_graphs=False)
    plain = evaluation.evaluate_run(tmp_path / "run", device="cpu").splits
    monkeypatch.setattr(evaluation, "why_evaluated_eagerly", lambda *_, **__: "")
    monkeypatch.setattr(evaluation, "make_capture", lambda *_: captures)
    monkeypatch.setattr(score, "_BATCH", 4)
    assert evaluation.evaluate_run(tmp_path / "run", device="cpu").splits == plain
    assert plain["test"].written == 32
    assert len(captures.launched_evaluations) > 5


# What cannot be captured


def test_batches_in_parts_run_eagerly(program: Path, tmp_path: Path, captures: Captures) -> None:
    train(plan_recipe(program, sets={"train.micro": "1"}), tmp_path / "run")
    assert not captures.recorded


def test_a_run_that_halves_its_parts_frees_its_graphs(
    program: Path, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradients, failed = EagerStep._compute_gradients, list[tuple[int, int]]()

    def launched() -> tuple[int, int]:
        return len(captures.launched), len(captures.launched_evaluations)

    def short(self: EagerStep, items: Any) -> Tensor:  # Any: an array
        if captures.launched_evaluations and not failed:
            failed.append(launched())
            raise torch.OutOfMemoryError("no room")
        return gradients(self, items)

    monkeypatch.setattr(EagerStep, "_compute_gradients", short)
    with pytest.warns(RunWarning, match="continuing with"):
        train(plan_recipe(program, sets={"train.every": "3"}), tmp_path / "run")
    assert failed == [launched()]


def test_memory_for_some_graphs_warns_and_does_not_change_the_curve(
    program: Path, plain: Runs, tmp_path: Path, captures: Captures
) -> None:
    captures.room = 1
    with pytest.warns(RunWarning, match="not enough memory for more CUDA graphs; steps of other shapes run") as warned:
        curve = train(plan_recipe(program), tmp_path / "run")
    assert len(warned) == 1
    assert set(captures.launched) == {0}
    assert curve == curve_of(plain("adamw"))


def test_a_step_that_cannot_be_captured_is_taken_eagerly_as_are_all_others_with_one_warning(
    program: Path, plain: Runs, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = EagerStep._update

    def asking(self: EagerStep) -> Tensor | None:
        norm = move(self)
        assert norm is not None
        assert float(norm) > 0
        return norm

    def as_torch_does(step: Callable[[Cut], LossAndNorm]) -> tuple[LossAndNorm, Launch]:
        try:
            return captures(step)
        except RuntimeError:
            raise RuntimeError("operation failed due to a previous error during capture")  # noqa: B904 # as torch does

    monkeypatch.setattr(EagerStep, "_update", asking)
    monkeypatch.setattr(training, "make_capture", lambda *_: as_torch_does)
    message = r"steps cannot be captured as CUDA graphs \(.* not permitted when stream is capturing\); all of"
    with pytest.warns(RunWarning, match=message) as warned:
        curve = train(plan_recipe(program), tmp_path / "run")
    assert len(warned) == 1
    assert not captures.recorded
    assert curve == curve_of(plain("adamw"))


def test_a_halting_loop_that_asks_the_host_runs_eagerly_in_all_steps(
    tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = TokenHalt.advance

    def asking(self: TokenHalt, halting: Any, *values: Any) -> Any:  # Any: as in the block
        assert float(halting.spent.detach().min()) >= 0
        return advance(self, halting, *values)

    monkeypatch.setattr(TokenHalt, "advance", asking)
    plan = plan_recipe(with_loop(tmp_path, "positions that halt"))
    with pytest.warns(RunWarning, match="cannot be captured as CUDA graphs .* all of them run one") as warned:
        curve = train(plan, tmp_path / "run")
    assert [str(warning.message).split()[0] for warning in warned] == ["steps", "evaluations"]
    assert not captures.recorded
    plain = train(plan, tmp_path / "plain", with_graphs=False)
    torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_split_that_is_too_large_for_its_device_has_the_same_curve_and_no_graphs(
    device: str, program: Path, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    plain = train(plan_recipe(program), tmp_path / "plain", with_graphs=False, device=device)
    monkeypatch.setattr(data, "_room", lambda device: 0)
    assert train(plan_recipe(program), tmp_path / "sent", device=device) == plain
    assert not captures.recorded


# On a GPU


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("optimizer", [*OPTIMIZERS, *OUTSIDE])
def test_on_a_gpu_a_run_with_graphs_has_the_curve_of_one_without(optimizer: str, tmp_path: Path) -> None:
    plan = plan_recipe(written(tmp_path, optimizer))
    curve = train(plan, tmp_path / "graphs", device="cuda")
    assert json.loads((tmp_path / "graphs" / "versions.json").read_text())["steps"] == "as CUDA graphs"
    plain = train(plan, tmp_path / "plain", with_graphs=False, device="cuda")
    torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("after", [True, False], ids=["with graphs", "without graphs"])
def test_on_a_gpu_a_resumed_run_equals_an_uninterrupted_one(after: bool, program: Path, tmp_path: Path) -> None:
    plan = plan_recipe(program)
    uninterrupted = train(plan, tmp_path / "uninterrupted", device="cuda")
    train(plan, tmp_path / "stopped", stop=StopAfter(15), device="cuda")
    with nullcontext() if after else pytest.warns(RunWarning, match="resumes with steps one operation at a time"):
        curve = train(plan, tmp_path / "stopped", with_graphs=after, device="cuda")
    torch.testing.assert_close(numbers(curve), numbers(uninterrupted), rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_the_host_does_not_wait_for_a_launched_step(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, launched = CudaGraphStep._train_on, list[bool]()

    def strict(self: CudaGraphStep, items: Any) -> Any:  # Any: as the step's
        is_captured = (len(items), *self.run.data.widths(items)) in self._graphs.captured
        launched.append(is_captured)
        torch.cuda.set_sync_debug_mode("error" if is_captured else "default")
        try:
            return step(self, items)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(CudaGraphStep, "_train_on", strict)
    train(plan_recipe(program), tmp_path / "run", device="cuda")
    assert sum(launched) >= 12


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("loop", HALTING)
def test_on_a_gpu_loops_whose_number_of_steps_varies_become_graphs(loop: str, tmp_path: Path) -> None:
    plan = plan_recipe(with_loop(tmp_path, loop))
    curves = [train(plan, tmp_path / str(form), with_graphs=form, device="cuda") for form in (True, False)]
    torch.testing.assert_close(*map(numbers, curves), rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_under_deep_supervision_graphs_have_the_curve_of_eager_steps(tmp_path: Path) -> None:
    file = tmp_path / "deep.arch"
    file.write_text(DEEP_MODEL + DEEP_RECIPE.replace("steps = 12", "steps = 24"))
    curves = [train(plan_recipe(file), tmp_path / str(form), form, device="cuda") for form in (True, False)]
    assert json.loads((tmp_path / "True" / "versions.json").read_text())["steps"] == "as CUDA graphs"
    torch.testing.assert_close(*map(numbers, curves), rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", SEEDS_TOGETHER)
def test_on_a_gpu_seeds_that_train_together_are_one_graph(name: str, tmp_path: Path) -> None:
    file = tmp_path / "small.arch"
    file.write_text(SEEDS_TOGETHER[name])
    curves = [train_seeds(file, tmp_path / str(eager), eager, device="cuda") for eager in (False, True)]
    assert json.loads((tmp_path / "False" / "1" / "versions.json").read_text())["steps"] == "as CUDA graphs"
    for curve, plain in zip(*curves, strict=True):
        torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", [*RECURRENT, "answers of several tokens"])
def test_on_a_gpu_recurrences_evaluations_and_written_answers_become_graphs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "small.arch"
    answers = OTHERS["answers of several tokens"].replace("every = 30", "every = 5")
    file.write_text(
        RECURRENT[name] + FLIPFLOP
        if name in RECURRENT
        else answers.replace("test_size = 8", "test_size = 32, eos = true")
    )
    plan = plan_recipe(file)
    launch, launched = cuda_graph.GraphsByShape.launch, list[str]()

    def noted(self: Any, *arguments: Any) -> Any:  # Any: as the method's
        result = launch(self, *arguments)
        launched.extend([self._passes] if result is not None else [])
        return result

    monkeypatch.setattr(cuda_graph.GraphsByShape, "launch", noted)
    monkeypatch.setattr(score, "_BATCH", 4)
    curves = [train(plan, tmp_path / str(form), with_graphs=form, device="cuda") for form in (True, False)]
    torch.testing.assert_close(*map(numbers, curves), rtol=1e-2, atol=1e-3)
    assert {*launched} == {"steps", "evaluations"}
    launched.clear()
    graphs, plain = (
        evaluation.evaluate_run(tmp_path / "True", device="cuda", eager=eager).splits for eager in (False, True)
    )
    assert ("evaluations" in launched) == (name not in RECURRENT)
    for split in plain:
        assert graphs[split].metrics == pytest.approx(plain[split].metrics, abs=1e-3)


CAPPED = """
model small[d = 64](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    q = linear[d](h)
    k = linear[d](h)
    y = weigh[causal = true](softmax_keys[causal = true](scores[2, softcap = 3.0](q, k)), linear[d](h))
    return linear[vocab](h + y)
}
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_graphs_hold_the_kernel_that_torch_compiles_for_written_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_blocks, "_BLOCK_ON_GPU", 1)
    monkeypatch.setattr(row_blocks, "_KEPT", 0)
    kernel, captured = row_blocks.kernel, list[bool]()

    def noted(sample: Tensor, has_worked: bool) -> Any:  # Any: as the function
        captured.append(torch.cuda.is_current_stream_capturing() and kernel(sample, has_worked) is not None)
        return kernel(sample, has_worked)

    monkeypatch.setattr(row_blocks, "kernel", noted)
    (tmp_path / "small.arch").write_text(CAPPED + FLIPFLOP)
    plan = plan_recipe(tmp_path / "small.arch")
    with unchecked_shapes():
        curves = [train(plan, tmp_path / str(form), with_graphs=form, device="cuda") for form in (True, False)]
    assert any(captured)
    torch.testing.assert_close(*map(numbers, curves), rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_on_a_gpu_in_bf16_and_after_a_capture_that_failed_a_run_goes_on(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, clip = plan_recipe(program), EagerStep._clip
    training.train(plan, tmp_path / "bf16", device="cuda", precision="bf16")
    plain = train(plan, tmp_path / "plain", with_graphs=False, device="cuda")

    def waiting(self: EagerStep) -> Tensor | None:
        norm = clip(self)
        assert norm is None or float(norm) > 0
        return norm

    monkeypatch.setattr(EagerStep, "_clip", waiting)
    with pytest.warns(RunWarning, match="steps cannot be captured as CUDA graphs"):
        curve = train(plan, tmp_path / "failed", device="cuda")
    torch.testing.assert_close(numbers(curve), numbers(plain), rtol=1e-3, atol=1e-4)
