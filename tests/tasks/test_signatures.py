"""The signature beside each task says what its class takes and gives."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path

import pytest

import archlang.tasks
from archlang.source import Source
from archlang.syntax import format_program, parse
from archlang.syntax.tree import (
    Binary,
    Boolean,
    Conditional,
    Expression,
    Extern,
    ListOf,
    Name,
    Number,
    Range,
)
from archlang.tasks.base import Task
from archlang.tasks.metrics import MEANINGS
from archlang.types.statics import Interval

FOLDER = Path(archlang.tasks.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.arch"))
SMALL: dict[str, dict[str, object]] = {
    "listops": {"train_size": 50, "test_size": 2, "valid_size": 10},
    "flipflop": {"train_size": 5, "iid_size": 5, "valid_size": 5, "test_size": 5},
    "logical_inference": {"draws": 500},
    "copy": {"train_size": 5},
    "reverse": {"train_size": 5},
}


def signature(name: str) -> Extern:
    path = FOLDER / f"{name}.arch"
    (item,) = parse(Source(path.name, path.read_text(encoding="utf-8"))).items
    assert isinstance(item, Extern)
    return item


def value(expression: Expression | None, statics: Mapping[str, object]) -> object:
    match expression:
        case Number(value=number):
            return number
        case Boolean(value=truth):
            return truth
        case Name():
            return statics.get(expression.text, expression.text)
        case ListOf(items=items):
            return tuple(value(item, statics) for item in items)
        case Range(low=low, high=high):
            ends = value(low, statics), value(high, statics)
            return Interval(*ends)  # type: ignore[arg-type] # both are numbers
        case Conditional(then=then, test=test, otherwise=otherwise):
            return value(then if value(test, statics) else otherwise, statics)
        case Binary(operator="+", left=left, right=right):
            return value(left, statics) + value(right, statics)  # type: ignore[operator] # both are numbers
    raise AssertionError(expression)


def build(name: str, **statics: object) -> Task:
    module, _, attribute = signature(name).python.partition(":")
    task: Task = getattr(importlib.import_module(module), attribute)(**statics)
    return task


def test_every_task_of_the_folder_is_here() -> None:
    assert NAMES == ["copy", "ctl", "flipflop", "listops", "logical_inference", "reverse", "scan"]


@pytest.mark.parametrize("name", NAMES)
def test_the_class_has_the_statics_and_defaults_of_the_signature(name: str) -> None:
    task = build(name)
    written = {static.name: value(static.default, {}) for static in signature(name).signature.statics}
    assert dataclasses.is_dataclass(task)
    assert written == {field.name: field.default for field in dataclasses.fields(task)}
    assert list(written) == [field.name for field in dataclasses.fields(task)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("begin_end", [None, True, False])
def test_the_signature_gives_the_size_of_the_vocabulary(name: str, begin_end: bool | None) -> None:
    statics = {static.name: value(static.default, {}) for static in signature(name).signature.statics}
    if begin_end is not None and "begin_end" not in statics:
        return
    chosen = {} if begin_end is None else {"begin_end": begin_end}
    gives = {given.name: value(given.value, {**statics, **chosen}) for given in signature(name).gives}
    assert gives["vocab"] == len(build(name, **chosen).vocabulary)


@pytest.mark.parametrize("name", NAMES)
def test_fields_targets_and_groups_are_as_declared(name: str) -> None:
    task = build(name, **SMALL.get(name, {}))
    declared = signature(name)
    gives = {given.name: value(given.value, {**vars_of(task)}) for given in declared.gives}
    for split in [name for name in task.split_names() if name != "test"][:2]:
        items = task.generate(split, 0)
        assert list(items.inputs) == [parameter.name for parameter in declared.signature.inputs]
        assert task.breakdown in items.groups
        assert set(task.metrics) <= set(MEANINGS)
        answers = items.targets if not hasattr(items.targets, "values") else items.targets.values
        most = gives["classes"] if "classes" in gives else gives["vocab"]
        assert 0 <= answers.min() <= answers.max() < most
        for ragged in items.inputs.values():
            assert ragged.lengths.min() > 0
            assert ragged.values.max() < len(task.vocabulary)


def vars_of(task: Task) -> dict[str, object]:
    assert dataclasses.is_dataclass(task)
    return {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_formatted(name: str) -> None:
    text = (FOLDER / f"{name}.arch").read_text(encoding="utf-8")
    assert format_program(parse(Source(name, text))) == text
