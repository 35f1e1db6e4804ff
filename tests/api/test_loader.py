"""The batches of `archlang.loader` are those of training, and torch's own modules and losses take them."""

from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

import archlang
from archlang.api.loader import IGNORED, Loader
from archlang.tasks.kit.mistakes import TaskError
from archlang.train.record.mistakes import RunError

TINY = "parity[train = 1..4, test = 5..6, train_size = 20, valid_size = 7, test_size = 3]"
FLIPFLOP = "flipflop[length = 8, train_size = 6, iid_size = 2, valid_size = 2, test_size = 2]"


def test_embed_and_cross_entropy_take_a_batch() -> None:
    batches = archlang.loader(TINY, batch=8)
    embed, head = torch.nn.Embedding(batches.sizes["vocab"], 4), torch.nn.Linear(4, batches.sizes["classes"])
    for batch in batches:
        assert cross_entropy(head(embed(batch.fields["x"]).mean(1)), batch.targets).isfinite()
        assert batch.fields["x"].shape[1] == int(batch.lengths["x"].max())


def test_positions_that_do_not_count_are_ignored() -> None:
    batches = archlang.loader(FLIPFLOP, batch=4)
    batch = next(iter(batches))
    assert batch.scored is not None
    assert torch.equal(batch.targets == IGNORED, ~batch.scored)
    logits = torch.zeros(*batch.targets.shape, batches.sizes["vocab"])
    loss = cross_entropy(logits.transpose(1, 2), batch.targets)
    assert float(loss) == pytest.approx(torch.tensor(float(batches.sizes["vocab"])).log().item(), rel=1e-5)


def test_a_seed_fixes_the_batches_and_each_epoch_has_others() -> None:
    def epoch(batches: Loader) -> list[list[list[int]]]:
        return [batch.fields["x"].tolist() for batch in batches]

    batches = archlang.loader(TINY, batch=8, seed=3)
    first, second = epoch(batches), epoch(batches)
    assert first != second
    assert first == epoch(archlang.loader(TINY, batch=8, seed=3))
    assert len(first) == len(batches) == 3, "the last 4 of 20 items do not fill a batch"
    assert first[:2] == epoch(archlang.loader(TINY, batch=8, seed=3, drop_last=True))


def test_another_split_yields_each_item_once() -> None:
    batches = archlang.loader(TINY, "valid", batch=3)
    assert [len(batch.targets) for batch in batches] == [3, 3, 1]
    assert len(batches) == 3


def test_a_module_takes_the_batches_of_its_recipe(tmp_path: Path) -> None:
    program = tmp_path / "m.arch"
    program.write_text(
        "model m(source: tokens[n], target: tokens[m]) -> logits[m, vocab] {\n"
        "    return embed[8](target) |> attention[2](embed[8](source)) |> linear[vocab]\n}\n"
        "recipe r {\n task reverse[train_size = 4]\n model m\n train adamw[steps = 1]\n}\n"
    )
    (batch,) = archlang.loader(program, batch=4)
    logits = archlang.load(program)(*batch.fields.values(), lengths=batch.lengths)
    assert cross_entropy(logits.flatten(0, 1), batch.targets.flatten()).isfinite()


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (TINY, {"split": "best"}, "parity has no split `best`"),
        (TINY, {"batch": 0}, "batch = 0 is out of bounds for parity"),
        (TINY, {"seed": -1}, "seed = -1 is out of bounds for parity"),
        (
            'text[path = "a.jsonl", valid = "b.jsonl", stream = 9]',
            {},
            "`train` of `text` is a stream, of which `loader`",
        ),
    ],
)
def test_a_wrong_argument_is_named(task: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        archlang.loader(task, **options)  # type: ignore[arg-type] # wrong on purpose


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(RunError, match="`foo` is not a device"):
        archlang.loader(TINY, device="foo")


def test_an_unknown_task_is_an_error_of_the_program() -> None:
    with pytest.raises(archlang.ProgramError):
        archlang.loader("partiy")


def test_targets_of_pointing_are_positions_of_a_field_and_its_padding_is_marked() -> None:
    batches = archlang.loader("argsort[numbers = 9, train = 2..6, test = [8], train_size = 8]", batch=8)
    (batch,) = batches
    assert batch.choices is not None
    scores = -batch.fields["x"].float()[:, None, :].expand(-1, batch.targets.shape[1], -1)
    smallest = scores.masked_fill(~batch.choices[:, None], -torch.inf).argmax(-1)[:, 0]
    assert torch.equal(smallest, batch.targets[:, 0]), "the first answer points at the smallest number"
    assert (batch.targets[~batch.choices] == IGNORED).all()
