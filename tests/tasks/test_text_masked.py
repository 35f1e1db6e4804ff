"""Hidden tokens of texts: as many as the statics say, other ones in each copy, and the same in each run."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.kit import user_files
from archlang.tasks.kit.drawing import shared_rows
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import digest
from archlang.tasks.text import Text
from archlang.tasks.text_masked import TextMasked
from archlang.train.runs.inputs import FieldFormat
from tests.tasks.every import answers_of, marks_of, rows_of

TEXTS = [f"text {number} has some words " * (number % 5 + 1) for number in range(80)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return str(tmp_path / "a.jsonl")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rate", [0.01, 0.15, 1.0])
def test_the_chosen_tokens_count_and_the_others_are_as_they_were(path: str, rate: float, packed: bool) -> None:
    task = TextMasked(path=path, length=20, rate=rate, packed=packed, copies=1)
    items, windows = (each.generate("train", 0) for each in (task, Text(path=path, length=20, packed=packed)))
    ends = {255: 254}  # `[E]` of both
    assert rows_of(answers_of(items)) == [[ends.get(x, x) for x in row] for row in rows_of(answers_of(windows))]
    for x, target, scored in zip(*map(rows_of, (items.inputs["x"], answers_of(items), marks_of(items))), strict=True):
        assert sum(scored) == max(round(rate * len(target)), 1)
        assert all(scored[place] or x[place] == target[place] for place in range(len(x)))
    assert items.inputs["x"].values.dtype == np.uint8


def test_eight_of_ten_chosen_tokens_are_the_mask_and_one_is_random(path: str) -> None:
    task = TextMasked(path=path, copies=20)
    items = task.generate("train", 0)
    scored, mask = marks_of(items).values, len(task.vocabulary) - 1
    x, target = items.inputs["x"].values[scored], answers_of(items).values[scored]
    assert task.vocabulary[mask] == "[M]"
    assert mask not in answers_of(items).values
    other = x[(x != mask) & (x != target)]
    shares = np.mean(x == mask), len(other) / len(x), np.mean(x == target)
    assert shares == pytest.approx((0.8, 0.1, 0.1), abs=0.015)
    # Any byte may be the random one, and no mark.
    assert np.histogram(other, 11, (0, 253))[0] / len(other) == pytest.approx(1 / 11, abs=0.03)
    places = np.concatenate([np.flatnonzero(row) / len(row) for row in rows_of(marks_of(items)) if len(row) > 50])
    assert np.histogram(places, 5, (0, 1))[0] / len(places) == pytest.approx(0.2, abs=0.02)


def test_shares_of_the_mask_and_of_random_tokens_are_statics(path: str) -> None:
    items = TextMasked(path=path, masked=0.0, random=0.0).generate("train", 0)
    assert (items.inputs["x"].values == answers_of(items).values).all()
    task = TextMasked(path=path, masked=1.0, random=0.0, by="characters", words=40)
    items = task.generate("train", 0)
    assert set(items.inputs["x"].values[marks_of(items).values]) == {42}
    with pytest.raises(TaskError, match=r"masked \+ random <= 1"):
        TextMasked(path=path, masked=0.8, random=0.3)


def test_copies_hide_other_tokens_and_runs_the_same(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = TextMasked(path=path, length=40, valid_share=0.2, copies=3)
    train, valid = task.generate("train", 0), task.generate("valid", 0)
    windows = {
        split: len(Text(path=path, length=40, valid_share=0.2).generate(split, 0)) for split in ("train", "valid")
    }
    assert (len(train), len(valid)) == (3 * windows["train"], windows["valid"])
    copies = [train.select(np.arange(windows["train"]) + number * windows["train"]) for number in range(3)]
    for one, other in pairwise(copies):
        assert (answers_of(one).values == answers_of(other).values).all()
        assert 0.1 < (marks_of(one).values != marks_of(other).values).mean() < 0.4
    alone = TextMasked(path=path, length=40, valid_share=0.2, copies=1)
    assert digest(alone.generate("train", 1)) == digest(copies[0])
    # However many documents are read at a time.
    monkeypatch.setattr(user_files, "_WORDS", 100)
    assert digest(alone.generate("train", 0)) == digest(copies[0])


def test_a_stream_and_a_mixture_are_masked_too(path: str) -> None:
    streamed = TextMasked(path=path, valid=path, stream=1_000, copies=2).generate("train", 0)
    assert len(marks_of(streamed)) > 10
    assert 0.1 < marks_of(streamed).values.mean() < 0.2
    mixed = TextMasked(path=(path,), weights=(1,), copies=2).generate("train", 0)
    assert mixed.frequencies is not None
    assert mixed.frequencies.sum() == pytest.approx(1)
    assert len(mixed) == 2 * len(TEXTS)


def test_a_typed_text_has_no_marks_and_answers_are_tokens(path: str) -> None:
    task = TextMasked(path=path)
    x = task.generate("train", 0).inputs["x"]
    assert FieldFormat.of(task, "x", x).encode("text").tolist() == [*b"text"]
    assert task.class_names == task.vocabulary


def test_different_texts_that_are_hidden_in_one_way_are_not_shared_rows(tmp_path: Path) -> None:
    for name, text in (("a.txt", "so"), ("b.txt", "up")):
        (tmp_path / name).write_text(text)
    task = TextMasked(path=str(tmp_path / "a.txt"), valid=str(tmp_path / "b.txt"), rate=1.0, masked=1.0, random=0.0)
    train, valid = task.generate("train", 0), task.generate("valid", 0)
    assert train.inputs["x"][0].tolist() == valid.inputs["x"][0].tolist()
    assert (shared_rows(valid, train), shared_rows(valid, valid)) == (0, 1)
