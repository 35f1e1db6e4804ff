"""CFQ: the published preprocessing, and files of the published format."""

import io
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from archlang.tasks.cfq import QUERY, QUESTION, Cfq, objects, query, question
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import spell
from tests.tasks.conftest import Offer
from tests.tasks.every import answers_of

SAMPLE = (
    Path(os.environ.get("ARCHLANG_DATA") or Path(__file__).parents[3] / "shared" / "data") / "cfq/example_dataset.json"
)
INDICES = {"trainIdxs": [0, 2, 5], "devIdxs": [1], "testIdxs": [4, 3]}
ITEMS = [
    {
        "complexityMeasures": {"parseTreeLeafCount": number},
        QUESTION: f"Did M{number} 's director edit M9?",
        QUERY: f"SELECT count(*) WHERE {{\n?x0 ns:film.editor.film M9 .\n?x0 ns:film.director.film M{number}\n}}",
    }
    for number in range(6)
]  # fmt: skip


def offered(offer: Offer, items: object = ITEMS, indices: object = INDICES) -> None:
    offer({"cfq/dataset.json": json.dumps(items), "cfq/splits/mcd1.json": json.dumps(indices)})


def test_published_examples_are_preprocessed_as_by_the_published_program() -> None:
    if not SAMPLE.exists():
        pytest.skip(f"{SAMPLE} is missing; set ARCHLANG_DATA to the folder of published data")
    for item in json.loads(SAMPLE.read_text(encoding="utf-8")):
        # The published examples are cut already.
        assert " ".join(question(item[QUESTION])).replace("' s", "'s") == item[QUESTION]
        words = query(item[QUERY])
        assert words[:2] in (["SELECT", "count"], ["SELECT", "DISTINCT"])
        assert not any(word.startswith(("ns:", "m.")) or "\n" in word for word in words)
        # Within a path, prefixes stay.
        assert sum(word.count("ns:") for word in words) == item[QUERY].count("/ns:") + item[QUERY].count("|ns:")


def test_splits_are_those_of_the_files(offer: Offer) -> None:
    offered(offer)
    task = Cfq(word_limit=30)
    for split, numbers in (("train", [0, 2, 5]), ("valid", [1]), ("test", [4, 3])):
        items = task.generate(split, 0)
        for index, number in enumerate(numbers):
            assert spell(task, items.inputs["source"][index]) == f"[B] Did M{number} ' s director edit M9 ? [E]"
            asked = f"SELECT count ( * ) WHERE {{ ?x0 film.editor.film M9 . ?x0 film.director.film M{number} }} [E]"
            assert spell(task, answers_of(items)[index]) == asked
        assert items.groups["length"].tolist() == [10] * len(numbers)


def test_the_vocabulary_is_padded(offer: Offer) -> None:
    offered(offer)
    task = Cfq(word_limit=30)
    assert len(task.vocabulary) == 32
    assert (task.vocabulary[task.begin], task.vocabulary[task.end]) == ("[B]", "[E]")
    words = [text for text in task.vocabulary[:30] if not text.startswith("<unused>")]
    assert words == sorted(words)
    with pytest.raises(
        TaskError, match=r"word_limit = 8 is too small for cfq, whose files have (\d+) .*: write word_limit = \1"
    ):
        _ = Cfq(word_limit=8).vocabulary


@pytest.mark.parametrize(
    ("items", "indices", "reason"),
    [
        ({"a": 1}, INDICES, "dataset.json of cfq is malformed"),
        ([1], INDICES, "dataset.json of cfq is malformed"),
        ([{QUESTION: "Did M0?"}], INDICES, "sparqlPatternModEntities"),
        (ITEMS, {"trainIdxs": [6]}, "an index is not below 6"),
        (ITEMS, {"devIdxs": []}, "mcd1.json of cfq is malformed"),
        (ITEMS, [], "mcd1.json of cfq is malformed"),
    ],
)
def test_malformed_files_are_refused(items: object, indices: object, reason: str, offer: Offer) -> None:
    offered(offer, items, indices)
    with pytest.raises(TaskError, match=reason):
        Cfq().generate("train", 0)


def test_only_the_random_split_has_one_distribution() -> None:
    assert Cfq(split="random").in_distribution == ("train", "valid", "test")
    assert Cfq(split="mcd1").in_distribution == ("train",)


@pytest.mark.parametrize("text", ["[{}", "[{} 1]", '[{"a": nope}]', "[{},]", b"[{}, \xff]"])
def test_anything_but_an_array_of_objects_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        list(objects(io.BytesIO(text.encode() if isinstance(text, str) else text)))


def test_memory_does_not_grow_with_the_file() -> None:
    filling = {"rule": "x" * 200, "tree": [{"node": number} for number in range(60)]}
    stream = io.BytesIO(json.dumps([{"number": number, "filling": filling} for number in range(3_000)]).encode())
    tracemalloc.start()
    try:
        numbers = sum(item["number"] for item in objects(stream))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert numbers == 3_000 * 2_999 // 2
    assert peak < 2_000_000 < len(stream.getvalue())
