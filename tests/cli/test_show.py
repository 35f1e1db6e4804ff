"""`archlang show`: every stage of a program."""

from pathlib import Path

import pytest

from archlang.graph.text import parse_graph
from archlang.passes.pipeline import PASSES
from tests.cli.conftest import Command


def test_the_tree_is_that_of_the_text(archlang: Command, folder: Path) -> None:
    result = archlang("show", "bad.arch", "--tree")
    assert result.code == 0
    assert result.out.startswith("Program(")
    assert "Return(" in result.out
    assert "Name(parts=('nrom',))" in result.out


def test_the_graph_reads_back(archlang: Command, folder: Path) -> None:
    for option in ("--graph", "--no-passes", "--without=common"):
        result = archlang("show", "model.arch", option)
        assert result.code == 0
        assert "call @embed" in result.out
        assert parse_graph(result.out)


@pytest.mark.parametrize("stage", ["--torch", "--lowered"])
def test_the_torch_program_names_its_lines(archlang: Command, folder: Path, stage: str) -> None:
    result = archlang("show", "model.arch", stage)
    assert result.code == 0
    assert "def forward(self, x" in result.out
    assert "# model.arch:2" in result.out
    compile(result.out, "shown", "exec")


def test_the_first_recipe_gives_the_statics_unless_another_is_named(archlang: Command, folder: Path) -> None:
    assert "d = 8" in archlang("show", "model.arch").out
    assert "d = 16" in archlang("show", "model.arch", "--recipe", "wide").out
    assert "d = 32" in archlang("show", "model.arch", "--set", "model.d=32").out


def test_a_model_alone_needs_the_sizes_of_a_task(archlang: Command, folder: Path) -> None:
    result = archlang("show", "model.arch", "--model", "m", "--set", "classes=3", "--set", "vocab=5")
    assert result.code == 0
    assert "linear[out = 3" in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("model.arch", "--tree", "--torch"), 2, "different stages"),
        (("model.arch", "--model", "other"), 1, "unknown model or block `other`"),
        (("model.arch", "--recipe", "other"), 1, "unknown recipe `other`"),
        (("model.arch", "--set", "model.width=3"), 1, "`model.width`"),
        (("model.arch", "--set", "model.d"), 2, "path=value"),
        (("broken.arch", "--tree"), 1, "E0101"),
        (("bad.arch",), 1, "E02"),
        (("nothing.arch",), 1, "no such file"),
        ((".",), 1, "it is a folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_impossible_requests_are_errors(
    archlang: Command, folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = archlang("show", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err


def test_passes_are_listed_with_their_effects_and_can_be_skipped(archlang: Command, folder: Path) -> None:
    result = archlang("show", "model.arch", "--passes", "--without", "dead")
    lines = result.out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == [step.name for step in PASSES]
    assert "3 nodes to 3" in lines[0]
    assert lines[names.index("dead")].endswith("skipped")
    assert lines[names.index("batch_chunks")].endswith("see `--lowered`")


def test_a_required_or_unknown_pass_cannot_be_skipped(archlang: Command, folder: Path) -> None:
    for name in ("inline", "speed"):
        result = archlang("show", "model.arch", "--without", name)
        assert result.code == 2
        assert f"unknown optional pass `{name}`" in result.err
