"""An ablation turns off one part of a model in each row, and leaves the model alone in the first."""

from pathlib import Path

import pytest

from archlang.elaborate.signature_check import load_file
from archlang.errors import Source
from archlang.graph.graph import Graph
from archlang.plan.ablation import ablation
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_first_point
from archlang.plan.table_writer import RecipePage, TableDraft
from archlang.resolve.library import recipe_files
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program

RECIPE = """
recipe r {{
    task  ctl
    model m
    train adamw[lr = 1e-3, steps = 3]
}}
"""
MODEL = """
model m[d = 8, turns = 3](x: tokens[n]) -> logits[classes] {{
    h = embed[d](x)
    {body}
    return linear[classes](last(h))
}}
"""


def written(tmp_path: Path, body: str, more: str = "") -> TableDraft:
    file = tmp_path / "page.arch"
    file.write_text(more + (MODEL + RECIPE).format(body=body))
    table = ablation(RecipePage(file, None))
    assert not [each for each in check_text(table.text, str(file)) if each.code.startswith("E")]
    assert format_program(parse(Source(str(file), table.text))) == table.text
    return table


def graph(tmp_path: Path, text: str, settings: dict[str, str]) -> Graph:
    return plan_first_point(load_file(Source(str(tmp_path / "page.arch"), text)), "r", settings).graph


def titles(table: TableDraft) -> list[str]:
    return [row.title for row in table.rows]


@pytest.mark.parametrize(
    ("body", "title", "without"),
    [
        ("a = h + attention[2](h)\n h2 = a", "Without attention", "a = h + 0\n h2 = a"),
        ("a = norm(h)\n h2 = a", "Without norm", "a = h\n h2 = a"),
        ("h2 = h |> norm |> linear[d]", "Without norm", "h2 = h |> linear[d]"),
        ("h2 = copy_gate(sigmoid(h), linear[d](h), h)", "Without copy_gate", "h2 = linear[d](h)"),
        ("h2 = sigmoid(linear[d](h)) * h", "Without sigmoid", "h2 = 1 * h"),
        ("g = sigmoid(h)\n h2 = g * norm(h) - g * h", "Without sigmoid", "g = 1\n h2 = g * norm(h) - g * h"),
        ("h2 = repeat_features[8](sigmoid(linear[1](h))) * h", "Without repeat_features", "h2 = 1 * h"),
        (
            "h2 = repeat turns { h <- linear[d](h) emit h }", "One turn of repeat",
            "h2 = repeat 1 { h <- linear[d](h) emit h }",
        ),
        ("stack turns { h <- linear[d](h) }\n h2 = h", "One turn of stack", "stack 1 { h <- linear[d](h) }\n h2 = h"),
        ("stack 3 { h <- linear[d](h) }\n h2 = h", "One turn of stack", "stack 1 { h <- linear[d](h) }\n h2 = h"),
        ("h2 = repeat 2 { h <- linear[d](h) emit h }", "One turn of repeat",
         "h2 = repeat 1 { h <- linear[d](h) emit h }"),
        ("h2 = h + norm(h) * gelu(h)", "Without norm_times_gelu", "h2 = h + 0"),
    ],
)  # fmt: skip
def test_a_row_is_the_model_that_one_writes_without_the_part(
    tmp_path: Path, body: str, title: str, without: str
) -> None:
    file, model = tmp_path / "page.arch", MODEL.replace("last(h)", "last(h2)") + RECIPE
    file.write_text(model.format(body=body))
    page = RecipePage(file, None)
    table = ablation(page)
    row = next(row for row in table.rows if row.title == title)
    assert graph(tmp_path, table.text, row.settings) == graph(tmp_path, model.format(body=without), {})
    assert graph(tmp_path, table.text, {}) == page.plan.graph


def test_a_switch_reaches_its_place_through_every_block_that_leads_to_it(tmp_path: Path) -> None:
    more = (
        "block inner(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
        "block outer[f: block](h: seq[n, d]) -> seq[n, d] { return f(inner(h)) }\n"
    )
    table = written(tmp_path, "repeat 2 { h <- h |> outer[inner] }", more)
    assert titles(table) == ["r", "Without norm", "One turn of repeat"]
    assert "outer[inner[with_norm = with_norm], with_norm = with_norm]" in table.text
    off = graph(tmp_path, table.text, {"model.with_norm": "false"})
    assert {instance.block for instance in off.instances.values()} == {"embed", "linear", "last"}


