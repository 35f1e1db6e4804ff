"""A run begins with the weights of another run, and leaves those alone that are frozen."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

import archlang
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.train.record.mistakes import RunError
from archlang.train.runs.training import describe_start, train, train_together
from archlang.train.stop import Stop
from archlang.train.trainer import Watcher

PROGRAM = """
model first[d = 16](x: tokens[n]) -> logits[n, vocab] {
    let table = embed[d]
    let mix = attention[heads = 1, causal = true]
    let head = linear[vocab]
    h = table(x)
    return h + mix(h) |> head
}

model second[d = 16](x: tokens[n]) -> logits[n, vocab] {
    let table = embed[d]
    let mix = attention[heads = 1, causal = true]
    let gate = linear[d, bias = false]
    let head = linear[vocab]
    let unlike = linear[d]
    h = table(x)
    u = h + mix(h)
    return copy_gate(sigmoid(gate(h)), unlike(u), h) |> head
}

recipe first {
    task  flipflop[length = 16, train_size = 40, iid_size = 8, valid_size = 8, test_size = 8]
    model first
    train adamw[lr = 1e-2, batch = 8, steps = 6, every = 2]
}

recipe second from first {
    model second
    train adamw[frozen = [loaded]]
}

recipe slow from first {
    model second
    train adamw[rates.loaded = 1e-30, rates.mix = 0.1]
}
"""

OTHER = "model other(x: tokens[n]) -> logits[n, 7] { return embed[3](x) |> linear[7] }"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and a run of its first recipe."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "program.arch").write_text(PROGRAM)
    train(plan_recipe(folder / "program.arch", "first"), folder / "first", device="cpu")
    return folder


@pytest.fixture
def program(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path, dirs_exist_ok=True)) / "program.arch"


def second(program: Path, recipe: str = "second", **sets: str) -> Plan:
    source = {"train.weights": json.dumps(str(program.parent / "first"))}
    return plan_recipe(program, recipe, source | {f"train.{name}": value for name, value in sets.items()})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(archlang.load(folder).state_dict())


def test_what_fits_is_loaded_and_frozen_and_the_rest_is_trained(program: Path) -> None:
    before, folder = weights(program.parent / "first"), program.parent / "second"
    train(second(program), folder, device="cpu")
    after, start = (
        dict(archlang.load_run(folder, "last").module.state_dict()),
        json.loads((folder / "start.json").read_text()),
    )
    assert {name for name in after if name.startswith(("gate.", "unlike."))} == set(start["new"])
    assert set(start["loaded"]) == set(before)
    assert start["unused"] == []
    assert all(torch.equal(after[name], before[name]) for name in before)
    earlier = archlang.load_run(folder, checkpoint=4).module.state_dict()
    assert not torch.equal(after["gate.weight"], earlier["gate.weight"])


def test_instances_and_paths_are_frozen_by_their_names(program: Path) -> None:
    before, folder = weights(program.parent / "first"), program.parent / "second"
    train(second(program, frozen='[table, "mix.query"]'), folder, device="cpu")
    after = weights(folder)
    unchanged = {name for name in before if torch.equal(after[name], before[name])}
    assert unchanged == {"table.weight", "mix.query.weight"}


def test_a_weight_of_another_shape_is_new(program: Path) -> None:
    folder = program.parent / "second"
    source = json.dumps(str(program.parent / "first"))
    sets = {"train.weights": source, "train.frozen": "[]", "model.d": "24"}
    train(plan_recipe(program, "second", sets), folder, device="cpu")
    start = json.loads((folder / "start.json").read_text())
    assert start["loaded"] == ["head.bias"]
    assert "table.weight" in start["new"]
    assert "table.weight" in start["unused"]


def test_loaded_weights_have_a_rate_of_their_own_and_named_ones_another(program: Path) -> None:
    before, folder = weights(program.parent / "first"), program.parent / "second"
    train(second(program, "slow"), folder, device="cpu")
    after = weights(folder)
    same = {name for name in before if torch.equal(after[name], before[name])}
    assert same == {"table.weight", "head.weight", "head.bias"}


class StopsAt(Watcher):
    def __init__(self, stop: Stop, number: int) -> None:
        self.stop, self.number = stop, number

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self.stop.requested = step >= self.number


@pytest.mark.parametrize("recipe", ["second", "slow"])
def test_a_run_that_is_resumed_ends_as_one_that_was_not(program: Path, recipe: str) -> None:
    whole, parts = program.parent / "whole", program.parent / "parts"
    train(second(program, recipe), whole, device="cpu")
    stop = Stop()
    assert train(second(program, recipe), parts, device="cpu", stop=stop, watcher=StopsAt(stop, 3)).step == 3
    train(second(program, recipe), parts, device="cpu")
    assert all(torch.equal(*pair) for pair in zip(weights(whole).values(), weights(parts).values(), strict=True))
    assert (whole / "start.json").read_text() == (parts / "start.json").read_text()


def test_several_seeds_begin_with_the_same_weights(program: Path) -> None:
    source = {"train.weights": json.dumps(str(program.parent / "first"))}
    plans = [plan_recipe(program, "second", {**source, "seed": seed}) for seed in ("1", "2")]
    folders = [program.parent / seed for seed in ("a", "b")]
    train_together(plans, folders, device="cpu")
    first, second = map(weights, folders)
    assert torch.equal(first["table.weight"], second["table.weight"])
    assert not torch.equal(first["gate.weight"], second["gate.weight"])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"weights": '"gone"'}, "gone is neither a run nor a saved model"),
        ({"frozen": "[table, mix, gate, head, unlike]"}, "leaves no weight to train"),
        ({"weights": '"other"', "frozen": "[]"}, "no weight of .*other has a name and a shape of the model"),
    ],
)
@pytest.mark.parametrize("begin", [partial(train, device="cpu"), describe_start])
def test_what_cannot_begin_is_refused_by_a_dry_run_too(
    program: Path, settings: dict[str, str], reason: str, begin: Callable[[Plan, Path], object]
) -> None:
    (program.parent / "other.arch").write_text(OTHER)
    archlang.save(archlang.load(program.parent / "other.arch", vocab=5), program.parent / "other")
    settings = {name: value.replace('"o', f'"{program.parent}/o') for name, value in settings.items()}
    with pytest.raises(RunError, match=reason):
        begin(second(program, **settings), program.parent / "second")
    assert not (program.parent / "second").exists()


def test_a_dry_run_says_which_weights_fit(program: Path) -> None:
    source, folder = program.parent / "first", program.parent / "second"
    text = describe_start(second(program), folder)
    assert text.startswith(f"begins with {len(weights(source))} weights of {source}; new: `gate.weight`, `unlike.")
    assert describe_start(plan_recipe(program, "first"), folder) == ""
    assert not folder.exists()


def test_a_path_to_freeze_that_ends_in_no_weight_is_refused(program: Path) -> None:
    with pytest.raises(RunError, match="names `mix.wieght`, where the model has no weights"):
        train(second(program, frozen='["mix.wieght"]'), program.parent / "run", device="cpu")
