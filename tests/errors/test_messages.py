"""Rows of messages fit their calls: mypy does not see them."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import archlang
from archlang.errors import Source, Span
from archlang.errors.diagnostic import Wording
from archlang.errors.messages import Message, Messages, read_messages

ROOT = Path(archlang.__file__).parent
PACKAGES = sorted(f"archlang.{file.parent.name}" for file in ROOT.glob("*/messages.txt"))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_row_uses_its_facts_and_no_others(package: str) -> None:
    for name, message in read_messages(package).items():
        fields = set(re.findall(r"(?<!\{)\{(\w+)", "\n".join(message.lines)))
        named = {
            word for line in message.lines if line.startswith(("at ", "edit", "safe", "near")) for word in line.split()
        }
        named |= {word.rstrip(":") for word in named}
        assert fields <= {*message.facts}, name
        assert {*message.facts} <= fields | named, name


def calls(file: Path) -> Iterator[tuple[str, str, ast.Call]]:
    """Yields the module, the name and the place of each call of a message in a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules, functions = {"_rows": f"archlang.{file.parent.name}."}, dict[str, tuple[str, str]]()
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.ImportFrom) and node.module else ():
            assert isinstance(node, ast.ImportFrom)
            if alias.name.endswith("mistakes"):
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif node.module and node.module.endswith("mistakes"):
                functions[alias.asname or alias.name] = node.module, alias.name
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if module in modules:
                yield modules[module], name, node
            case ast.Call(func=ast.Name(id=name)) if name in functions:
                yield *functions[name], node


def test_each_call_of_a_row_has_its_facts() -> None:
    used: set[Message] = set()
    for file in sorted(ROOT.rglob("*.py")):
        for module, name, call in calls(file):
            package = module.rpartition(".")[0]
            message = read_messages(package).get(name) if package in PACKAGES else None
            if message is not None:
                given = [*message.facts[: len(call.args)], *(keyword.arg for keyword in call.keywords)]
                assert sorted(map(str, given)) == sorted(message.facts), f"{file}:{call.lineno}"
                used.add(message)
    assert len(used) > 90


def test_each_wording_is_used_with_its_facts() -> None:
    modules = {f"archlang.{'.'.join(file.relative_to(ROOT).parts[:-1])}.mistakes" for file in ROOT.rglob("mistakes.py")}
    wordings = {
        (module, name): value
        for module in modules
        for name, value in vars(importlib.import_module(module)).items()
        if isinstance(value, Wording)
    }
    files = [file for folder in (ROOT, ROOT / "cli") for file in sorted(folder.rglob("*.py"))]
    for file in files:
        for module, name, call in calls(file):
            if (module, name) in wordings and not any(isinstance(fact, ast.Starred) for fact in call.args):
                assert len(call.args) == len(wordings[module, name].facts), f"{file}:{call.lineno}"
    sources = "\n".join(file.read_text(encoding="utf-8") for file in files if file.name != "mistakes.py")
    assert {name for _, name in wordings} <= {*re.findall(r"\w+", sources)}
    assert len(wordings) > 90


def test_a_row_is_a_diagnostic() -> None:
    source = Source("a.arch", "f[a, b]")
    first, second = Span(source, 2, 3), Span(source, 5, 6)
    diagnostic = Messages("archlang.resolve").carried_twice(second, "b", first=first)
    assert (diagnostic.code, diagnostic.message, diagnostic.label) == ("E0231", "`b` is carried twice", "carried again")
    assert [(label.span, label.text) for label in diagnostic.labels] == [(first, "carried here")]
    assert diagnostic.is_safe
    assert [edit.span.text for edit in diagnostic.edits] == [", b"]


def test_an_unknown_row_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no message nothing"):
        _ = Messages("archlang.resolve").nothing
