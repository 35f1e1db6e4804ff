"""Each of several seeds that train together writes the same folder as its solo run, whatever happens to the others."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import AdamW

from archlang.backend.runtime.stacking import is_stacked
from archlang.blocks.sequences import Mean
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.train.data import Batch
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.mistakes import RunError, RunWarning
from archlang.train.runs import evaluation, training
from archlang.train.stacked import StackedStep
from archlang.train.stop import Stop
from tests.sampling import one_in
from tests.tiny_run import TASK, StopAfter
from tests.train.runs.test_training import Killed, lines, losses

PROGRAM = """
model router(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat 3 {
        a = norm(h + geometric_attention[2](h))
        g = gate[8](a)
        loss open = sum_features(mean(g))
        h <- copy_gate(g, norm(feedforward[16](a)), h)
    }
    return linear[classes](last(h))
}

model transformer[dropout = 0.0](x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    stack 2 {
        a = h + attention[2, position = rotary, dropout = dropout](norm(h))
        h <- a + feedforward[16](norm(a))
    }
    return linear[classes](last(h))
}

model reader(x: tokens[n]) -> logits[n, vocab] {
    h = embed[8](x)
    repeat 4 halting h by global_halt[0.7, transition = true, causal = true] {
        a = h + attention[2, position = xpos, causal = true](norm(h))
        h <- copy_gate(gate[8](norm(a)), a + feedforward[16](norm(a)), h)
    }
    return linear[vocab](h)
}

model adaptive(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat 4 halting h by act { h <- norm(h + attention[2](h)) }
    return linear[classes](last(h))
}

model ponders(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    y = repeat 4 halting h by global_halt[0.9] {
        h <- norm(h + attention[2](h))
        emit linear[classes](last(h))
    }
    return y
}

model balanced(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    y = scan c in chunks[count = 2](h) { emit c + attention[2](c) }
    return linear[classes](last(y))
}

model plain(x: tokens[n]) -> logits[classes] {
    return embed[8](x) |> mean |> linear[classes]
}

model recurrent(x: tokens[n]) -> logits[classes] {
    return linear[classes](last(lstm[8](embed[8](x))))
}

model brackets(x: tokens[n]) -> logits[n, vocab] {
    h = embed[8](x)
    y = h + relative_attention[2, causal = true](norm(h))
    return linear[vocab](norm(y))
}

recipe lookup {
    task  TASK
    model router
    train adamw[lr = 1e-3, weight_decay = 0.01, clip = 0.5, batch = 8, steps = 20, every = 5, warmup = 5]
}