def test_an_instance_with_the_name_of_a_block_is_no_such_block(tmp_path: Path) -> None:
    more = "block inner(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
    table = written(tmp_path, "let inner = linear[d]\n repeat 2 { h <- h + inner(h) }", more)
    assert titles(table) == ["r", "One turn of repeat", "Without inner"]


def test_a_switch_in_a_block_that_the_recipe_gives_its_model_is_set_there(tmp_path: Path) -> None:
    file = tmp_path / "page.arch"
    file.write_text(
        "block mine[k = 1](h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
        + MODEL.format(body="h2 = f(h)").replace("turns = 3", "f: block = gelu").replace("last(h)", "last(h2)")
        + RECIPE.format().replace("model m", "model m[f = mine[2]]")
    )
    table = ablation(RecipePage(file, None))
    assert [row.settings for row in table.rows] == [{}, {"model.f": "mine[2, with_norm = false]"}]


def test_blocks_of_the_library_and_of_files_beside_the_program_are_written_out(tmp_path: Path) -> None:
    (tmp_path / "beside.arch").write_text("block mine(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n")
    more = 'use "./beside.arch"\nuse archlang.models.linear_mixers\n'
    table = written(tmp_path, "a = h + mine(gated_linear_attention[2](h))\n h2 = norm(a)", more)
    assert "use" not in table.text.split()
    assert {"Without norm", "Without mine", "Without rms_norm"} <= {*titles(table)}


def test_auxiliary_losses_are_off_by_their_weights(tmp_path: Path) -> None:
    table = written(tmp_path, "loss small = mean(max_features(h))")
    assert table.rows[1].settings == {"train.losses.small": "0.0"}
    assert "Without loss small" in titles(table)


def test_what_changes_nothing_or_has_a_mistake_is_no_row(tmp_path: Path) -> None:
    body = "g = sigmoid(linear[d](h))\n if turns > 5 { h2 = norm(h) } else { h2 = copy_gate(g, linear[d](h), h) }\n"
    table = written(tmp_path, body + " h3 = h2")
    assert titles(table) == ["r", "Without copy_gate"]
    (left_out,) = table.left_out
    assert left_out.endswith("with_sigmoid: `copy_gate` expects `data[d]` as `g`, but this is `number`")


def test_a_chain_of_norms_is_not_copied_once_more_for_each(tmp_path: Path) -> None:
    table = written(tmp_path, "h2 = h" + " |> norm |> linear[d]" * 12)
    assert len(table.rows) == 13
    assert len(table.text) < 100_000


def test_a_branch_inside_a_gated_update_can_be_off_together_with_the_gate(tmp_path: Path) -> None:
    table = written(tmp_path, "repeat turns { h <- copy_gate(sigmoid(h), h + gelu(norm(h)), h) }")
    both = graph(tmp_path, table.text, {"model.with_copy_gate": "false", "model.with_gelu": "false"})
    assert {instance.block for instance in both.instances.values()} == {"embed", "linear", "last"}


@pytest.mark.parametrize("name", ["gutlb", "tlb", "ndr", "s3", "field/table", "field/moeut", "mixed/halting_decoder"])
def test_the_first_row_of_a_shipped_recipe_is_its_model_and_all_rows_check(name: str) -> None:
    page = RecipePage(recipe_files()[name], None)
    table = ablation(page)
    assert check_text(table.text, str(recipe_files()[name])) == ()
    whole, *others = (plan for plan in page.planned(table.text, table.rows).values())
    assert not isinstance(whole, Exception)
    assert whole.graph == page.plan.graph
    assert len(others) > 3


def test_the_recipe_varies_the_chosen_seeds_and_else_its_own(tmp_path: Path) -> None:
    file = tmp_path / "page.arch"
    more = 'vary train.lr in [1e-3, 1e-2], seed in 4..5\n claim test.accuracy = 1 from "a paper"'
    program = (MODEL + RECIPE).format(body="repeat turns { h <- norm(h) }")
    file.write_text(program.replace("steps = 3]", f"steps = 3]\n {more}"))
    assert "vary  train.lr in [1e-3, 1e-2], seed in 4..5\n" in ablation(RecipePage(file, None)).text
    text = ablation(RecipePage(file, None), [1, 3]).text
    assert "vary  train.lr in [1e-3, 1e-2], seed in [1, 3]\n" in text
    assert "claim" not in text
