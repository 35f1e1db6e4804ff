"""`archlang blocks`, `tasks`, `optimizers`, `recipes` and `explain`: what ships with archlang."""

import json
from pathlib import Path

import pytest

from archlang.errors import Source, codes
from archlang.resolve import library
from archlang.resolve.library import recipe_files
from archlang.syntax.parser import parse
from archlang.syntax.printer import signature_text
from archlang.syntax.tree import Definition, Extern, first_sentence
from tests.cli.conftest import Command

RECIPES = Path(__file__).parents[2] / "recipes"
ITEMS = {**library.blocks(), **library.tasks(), **library.optimizers()}


def test_blocks_lists_every_block_on_a_line_with_its_first_sentence(archlang: Command) -> None:
    result = archlang("blocks")
    assert result.code == 0
    shown = " ".join(result.out.split())
    for item in library.blocks().values():
        assert f"{item.name} {first_sentence(item.documentation)}" in shown


def test_a_block_of_a_library_module_is_found_by_its_own_name(archlang: Command) -> None:
    assert archlang("blocks", "panm").out == archlang("blocks", "models.panm.panm").out


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


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("blocks copygate", 2, "did you mean `copy_gate`?"),
        ("blocks zzzzz", 2, "`archlang blocks` lists all blocks"),
        ("blocks adamw", 2, "`archlang optimizers adamw`"),
        ("tasks ctll", 2, "did you mean `ctl`?"),
        ("tasks zzzzz", 2, "`archlang tasks` lists all tasks"),
        ("tasks linear", 2, "`archlang blocks linear`"),
        ("optimizers adamv", 2, "did you mean `adam` or `adamw`?"),
        ("recipes gutl", 2, "did you mean `gutlb` or `gut`?"),
        ("train gutl", 1, "no file `gutl`"),
        ("train gutl", 1, "did you mean `gutlb`?"),
        ("explain E401", 2, "error: there is no code E401\n  help: did you mean `E0401`"),
        ("explain sizes", 2, "`archlang explain` lists all codes"),
    ],
)
def test_an_unknown_name_is_guessed(archlang: Command, command: str, code: int, words: str) -> None:
    result = archlang(*command.split())
    assert (result.code, result.out) == (code, "")
    assert words in result.err


@pytest.mark.parametrize("item", [pytest.param(item, id=name) for name, item in ITEMS.items()])
def test_a_shown_signature_is_the_one_in_the_file(item: Definition | Extern) -> None:
    text = signature_text(item)
    has_body = isinstance(item, Definition) or item.body is not None
    program = f"{text} {{ return 0 }}" if has_body else f'extern {text} python "a:B"'
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


def test_every_shipped_file_is_listed_with_its_first_sentence(archlang: Command) -> None:
    listed = json.loads(archlang("recipes", "--json").out)
    names = [file.relative_to(RECIPES).with_suffix("").as_posix() for file in RECIPES.rglob("*.arch")]
    assert sorted(entry["name"] for entry in listed) == sorted(names)
    assert all(entry["summary"].endswith(".") for entry in listed)


@pytest.mark.parametrize("name", ["gutlb", "gutlb.arch", "recipes/gutlb.arch", "papers/ndr/table1"])
def test_a_shipped_file_is_checked_by_its_name(name: str, archlang: Command, tmp_path: Path) -> None:
    assert archlang("check", name).out == "1 file, no errors\n"


def test_a_file_of_ones_own_comes_before_a_shipped_one(archlang: Command, tmp_path: Path) -> None:
    Path("gutlb").write_text("model", encoding="utf-8")
    assert archlang("check", "gutlb").code == 1


def test_a_copy_is_not_overwritten(archlang: Command, tmp_path: Path) -> None:
    assert "archlang train" in archlang("recipes", "gutlb", "--copy", str(tmp_path)).out
    assert (tmp_path / "gutlb.arch").read_bytes() == recipe_files()["gutlb"].read_bytes()
    second = archlang("recipes", "gutlb", "--copy", str(tmp_path))
    assert (second.code, "nothing was written" in second.err) == (1, True)


def test_a_code_prints_its_page(archlang: Command) -> None:
    result = archlang("explain", "E0401")
    assert (result.code, result.out) == (0, codes.explain("E0401"))
    assert archlang("explain", "e0401").out == result.out


def test_without_a_code_all_are_listed(archlang: Command) -> None:
    lines = archlang("explain").out.splitlines()
    assert [line.split()[0] for line in lines] == list(codes.titles())
    assert len(lines) >= 40
