"""SCAN: the published set of commands, and its splits."""

from collections.abc import Callable

import numpy as np
import pytest

from archlang.plan.check import check_text
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import spell
from archlang.tasks.scan import Scan, commands, published_iid, read
from tests.goldens.files import reference_file
from tests.sampling import one_in
from tests.tasks.conftest import Offer
from tests.tasks.every import answers_of


def test_the_grammar_generates_the_published_commands(published: Callable[[str], list[str]]) -> None:
    ours = {f"IN: {' '.join(words)} OUT: {' '.join(actions)}" for words, actions in commands()}
    assert ours == set(published("scan/tasks.txt"))
    assert len(commands()) == 20_910


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", "I_JUMP"),
        ("jump twice", "I_JUMP I_JUMP"),
        ("turn opposite left", "I_TURN_LEFT I_TURN_LEFT"),
        ("walk after run right", "I_TURN_RIGHT I_RUN I_WALK"),
        ("look around right and turn left", "I_TURN_RIGHT I_LOOK " * 4 + "I_TURN_LEFT"),
    ],
)
def test_literal_commands(command: str, actions: str) -> None:
    assert dict(commands())[tuple(command.split())] == tuple(actions.split())


@pytest.mark.parametrize(
    ("cutoff", "sizes"),
    one_in(4, [
        *((22, (15_292, 1_698, 3_920)), (24, (15_594, 1_732, 3_584)), (25, (15_997, 1_777, 3_136))),
        *((26, (16_458, 1_828, 2_624)), (27, (16_861, 1_873, 2_176)), (28, (17_264, 1_918, 1_728))),
        *((30, (17_783, 1_975, 1_152)), (32, (18_186, 2_020, 704)), (33, (18_416, 2_046, 448))),
        *((36, (18_474, 2_052, 384)), (40, (18_704, 2_078, 128))),
    ]),
)  # fmt: skip
def test_length_splits_have_the_published_sizes(cutoff: int, sizes: tuple[int, ...]) -> None:
    task = Scan(split="length", cutoff=cutoff)
    splits = [task.generate(split, 0) for split in ("train", "iid", "test")]
    assert tuple(map(len, splits)) == sizes
    assert max(splits[0].groups["length"].max(), splits[1].groups["length"].max()) <= cutoff
    assert splits[2].groups["length"].min() > cutoff


@pytest.mark.parametrize("task", [Scan(), Scan(split="length")])
def test_splits_have_every_command_once(task: Scan) -> None:
    items = []
    for name in task.split_names():
        split = task.generate(name, 0)
        for index in range(len(split)):
            source = spell(task, split.inputs["source"][index])
            items.append((source, spell(task, answers_of(split)[index])))
    assert sorted(items) == sorted((f"[B] {' '.join(x)} [E]", f"{' '.join(y)} [E]") for x, y in commands())


def test_simple_holds_out_a_fifth() -> None:
    assert [len(Scan().generate(split, 0)) for split in ("train", "test")] == [16_728, 4_182]


@pytest.mark.parametrize(
    ("split", "primitive", "sizes"), [("jump", "jump", (14_670, 7_706)), ("turn_left", "turn left", (21_890, 1_208))]
)
def test_a_primitive_is_alone_in_train(split: str, primitive: str, sizes: tuple[int, int]) -> None:
    task = Scan(split=split)
    train, test = (
        [spell(task, items.inputs["source"][index])[4:-4] for index in range(len(items))]
        for items in (task.generate(name, 0) for name in ("train", "test"))
    )
    assert (len(train), len(test)) == sizes
    # The published files repeat it until a tenth of their lines is the primitive.
    assert train.count(primitive) == len(train) // 10
    assert {line for line in train if f" {primitive} " in f" {line} "} == {primitive}
    assert all(f" {primitive} " in f" {line} " for line in test)
    assert primitive not in test
    assert len(set(train) | set(test)) == 20_910


@pytest.mark.parametrize("cutoff", [22, 26])
def test_held_out_commands_are_those_of_the_devil_paper(cutoff: int, published: Callable[[str], list[str]]) -> None:
    resplit = reference_file("devil", "scan_resplit.npz")
    lengths = np.asarray([len(read(line)[1]) for line in published("scan/tasks.txt")])
    with np.load(resplit) as golden:
        assert np.sort(published_iid(lengths, cutoff)).tolist() == golden[f"iid_lines_{cutoff}"].tolist()


