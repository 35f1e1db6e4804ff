"""SCAN: the published set of commands, and its splits by length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from archlang.tasks.base import Ragged, spell
from archlang.tasks.mistakes import TaskError
from archlang.tasks.scan import Scan, commands


def test_the_grammar_gives_the_published_commands(published: Callable[[str], list[str]]) -> None:
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
    [(22, (15_292, 1_698, 3_920)), (26, (16_458, 1_828, 2_624)), (40, (18_704, 2_078, 128))],
)
def test_length_splits_are_as_large_as_published(cutoff: int, sizes: tuple[int, ...]) -> None:
    task = Scan(split="length", cutoff=cutoff)
    splits = [task.generate(split, 0) for split in ("train", "iid", "test")]
    assert tuple(map(len, splits)) == sizes
    assert max(splits[0].groups["length"].max(), splits[1].groups["length"].max()) <= cutoff
    assert splits[2].groups["length"].min() > cutoff


@pytest.mark.parametrize("task", [Scan(), Scan(split="length")])
def test_splits_hold_every_command_once(task: Scan) -> None:
    found = []
    for name in task.split_names():
        split = task.generate(name, 0)
        for index in range(len(split)):
            source = spell(task, split.inputs["source"][index])
            assert isinstance(split.targets, Ragged)
            found.append((source, spell(task, split.targets[index])))
    assert sorted(found) == sorted((f"[B] {' '.join(x)} [E]", f"{' '.join(y)} [E]") for x, y in commands())


def test_simple_holds_a_fifth_out() -> None:
    assert [len(Scan().generate(split, 0)) for split in ("train", "test")] == [16_728, 4_182]


def test_the_decoder_sees_the_actions_before() -> None:
    split = Scan().generate("test", 0)
    assert isinstance(split.targets, Ragged)
    for index in range(50):
        seen, asked = split.inputs["target"][index].tolist(), split.targets[index].tolist()
        assert seen == [20, *asked[:-1]]
        assert asked[-1] == 19


def test_impossible_statics_are_refused() -> None:
    with pytest.raises(TaskError, match="cutoff = 48 is out of bounds"):
        Scan(split="length", cutoff=48)
    with pytest.raises(TaskError, match="write one of simple, length"):
        Scan(split="jump")
    with pytest.raises(TaskError, match="its splits are train, test"):
        Scan().generate("iid", 0)
