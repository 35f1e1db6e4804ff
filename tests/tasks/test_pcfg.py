"""PCFG SET: every published value, the splits, and the published distribution of expressions."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from archlang.data.mistakes import DataError
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import spell
from archlang.tasks.pcfg import FUNCTIONS, PAIRS, PUBLISHED_SIZES, Pcfg, evaluate
from tests.tasks.conftest import Offer
from tests.tasks.every import answers_of, generated, words_of


def small(kind: str) -> Pcfg:
    return Pcfg(split=kind, train_size=3_000, iid_size=500, test_size=500)


def expressions(kind: str, split: str) -> list[list[str]]:
    return [list(words[1:-1]) for words in words_of(small(kind), split, field="source")]


def functions(expression: list[str]) -> int:
    return sum(word in FUNCTIONS for word in expression)


def pairs(expression: list[str]) -> set[tuple[str, str]]:
    return set(pairwise(expression)) & set(PAIRS)


@pytest.mark.parametrize(
    ("name", "count"),
    [("pcfgset/dev", 4_860), ("pcfgset/test", 9_721), ("productivity/test", 11_333), ("systematicity/test", 10_175)],
)
def test_every_published_value_is_reproduced(name: str, count: int, published: Callable[[str], list[str]]) -> None:
    sources, targets = published(f"pcfg_set/{name}.src"), published(f"pcfg_set/{name}.tgt")
    assert len(sources) == len(targets) == count
    assert [" ".join(evaluate(source.split())) for source in sources] == targets
    # What sets the split apart holds of all of it.
    if name.startswith("productivity"):
        assert all(functions(source.split()) > 8 for source in sources)
    if name.startswith("systematicity"):
        assert all(pairs(source.split()) for source in sources)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("copy A1 B2", "A1 B2"),
        ("reverse copy O14 O4 C12 J14 W3", "W3 J14 C12 O4 O14"),
        ("shift A1 B2 C3", "B2 C3 A1"),
        ("swap_first_last A1 B2 C3", "C3 B2 A1"),
        ("repeat A1 B2", "A1 B2 A1 B2"),
        ("echo A1 B2", "A1 B2 B2"),
        ("append A1 , B2", "A1 B2"),
        ("prepend A1 , B2", "B2 A1"),
        ("remove_first A1 , B2", "B2"),
        ("remove_second A1 , repeat B2", "A1"),
        ("append append A1 , B2 , C3", "A1 B2 C3"),
    ],
)
def test_literal_values(expression: str, value: str) -> None:
    assert " ".join(evaluate(expression.split())) == value


@pytest.mark.parametrize("text", ["", "copy", "append A1", "append A1 ,", "A1 , B2", "copy , A1", "A1 copy B2"])
def test_a_malformed_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        evaluate(text.split())


@pytest.mark.parametrize("kind", ["iid", "productivity", "systematicity"])
@pytest.mark.parametrize("split", ["train", "iid", "test"])
def test_generated_values_agree_with_the_expressions(kind: str, split: str) -> None:
    items = generated(small(kind), split)
    for index, expression in enumerate(expressions(kind, split)):
        assert spell(Pcfg(), answers_of(items)[index]) == " ".join([*evaluate(expression), "[E]"])
        assert items.groups["functions"][index] == functions(expression)
        assert len(expression) <= 71


def test_productivity_trains_on_few_functions_and_tests_on_many() -> None:
    for split in ("train", "iid"):
        assert generated(small("productivity"), split).groups["functions"].max() == 8
    assert generated(small("productivity"), "test").groups["functions"].min() == 9


def test_systematicity_trains_without_the_pairs_that_it_tests() -> None:
    for split in ("train", "iid"):
        assert not any(map(pairs, expressions("systematicity", split)))
    assert all(map(pairs, expressions("systematicity", "test")))
    assert np.unique(generated(small("systematicity"), "test").groups["pair"]).tolist() == [1, 2, 3, 4]


def test_numbers_of_functions_have_the_published_distribution(published: Callable[[str], list[str]]) -> None:
    theirs = np.bincount([functions(line.split()) for line in published("pcfg_set/pcfgset/test.src")], minlength=31)
    ours = np.bincount(generated(small("iid"), "train").groups["functions"], minlength=31)
    assert np.abs(ours / ours.sum() - theirs / theirs.sum()).max() < 0.02


def test_the_published_sizes_are_the_default() -> None:
    assert len(Pcfg(split="productivity").generate("test", 0)) == PUBLISHED_SIZES["productivity"]["test"] == 11_333
    assert {name: sizes["train"] for name, sizes in PUBLISHED_SIZES.items()} == {
        "iid": 82_622,
        "productivity": 81_010,
        "systematicity": 82_168,
    }


def test_published_files_are_read(published_bytes: Callable[[str], bytes], offer: Offer) -> None:
    names = [
        f"{part}.{side}" for part in ("pcfgset/dev", "pcfgset/test", "systematicity/test") for side in ("src", "tgt")
    ]
    offer({f"pcfg_set/{name}": published_bytes(f"pcfg_set/{name}") for name in names})
    iid, systematicity = Pcfg(data="files"), Pcfg(data="files", split="systematicity")
    assert [len(iid.generate(split, 0)) for split in ("iid", "test")] == [4_860, 9_721]
    items = systematicity.generate("test", 0)
    assert np.unique(items.groups["pair"]).tolist() == [1, 2, 3, 4]
    source = published_bytes("pcfg_set/systematicity/test.src").decode().split("\n")[7]
    assert spell(iid, items.inputs["source"][7]) == f"[B] {source} [E]"
    assert spell(iid, answers_of(items)[7]) == " ".join([*evaluate(source.split()), "[E]"])
    assert systematicity.split_names() == ("train", "test")
    # The published train expressions could not be had.
    with pytest.raises(DataError, match="systematicity/train.src of pcfg_set is missing"):
        systematicity.generate("train", 0)


def test_files_with_different_numbers_of_lines_are_refused(offer: Offer) -> None:
    offer({"pcfg_set/pcfgset/test.src": "copy A1\ncopy A2\n", "pcfg_set/pcfgset/test.tgt": "A1\n"})
    with pytest.raises(TaskError, match="test.src of pcfg_set has 2 lines and pcfgset/test.tgt has 1"):
        Pcfg(data="files").generate("test", 0)
    offer({"pcfg_set/pcfgset/test.src": "copy A1\ncopy A99\n"})
    with pytest.raises(TaskError, match="line 2 of pcfg_set/pcfgset/test.src"):
        Pcfg(data="files").generate("test", 0)