@pytest.mark.parametrize(
    "line",
    ["", "IN: jump", "IN: jump OUT: I_HOP", "IN: hop OUT: I_JUMP", "jump OUT: I_JUMP", "IN: jump OUT: I_JUMP OUT: "],
)
def test_a_malformed_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read(line)


def test_the_decoder_sees_the_actions_before() -> None:
    split = Scan().generate("test", 0)
    for index in range(50):
        seen, asked = split.inputs["target"][index].tolist(), answers_of(split)[index].tolist()
        assert seen == [20, *asked[:-1]]
        assert asked[-1] == 19


def test_words_and_actions_may_have_separate_vocabularies() -> None:
    joint, apart = Scan(), Scan(joint=False)
    joint_items, apart_items = joint.generate("test", 0), apart.generate("test", 0)
    for index in range(50):
        words = [apart.source_vocabulary[token] for token in apart_items.inputs["source"][index]]
        assert words == [joint.vocabulary[token] for token in joint_items.inputs["source"][index]]
        *actions, end = (apart.vocabulary[token] for token in answers_of(apart_items)[index])
        assert [*actions, "[E]"] == [joint.vocabulary[token] for token in answers_of(joint_items)[index]]
        # One sign begins and ends.
        assert end == "[B]"
        assert [apart.vocabulary[token] for token in apart_items.inputs["target"][index]] == ["[B]", *actions]
    assert (len(apart.source_vocabulary), len(apart.vocabulary)) == (15, 7)


@pytest.mark.parametrize(("joint", "source", "fits"), [
    ("true", "tokens[n]", True), ("true", "tokens[n, words]", True),
    ("false", "tokens[n]", False), ("false", "tokens[n, words]", True),
])  # fmt: skip
def test_a_separate_source_vocabulary_is_checked(joint: str, source: str, fits: bool) -> None:
    text = (
        f"model m[d = 8](source: {source}, target: tokens[m]) -> logits[m, vocab] {{\n"
        "    return linear[vocab](embed[d](target) + attention[1](embed[d](target), embed[d](source)))\n}\n"
        f"recipe r {{ task scan[joint = {joint}] model m train adamw[lr = 0.1, steps = 9, select = test.accuracy] }}\n"
    )
    diagnostics = check_text(text)
    assert [diagnostic.code for diagnostic in diagnostics] == ([] if fits else ["E0416"])
    assert fits or "a vocabulary of 15, and the model takes one of 7" in diagnostics[0].message


def test_published_files_are_read(published_bytes: Callable[[str], bytes], offer: Offer) -> None:
    names = ("tasks.txt", "tasks_train_simple.txt", "tasks_test_simple.txt")
    offer({f"scan/{name}": published_bytes(f"scan/{name}") for name in names})
    simple, length, jump = (Scan(split=split, data="files") for split in ("simple", "length", "jump"))
    assert [len(simple.generate(split, 0)) for split in simple.split_names()] == [16_728, 4_182]
    assert [len(length.generate(split, 0)) for split in length.split_names()] == [15_292, 1_698, 3_920]
    # What the grammar settles is the same either way; the order is not.
    assert commands_of_split(jump, "test") == commands_of_split(Scan(split="jump"), "test")
    assert commands_of_split(jump, "train") == commands_of_split(Scan(split="jump"), "train")
    assert commands_of_split(length, "test") == commands_of_split(Scan(split="length"), "test")
    assert commands_of_split(length, "iid") != commands_of_split(Scan(split="length"), "iid")


def commands_of_split(task: Scan, split: str) -> list[str]:
    """Returns the commands of a split in alphabetical order."""
    items = task.generate(split, 0)
    return sorted(spell(task, items.inputs["source"][index]) for index in range(len(items)))


def test_the_error_names_a_malformed_line(offer: Offer) -> None:
    offer({"scan/tasks.txt": "IN: jump OUT: I_JUMP\nIN: hop OUT: I_HOP\n"})
    with pytest.raises(TaskError, match=r"line 2 of scan/tasks.txt .* 'IN: hop OUT: I_HOP'"):
        Scan(split="length", data="files").generate("train", 0)