recipe bits {
    task  flipflop[length = 12, train_size = 64, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model reader
    train sgd[lr = 0.1, momentum = 0.9, batch = 8, micro = 3, steps = 20, every = 10, ponder = 0.5, clip_value = 0.1]
}

recipe sets {
    task  dyck[
        pairs = 2, train = 2..10, test = [12..12], train_size = 40, valid_size = 20, test_size = 10, distinct = false]
    model brackets
    # Where the gradient is nothing but rounding, a smaller epsilon would follow it.
    train rmsprop[lr = 1e-3, momentum = 0.9, epsilon = 1e-3, batch = 8, steps = 20]
}
""".replace("TASK", TASK)
# Each task and each optimizer once, with blocks that stacking treats differently.
EQUAL_TO_SOLO = [
    ("lookup", {}),
    ("lookup", {"model": "transformer", "train.label_smoothing": "0.1", "train.schedule": "onecycle"}),
    ("lookup", {"model": "adaptive", "train.ponder": "0.1"}),
    pytest.param("lookup", {"model": "ponders", "train.supervise": "every"}, marks=pytest.mark.slow),
    pytest.param("lookup", {"model": "recurrent", "train.schedule": "cosine"}, marks=pytest.mark.slow),
    pytest.param("bits", {}, marks=pytest.mark.slow),
    ("sets", {}),
]
SEEDS = (1, 5)


@dataclass
class Program:
    path: Path

    def plans(self, recipe: str = "lookup", **sets: str) -> list[Plan]:
        """Returns a plan for each seed; `model` selects another model of the program."""
        text = PROGRAM
        if model := sets.pop("model", None):
            text = text.replace(f"model {'router'}\n", f"model {model}\n")
        self.path.write_text(text)
        return [plan_recipe(self.path, recipe, {**sets, "seed": str(seed)}) for seed in SEEDS]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "program.arch")


def folders(root: Path) -> list[Path]:
    return [root / f"seed{seed}" for seed in SEEDS]


def train_solo(plans: list[Plan], root: Path, device: str = "cpu") -> None:
    for plan, folder in zip(plans, folders(root), strict=True):
        training.train(plan, folder, device=device, eager=True)


def train_stacked(
    plans: list[Plan], root: Path, stop: Stop | None = None, device: str = "cpu"
) -> list[evaluation.Result]:
    """Trains plans together; none of them fails."""
    ends = training.train_together(plans, folders(root), device=device, stop=stop)
    outcomes = [end for end in ends if isinstance(end, evaluation.Result)]
    assert len(outcomes) == len(ends), ends
    return outcomes


@pytest.fixture(scope="module")
def plain_solo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the solo runs of the plain model."""
    root = tmp_path_factory.mktemp("plain")
    train_solo(Program(root / "program.arch").plans(model="plain"), root / "solo")
    return root / "solo"


@pytest.fixture(scope="module")
def plain_stacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs of the plain model, trained together and not disturbed."""
    root = tmp_path_factory.mktemp("plain")
    train_stacked(Program(root / "program.arch").plans(model="plain"), root / "stacked")
    return root / "stacked"


def assert_same_curves(left: Path, right: Path) -> None:
    for left_line, right_line in zip(lines(left), lines(right), strict=True):
        assert left_line.pop("split", None) == right_line.pop("split", None)
        assert left_line.pop("losses", {}) == pytest.approx(right_line.pop("losses", {}), rel=1e-5)
        assert left_line == pytest.approx(right_line, rel=1e-5, abs=1e-6)


def assert_same_runs(left: Path, right: Path) -> None:
    """Two run folders are equal except for rounding."""
    assert files(left) == files(right)
    keys = [[line.keys() for line in lines(folder, "timings.jsonl")] for folder in (left, right)]
    assert keys[0] == keys[1]
    assert_same_curves(left, right)
    for name in ("run.json", "data.json", "graph.txt", "recipe.arch"):
        assert (left / name).read_bytes() == (right / name).read_bytes()
    left_checkpoint, right_checkpoint = (Checkpoints(folder / "checkpoints").latest() for folder in (left, right))
    assert left_checkpoint is not None
    assert right_checkpoint is not None
    torch.testing.assert_close(dict(left_checkpoint.weights), dict(right_checkpoint.weights), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(left_checkpoint.state.optimizer, right_checkpoint.state.optimizer, rtol=1e-2, atol=1e-4)
    for name in ("epoch", "position", "micro", "evaluated", "precision"):
        assert getattr(left_checkpoint.state, name) == getattr(right_checkpoint.state, name)
    # Not Python's generator: the type checks of the tests draw from it.
    assert torch.equal(left_checkpoint.state.random["torch"], right_checkpoint.state.random["torch"])


def files(folder: Path) -> set[str]:
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {name for name in names if not name.startswith("tensorboard/")}


# Equal to solo runs


def test_seeds_whose_patience_ends_at_different_steps_equal_their_solo_runs(program: Program, tmp_path: Path) -> None:
    sets = {"train.lr": "0.3", "train.every": "2", "train.patience": "2", "train.select": "valid.loss"}
    sets["train.drop_last"] = "true"
    plans = program.plans(model="plain", **sets)
    train_solo(plans, tmp_path / "solo")
    outcomes = train_stacked(plans, tmp_path / "stacked")
    assert len({outcome.results and outcome.results.ended_early for outcome in outcomes}) == 2
    for stacked, solo in zip(folders(tmp_path / "stacked"), folders(tmp_path / "solo"), strict=True):
        assert_same_runs(stacked, solo)
        ends = [json.loads((folder / "results.json").read_text()).get("ended_early") for folder in (stacked, solo)]
        assert ends[0] == ends[1]


@pytest.mark.parametrize(("recipe", "sets"), one_in(2, EQUAL_TO_SOLO))
def test_each_seed_writes_the_folder_of_its_solo_run(
    recipe: str, sets: dict[str, str], program: Program, tmp_path: Path
) -> None:
    plans = program.plans(recipe, **sets, **{"train.steps": "12"})
    train_solo(plans, tmp_path / "solo")
    outcomes = train_stacked(plans, tmp_path / "stacked")
    for stacked, solo, outcome in zip(folders(tmp_path / "stacked"), folders(tmp_path / "solo"), outcomes, strict=True):
        assert len(losses(stacked)) == 12
        assert_same_runs(stacked, solo)
        assert not outcome.stopped
        assert evaluation.evaluate_run(stacked, device="cpu").splits == outcome.splits


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize(("recipe", "sets"), EQUAL_TO_SOLO)
def test_on_a_gpu_each_seed_has_the_losses_of_its_solo_run(
    recipe: str, sets: dict[str, str], program: Program, tmp_path: Path
) -> None:
    plans = program.plans(recipe, **sets)
    train_solo(plans, tmp_path / "solo", "cuda")
    train_stacked(plans, tmp_path / "stacked", device="cuda")
    for stacked, solo in zip(folders(tmp_path / "stacked"), folders(tmp_path / "solo"), strict=True):
        # Sums on a GPU have no fixed order.
        assert losses(stacked) == pytest.approx(losses(solo), rel=1e-4)


def assert_equal_curves(stacked_runs: Path, solo_runs: Path) -> None:
    for stacked, solo in zip(folders(stacked_runs), folders(solo_runs), strict=True):
        assert (stacked / "metrics.jsonl").read_bytes() == (solo / "metrics.jsonl").read_bytes()


@pytest.mark.filterwarnings("ignore:the model reads")
def test_translations_train_together(program: Program, tmp_path: Path) -> None:
    pairs = ["a\tx y", "a b\tx", "b a b\ty y x", "c\tz"]
    (tmp_path / "pairs.tsv").write_text("source\ttarget\n" + "\n".join(pairs * 5) + "\n")
    (tmp_path / "translate.arch").write_text("""
        model translate(source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
            memory = norm(embed[8](source))
            y = embed[8](target)
            stack 1 {
                a = y + attention[2, causal = true](norm(y))
                y <- a + attention[2](norm(a), memory)
            }
            return linear[vocab](y)
        }
        recipe translate {
            task  file_seq2seq[path = "pairs.tsv", valid = "pairs.tsv"]
            model translate
            train adam[lr = 1e-3, clip = 1.0, batch = 4, steps = 20, every = 10]
        }""")
    plans = [plan_recipe(tmp_path / "translate.arch", sets={"seed": str(seed)}) for seed in SEEDS]
    train_solo(plans, tmp_path / "solo")
    train_stacked(plans, tmp_path / "stacked")
    for stacked, solo in zip(folders(tmp_path / "stacked"), folders(tmp_path / "solo"), strict=True):
        assert_same_runs(stacked, solo)


def test_seeds_that_draw_random_numbers_equal_solo_runs_in_distribution_only(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="transformer", **{"model.dropout": "0.5"})
    with pytest.warns(RunWarning, match="in distribution only"):
        train_stacked(plans, tmp_path / "stacked")
    first = [losses(folder) for folder in folders(tmp_path / "stacked")]
    assert first[0] != first[1]
    with pytest.warns(RunWarning):
        train_stacked(plans, tmp_path / "again")
    assert first == [losses(folder) for folder in folders(tmp_path / "again")]


# Resuming


@pytest.mark.parametrize("asks", [7, 15])
def test_resumed_seeds_equal_uninterrupted_ones(
    asks: int, program: Program, tmp_path: Path, plain_stacked: Path
) -> None:
    plans = program.plans(model="plain")
    stopped = train_stacked(plans, tmp_path / "resumed", StopAfter(asks))
    assert all(outcome.stopped for outcome in stopped)
    assert len({outcome.step for outcome in stopped}) == 1
    train_stacked(plans, tmp_path / "resumed")
    assert_equal_curves(tmp_path / "resumed", plain_stacked)


def test_seeds_stopped_together_resume_solo_and_the_other_way_round(
    program: Program, tmp_path: Path, plain_solo: Path
) -> None:
    plans = program.plans(model="plain")
    train_stacked(plans, tmp_path / "first", StopAfter(8))
    train_solo(plans, tmp_path / "first")
    for plan, folder, asks in zip(plans, folders(tmp_path / "then"), (8, 17), strict=True):
        training.train(plan, folder, device="cpu", stop=StopAfter(asks))
    train_stacked(plans, tmp_path / "then")
    for name in ("first", "then"):
        for uninterrupted, resumed in zip(folders(plain_solo), folders(tmp_path / name), strict=True):
            assert_same_curves(uninterrupted, resumed)


def test_seeds_killed_between_their_checkpoints_resume_from_the_last_common_step(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_stacked: Path
) -> None:
    plans = program.plans(model="plain")
    save, write = Checkpoints.save, Checkpoints._save

    def dying(self: Checkpoints, step: int, *arguments: Any) -> None:  # Any: those of save
        if step == 10 and self.folder.parent.name == "seed5":
            raise Killed
        save(self, step, *arguments)

    def slow(self: Checkpoints, *arguments: Any) -> None:  # Any: those of _save
        time.sleep(0.2)
        write(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", dying)
        patched.setattr(Checkpoints, "_save", slow)
        with pytest.raises(Killed):
            train_stacked(plans, tmp_path / "resumed")
    assert [Checkpoints(folder / "checkpoints").steps() for folder in folders(tmp_path / "resumed")] == [[5, 10], [5]]
    train_stacked(plans, tmp_path / "resumed")
    assert_equal_curves(tmp_path / "resumed", plain_stacked)


def test_runs_without_a_common_step_train_one_after_another(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="plain")
    first, second = folders(tmp_path / "stacked")
    training.train(plans[0], first, device="cpu", stop=StopAfter(4))
    train_stacked(plans, tmp_path / "stacked")
    assert lines(first)[-1]["step"] == lines(second)[-1]["step"] == 20


# What cannot be stacked


def test_no_part_of_the_autograd_graph_outlives_a_step(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a solo step: a node that adds up a gradient belongs to the stream of an eager step."""
    take, left = StackedStep.take, list[dict[str, int]]()

    def marked(self: StackedStep, number: int, items: Any) -> Any:  # Any: as the step's
        def nodes() -> list[Any]:  # Any: a node, which torch declares without its metadata
            return [torch.autograd.graph.get_gradient_edge(weight).node for weight in self._weights.values()]

        kept = nodes()
        for node in kept:
            node.metadata["step"] = number
        result = take(self, number, items)
        del kept, node
        left.extend(dict(node.metadata) for node in nodes())
        return result

    monkeypatch.setattr(StackedStep, "take", marked)
    train_stacked(program.plans(), tmp_path / "stacked", stop=StopAfter(3))
    assert left
    assert not any(left)


@pytest.mark.parametrize(
    ("sets", "why"),
    [
        ({"model": "balanced"}, "a result depends on padding"),
        ({"model": "plain", "train.batch_of": "tokens"}, "a batch is a number of tokens"),
    ],
)
def test_plans_that_cannot_train_together_train_solo_with_a_warning(
    sets: dict[str, str], why: str, program: Program, tmp_path: Path
) -> None:
    plans = program.plans(**sets)
    train_solo(plans, tmp_path / "solo")
    with pytest.warns(RunWarning, match=f"cannot train together: .*{why}.*; its seeds train one after another"):
        train_stacked(plans, tmp_path / "stacked")
    assert_equal_curves(tmp_path / "stacked", tmp_path / "solo")


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda x: x.sum().item(), "\\.item\\(\\)"),
        (lambda x: torch.gru(x, x[None, :, 0], [x[0, 0]], False, 1, 0.0, False, False, True), "gru"),
        (lambda x: x[7:].sum(1)[9], "index 9 is out of bounds"),
    ],
    ids=["an item is read", "an operation is missing", "an error"],
)
@pytest.mark.parametrize("step", one_in(2, [0, 7]))
def test_code_that_cannot_be_stacked_continues_solo_with_a_warning(
    act: Callable[[torch.Tensor], object],
    why: str,
    step: int,
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plain_solo: Path,
) -> None:
    plans = program.plans(model="plain")
    forward, calls = Mean.forward, 0

    def spoiled(self: Mean, x: torch.Tensor, **masks: torch.Tensor | None) -> torch.Tensor:
        nonlocal calls
        calls += is_stacked()
        if is_stacked() and calls > step:
            act(x)
        return forward(self, x, **masks)

    monkeypatch.setattr(Mean, "forward", spoiled)
    with pytest.warns(RunWarning, match=f"`plain` cannot train together: .*{why}.*; its seeds train one after"):
        train_stacked(plans, tmp_path / "stacked")
    for stacked, solo in zip(folders(tmp_path / "stacked"), folders(plain_solo), strict=True):
        assert_same_curves(stacked, solo)


