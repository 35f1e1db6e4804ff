"""`archlang blocks` and `archlang tasks`: the contents of the library."""

import json
from pathlib import Path

import pytest

from archlang.cli.signatures import Item
from archlang.names import library
from archlang.source import Source
from archlang.syntax.comments import first_sentence
from archlang.syntax.parser import parse
from archlang.syntax.printer import signature_text
from archlang.syntax.tree import Extern
from tests.cli.conftest import Command

ITEMS = {**library.blocks(), **library.tasks(), **library.optimizers()}


def test_blocks_lists_every_block_on_a_line_with_its_first_sentence(archlang: Command) -> None:
    result = archlang("blocks")
    assert result.code == 0
    shown = " ".join(result.out.split())
    for item in library.blocks().values():
        assert f"{item.name} {first_sentence(item.documentation)}" in shown


def test_a_block_of_a_library_module_is_found_by_its_own_name(archlang: Command) -> None:
    assert archlang("blocks", "panm").out == archlang("blocks", "models.panm.panm").out


@pytest.mark.parametrize(
    ("command", "name", "owner"), [("blocks", "adamw", "optimizers"), ("tasks", "linear", "blocks")]
)
def test_a_name_of_another_kind_names_the_command_that_shows_it(
    command: str, name: str, owner: str, archlang: Command
) -> None:
    assert f"`archlang {owner} {name}`" in archlang(command, name).err


def test_tasks_lists_every_task(archlang: Command) -> None:
    result = archlang("tasks")
    assert result.code == 0
    assert {"ctl", "listops", "flipflop"} <= {line.split(" ")[0] for line in result.out.splitlines()}


def test_a_first_sentence_of_two_lines_is_shown_whole(archlang: Command) -> None:
    shown = {line.split(" ")[0]: line for line in archlang("tasks").out.splitlines()}
    assert shown["cogs"].endswith("COGS: translate English sentences into logical forms.")
    assert shown["logical_inference"].endswith(".")


def test_one_block_is_shown_with_signature_documentation_and_source(archlang: Command) -> None:
    result = archlang("blocks", "geometric_attention")
    assert result.code == 0
    assert result.out.startswith("block geometric_attention[\n    heads: int,\n")
    assert "Attention to the nearest match" in result.out
    assert "Python: archlang.blocks.geometric_attention:GeometricAttention" in result.out
    (source,) = [line for line in result.out.splitlines() if line.startswith("File: ")]
    file, _, line = source.removeprefix("File: ").rpartition(":")
    assert "block geometric_attention" in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]


def test_one_task_is_shown_with_its_statics(archlang: Command) -> None:
    result = archlang("tasks", "ctl")
    assert result.code == 0
    assert "order: symbol = backward" in result.out
    assert "Kind: classification\nSplits: train, iid, valid, test\nIn distribution: train, iid\n" in result.out
    assert "Broken down by: length\nMetrics: accuracy\n" in result.out


@pytest.mark.parametrize("command", ["blocks", "tasks"])
def test_json_gives_names_signatures_defaults_and_places(archlang: Command, command: str) -> None:
    items = json.loads(archlang(command, "--json").out)
    names = library.blocks() if command == "blocks" else library.tasks()
    assert [item["name"] for item in items] == list(names)
    for item in items:
        own = set() if command == "blocks" else {"kind", "splits", "in_distribution", "broken_down_by", "metrics"}
        assert set(item) - own == {"name", "signature", "documentation", "statics", "file", "line"}
        assert Path(item["file"]).is_file()
    (entry,) = json.loads(archlang(command, items[0]["name"], "--json").out)
    assert entry == items[0]


def test_json_gives_each_static_with_kind_and_default(archlang: Command) -> None:
    (entry,) = json.loads(archlang("blocks", "geometric_attention", "--json").out)
    assert entry["statics"][:2] == [
        {"name": "heads", "kind": "int", "default": None},
        {"name": "normalised", "kind": "bool", "default": "false"},
    ]


@pytest.mark.parametrize(("command", "name", "near"), [("blocks", "copygate", "copy_gate"), ("tasks", "ctll", "ctl")])
def test_an_unknown_name_is_guessed(archlang: Command, command: str, name: str, near: str) -> None:
    result = archlang(command, name)
    assert (result.code, result.out) == (2, "")
    assert f"did you mean `{near}`?" in result.err
    assert f"`archlang {command}` lists all {command}" in archlang(command, "zzzzz").err


@pytest.mark.parametrize("item", [pytest.param(item, id=name) for name, item in ITEMS.items()])
def test_a_shown_signature_is_the_one_in_the_file(item: Item) -> None:
    text = signature_text(item)
    program = f'extern {text} python "a:B"' if isinstance(item, Extern) else f"{text} {{ return 0 }}"
    (shown,) = parse(Source("shown", program)).items
    # Spans differ and are no part of what a signature says.
    assert signature_text(shown) == text  # type: ignore[arg-type]  # what was parsed is an item of the same kind


def test_a_shown_block_has_its_reads_and_its_caveats(archlang: Command) -> None:
    shown = archlang("blocks", "attention").out
    assert "reads q pointwise, kv causal when causal and causal_rule == always else full" in shown
    assert "random in training when dropout > 0 or output_dropout > 0" in shown
    assert "    pure\n" in archlang("blocks", "relu").out


def test_an_optimizer_is_printed_with_the_training_settings(archlang: Command) -> None:
    assert "sgd" in archlang("optimizers").out
    printed = archlang("optimizers", "adamw").out
    assert "batch: int = 32" in printed
    assert archlang("optimizers", "adamv").code == 2
