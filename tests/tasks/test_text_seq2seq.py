"""Hidden spans of texts, and the rest after a prefix: both sides together are the text."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archlang.tasks.kit import user_files
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged, Split, digest
from archlang.tasks.kit.task import DecodableTask
from archlang.tasks.text import Text
from archlang.tasks.text_seq2seq import TextSeq2Seq
from tests.tasks.every import answers_of, rows_of

TEXTS = [f"text {number} has some words " * (number % 5 + 1) for number in range(80)]


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in (*TEXTS, "x", "yz")))
    return str(tmp_path / "a.jsonl")


def parts(tokens: list[int], sentinels: range) -> dict[int, list[int]]:
    """Returns the tokens before the first sentinel, with the key -1, and after each."""
    found: dict[int, list[int]] = {-1: []}
    for token in tokens:
        if token in sentinels:
            assert token == sentinels[-len(found)]
            found[token] = []
        else:
            found[[*found][-1]].append(token)
    return found


def restored(task: TextSeq2Seq, items: Split) -> list[list[int]]:
    """Returns the texts of pairs, after a check of their marks and sentinels."""
    sentinels, texts = range(task.words + 3, task.words + 3 + task.sentinels), []
    for index in range(len(items)):
        source, target, answer = (
            row[index].tolist() for row in (items.inputs["source"], items.inputs["target"], answers_of(items))
        )
        assert (source[0], source[-1], answer[-1]) == (task.begin, task.end, task.end)
        assert target == [task.begin, *answer[:-1]]
        shown, hidden = parts(source[1:-1], sentinels), parts(answer[:-1], sentinels)
        assert shown.keys() == hidden.keys()
        assert hidden.pop(-1) == []
        assert all(hidden.values())
        assert all([*shown.values()][1:-1])
        texts.append(shown[-1] + [token for key in hidden for token in hidden[key] + shown[key]])
    return texts


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("length", [2, 30, 256])
def test_spans_in_place_of_their_sentinels_are_the_text(path: str, length: int, packed: bool) -> None:
    task = TextSeq2Seq(path=path, length=length, packed=packed)
    windows = rows_of(answers_of(Text(path=path, length=length, packed=packed).generate("train", 0)))
    stripped = [row[:-1] if row[-1] == task.end else row for row in windows]
    # A window of one token has nothing to hide.
    assert restored(task, task.generate("train", 0)) == [row for row in stripped if len(row) > 1]


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.floats(1, 20), st.integers(1, 100))
def test_as_many_tokens_and_spans_are_hidden_as_the_statics_say(
    length: int, rate: float, span: float, sentinels: int
) -> None:
    task = TextSeq2Seq.unchecked(path="", rate=rate, span=span, sentinels=sentinels)
    texts = Ragged.table(np.arange(5 * length, dtype=np.int32).reshape(5, length) % 200)
    items = task.items(Split({"x": texts}, texts), 0, 0)
    assert restored(task, items) == rows_of(texts)
    hidden = min(max(round(rate * length), 1), length - 1)
    spans = min(max(round(hidden / span), 1), hidden, length - hidden + 1, sentinels)
    assert set(items.inputs["source"].lengths) == {length - hidden + spans + 2}
    assert set(answers_of(items).lengths) == {hidden + spans + 1}


def test_sentinels_are_the_last_tokens_and_the_first_one_is_the_very_last(path: str) -> None:
    task = TextSeq2Seq(path=path, sentinels=3)
    assert task.vocabulary[-5:] == ("[E]", "[B]", "<extra_id_2>", "<extra_id_1>", "<extra_id_0>")
    assert isinstance(task, DecodableTask)
    assert (task.vocabulary[task.begin], task.vocabulary[task.end]) == ("[B]", "[E]")


def test_spans_are_anywhere_and_of_many_lengths(path: str) -> None:
    task = TextSeq2Seq(path=path, packed=True, length=100, copies=200)
    lengths, places = [], []
    for row in rows_of(answers_of(task.generate("train", 0))):
        hidden = parts(row[:-1], range(256, 356))
        lengths += [len(hidden[key]) for key in [*hidden][1:]]
    assert np.mean(lengths) == pytest.approx(3, abs=0.01)
    assert {1, 2, 3, 6, 9} <= set(lengths)
    for row in rows_of(task.generate("train", 0).inputs["source"]):
        places += np.flatnonzero(np.array(row) >= 256).tolist()
    counts = np.histogram(places, 5, (0, max(places)))[0]
    assert counts / counts.sum() == pytest.approx(0.2, abs=0.02)


def test_a_prefix_and_the_rest_are_the_text(path: str) -> None:
    task = TextSeq2Seq(path=path, objective="prefix", length=10, copies=40)
    items = task.generate("train", 0)
    windows = rows_of(answers_of(Text(path=path, length=10).generate("train", 0)))
    stripped = [row for window in windows if len(row := window[:-1] if window[-1] == task.end else window) > 1]
    sides = list(zip(*map(rows_of, (items.inputs["source"], answers_of(items))), strict=True))
    assert [source[1:-1] + answer[:-1] for source, answer in sides] == stripped * 40
    # A window of ten tokens is cut at each of nine places.
    cuts = np.array([len(source) - 2 for source, answer in sides if len(source) + len(answer) == 13])
    assert np.bincount(cuts)[1:] / len(cuts) == pytest.approx(np.full(9, 1 / 9), abs=0.01)


@pytest.mark.parametrize("objective", ["spans", "prefix"])
def test_copies_hide_other_parts_and_runs_the_same(path: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statics = {"path": path, "objective": objective, "length": 40, "valid_share": 0.2}
    first, both = (TextSeq2Seq(**statics, copies=copies).generate("train", 0) for copies in (1, 2))
    assert len(both) == 2 * len(first)
    assert digest(both.select(np.arange(len(first)))) == digest(first)
    other = both.select(np.arange(len(first)) + len(first))
    sources = zip(*map(rows_of, (first.inputs["source"], other.inputs["source"])), strict=True)
    assert sum(one != another for one, another in sources) > 0.9 * len(first)
    monkeypatch.setattr(user_files, "_WORDS", 100)
    assert digest(TextSeq2Seq(**statics).generate("train", 0)) == digest(first)


def test_a_mistake_in_a_static_is_refused(path: str) -> None:
    for statics, condition in (
        ({"rate": 1.0}, "rate < 1"),
        ({"span": 0.5}, "span >= 1"),
        ({"length": 1}, "length >= 2"),
    ):
        with pytest.raises(TaskError, match=condition):
            TextSeq2Seq(path=path, **statics)
