"""`archlang ablate`, `archlang scale` and `archlang field` write programs that `archlang table` runs."""

import json
import re
import shutil
from pathlib import Path

import pytest

from archlang.resolve import library
from tests.cli.conftest import TINY, Command
from tests.tiny_run import TASK

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
        (
            ["scale", "--over", "model.d=4,8", "--budgets", "0"],
            2,
            "Invalid value for '--budgets'",
            "is not a list of positive",
        ),
        (["scale", "--over", "model.d=4,8", "--budgets", "10,10"], 2, "`--budgets` has `10` twice", "write it once"),
        (["scale", "--over", "model.d=4,4"], 2, "`model.d` has `4` twice", "write it once"),
        (
            ["scale", "--over", "model.d=4", "--over", "model.d=8"],
            2,
            "`--over` has `model.d` twice",
            "write it once, as in `--over model.d=16,32`",
        ),
        (
            ["scale", "--over", "train.steps=1,2", "--budgets", "3", "--out", "off.arch"],
            1,
            "the table would have a mistake: the row “steps = 1” and the column “valid.loss, 3” set `train.steps`",
            "set `train.steps` in the row or in the column",
        ),
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
    assert not (folder / "off.arch").exists()


@pytest.mark.parametrize("command", [["ablate"], ["scale", "--over", "model.d"]])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TASK, 'file[path = "words.tsv"]'),
        (TASK, 'file[path = "../words.tsv"]'),
        ("steps = 4", 'steps = 4, weights = "words.tsv"'),
        ("|> mean", "|> other.more |> mean"),
    ],
)
def test_a_table_is_not_written_where_its_recipe_names_other_files(
    archlang: Command, folder: Path, command: list[str], old: str, new: str
) -> None:
    (folder / "pages").mkdir()
    (folder / "pages/other.arch").write_text("block more(h: seq[n, d]) -> seq[n, d] { return h + norm(h) }\n")
    use = 'use "./other.arch" as other\n' * ("other" in new)
    (folder / "pages/tiny.arch").write_text(use + NORMED.replace(old, new))
    options = "pages/tiny.arch", "--allow", "."
    for out in ("off.arch", "runs/new/off.arch"):
        result = archlang(*command, *options, "--out", out)
        assert (result.code, (folder / out).exists()) == (1, False)
        assert f"error: {out} would be another program: its paths of files are relative to its folder" in result.err
        assert "help: write it beside pages/tiny.arch" in result.err
    beside = archlang(*command, *options, "--out", "pages/off.arch")
    assert (beside.code, beside.err) == (0, "")


BLOCK = """
block mine[width: int = 8](h: seq[n, d]) -> seq[n, d] {
    return h + linear[d](relu(linear[width](cumulative_sum(h))))
}
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.arch").write_text(BLOCK)
    return tmp_path / "field_mine.arch"


def test_the_field_is_shown_and_nothing_runs(archlang: Command) -> None:
    result = archlang("field", "--format", "markdown")
    assert result.code == 0
    assert re.search(r"^\| Attention, no positions \| \d", result.out, re.MULTILINE)
    assert "measured: 495 cells" in archlang("field", "--list").out


def test_an_installation_without_the_results_says_where_they_are(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = library.recipe_files()["field/table"]
    installed = shutil.copytree(table.parent, tmp_path / "installed" / "field") / table.name
    monkeypatch.setattr(library, "recipe_files", lambda: {"field/table": installed})
    assert "`--also recipes/results/field.jsonl`" in archlang("field", "--list").err


def test_options_of_ones_own_block_need_its_program(archlang: Command) -> None:
    result = archlang("field", "--block", "mine")
    assert (result.code, "add `--add mine.arch`" in result.err) == (2, True)


def test_a_block_of_ones_own_has_a_row_of_the_same_size_and_a_place(archlang: Command, mine: Path) -> None:
    settings = "--set", "train.steps=1", "--set", "task.train_size=300", "--set", "task.valid_size=100"
    options = "--seeds", "1", "--only", "mine", "--device", "cpu", "--workers", "1", "--format", "markdown"
    result = archlang("field", "--add", "mine.arch", *options, "--for", "1s", *settings)
    assert (result.code, result.err.splitlines()[:2]) == (
        0,
        [
            "wrote field_mine.arch: 25,638 weights, the first row of the field has 25,446",
            "stopped; rerun the command to resume",
        ],
    )
    assert 'row    "mine" at model.body = layers[own.mine, 184]' in mine.read_text()
    again = archlang("field", "--add", "mine.arch", "--no-run", *options)
    assert (again.code, again.err) == (0, "")
    (mine.with_name("mine.arch")).write_text(BLOCK.replace("width: int = 8", "width: int = 64"))
    wider = archlang("field", "--add", "mine.arch", "--no-run", *options)
    assert (wider.code, wider.err.partition(":")[0]) == (0, "wrote field_mine.arch")
    assert "layers[own.mine, 184]" not in mine.read_text()


def test_a_table_of_the_field_that_was_edited_stays(archlang: Command, mine: Path) -> None:
    mine.write_text("edited")
    result = archlang("field", "--add", "mine.arch", "--no-run")
    assert result.code == 1
    assert "exists and is another table" in result.err
    assert mine.read_text() == "edited"


def test_a_block_of_another_size_is_refused_with_one_that_fits(archlang: Command, mine: Path) -> None:
    result = archlang("field", "--add", "mine.arch", "--whole", "--no-run")
    assert (result.code, mine.exists()) == (2, False)
    assert "a model of the field has 25,446 weights, and with `mine` " in result.err
    assert "`--block 'mine[width = 368]'` fits; the numbers may differ by 5%" in result.err
    unknown = archlang("field", "--add", "mine.arch", "--block", "yours", "--no-run")
    assert (unknown.code, "its blocks are mine" in unknown.err) == (2, True)
