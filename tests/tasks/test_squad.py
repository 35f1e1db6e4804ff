"""SQuAD: the published questions and the published metrics."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import spell
from archlang.tasks.squad import FILES, Question, Squad, exact_match, f1, normalised, read
from tests.tasks.conftest import Offer
from tests.tasks.every import marks_of


def document(*questions: tuple[str, str, list[tuple[str, int]]]) -> str:
    """Returns a file of the published format: paragraph, question, answers with the characters where they begin."""
    paragraphs = [
        {"context": context, "qas": [{"id": "x", "question": question, "answers": [
            {"text": text, "answer_start": start} for text, start in answers
        ]}]}
        for context, question, answers in questions
    ]  # fmt: skip
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]})


CATS = (
    "The cats, all 308 of “them”, slept on the mat.",
    "How many cats?",
    [("308", 14), ("all 308", 10), ("308 of “them”", 14)],
)
AGAIN = ("Dogs bark.", "Who barks?", [("Dogs", 0)])
DOGS = ("Dogs bark.", "What do dogs do?", [("bark", 5)])


@pytest.fixture
def small(offer: Offer) -> Squad:
    offer({f"squad/{FILES[0]}": document(DOGS, AGAIN), f"squad/{FILES[1]}": document(CATS)})
    return Squad(split="published", word_limit=20)


def test_published_answers_are_at_their_stated_positions(published_bytes: Callable[[str], bytes], offer: Offer) -> None:
    """Uses the sample of the published dev set that XQuAD translated."""
    sample = published_bytes("squad/xquad.en.json")
    asked = list(read(json.loads(sample)))
    assert len(asked) == 1_190
    assert len({question.paragraph for question in asked}) == 240
    offer({f"squad/{name}": sample for name in FILES})
    task = Squad(split="published", word_limit=20_000)
    items = task.generate("test", 0)
    assert len(items) == 1_190
    # The first answer is scores wherever words and marks can say where it begins and ends.
    scores = task.judge(items, np.asarray(items.targets))
    assert scores["exact_match"].mean() > 0.99
    assert scores["f1"].min() > 0.3
    assert not np.isnan(scores["f1"]).any()
    for index in (0, 500, 1_189):
        text = spell(task, items.inputs["x"][index])
        assert text.startswith("[B] ")
        assert text.count(" [S] ") == 1
    wrong = task.judge(items, np.asarray(items.targets) * 0 + items.notes["first"].values[:, None])
    assert wrong["exact_match"].mean() < 0.1


def test_an_item_is_the_question_and_then_the_paragraph(small: Squad) -> None:
    items = small.generate("test", 0)
    unknown = "<unk>"
    words = "how many cats ? [S] the cats , all 308 of “ them ” , slept on the mat ."
    special = {"?", ".", "[S]"}
    expected = " ".join(word if word in special else unknown for word in words.split())
    assert spell(small, items.inputs["x"][0]) == f"[B] {expected} [E]"
    assert np.asarray(items.targets).tolist() == [[10, 10]]
    assert np.flatnonzero(marks_of(items)[0]).tolist() == list(range(6, 21))
    assert len(small.vocabulary) == 24


def test_the_best_answer_counts(small: Squad) -> None:
    items = small.generate("test", 0)
    for span, match, overlap in (
        ((10, 10), 1.0, 1.0),
        ((9, 10), 1.0, 1.0),
        ((10, 14), 1.0, 1.0),
        # `cats, all 308` against `all 308`.
        ((7, 10), 0.0, 0.8),
        ((16, 16), 0.0, 0.0),
        # An answer that ends before it begins is none.
        ((12, 10), 0.0, 0.0),
    ):
        scores = small.judge(items, np.asarray([span]))
        assert (scores["exact_match"][0], round(scores["f1"][0], 3)) == (match, overlap)


def test_the_vocabulary_counts_each_paragraph_of_train_once(small: Squad) -> None:
    texts = small.vocabulary
    # Two of each in the paragraph and the two questions; if the paragraph counted twice, so would its other words.
    assert texts[:3] == ("?", "do", "dogs")
    assert texts[3:10] == (".", "bark", "barks", "what", "who", "<unused>0", "<unused>1")
    assert texts[20:] == ("<unk>", "[E]", "[S]", "[B]")


def test_test_paragraphs_are_longer_than_training_paragraphs(
    published_bytes: Callable[[str], bytes], offer: Offer
) -> None:
    offer({f"squad/{FILES[0]}": published_bytes("squad/xquad.en.json"), f"squad/{FILES[1]}": document(CATS, DOGS)})
    for share, trained in ((0.8, 954), (0.5, 596)):
        task = Squad(share=share)
        train, test = (task.generate(split, 0) for split in task.split_names())
        assert (len(train), len(test)) == (trained, 1_192 - trained)

        def words(split: Split) -> np.ndarray:
            return np.asarray([marks_of(split)[index].sum() for index in range(len(split))])

        assert words(train).max() <= words(test).min()


@pytest.mark.parametrize(
    ("text", "plain"),
    [("The Cat", "cat"), ("an  apple, a day", "apple day"), ("U.S.A.", "usa"), ("theatre", "theatre"), ("", "")],
)
def test_answers_are_compared_without_articles_punctuation_and_case(text: str, plain: str) -> None:
    assert normalised(text) == plain


def test_scores_of_literal_answers() -> None:
    assert exact_match("the Broncos", "Broncos!") == 1
    assert exact_match("Broncos won", "Broncos") == 0
    assert f1("Broncos won", "Broncos") == pytest.approx(2 / 3)
    # Words count as often as they occur.
    assert f1("no no", "no") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"data": [{}]}', document(("Dogs bark.", "?", [("bark", 4)]))),
        *(document(("Dogs", "?", [("", 0)])), document(("Dogs", "?", []))),
    ],
)
def test_malformed_files_are_refused(text: str, offer: Offer) -> None:
    offer({f"squad/{name}": text for name in FILES})
    with pytest.raises(TaskError, match="train-v1.1.json of squad is malformed"):
        Squad().generate("train", 0)


def test_positions_count_characters_not_bytes() -> None:
    (asked,) = read(json.loads(document(("Größe: 6½ Meter.", "?", [("6½", 7)]))))
    assert asked == Question("Größe: 6½ Meter.", "?", ("6½",), 7)


# In word pieces

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "how", "many", "cats", "?", "the", ",", "sl", "##ept", "all", "308", "."]
SLEPT = "All 308 cats slept. The cats slept."
ASKED = "How many cats?"


@pytest.fixture
def pieces(offer: Offer, tmp_path: Path) -> Path:
    """Offers two questions, and returns a tokenizer like that of BERT."""
    content = document((SLEPT, ASKED, [("308", 4)]), (SLEPT, ASKED, [("slept", 29)]))
    offer({f"squad/{name}": content for name in FILES})
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `tokenizers` is not installed")
    tokens = {word: token for token, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(tokens, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_an_item_has_the_word_pieces_of_bert(pieces: Path) -> None:
    task = Squad(split="published", tokenizer=str(pieces), word_limit=17)
    items = task.generate("train", 0)
    text = "[CLS] how many cats ? [SEP] all 308 cats sl ##ept . the cats sl ##ept . [SEP]"
    assert spell(task, items.inputs["x"][0]) == text
    assert items.inputs["x"][0][0] == WORDS.index("[CLS]")
    assert np.asarray(items.targets).tolist() == [[7, 7], [14, 15]]
    assert task.vocabulary == (*WORDS, "<unused>0", "<unused>1")
    assert task.judge(items, np.asarray(items.targets))["exact_match"].tolist() == [1, 1]


def test_a_cut_paragraph_trains_on_no_answer_that_it_lacks(pieces: Path) -> None:
    task = Squad(split="published", tokenizer=str(pieces), word_limit=17, longest=14)
    train, test = task.generate("train", 0), task.generate("test", 0)
    assert spell(task, test.inputs["x"][1]) == "[CLS] how many cats ? [SEP] all 308 cats sl ##ept . the [SEP]"
    assert (len(train), len(test)) == (1, 2)
    assert task.judge(test, np.asarray(test.targets))["exact_match"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("content", "limit", "message"),
    [
        (None, 15, "is missing, or is not a regular file"),
        ("{}", 15, "tokenizers cannot read it: name a `tokenizer.json`"),
        ("published", 14, "word_limit = 14 is too small for squad, whose files have 15 different words"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(pieces: Path, content: str | None, limit: int, message: str) -> None:
    if content is None:
        pieces.unlink()
    elif content != "published":
        pieces.write_text(content)
    with pytest.raises(TaskError, match=message):
        Squad(split="published", tokenizer=str(pieces), word_limit=limit).generate("train", 0)
