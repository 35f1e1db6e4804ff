"""`archlang test`: blocks of the library and of a user, and no Python of a program without `--plugin`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

PROGRAM = """\
extern block shift[by: int = 1](x: seq[n, d]) -> seq[n, d]
    where by >= 0
    reads x causal
    pure
    python "mine:Shift"
"""
PLUGIN = """\
from pathlib import Path
from torch import nn

Path("ran").touch()

class Shift(nn.Module):
    def __init__(self, *, by, d):
        super().__init__()
        self.by = by

    def forward(self, x, mask_n=None):
        return nn.functional.pad(x, (0, 0, self.by, 0))[:, : x.shape[1]]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shift.arch").write_text(PROGRAM)
    (tmp_path / "mine.py").write_text(PLUGIN)
    return tmp_path


def test_blocks_of_the_library_are_named_without_a_file(archlang: Command) -> None:
    result = archlang("test", "first", "norm")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()[1:3]] == ["first", "norm"]
    assert "2 blocks, no violations" in result.out
    assert "skipped: is not a halting block" in result.out


def test_without_the_flag_no_python_of_a_program_runs(archlang: Command, folder: Path) -> None:
    result = archlang("test", "shift.arch")
    assert result.code == 1
    assert "add `--plugin mine.py`" in result.err
    assert not (folder / "ran").exists()
    Path("other.py").write_text("")
    assert "add `--plugin mine.py`" in archlang("test", "shift.arch", "--plugin", "other.py").err
    assert "another.py is not a Python file" in archlang("test", "shift.arch", "--plugin", "another.py").err


def test_a_block_of_a_plugin_is_tested(archlang: Command) -> None:
    assert archlang("test", "shift.arch", "--plugin", "mine.py").code == 0
    assert archlang("test", "shift.arch", "shift", "--plugin", "mine.py").code == 0


def test_a_violation_is_reported_at_its_clause(archlang: Command, folder: Path) -> None:
    (folder / "mine.py").write_text(
        PLUGIN.replace("(0, 0, self.by, 0))[:, : x.shape[1]]", "(0, 0, 0, self.by))[:, self.by :]")
    )
    result = archlang("test", "shift.arch", "--plugin", "mine.py")
    assert result.code == 1
    assert "error[E0703]: `shift`: `x` is declared `causal`, but the block reads more of it" in result.err
    assert "--> shift.arch:3:11" in result.err
    assert "1 block, 1 violates its signature" in result.out


def test_json_has_a_verdict_for_each_property(archlang: Command) -> None:
    verdicts = json.loads(archlang("test", "first", "--json").out)
    assert {verdict["outcome"] for verdict in verdicts} == {"kept", "skipped"}
    properties = {verdict["property"] for verdict in verdicts}
    assert properties >= {"result", "reads", "padding", "batch", "gradients", "saving"}


def test_an_unknown_block_is_an_error_with_a_remedy(archlang: Command, folder: Path) -> None:
    assert "did you mean `first`?" in archlang("test", "frist").err
    assert "did you mean `shift`?" in archlang("test", "shift.arch", "shfit").err
    (folder / "none.arch").write_text("")
    assert "has no `extern block`" in archlang("test", "none.arch").err
    (folder / "bad.arch").write_text(PROGRAM.replace("causal", "backwards"))
    assert "E0503" in archlang("test", "bad.arch").err


def test_equal_writes_a_certificate_and_exits_with_1_if_something_differs(archlang: Command, folder: Path) -> None:
    examples = Path(__file__).parents[2] / "docs" / "examples"
    program, module = examples / "decoder.arch", (examples / "decoder.py").read_text(encoding="utf-8")
    Path("decoder.py").write_text(module, encoding="utf-8")
    command = ("equal", str(program), "--with", "decoder:Decoder", "--plugin", "decoder.py", "--set", "vocab=7")
    unclear = archlang(*command)
    assert (unclear.code, "map them by hand" in unclear.err) == (1, True)
    by_hand = ("--map", "embed.weight=wte.weight", "--out", "equal.json")
    result = archlang(*command, *by_hand)
    assert (result.code, result.err) == (0, "")
    assert "attention.query.weight = attn.q_proj.weight, by similar names" in result.out
    certificate = json.loads(Path("equal.json").read_text(encoding="utf-8"))
    assert certificate["is_equal"] is True
    Path("decoder.py").write_text(module.replace("relu(", "2 * relu("), encoding="utf-8")
    other = archlang(*command, *by_hand, "--json")
    assert (other.code, json.loads(other.out)["is_equal"]) == (1, False)
    assert json.loads(other.out)["plugins"] != certificate["plugins"]


def test_a_map_names_two_weights(archlang: Command, folder: Path) -> None:
    result = archlang("equal", "model.arch", "--with", "mine:Class", "--map", "embed.weight")
    assert (result.code, "`--map` is not of the form" in result.err) == (2, True)