def test_plans_that_cannot_train_together_lose_no_step(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="plain", **{"train.batch_of": "tokens"})
    train_solo(plans, tmp_path / "solo")
    # The first run has checkpoints of common steps, and of later ones.
    for plan, folder, asks in zip(plans, folders(tmp_path / "stacked"), (16, 12), strict=True):
        training.train(plan, folder, device="cpu", stop=StopAfter(asks))
    steps = [Checkpoints(folder / "checkpoints").steps() for folder in folders(tmp_path / "stacked")]
    assert steps == [[10, 12], [5, 10]]
    with pytest.warns(RunWarning):
        outcomes = train_stacked(plans, tmp_path / "stacked", StopAfter(0))
    assert [outcome.step for outcome in outcomes] == [12, 10]
    with pytest.warns(RunWarning):
        train_stacked(plans, tmp_path / "stacked")
    assert_equal_curves(tmp_path / "stacked", tmp_path / "solo")


def test_if_the_optimizer_state_does_not_fit_the_seeds_train_solo(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_solo: Path
) -> None:
    plans = program.plans(model="plain")
    step = AdamW.step

    def short(self: AdamW, closure: None = None) -> None:
        weights = self.param_groups[0]["params"]
        if weights[0].dim() == 3:
            weights[0].data.fill_(torch.nan)  # it can fail in the middle
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(self, closure)

    monkeypatch.setattr(AdamW, "step", short)
    with pytest.warns(RunWarning, match="not enough memory for the optimizer state"):
        train_stacked(plans, tmp_path / "stacked")
    assert_equal_curves(tmp_path / "stacked", plain_solo)


