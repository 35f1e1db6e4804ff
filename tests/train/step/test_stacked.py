"""Claims about seeds that train together: each leaves what its lone run leaves, whatever happens to the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import AdamW

from archlang.backend.runtime.stacking import is_together
from archlang.blocks.pooling import Mean
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.record.checkpoint import Checkpoints
from archlang.record.mistakes import RunError
from archlang.runs import evaluation, training, training_together
from archlang.train.step.memory import MemoryWarning
from archlang.train.step.stacked import StackedStep, StackingWarning
from archlang.train.stop import Stop
from tests.tiny_run import After

PROGRAM = """
model router(x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat 3 {
        a = norm(h + geometric_attention[2](h))
        h <- copy_gate(gate[8](a), norm(feedforward[16](a)), h)
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
    task  ctl[
        symbols = 3, functions = 2, new_functions = 0, reserved = 0, balanced = true,
        train = 1..3, valid = 4..4, test = 5..6, train_size = 30, iid_size = 3, valid_size = 20, test_size = 40]
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
"""
# Each task and each optimizer once, with layers that each need something of their own.
ALIKE = [
    ("lookup", {}),
    ("lookup", {"model": "transformer", "train.label_smoothing": "0.1", "train.schedule": "onecycle"}),
    ("lookup", {"model": "adaptive", "train.ponder": "0.1"}),
    ("lookup", {"model": "recurrent", "train.schedule": "cosine"}),
    ("bits", {}),
    ("sets", {}),
]
SEEDS = (1, 5)


@dataclass
class Program:
    path: Path

    def plans(self, recipe: str = "lookup", **sets: str) -> list[Plan]:
        """A point for each seed; `model` chooses another model of the program."""
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


def alone(plans: list[Plan], root: Path, device: str = "cpu") -> None:
    for plan, folder in zip(plans, folders(root), strict=True):
        training.train(plan, folder, device=device)


def as_one(plans: list[Plan], root: Path, stop: Stop | None = None, device: str = "cpu") -> list[evaluation.Outcome]:
    """Trains together, which nothing may keep them from."""
    ended = training_together.train_together(plans, folders(root), device=device, stop=stop)
    outcomes = [one for one in ended if isinstance(one, evaluation.Outcome)]
    assert len(outcomes) == len(ended), ended
    return outcomes


def lines(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:  # Any: JSON
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def assert_same_curves(one: Path, other: Path) -> None:
    for mine, its in zip(lines(one), lines(other), strict=True):
        assert mine.pop("split", None) == its.pop("split", None)
        assert mine == pytest.approx(its, rel=1e-5, abs=1e-6)


def assert_alike(one: Path, other: Path) -> None:
    """Two runs left the same, but for rounding."""
    assert files(one) == files(other)
    keys = [[line.keys() for line in lines(folder, "timings.jsonl")] for folder in (one, other)]
    assert keys[0] == keys[1]
    assert_same_curves(one, other)
    for name in ("run.json", "data.json", "graph.txt", "recipe.arch"):
        assert (one / name).read_bytes() == (other / name).read_bytes()
    mine, its = (Checkpoints(folder / "checkpoints").latest() for folder in (one, other))
    assert mine is not None
    assert its is not None
    torch.testing.assert_close(dict(mine.weights), dict(its.weights), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(mine.state.optimizer, its.state.optimizer, rtol=1e-2, atol=1e-4)
    for name in ("epoch", "position", "micro", "evaluated", "best_step", "precision"):
        assert getattr(mine.state, name) == getattr(its.state, name)
    # What looks at the types of arguments in tests draws from Python's generator.
    assert torch.equal(mine.state.random["torch"], its.state.random["torch"])


def files(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    return {name for name in found if not name.startswith("tensorboard/")}


def losses(folder: Path) -> list[float]:
    return [line["loss"] for line in lines(folder) if "split" not in line]


# As alone


@pytest.mark.parametrize(("recipe", "sets"), ALIKE)
def test_each_seed_leaves_what_its_lone_run_leaves(
    recipe: str, sets: dict[str, str], program: Program, tmp_path: Path
) -> None:
    plans = program.plans(recipe, **sets)
    alone(plans, tmp_path / "alone")
    outcomes = as_one(plans, tmp_path / "one")
    for mine, its, outcome in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), outcomes, strict=True):
        assert len(losses(mine)) == 20
        assert_alike(mine, its)
        assert not outcome.stopped
        assert evaluation.evaluate_run(mine, device="cpu").scores == outcome.scores


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize(("recipe", "sets"), ALIKE)
def test_on_a_gpu_each_seed_has_the_losses_of_its_lone_run(
    recipe: str, sets: dict[str, str], program: Program, tmp_path: Path
) -> None:
    plans = program.plans(recipe, **sets)
    alone(plans, tmp_path / "alone", "cuda")
    as_one(plans, tmp_path / "one", device="cuda")
    for mine, its in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), strict=True):
        # Sums on a GPU have no fixed order.
        assert losses(mine) == pytest.approx(losses(its), rel=1e-4)


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
    alone(plans, tmp_path / "alone")
    as_one(plans, tmp_path / "one")
    for mine, its in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), strict=True):
        assert_alike(mine, its)


def test_seeds_that_draw_numbers_are_told_to_be_alike_in_distribution_only(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="transformer", **{"model.dropout": "0.5"})
    with pytest.warns(StackingWarning, match="in distribution only"):
        as_one(plans, tmp_path / "one")
    found = [losses(folder) for folder in folders(tmp_path / "one")]
    assert found[0] != found[1]
    with pytest.warns(StackingWarning):
        as_one(plans, tmp_path / "again")
    assert found == [losses(folder) for folder in folders(tmp_path / "again")]


# Going on


@pytest.mark.parametrize("asks", [7, 15])
def test_together_they_stop_and_go_on_as_if_nothing_had_been(asks: int, program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="plain")
    as_one(plans, tmp_path / "whole")
    stopped = as_one(plans, tmp_path / "parts", After(asks))
    assert all(outcome.stopped for outcome in stopped)
    assert len({outcome.step for outcome in stopped}) == 1
    as_one(plans, tmp_path / "parts")
    for whole, parts in zip(folders(tmp_path / "whole"), folders(tmp_path / "parts"), strict=True):
        assert (whole / "metrics.jsonl").read_bytes() == (parts / "metrics.jsonl").read_bytes()


def test_what_was_stopped_together_goes_on_alone_and_the_other_way_round(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="plain")
    alone(plans, tmp_path / "whole")
    as_one(plans, tmp_path / "first", After(8))
    alone(plans, tmp_path / "first")
    for plan, folder, asks in zip(plans, folders(tmp_path / "then"), (8, 17), strict=True):
        training.train(plan, folder, device="cpu", stop=After(asks))
    as_one(plans, tmp_path / "then")
    for name in ("first", "then"):
        for whole, parts in zip(folders(tmp_path / "whole"), folders(tmp_path / name), strict=True):
            assert_same_curves(whole, parts)


class Killed(BaseException):
    """What nothing in a run catches."""


def test_killed_between_the_checkpoints_of_two_seeds_they_go_on_from_the_step_that_both_have(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = program.plans(model="plain")
    as_one(plans, tmp_path / "whole")
    save = Checkpoints.save

    def dying(self: Checkpoints, step: int, *others: Any) -> None:  # Any: as it has
        if step == 10 and self.folder.parent.name == "seed5":
            raise Killed
        save(self, step, *others)

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "save", dying)
        with pytest.raises(Killed):
            as_one(plans, tmp_path / "parts")
    assert [Checkpoints(of / "checkpoints").steps() for of in folders(tmp_path / "parts")] == [[5, 10], [5]]
    as_one(plans, tmp_path / "parts")
    for whole, parts in zip(folders(tmp_path / "whole"), folders(tmp_path / "parts"), strict=True):
        assert (whole / "metrics.jsonl").read_bytes() == (parts / "metrics.jsonl").read_bytes()


def test_where_no_step_is_common_those_at_the_same_one_go_on_together(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="plain")
    first, second = folders(tmp_path / "one")
    training.train(plans[0], first, device="cpu", stop=After(4))
    as_one(plans, tmp_path / "one")
    assert lines(first)[-1]["step"] == lines(second)[-1]["step"] == 20


# What cannot be


@pytest.mark.parametrize(
    ("sets", "why"),
    [
        ({"model": "balanced"}, "depends on how far a batch is padded"),
        ({"model": "plain", "train.batch_of": "tokens"}, "a batch is a number of tokens"),
    ],
)
def test_what_cannot_train_together_is_told_and_trained_as_ever(
    sets: dict[str, str], why: str, program: Program, tmp_path: Path
) -> None:
    plans = program.plans(**sets)
    alone(plans, tmp_path / "alone")
    with pytest.warns(StackingWarning, match=f"cannot train together: .*{why}.*; its seeds train one after another"):
        as_one(plans, tmp_path / "one")
    for mine, its in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), strict=True):
        assert (mine / "metrics.jsonl").read_bytes() == (its / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda x: x.sum().item(), "its code branches on the value of a tensor"),
        (
            lambda x: torch.gru(x, x[None, :, 0], [x[0, 0]], False, 1, 0.0, False, False, True),
            "cannot stack models with `gru`",
        ),
        (lambda x: x[7:].sum(1)[9], "index 9 is out of bounds"),
    ],
    ids=["a number is asked for", "an operation is not there", "an error"],
)
@pytest.mark.parametrize("step", [0, 7])
def test_code_that_cannot_be_stacked_is_told_of_and_goes_on_alone(
    act: Callable[[torch.Tensor], object],
    why: str,
    step: int,
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans = program.plans(model="plain")
    alone(plans, tmp_path / "alone")
    forward, calls = Mean.forward, 0

    def spoiled(self: Mean, x: torch.Tensor, **masks: torch.Tensor | None) -> torch.Tensor:
        nonlocal calls
        calls += is_together()
        if is_together() and calls > step:
            act(x)
        return forward(self, x, **masks)

    monkeypatch.setattr(Mean, "forward", spoiled)
    with pytest.warns(StackingWarning, match=f"`plain` cannot train together: .*{why}.*; its seeds train one after"):
        as_one(plans, tmp_path / "one")
    for mine, its in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), strict=True):
        assert_same_curves(mine, its)


def test_what_cannot_train_together_loses_no_step_that_it_has_taken(program: Program, tmp_path: Path) -> None:
    plans = program.plans(model="plain", **{"train.batch_of": "tokens"})
    alone(plans, tmp_path / "alone")
    # The first has checkpoints of steps that both have, and of later ones.
    for plan, folder, asks in zip(plans, folders(tmp_path / "one"), (16, 12), strict=True):
        training.train(plan, folder, device="cpu", stop=After(asks))
    steps = [Checkpoints(folder / "checkpoints").steps() for folder in folders(tmp_path / "one")]
    assert steps == [[10, 12], [5, 10]]
    with pytest.warns(StackingWarning):
        ended = as_one(plans, tmp_path / "one", After(0))
    assert [outcome.step for outcome in ended] == [12, 10]
    with pytest.warns(StackingWarning):
        as_one(plans, tmp_path / "one")
    for mine, its in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), strict=True):
        assert (mine / "metrics.jsonl").read_bytes() == (its / "metrics.jsonl").read_bytes()


def test_an_optimizer_that_does_not_fit_leaves_the_seeds_to_train_alone(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = program.plans(model="plain")
    alone(plans, tmp_path / "alone")
    step = AdamW.step

    def short(self: AdamW, closure: None = None) -> None:
        weights = self.param_groups[0]["params"]
        if weights[0].dim() == 3:
            weights[0].data.fill_(torch.nan)  # it may have begun
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(self, closure)

    monkeypatch.setattr(AdamW, "step", short)
    with pytest.warns(StackingWarning, match="not enough memory for the optimizer state"):
        as_one(plans, tmp_path / "one")
    for mine, its in zip(folders(tmp_path / "one"), folders(tmp_path / "alone"), strict=True):
        assert (mine / "metrics.jsonl").read_bytes() == (its / "metrics.jsonl").read_bytes()


def test_one_seed_that_fails_leaves_the_others_as_they_are(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = program.plans(model="plain")
    alone(plans, tmp_path / "alone")
    gradients = StackedStep._compute_gradients

    def spoiling(self: StackedStep, items: np.ndarray) -> torch.Tensor:
        values = gradients(self, items)
        if self._first.progress.step == 7:
            for weight in self._weights.values():
                weight.data[0] = torch.nan
        return values

    monkeypatch.setattr(StackedStep, "_compute_gradients", spoiling)
    first, second = training_together.train_together(plans, folders(tmp_path / "one"), device="cpu")
    assert isinstance(first, RunError)
    assert "became NaN or infinite at step 9" in first.message
    assert isinstance(second, evaluation.Outcome)
    assert_alike(folders(tmp_path / "one")[1], folders(tmp_path / "alone")[1])


def test_a_folder_that_holds_something_else_leaves_the_others_as_they_are(program: Program, tmp_path: Path) -> None:
    first, second = folders(tmp_path)
    first.mkdir()
    (first / "letter.txt").touch()
    ended = training_together.train_together(
        program.plans(model="plain", **{"train.steps": "2"}), [first, second], device="cpu"
    )
    assert isinstance(ended[0], RunError)
    assert isinstance(ended[1], evaluation.Outcome)


@pytest.mark.filterwarnings("ignore::archlang.train.step.memory.MemoryWarning")
@pytest.mark.parametrize(
    ("recipe", "most", "said"),
    [
        ("bits", 5, "2 seeds at a time; continuing with 1"),
        ("lookup", 9, "2 seeds at a time; continuing with 1"),
        ("lookup", 3, "8 samples at a time; continuing with 4"),
    ],
)
def test_memory_that_does_not_suffice_halves_the_seeds_then_the_samples(
    recipe: str, most: int, said: str, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = program.plans(recipe, model="plain")
    as_one(plans, tmp_path / "whole")
    backward = StackedStep._backward

    def short(self: StackedStep, runs: slice, items: np.ndarray, *others: Any) -> torch.Tensor:  # Any: as it has
        if items.size > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return backward(self, runs, items, *others)

    monkeypatch.setattr(StackedStep, "_backward", short)
    with pytest.warns(MemoryWarning, match=said):
        as_one(plans, tmp_path / "parts")
    for whole, parts in zip(folders(tmp_path / "whole"), folders(tmp_path / "parts"), strict=True):
        assert_same_curves(whole, parts)
