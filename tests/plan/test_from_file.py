"""The statics that a run folder records are those of the recipe, whatever characters their texts hold."""

from pathlib import Path

import pytest

from archlang.compile import compile_graph, compile_named, load
from archlang.errors import ProgramError
from archlang.plan.check import check
from archlang.plan.from_file import bind_task, plan_recipe, plan_table, rebind
from archlang.plan.plan import BoundExtern
from archlang.resolve import library


@pytest.mark.parametrize("name", sorted(library.task_names()))
def test_the_statics_of_a_task_pass_the_check_unchanged(name: str) -> None:
    needs_file = any(
        static.name == "path" and static.kind in ("file", "files") for static in library.tasks()[name].signature.statics
    )
    task = bind_task(name, {"path": '"words.tsv"'} if needs_file else {})
    assert rebind("task", task)[0] == task


@pytest.mark.parametrize("path", ["/data/my words.tsv", '/data/"quoted".tsv', "/data/[x], y = 1.tsv", "/data/ü\n.tsv"])
def test_a_path_may_hold_any_characters(path: str) -> None:
    bound = bind_task("file", {"path": '"words.tsv"'})
    task = BoundExtern(bound.name, bound.python, {**bound.statics, "path": path})
    assert rebind("task", task)[0].statics["path"] == path


def test_a_value_out_of_bounds_is_refused() -> None:
    bound = bind_task("ctl", {})
    with pytest.raises(ProgramError):
        rebind("task", BoundExtern(bound.name, bound.python, {**bound.statics, "train_size": -1}))


def test_a_signature_that_is_refused_by_check_is_not_planned(tmp_path: Path) -> None:
    file = tmp_path / "cuts.arch"
    file.write_text(
        """extern block b(x: seq[n, d]) -> seq[n, d] reads x pointwise cuts evenly into 3 python "mine:B"
model m[d = 8](x: tokens[n]) -> logits[classes] { return embed[d](x) |> b |> last |> linear[classes] }
recipe r { task ctl model m train adamw[steps = 1] }
table t { row "A" r column "B" test.accuracy }
""",
        encoding="utf-8",
    )
    (expected,) = check(file)
    for plan in (plan_recipe, plan_table, compile_graph):
        with pytest.raises(ProgramError) as raised:
            plan(file)
        assert raised.value.diagnostics == (expected,)


@pytest.mark.parametrize(
    ("path", "text", "place", "message"),
    [
        ("train.stesp", "3", "train.stesp", "unknown path `train.stesp` in this recipe"),
        ("model.d", "abc", "abc", "`model.d` takes an integer, not `abc`, which is no static here"),
        ("train.lr", "fast", "fast", "`train.lr` takes a number, not `fast`, which is no static here"),
    ],
)
def test_a_mistake_in_a_setting_is_at_its_name_or_its_value(path: str, text: str, place: str, message: str) -> None:
    with pytest.raises(ProgramError) as error:
        compile_named(library.BLOCKS.parent / "recipes" / "gutlb.arch", None, None, {path: text})
    (mistake,) = error.value.diagnostics
    assert (mistake.span.text, mistake.span.source.text, mistake.message) == (place, f"{path}={text}", message)
    assert "block name" not in (mistake.remedy or "")


def test_a_static_from_python_is_not_called_an_option() -> None:
    with pytest.raises(ProgramError) as error:
        load(library.BLOCKS.parent / "recipes" / "gutlb.arch", vocab=5)
    assert "--set" not in str(error.value)