def test_a_seed_that_fails_does_not_change_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_solo: Path
) -> None:
    plans = Program(plain_solo.parent / "program.arch").plans(model="plain")  # a graph names its file
    gradients = StackedStep._compute_gradients

    def spoiling(self: StackedStep, items: np.ndarray) -> torch.Tensor:
        values = gradients(self, items)
        if self._first.progress.step == 7:
            for weight in self._weights.values():
                weight.data[0] = torch.nan
        return values

    monkeypatch.setattr(StackedStep, "_compute_gradients", spoiling)
    first, second = training.train_together(plans, folders(tmp_path / "stacked"), device="cpu")
    assert isinstance(first, RunError)
    assert "became NaN or infinite at step 9" in first.message
    assert isinstance(second, evaluation.Result)
    assert_same_runs(folders(tmp_path / "stacked")[1], folders(plain_solo)[1])


def test_a_folder_with_other_files_does_not_change_the_other_runs(program: Program, tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    first.mkdir()
    (first / "letter.txt").touch()
    ends = training.train_together(program.plans(model="plain", **{"train.steps": "2"}), [first, second], device="cpu")
    assert isinstance(ends[0], RunError)
    assert isinstance(ends[1], evaluation.Result)


@pytest.mark.filterwarnings("ignore::archlang.train.step.RunWarning")
@pytest.mark.parametrize(
    ("recipe", "most", "change"),
    [
        pytest.param("bits", 5, "3 samples at a time; continuing with 2", marks=pytest.mark.slow),
        ("lookup", 9, "8 samples at a time; continuing with 4"),
    ],
)
def test_a_lack_of_memory_halves_the_samples_at_a_time(
    recipe: str, most: int, change: str, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = program.plans(recipe, model="plain")
    train_stacked(plans, tmp_path / "uninterrupted")
    backward = StackedStep._backward

    def short(self: StackedStep, batch: Batch, *arguments: Any) -> torch.Tensor:  # Any: those of _backward
        if len(batch.items) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return backward(self, batch, *arguments)

    monkeypatch.setattr(StackedStep, "_backward", short)
    with pytest.warns(RunWarning, match=change):
        train_stacked(plans, tmp_path / "resumed")
    for uninterrupted, resumed in zip(folders(tmp_path / "uninterrupted"), folders(tmp_path / "resumed"), strict=True):
        assert_same_curves(uninterrupted, resumed)
