"""ListOps: labels against a slow parser, depths and lengths of splits, the published distribution."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import digest
from archlang.tasks.listops import ListOps
from archlang.tasks.listops import read as read_line
from archlang.types.statics import Interval
from tests.tasks.every import generated, replace, words_of
from tests.tasks.kit import test_listops_trees as trees

DEPTH = ListOps(train_size=5_000, iid_size=500, valid_size=200, test_size=20)
ORIGINAL = ListOps(
    source="original",
    pool=20_000,
    test_lengths=(Interval(200, 300), Interval(900, 1000)),
    test_size=50,
    lra=True,
    begin_end=False,
)
LONG = ListOps(source="lra", train_size=200, valid_size=100, test_size=100, begin_end=False)


def read(words: tuple[str, ...]) -> tuple[int, int, int, int]:
    """Returns the value, the dependency depth, the height and the largest number of arguments of a list."""
    tokens = [DEPTH.vocabulary.index(word) for word in words]
    *facts, end = trees.read(tokens)
    assert end == len(tokens)
    value, depth, height, most = facts
    return value, depth, height, most


def texts(task: ListOps, split: str) -> list[tuple[str, ...]]:
    return [row[1:-1] if task.begin_end else row for row in words_of(task, split)]


@pytest.mark.parametrize(
    ("task", "split"), [(task, split) for task in (DEPTH, ORIGINAL, LONG) for split in task.split_names()]
)
def test_labels_and_depths_agree_with_a_slow_parser(task: ListOps, split: str) -> None:
    items, groups = generated(task, split), generated(task, split).groups
    for index, words in enumerate(texts(task, split)[:3000]):
        value, depth, _, most = read(words)
        assert (value, depth) == (items.targets[index], groups["depth"][index])
        assert most <= groups["arguments"][index]


def test_trees_have_the_published_lengths(published: Callable[[str], list[str]]) -> None:
    lines = published("listops/test_d20s.tsv")
    theirs = np.array([len([word for word in line.split("\t")[1].split() if word not in "()"]) for line in lines])
    ours = generated(ListOps(source="original", begin_end=False), "iid").inputs["x"].lengths
    assert abs(len(ours) - 10_000) < 300
    assert abs(ours.mean() - theirs.mean()) < 3
    assert np.allclose(np.percentile(ours, [25, 50, 75, 90]), np.percentile(theirs, [25, 50, 75, 90]), rtol=0.07)


def test_trees_have_the_published_depths() -> None:
    # Of the published test set: 4.53 on average, and 19 at most.
    deep = [read(words)[2] for words in texts(ListOps(source="original", begin_end=False), "iid")]
    assert abs(np.mean(deep) - 4.53) < 0.15
    assert max(deep) == 19


def test_long_and_wide_trees_have_the_measured_lengths() -> None:
    # Of Long Range Arena 1,048 tokens on average, of 200 trees; with 5, 10 and 15 arguments 134, 447 and 582.
    long = generated(ListOps(source="lra", valid_size=1_000, begin_end=False), "valid").inputs["x"].lengths
    assert abs(long.mean() - 1_040) < 50
    task = ListOps(source="original", test_size=500, begin_end=False)
    lengths, bounds = generated(task, "arguments").inputs["x"].lengths, generated(task, "arguments").groups["arguments"]
    means = [lengths[bounds == bound].mean() for bound in (5, 10, 15)]
    assert np.allclose(means, [134, 447, 582], rtol=0.08)


def test_test_trees_of_long_range_arena_have_more_arguments_than_those_of_training() -> None:
    items, groups = texts(ORIGINAL, "lra"), generated(ORIGINAL, "lra").groups
    assert len(items) == 50
    assert all(500 < len(words) < 2_000 and 5 < read(words)[3] <= 10 for words in items)
    assert (groups["length"] == [len(words) // 100 * 100 for words in items]).all()
    assert (groups["arguments"] == 10).all()
    assert "lra" not in replace(ORIGINAL, lra=False).split_names()
    assert ListOps(source="files", lra=True).split_names()[-1] == "lra"


ARENA_LINES = ["Source\tTarget", "( ( ( ( [SM 1 ) 2 ) ( ( ( [MAX 4 ) 9 ) ] ) ) ] )\t2", "( ( ( [MED 4 ) 1 ) ] )\t2"]


def test_the_file_of_long_range_arena_is_read_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_DATA", str(tmp_path))
    task = ListOps(source="files", lra=True, begin_end=False)
    own = (("listops", "train_d20s.tsv"), ("listops", "test_d20s.tsv"))
    assert task.reads() == own
    drawn = replace(ORIGINAL, test_size=3)
    assert digest(replace(task, test_size=3).generate("lra", 0)) == digest(drawn.generate("lra", 0))
    file = tmp_path / "lra" / "listops-1000" / "basic_test.tsv"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(ARENA_LINES) + "\n")
    split = task.generate("lra", 0)
    written = [" ".join(task.vocabulary[token] for token in split.inputs["x"][index]) for index in range(2)]
    assert written == ["[SM 1 2 [MAX 4 9 ] ]", "[MED 4 1 ]"]
    assert isinstance(split.targets, np.ndarray)
    assert split.targets.tolist() == [2, 2]
    assert {name: values.tolist() for name, values in split.groups.items()} == {
        "depth": [2, 1], "length": [0, 0], "arguments": [3, 2],
    }  # fmt: skip
    assert task.reads() == (*own, ("lra", "listops-1000/basic_test.tsv"))
    assert replace(task, lra=False).reads() == own
    assert drawn.reads() == ()
    file.write_text("\n".join([*ARENA_LINES, "( ( ( [MED 4 ) 1 ) )\t2"]))
    with pytest.raises(TaskError, match="line 4"):
        task.generate("lra", 0)


def test_all_depths_are_equally_frequent() -> None:
    assert np.bincount(generated(DEPTH, "train").groups["depth"]).tolist() == [0, 1000, 1000, 1000, 1000, 1000]
    assert np.bincount(generated(DEPTH, "valid").groups["depth"]).tolist() == [0] * 6 + [200]
    assert np.bincount(generated(DEPTH, "test").groups["depth"]).tolist() == [0] * 7 + [10, 10]
    odd = ListOps(train_size=7, train=Interval(1, 2), valid=Interval(3, 3), test=Interval(4, 4))
    assert np.bincount(generated(odd, "train").groups["depth"]).tolist() == [0, 4, 3]


def test_nominal_length_counts_an_operator_three_times() -> None:
    longest = max(len(words) + sum(word[0] == "[" for word in words) for words in texts(DEPTH, "train"))
    assert 45 < longest <= 50


def test_lengths_are_in_their_ranges() -> None:
    lengths, labels = generated(ORIGINAL, "test").inputs["x"].lengths, generated(ORIGINAL, "test").groups["length"]
    assert np.unique(labels, return_counts=True)[1].tolist() == [50, 50]
    assert ((lengths >= labels) & (lengths <= labels + 100)).all()
    assert generated(ORIGINAL, "train").inputs["x"].lengths.max() == 100
    assert generated(ORIGINAL, "iid").inputs["x"].lengths.max() > 100


def test_argument_splits_use_their_arguments() -> None:
    groups = generated(ORIGINAL, "arguments").groups["arguments"]
    most = np.array([read(words)[3] for words in texts(ORIGINAL, "arguments")])
    assert np.unique(groups, return_counts=True)[1].tolist() == [50, 50, 50]
    assert [most[groups == bound].max() for bound in (5, 10, 15)] == [5, 10, 15]
    lengths = generated(ORIGINAL, "arguments").inputs["x"].lengths
    assert lengths.min() > 100
    assert lengths.max() <= 1000


def test_unbalanced_depths_keep_the_drawn_distribution() -> None:
    counts = np.bincount(generated(replace(DEPTH, balanced=False), "train").groups["depth"])
    assert counts.sum() == 5_000
    assert counts[1] > 2 * counts[2] > 4 * counts[3] > 0


def test_trees_of_long_range_arena_are_long_and_wide() -> None:
    for split in LONG.split_names():
        lengths = generated(LONG, split).inputs["x"].lengths
        assert 500 < lengths.min() <= lengths.max() < 2_000
    assert max(read(words)[3] for words in texts(LONG, "valid")) == 10


def test_small_splits_have_the_distribution_of_large_ones() -> None:
    small = ListOps(source="original", pool=20_000, train_size=2_000, begin_end=False)
    lengths = generated(small, "train").inputs["x"].lengths
    assert abs(np.median(lengths) - np.median(generated(ORIGINAL, "train").inputs["x"].lengths)) <= 1


def test_ids_are_the_published_ones() -> None:
    assert DEPTH.vocabulary == (*"0123456789", "[MAX", "[MED", "[MIN", "[SM", "]", "[E]", "[B]")
    x = generated(DEPTH, "iid").inputs["x"]
    assert set(x.values[x.offsets[:-1]].tolist()) == {16}
    assert set(x.values[x.offsets[1:] - 1].tolist()) == {15}


# Published files


def value(tokens: list[str]) -> int:
    """Removes the list at the front of the tokens and returns its value."""
    token = tokens.pop(0)
    if token.isdigit():
        return int(token)
    numbers = []
    while tokens[0] != "]":
        numbers.append(value(tokens))
    tokens.pop(0)
    match token:
        case "[MIN":
            return min(numbers)
        case "[MAX":
            return max(numbers)
        case "[SM":
            return sum(numbers) % 10
    return int(np.median(numbers))


def test_every_published_label_is_reproduced(published: Callable[[str], list[str]]) -> None:
    lines = published("listops/test_d20s.tsv")
    items = [read_line(line) for line in lines]
    assert len(items) == 10_000
    for line, item in zip(lines, items, strict=True):
        label, _, written = line.partition("\t")
        tokens = [token for token in written.split() if token not in "()"]
        assert list(item.tokens) == tokens
        assert item.value == int(label) == value(tokens)
        assert not tokens
    lengths = [len(item.tokens) for item in items]
    assert (max(lengths), max(item.depth for item in items), round(float(np.mean(lengths)), 1)) == (939, 19, 42.8)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("7", (0, 0)), ("( ( ( [MAX 2 ) 9 ) ] )", (1, 2)), ("[SM 8 [MIN 4 5 6 ] 9 ]", (2, 3)),
    ],
)  # fmt: skip
def test_literal_lists(written: str, expected: tuple[int, int]) -> None:
    item = read_line(f"0\t{written}")
    assert (item.depth, item.arguments) == expected


@pytest.mark.parametrize(
    "line", ["", "7", "x\t7", "7\t[AVG 7 ]", "7\t[MAX 7", "7\t7 7", "7\t]", "77\t77", "Source\tTarget"]
)
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        read_line(line)
