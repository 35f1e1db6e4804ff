"""Small samples of the published data sets, in the published formats.

A sample holds the first lines of the published files where the tests have them, and otherwise texts made here."""

import io
import json
import pickle
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from archlang.data import archives, store
from archlang.tasks import listops, lra_image, lra_text
from archlang.tasks.cfq import INDICES, QUERY, QUESTION
from tests import published_files
from tests.tasks.test_lra_text import archive

# The lines of a sample of a text file: of one with training items, and of another one.
TRAINING_LINES, OTHER_LINES = 40, 4
# Long answers are slow to write.
MOST_TOKENS = 60
REVIEWS, PICTURES = 8, 4


def use_samples(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Replaces every published file by its sample; `folder` is for archives. A sample of a file that the tests do not
    have skips the test that reads it."""

    def opened(dataset: str, member: str) -> BinaryIO:
        return io.BytesIO(sample(dataset, member))

    def contents(dataset: str, member: str) -> Iterator[tuple[str, bytes]]:
        place = folder / member
        place.write_bytes(sample(dataset, member))
        return archives.contents(place)

    patch.setattr(store, "open_binary", opened)
    patch.setattr(store, "contents", contents)
    patch.setattr(listops, "VALID_LINES", 4)
    patch.setattr(lra_text, "PUBLISHED_SIZE", REVIEWS)
    patch.setattr(lra_image, "PUBLISHED_BATCH", PICTURES)
    patch.setattr(lra_image, "PUBLISHED_TRAIN", 5 * PICTURES - 4)


@cache
def sample(dataset: str, member: str) -> bytes:
    """Returns the content of the sample of a published file."""
    match dataset:
        case "imdb":
            return reviews()
        case "cifar10":
            return pictures()
        case "lra":
            return text_of(
                f"{number % 2}.0\ta\tb\t{prose(900, number)}\t{prose(700, number + 1)}" for number in range(24)
            )
        case "cfq":
            return json.dumps(questions() if member == "dataset.json" else indices()).encode()
        case "squad":
            return json.dumps(paragraphs(json.loads(published_files.read("squad/xquad.en.json")))).encode()
        case "cogs":
            return text_of(vocabulary_lines(member))
        case "pcfg_set":
            return text_of(row[member.endswith("tgt")] for row in expressions(member.rpartition(".")[0]))
        case "multi30k":
            return text_of(row[member.endswith("de")] for row in sentences(member.rpartition(".")[0]))
        case "babi":
            # The training file of the third task is the one that the tests do not have.
            story = member.replace("qa3_three-supporting-facts_train", "qa3_three-supporting-facts_test")
            return text_of(stories(published_files.lines(f"{dataset}/{story}")))
        case "scan":
            # The file is ordered by the words; its order decides the splits.
            return text_of(published_files.lines(f"{dataset}/{member}")[::150])
        case "listops":
            # The training file has no part that the tests have.
            return text_of(published_files.lines(f"{dataset}/test_d20s.tsv")[: length_of(member)])
        case "logical_inference":
            return text_of(published_files.lines(f"{dataset}/{member}")[: 8 if member.startswith("train") else 2])
    return text_of(head(dataset, member))


def head(dataset: str, member: str) -> list[str]:
    """Returns the first lines of a published file."""
    return published_files.lines(f"{dataset}/{member}")[: length_of(member)]


def length_of(member: str) -> int:
    return TRAINING_LINES if "train" in member else OTHER_LINES


def text_of(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def vocabulary_lines(member: str) -> list[str]:
    """Lines of a file of COGS. Those of `train` and `gen` together have the published vocabulary, most words of `gen`
    alone in a sentence made of them: theirs are long."""
    if member == "gen.tsv":
        training_words = {word for line in published_files.lines("cogs/train.tsv") for word in line.split()}
        lines = published_files.lines(f"cogs/{member}")
        _, *rest = lines[0].split("\t")
        new = sorted({word for line in lines for word in line.rpartition("\t")[0].split()} - training_words)
        return [*head("cogs", member), "\t".join([" ".join(new), *rest])]
    if member != "train.tsv":
        return head("cogs", member)
    seen: set[str] = set()
    chosen = []
    for line in published_files.lines(f"cogs/{member}"):
        words = set(line.split())
        if not words <= seen:
            seen |= words
            chosen.append(line)
    return chosen


def expressions(path: str) -> list[tuple[str, str]]:
    """Expressions of PCFG SET with their values. Of `train.src`, the tests have a part."""
    names = {"pcfgset/train": "pcfgset/test"}
    name = names.get(path, path.replace("train", "train_partial"))
    pairs = zip(
        published_files.lines(f"pcfg_set/{name}.src"), published_files.lines(f"pcfg_set/{name}.tgt"), strict=True
    )
    return [pair for pair in pairs if len(pair[1].split()) < MOST_TOKENS][: length_of(path)]


def sentences(name: str) -> list[tuple[str, str]]:
    pairs = zip(published_files.lines(f"multi30k/{name}.en"), published_files.lines(f"multi30k/{name}.de"), strict=True)
    return list(pairs)[: length_of(name)]


def stories(lines: list[str]) -> list[str]:
    """The first story of a file of bAbI, or the first ones if they are short; line 1 begins a story."""
    starts = [index for index, line in enumerate(lines) if line.startswith("1 ")]
    return lines[: next((start for start in starts if start >= OTHER_LINES), len(lines))]


def paragraphs(document: dict[str, list[dict[str, list[dict[str, list[object]]]]]]) -> object:
    """The first article of a file of SQuAD, with one question of each paragraph."""
    article = document["data"][0]
    return {"data": [{"paragraphs": [{**part, "qas": part["qas"][:1]} for part in article["paragraphs"]]}] * 4}


def questions() -> list[dict[str, str]]:
    """Questions as those of CFQ."""
    verbs = {"direct": "film.director.film", "edit": "film.editor.film", "produce": "film.producer.film"}
    return [
        {
            QUESTION: f"Did M{number % 10} {verb} M{number // 10} and M{number % 7}?",
            QUERY: f"SELECT count(*) WHERE {{\nM{number % 10} ns:{path} M{number // 10} .\n"
            f"M{number % 10} ns:{path} M{number % 7}\n}}",
        }
        for number in range(80)
        for verb, path in verbs.items()
    ]


def indices() -> dict[str, list[int]]:
    count = len(questions())
    bounds = {"train": (0, count - 40), "valid": (count - 40, count - 20), "test": (count - 20, count)}
    return {INDICES[split]: list(range(*ends)) for split, ends in bounds.items()}


def prose(length: int, number: int) -> str:
    return (f"text {number} says that all is well, and all is well; " * length)[:length]


def reviews() -> bytes:
    return archive({
        f"aclImdb/{split}/{feeling}/{number}_{stars}.txt": prose(900, number).encode()
        for split in ("train", "test")
        for feeling, stars in (("pos", 9), ("neg", 2))
        for number in range(REVIEWS // 2)
    })  # fmt: skip


def pictures() -> bytes:
    random = np.random.RandomState(0)
    batches = {}
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        pixels = random.randint(0, 256, (PICTURES, 3_072)).astype(np.uint8)
        content = {b"data": pixels, b"labels": random.randint(0, 10, PICTURES).tolist()}
        batches[f"cifar-10-batches-py/{name}"] = pickle.dumps(content, protocol=2)
    return archive(batches)


def word_pieces(folder: Path) -> Path:
    """Writes a tokenizer of letters, in the format of the hub."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `bert` is not installed")
    letters = [chr(code) for code in range(33, 127)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: token for token, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path
