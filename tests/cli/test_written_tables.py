"""`archlang ablate` and `archlang scale` write programs that `archlang table` runs."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Command

pytestmark = pytest.mark.usefixtures("forked_workers")
NORMED = TINY.replace("embed[d](x) |> mean", "embed[d](x) |> norm |> mean") + "}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.arch").write_text(NORMED)
    return tmp_path


def test_an_ablation_that_is_written_runs_and_is_compared(archlang: Command, folder: Path) -> None:
    result = archlang("ablate", "tiny.arch", "--seeds", "2", "--out", "off.arch")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "wrote off.arch, 2 rows",
        "next, type",
        '    archlang table off.arch --compare "tiny"',
    ]
    table = archlang(
        "table", "off.arch", "--compare", "tiny", "--device", "cpu", "--workers", "1", "--format", "markdown"
    )
    assert table.code == 0, table.err
    assert "test.accuracy: Without norm − tiny = " in table.out
    assert "over 2 pairs of seeds" in table.out


def test_a_scaling_that_is_written_runs_and_is_fitted(archlang: Command, folder: Path) -> None:
    over = "model.d=4,8,16"
    assert (
        archlang("scale", "tiny.arch", "--over", over, "--budgets", "1,2", "--seeds", "1", "--out", "sizes.arch").code
        == 0
    )
    command = "table", "sizes.arch", "--device", "cpu", "--workers", "1", "--json"
    table = archlang(*command, "--fit", "Parameters")
    assert table.code == 0, table.err
    assert {"valid.loss, 1", "valid.loss, 2"} <= json.loads(table.out)["fits"].keys()
    wrong = archlang(*command, "--no-run", "--fit", "Size")
    assert (wrong.code, wrong.err.splitlines()[0]) == (2, "error: there is no column “Size”")


def test_json_has_the_rows_and_the_program(archlang: Command, folder: Path) -> None:
    facts = json.loads(archlang("ablate", "tiny.arch", "--json").out)
    assert facts["rows"][1] == {"title": "Without norm", "settings": {"model.with_norm": "false"}}
    assert facts["program"] == archlang("ablate", "tiny.arch").out
    assert facts["left_out"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "error", "remedy"),
    [
        (["scale"], 2, "`--over` names what has several sizes", "it can be model.d"),
        (
            ["scale", "--over", "model.x"],
            1,
            "error[E0312]: unknown path `model.x`",
            "write a static of `model`: `model.d`",
        ),
        (["ablate", "--out", "off.txt"], 2, "`off.txt` has no suffix of a program", "use one of .arch"),
        (["ablate", "--out", "tiny.arch"], 1, "tiny.arch exists", "name another file; nothing was written"),
        (["ablate", "plain"], 1, "nothing in the model of `plain` can be off", "name a recipe"),
    ],
)
def test_a_mistake_has_a_remedy(
    archlang: Command, folder: Path, arguments: list[str], code: int, error: str, remedy: str
) -> None:
    plain = NORMED.replace("model tiny", "model plain").replace("recipe tiny", "recipe plain").replace("|> norm ", "")
    (folder / "tiny.arch").write_text(NORMED + plain.replace("model tiny", "model plain"))
    result = archlang(arguments[0], "tiny.arch", *arguments[1:])
    assert result.code == code
    assert error in result.err
    assert remedy in result.err
