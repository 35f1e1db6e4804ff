"""Documents of the user's own as windows of tokens."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE as Model
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from torch import nn

import archlang
from archlang.tasks.kit import cache, user_files
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged, digest
from archlang.tasks.kit.tokenizer import token_cut, trained_tokenizer
from archlang.tasks.text import Text
from archlang.train.data import DeviceSplit, Sampler
from archlang.train.record.mistakes import RunError
from archlang.train.runs.inputs import FieldFormat
from tests.closeness import close
from tests.tasks.every import answers_of
from tests.test_docs import fences

POEM = "so much depends\nupon\na réd wheel 車\n" * 3


def documents(task: Text, split: str = "train") -> list[list[int]]:
    """Returns the tokens that count of the documents of a split."""
    items = task.generate(split, 0)
    found: list[list[int]] = []
    for index, target in enumerate(map(answers_of(items).__getitem__, range(len(items)))):
        if items.groups["window"][index] == 0:
            found.append([])
            assert items.inputs["x"][index][0] == task.words + 2
        shifted = np.where(target == task.words + 1, task.words + 2, target)[:-1]
        assert np.array_equal(items.inputs["x"][index][1:], shifted)
        marks = np.ones(len(target), np.bool_) if items.scored is None else items.scored[index]
        found[-1] += target[marks].tolist()
    return found


def spelled(task: Text, tokens: list[int]) -> str:
    return "".join(task.vocabulary[token] for token in tokens)


@pytest.mark.parametrize(("length", "stride"), [(1, 1), (7, 0), (7, 3), (10, 1), (500, 0), (500, 7)])
@pytest.mark.parametrize("by", ["bytes", "characters"])
def test_each_token_of_a_document_counts_once_whatever_the_windows(
    tmp_path: Path, length: int, stride: int, by: str
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in (POEM, "", "no", POEM[:7])))
    task = Text(path=str(tmp_path / "a.jsonl"), length=length, stride=stride, by=by)
    train = task.generate("train", 0)
    assert max(train.inputs["x"].lengths) <= length
    tokens = (lambda text: list(text.encode())) if by == "bytes" else (lambda text: [*map(task.vocabulary.index, text)])
    assert documents(task) == [[*tokens(text), task.words + 1] for text in (POEM, "no", POEM[:7])]
    sizes = train.notes["bytes"].values
    assert sizes.sum() == sum(len(text.encode()) for text in (POEM, "no", POEM[:7]))
    assert sizes.min() >= 0


def test_packed_windows_have_all_documents_one_after_another(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(50)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    task = Text(path=str(tmp_path / "a.jsonl"), length=32, packed=True, valid_share=0.5)
    read = []
    for split in task.split_names():
        items = task.generate(split, 0)
        assert set(items.inputs["x"].lengths[:-1].tolist()) == {32}
        (document,) = documents(task, split)
        found = spelled(task, document).split("[E]")[:-1]
        assert items.notes["bytes"].values.sum() == sum(map(len, found))
        read += found
    assert sorted(read) == sorted(texts)


def test_documents_of_a_packed_window_do_not_see_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in ("one", "three", "six")))
    texts = {"path": str(tmp_path / "a.jsonl")}
    packed, alone = (
        [items.inputs["x"][index].tolist() for index in range(len(items))]
        for items in (task.generate("train", 0) for task in (Text(**texts, packed=True), Text(**texts)))
    )
    assert packed == [[token for tokens in alone for token in tokens]]
    (page,) = (text for text in fences(Path("docs/data.md"), "arch") if "packed_gpt" in text)
    (tmp_path / "page.arch").write_text(page.partition("recipe")[0])
    torch.manual_seed(0)
    model = archlang.load(tmp_path / "page.arch", "packed_gpt", vocab=256).double().eval()
    nn.init.normal_(next(weight for weight in model.parameters() if weight.shape == (128, 32)))
    with torch.no_grad():
        together = model(torch.tensor(packed))[0]
        close(together, torch.cat([model(torch.tensor([tokens]))[0] for tokens in alone]))
        # A window that begins within a document, and its continuation.
        close(model(torch.tensor([packed[0][2:]]))[0, 2:], together[4:])
        begun = torch.tensor([packed[0][:7]])
        expected = begun
        for _ in range(3):
            expected = torch.cat([expected, model(expected)[:, -1:].argmax(-1)], 1)
        assert model.decode(begin=begun, limit=3).tokens.equal(expected[:, 7:])


def test_bytes_need_one_byte_a_token(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    task = Text(path=str(tmp_path / "a.txt"))
    assert len(task.vocabulary) == 256
    assert task.generate("train", 0).inputs["x"].values.itemsize == 1
    with pytest.raises(TaskError, match=r"words = 252 is too small .* words = 253"):
        Text(path=str(tmp_path / "a.txt"), words=252).generate("train", 0)


def test_a_document_is_a_file_or_a_row(tmp_path: Path) -> None:
    texts = ["one\n\n two", "three", "four\tfive"]
    (tmp_path / "files").mkdir()
    for name, text in zip(("a.md", "b.txt", "c"), texts, strict=True):
        (tmp_path / "files" / name).write_text(text)
    (tmp_path / "files" / "d.py").touch()
    parquet.write_table(pyarrow.table({"body": texts}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    (tmp_path / "a.csv").write_text('body\n"one\n\n two"\nthree\n"four\tfive"\n')
    read = [
        [spelled(task, tokens) for tokens in documents(task)]
        for path in ("files", "files/*", "a.parquet", "a.jsonl", "a.csv")
        for task in [Text(path=str(tmp_path / path), text="body")]
    ]
    assert read == [[f"{text}[E]" for text in texts]] * 5


def test_errors_fit_texts(tmp_path: Path) -> None:
    for name in ("a.md", "b.csv"):
        (tmp_path / name).touch()
    with pytest.raises(TaskError, match=r"are \.csv and text: .* such as `\S*/\*\.md`"):
        Text(path=str(tmp_path)).generate("train", 0)
    with pytest.raises(TaskError, match=r"line 1 of \S*a\.md: expected a text: each document is empty"):
        Text(path=str(tmp_path / "a.md")).generate("train", 0)
    (tmp_path / "c.jsonl").write_text('{"text": null}\n{"text": "one"}\n')
    assert [spelled(task, tokens) for task in [Text(path=str(tmp_path / "c.jsonl"))] for tokens in documents(task)] == [
        "one[E]"
    ]


def test_a_long_text_is_several_documents_that_end_with_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    monkeypatch.setattr(user_files, "_DOCUMENT", 20)
    task = Text(path=str(tmp_path / "a.txt"), by="characters")
    assert [spelled(task, tokens) for tokens in documents(task)] == [
        "so much depends\nupon\n[E]", "a réd wheel 車\nso much depends\n[E]",
        "upon\na réd wheel 車\nso much depends\n[E]", "upon\na réd wheel 車\n[E]",
    ]  # fmt: skip


def test_a_document_of_418_000_characters_trains_in_windows(tmp_path: Path) -> None:
    text = "".join(np.random.default_rng(0).choice(list("abcdefg \n"), 418_000))
    (tmp_path / "a.txt").write_text(text)
    task = Text(path=str(tmp_path / "a.txt"), length=512)
    train = cache.load("text", {}, task, "train", 0)
    assert len(train) == -(-418_001 // 512)
    assert spelled(task, documents(task)[0]) == f"{text}[E]"


def test_valid_and_test_are_the_last_windows_of_a_single_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM * 10)
    whole = Text(path=str(tmp_path / "a.txt"), length=20).generate("train", 0)
    task = Text(path=str(tmp_path / "a.txt"), length=20, valid_share=0.1, test_share=0.2)
    parts = [task.generate(split, 0) for split in task.split_names()]
    assert [len(part) for part in parts] == [40, 6, 12]
    starts = np.cumsum([0, *map(len, parts)])
    for part, start in zip(parts, starts, strict=False):
        assert digest(part) == digest(whole.select(np.arange(start, start + len(part))))


def test_documents_are_drawn_by_their_text_or_named_by_files(tmp_path: Path) -> None:
    texts = [f"text {number} of many" for number in range(300)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (tmp_path / "b.txt").write_text("the last one")
    task = Text(path=str(tmp_path / "a.jsonl"), valid_share=0.2, test=str(tmp_path / "b.txt"), length=5)
    read = {split: [spelled(task, tokens)[:-3] for tokens in documents(task, split)] for split in task.split_names()}
    assert sorted([*read["train"], *read["valid"]]) == sorted(texts)
    assert len(read["valid"]) == 60
    assert read["test"] == ["the last one"]


def test_each_split_of_a_few_documents_has_one_and_equal_ones_are_together(tmp_path: Path) -> None:
    texts = ["one", "two", "two", "two", "three"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    task = Text(path=str(tmp_path / "a.jsonl"), valid_share=0.1, test_share=0.1)
    read = [{spelled(task, tokens)[:-3] for tokens in documents(task, split)} for split in task.split_names()]
    assert sorted(text for split in read for text in split) == ["one", "three", "two"]


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    """A byte-level tokenizer in the file `tokenizer.json`."""
    trained = Tokenizer(Model())
    trained.pre_tokenizer = ByteLevel(add_prefix_space=False)
    trained.decoder = Decoder()
    trainer = BpeTrainer(vocab_size=300, show_progress=False, initial_alphabet=ByteLevel.alphabet())
    trained.train_from_iterator([POEM], trainer)
    trained.save(str(tmp_path / "tokenizer.json"))
    return trained


def test_a_tokenizer_cuts_texts(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text(POEM)

    def task(words: int = 1_000, file: str = "tokenizer.json") -> Text:
        return Text(path=str(tmp_path / "a.txt"), tokenizer=str(tmp_path / file), words=words, length=9)

    ids = tokenizer.encode(POEM).ids
    assert len(ids) < len(POEM)
    assert documents(task()) == [[*ids, 1_001]]
    size = tokenizer.get_vocab_size()
    assert task().vocabulary[:size] == tuple(map(tokenizer.id_to_token, range(size)))
    assert task().generate("train", 0).notes["bytes"].values.sum() == len(POEM.encode())
    with pytest.raises(TaskError, match="words = 9 is too small"):
        _ = task(words=9).vocabulary
    for file, reason in (("a.txt", r"a\.txt is no tokenizer of text: .* cannot read it"), ("gone", "gone is missing")):
        with pytest.raises(TaskError, match=reason):
            _ = task(file=file).vocabulary


def test_a_typed_text_is_cut_and_decoded_by_the_tokenizer(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    file = tmp_path / "tokenizer.json"
    task = Text(path=str(tmp_path / "a.txt"), tokenizer=str(file), words=1_000, length=9)
    stored = FieldFormat.of(task, "x", task.generate("train", 0).inputs["x"]).model_dump_json()

    def read() -> FieldFormat:
        return FieldFormat.model_validate_json(stored)

    typed, tokens = read(), tokenizer.encode(POEM)
    assert typed.encode(POEM).tolist() == typed.encode(tokens.tokens).tolist() == [1_002, *tokens.ids]
    assert typed.join(["[B]", *tokens.tokens, "[E]"]) == f"[B]{POEM}[E]"
    with pytest.raises(RunError, match="`depend` is not a token of the task"):
        typed.encode(["depend"])
    file.unlink()
    assert read().encode(POEM).tolist() == [1_002, *tokens.ids]


BPE = {"by": "bpe", "words": 300, "length": 99}


def test_a_bpe_is_trained_on_train_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name, text in (("a.md", POEM), ("b.md", f"{POEM}wheels"), ("c.md", "barrow " * 50)):
        (tmp_path / name).write_text(text)

    def trained(**others: str) -> Text:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ARCHLANG_CACHE", str(tmp_path / f"cache{len(list(tmp_path.iterdir()))}"))
            task = Text(path=str(tmp_path / "[ab].md"), **BPE, **others)
            assert task.split_names() == ("train", *others)
            assert "_tokenizer" not in task.__dict__
            assert task.generate("train", 0)
            return task

    task, again = trained(), trained(test=str(tmp_path / "c.md"))
    assert task._tokenizer == again._tokenizer
    assert {"Ġwheel", "Ġdepends"} <= set(task.vocabulary)
    (_, whole), own = documents(task), Tokenizer.from_str(task._tokenizer)
    assert whole == [*own.encode(f"{POEM}wheels").ids, 301]
    assert not any("barrow" in word for word in again.vocabulary)


def test_a_bpe_reads_no_windows_of_valid_and_test(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two " * 100 + "barrow " * 50)
    task = Text(path=str(tmp_path / "a.txt"), valid_share=0.2, test_share=0.2, **BPE)
    assert not any("barrow" in word for word in task.vocabulary)
    assert sum(len(task.generate(split, 0)) for split in task.split_names()) > 3


@given(st.text(st.sampled_from(" \n\ta1_.!é車\x85\u3000\U0001f600\ud800") | st.characters(), max_size=40))
def test_a_bpe_cuts_as_its_package_does(text: str) -> None:
    content = trained_tokenizer([POEM, "a1 b2 \n\n  c"], 300)
    expected = Tokenizer.from_str(content).encode(text.encode(errors="replace").decode()).ids
    assert token_cut("text", content, is_own=True)(text).tolist() == expected


def test_a_run_keeps_its_bpe_whatever_its_files_hold_by_now(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    task = Text(path=str(tmp_path / "a.txt"), **BPE)
    field = FieldFormat.of(task, "x", task.generate("train", 0).inputs["x"])
    (tmp_path / "a.txt").write_text("other words entirely")
    restored = Text(path=str(tmp_path / "a.txt"), **BPE).restored(field.lexicon, (), {})
    assert restored.vocabulary == task.vocabulary
    assert documents(restored) == [[*field.encode("other words entirely")[1:], 301]]
    assert field.join([*map(task.vocabulary.__getitem__, field.encode(POEM)[1:])]) == POEM


def test_the_marks_of_a_model_of_others_are_tokens_of_its_tokenizer(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    ids, size = tokenizer.encode(POEM).ids, tokenizer.get_vocab_size()
    for begin, first in ((3, 3), (-1, 7)):
        task = Text(
            path=str(tmp_path / "a.txt"), tokenizer=str(tmp_path / "tokenizer.json"), words=size,
            begin_token=begin, end_token=7, length=999,
        )  # fmt: skip
        items = task.generate("train", 0)
        assert isinstance(items.targets, Ragged)
        assert items.inputs["x"].values.tolist() == [first, *ids]
        assert items.targets.values.tolist() == [*ids, 7]
        assert len(task.vocabulary) == size
        assert FieldFormat.of(task, "x", items.inputs["x"]).encode(POEM).tolist() == [first, *ids]


@pytest.fixture
def corpora(tmp_path: Path) -> tuple[str, str]:
    """A text of 300 sentences, and 60 documents in two files."""
    (tmp_path / "a.txt").write_text("the cat sat. " * 300)
    (tmp_path / "b").mkdir()
    for file in range(2):
        rows = (json.dumps({"text": f"document {number} of {file} " * 9}) for number in range(30))
        (tmp_path / "b" / f"{file}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    return str(tmp_path / "a.txt"), str(tmp_path / "b" / "*.jsonl")


@pytest.mark.parametrize("weights", [(0.7, 0.3), (1, 9), (0, 1), (1e308, 1e308)])
def test_training_items_are_drawn_from_corpora_by_their_weights(
    corpora: tuple[str, str], weights: tuple[float, float]
) -> None:
    task = Text(path=corpora, weights=weights, length=32, valid_share=0.1)
    data = DeviceSplit(task.generate("train", 0), torch.device("cpu"))
    corpus = task.generate("train", 0).groups["corpus"]
    for seed in (1, 2):
        sampler = Sampler(data.lengths, batch=16, seed=seed, frequencies=data.frequencies)
        drawn = corpus[np.concatenate([sampler.next() for _ in range(len(sampler))])]
        assert len(drawn) == len(corpus)
        assert np.bincount(drawn, minlength=2) == pytest.approx(
            np.divide(weights, max(weights)) / sum(np.divide(weights, max(weights))) * len(corpus), abs=1 + 1e-9
        )
    assert task.generate("valid", 0).frequencies is None
    assert Text(path=corpora, length=32).generate("train", 0).frequencies is None


@pytest.mark.parametrize("cut", [{}, {"by": "characters"}, {"by": "bpe", "words": 300}, {"packed": True}])
def test_a_mixture_has_the_items_of_each_corpus_alone(corpora: tuple[str, str], cut: dict[str, Any]) -> None:
    shared = {"length": 32, "valid_share": 0.1, **cut}
    task = Text(path=corpora, weights=(2, 1), **shared)
    assert task.group_names["corpus"] == ("a.txt", "*.jsonl")
    assert task.breakdown == "corpus"
    for split in task.split_names():
        items = cache.load("text", {"path": corpora}, task, split, 0)
        for number, path in enumerate(corpora):
            alone = Text(path=path, **shared).restored(task.lexicon, (), {}).generate(split, 0)
            mixed = items.select(items.groups["corpus"] == number)
            assert digest(replace(alone, groups={})) == digest(replace(mixed, groups={}, frequencies=None))


def test_a_mixture_has_one_vocabulary(corpora: tuple[str, str]) -> None:
    assert set(Text(path=corpora, by="characters", words=40).vocabulary[:24]) >= {*"the cat sat.document 01of"}
    merged = {"by": "bpe", "words": 270}
    assert {"Ġcat", "Ġdocument"} <= set(Text(path=corpora, **merged | {"words": 300}).vocabulary)
    assert Text(path=corpora[::-1], **merged).vocabulary == Text(path=corpora, **merged).vocabulary


def test_files_of_valid_belong_to_corpora(corpora: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("a cat")
    task = Text(path=corpora, valid=(str(tmp_path / "c.txt"), corpora[0]))
    valid = task.generate("valid", 0)
    assert spelled(task, answers_of(valid)[0].tolist()) == "a cat[E]"
    assert valid.groups["corpus"].tolist() == [0] + [1] * (len(valid) - 1)
    assert set(task.files()) == {corpora[0], str(tmp_path / "c.txt"), *map(str, (tmp_path / "b").iterdir())}


@pytest.mark.parametrize(
    ("statics", "message"),
    [
        ({"weights": (1,)}, "path of text has 2 values, and weights has 1"),
        ({"valid": "a.txt"}, "path of text has 2 values, and valid has 1"),
        ({"test": ("a.txt",)}, "path of text has 2 values, and test has 1"),
        ({"weights": (1, -0.5)}, "weights has -0.5, which is not a number of 0 or more"),
        ({"weights": (1, True)}, "weights has True, which is not a number of 0 or more"),
        ({"weights": (0, 0.0)}, "weights of text has zeros only"),
        ({"path": ()}, "path of text has no path"),
        ({"path": ("a.txt", "")}, "path of text has no path, or an empty one"),
        ({"path": ("a.txt", "a.txt")}, "path names a.txt twice"),
        ({"path": "a.txt", "weights": (1, 2)}, "path of text has 1 values, and weights has 2"),
        ({"path": ("a.txt", "a.pdf.gz", "b.arrow.gz")}, r"b\.arrow\.gz is neither CSV"),
        ({"valid": ("c.txt", "d.txt"), "stream": 100}, "text reads no list of paths as a stream"),
    ],
)
def test_a_mistake_in_a_mixture_is_named(statics: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        Text(**{"path": ("a.txt", "b.txt"), **statics})


def test_a_missing_corpus_is_named(corpora: tuple[str, str], tmp_path: Path) -> None:
    for absent, message in (("c.txt", r"c\.txt is missing"), ("c/*.txt", r"no file matches \S*c/\*\.txt")):
        with pytest.raises(TaskError, match=message):
            Text(path=(*corpora, str(tmp_path / absent))).generate("train", 0)


def test_another_tokenizer_makes_other_items(tmp_path: Path, tokenizer: Tokenizer) -> None:
    (tmp_path / "a.txt").write_text(POEM)

    def count() -> int:
        task = Text(path=str(tmp_path / "a.txt"), tokenizer=str(tmp_path / "tokenizer.json"), words=300)
        return len(cache.load("text", {}, task, "train", 0).inputs["x"].values)

    before = count()
    tokenizer.train_from_iterator([], BpeTrainer(show_progress=False, initial_alphabet=ByteLevel.alphabet()))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert count() > before


def test_a_split_has_the_same_documents_however_they_are_cut(tmp_path: Path, tokenizer: Tokenizer) -> None:
    texts = [f"text {'x' * number}" for number in range(1, 31)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))

    def sizes(**cut: str) -> list[list[int]]:
        shares = {"valid_share": 0.3, "test_share": 0.3}
        task = Text(path=str(tmp_path / "a.jsonl"), words=400, length=99, **shares, **cut)
        return [task.generate(split, 0).notes["bytes"].values.tolist() for split in task.split_names()]

    other_cuts = ({"by": "characters"}, {"by": "words"}, {"tokenizer": str(tmp_path / "tokenizer.json")})
    assert [sizes(**cut) for cut in other_cuts] == [sizes()] * 3


@pytest.mark.parametrize("by", ["bytes", "characters", "words"])
def test_a_typed_text_has_the_tokens_of_a_document(tmp_path: Path, by: str) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    task = Text(path=str(tmp_path / "a.txt"), by=by)
    x = task.generate("train", 0).inputs["x"]
    assert FieldFormat.of(task, "x", x).encode(POEM).tolist() == x[0].tolist()


def test_a_text_that_is_not_utf_8_is_refused_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"text\n\xff")
    with pytest.raises(TaskError, match=r"line 2 of \S*a\.md: it is not UTF-8 text"):
        Text(path=str(tmp_path / "a.md")).generate("train", 0)
