"""The signature of each task agrees with its class."""

from typing import ClassVar, get_origin, get_type_hints

import numpy as np
import pytest

from archlang.errors import Source
from archlang.resolve import library
from archlang.syntax import format_program, parse
from archlang.syntax.tree import Name, TypeName
from archlang.tasks.kit.metrics import MEANINGS
from archlang.tasks.kit.split import Ragged, TargetForm
from archlang.tasks.kit.task import DecodableTask, Kind, ShippedTask, class_names, group_names, group_values, groups
from archlang.types.statics import Interval
from tests.tasks.every import FOLDER, NAMES, SMALL, build, gives, items_of, signature, value, vars_of, vocabulary_of


def test_every_task_of_the_folder_has_its_file() -> None:
    assert {"ctl", "arithmetic", "listops", "flipflop", "copy", "dyck", "mqar", "parity", "scan"} <= set(NAMES)
    assert all(signature(name).body or (FOLDER / f"{name}.py").exists() for name in NAMES)
    assert set(NAMES) == library.task_names()


@pytest.mark.parametrize("name", NAMES)
def test_the_class_receives_the_statics_and_defaults_of_the_signature(name: str) -> None:
    assert vars_of(build(name)) == {
        static.name: value(static.default, {}) for static in signature(name).signature.statics
    }


TYPES: dict[str, set[object]] = {
    "int": {int}, "float": {float}, "bool": {bool}, "symbol": {str}, "file": {str}, "files": {str}, "range": {Interval},
    "list": {tuple[int, ...], tuple[float, ...], tuple[Interval, ...]},
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_types_of_the_class_are_the_kinds_of_the_signature(name: str) -> None:
    kinds = {static.name: static.kind or "" for static in signature(name).signature.statics}
    task_class = type(build(name))
    hints = get_type_hints(task_class)
    shared = ShippedTask.__annotations__.keys() - kinds.keys()
    own = {
        static: hint
        for static, hint in hints.items()
        # What the class itself says is no static.
        if static not in shared and ClassVar not in (hint, get_origin(hint)) and not hasattr(task_class, static)
    }
    assert own.keys() <= kinds.keys()
    assert all(hint in TYPES[kinds[static]] for static, hint in own.items())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("begin_end", [None, True, False])
def test_the_signature_gives_the_size_of_the_vocabulary(name: str, begin_end: bool | None) -> None:
    statics = {static.name: value(static.default, {}) for static in signature(name).signature.statics}
    if begin_end is not None and "begin_end" not in statics:
        return
    chosen = {} if begin_end is None else {"begin_end": begin_end}
    assert gives(name, {**statics, **chosen}).get("vocab", 0) == len(vocabulary_of(build(name, **chosen)))


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("file", "text"))])
def test_every_class_has_a_name(name: str) -> None:
    statics = {static.name: value(static.default, {}) for static in signature(name).signature.statics}
    task = build(name)
    assert len(set(class_names(task))) == gives(name, statics).get("classes", 0)
    assert all(names == class_names(task) for names in group_names(task).values())


@pytest.mark.parametrize("name", NAMES)
def test_fields_targets_and_groups_are_as_declared(name: str) -> None:
    task = build(name, **SMALL.get(name, {}))
    declared = signature(name)
    sizes = gives(name, vars_of(task))
    for split in [name for name in task.split_names() if name != "test"][:2]:
        items = items_of(task, split)
        assert list(items.inputs) == [parameter.name for parameter in declared.signature.inputs]
        assert task.breakdown in items.groups
        assert set(items.groups) <= set(groups(task))
        for group, values in group_values(task, split).items():
            assert set(items.groups[group].tolist()) <= set(values)
        assert set(task.metrics) <= set(MEANINGS)
        assert items.form is task.kind.form
        answers = items.targets.values if isinstance(items.targets, Ragged) else items.targets
        most = sizes["classes"] if "classes" in sizes else sizes.get("vocab", 0)
        if items.form is TargetForm.SETS:
            assert answers.dtype == np.bool_
            assert answers.shape[1] == most
        elif items.form is TargetForm.POINTERS:
            assert isinstance(items.targets, Ragged)
            widths = items.inputs[items.points_at].lengths.repeat(items.targets.lengths)
            assert (answers < widths).all()
        elif items.form is TargetForm.NUMBERS:
            assert isinstance(declared.signature.result, TypeName)
            assert answers.dtype == np.float32
            assert answers.shape[1] == value(declared.signature.result.dimensions[1], vars_of(task))
            assert np.isfinite(answers).all()
        elif items.form is not TargetForm.SPANS:
            assert 0 <= answers.min() <= answers.max() < most
        for parameter, ragged in zip(declared.signature.inputs, items.inputs.values(), strict=True):
            assert ragged.lengths.min() > 0
            if parameter.type.name == "tokens":
                dimensions = parameter.type.dimensions
                size = sizes["vocab"] if len(dimensions) == 1 else value(dimensions[1], sizes)
                assert 0 <= ragged.values.min() <= ragged.values.max() < size
            else:
                assert ragged.values.dtype in (np.float32, np.uint8)  # numbers, or shades
                assert ragged.values.shape[1] == value(parameter.type.dimensions[1], vars_of(task))


@pytest.mark.parametrize("name", NAMES)
def test_the_signature_has_the_form_of_the_kind(name: str) -> None:
    task, declared = build(name), signature(name)
    fields, result = declared.signature.inputs, declared.signature.result
    assert isinstance(result, TypeName)
    per_position = len(result.dimensions) == 2
    assert per_position == (task.kind.form is not TargetForm.CLASSES)
    match task.kind:
        case Kind.CLASSIFICATION | Kind.TAGGING | Kind.SPANS:
            assert not declared.causal
        case Kind.REGRESSION:
            assert result.name == "seq", "numbers are no logits"
        case Kind.POINTING:
            assert isinstance(result.dimensions[1], Name)
            assert result.dimensions[1].text in {field.type.dimensions[0].span.text for field in fields}
        case Kind.PAIRS:
            assert len({field.type.dimensions[0].span.text for field in fields}) == 2
        case Kind.LANGUAGE_MODEL:
            assert declared.causal
            assert fields[0].name == "x"
        case Kind.SEQ2SEQ:
            assert declared.causal, "a model that reads the answer it is asked for is to be found"
            assert fields[-1].name == "target"
            assert isinstance(task, DecodableTask)
            assert isinstance(result.dimensions[0], Name)
            assert result.dimensions[0].text == fields[-1].type.dimensions[0].span.text


@pytest.mark.parametrize("name", NAMES)
def test_train_is_in_distribution_and_splits_are_named_right(name: str) -> None:
    task = build(name)
    assert "train" in task.in_distribution
    assert set(task.in_distribution) <= set(task.split_names())


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_formatted(name: str) -> None:
    text = (FOLDER / f"{name}.arch").read_text(encoding="utf-8")
    assert format_program(parse(Source(name, text))) == text
