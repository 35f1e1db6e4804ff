"""The rows of mistakes.tsv are those that the tasks raise, with the facts that they name."""

import ast
import re
from pathlib import Path

import archlang
from archlang.tasks.kit import mistakes

ROOT = Path(archlang.__file__).parent
FILES = [file for folder in ("tasks", "api", "cli", "runs") for file in (ROOT / folder).rglob("*.py")]


def raised() -> set[tuple[str, int]]:
    """Returns the name and the number of facts of every error."""
    calls = [
        node for file in FILES for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Call)
    ]
    errors = [call for call in calls if ast.unparse(call.func) == "mistakes.error"]
    return {(str(ast.literal_eval(call.args[0])), len(call.args) - 1) for call in errors}


def test_every_row_is_raised_with_its_facts() -> None:
    assert raised() == {(name, len(facts)) for name, (facts, _, _) in mistakes._ROWS.items()}


def test_messages_name_their_facts() -> None:
    for name, (facts, message, remedy) in mistakes._ROWS.items():
        assert set(re.findall(r"{(\w+)}", message + remedy)) == set(facts), name
