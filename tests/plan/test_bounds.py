"""The bounds of a recipe hold at each of its points, and are the costs that `card` and `summary` count."""

from pathlib import Path

import pytest

from archlang.compile import compile_named
from archlang.errors import ProgramError
from archlang.graph.card import card, cost_at
from archlang.graph.summary import summarize
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe, plan_search
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from archlang.syntax.reading import read

MODEL = """
block retains(h: seq[n, d]) -> seq[n, d] { return retention[1](linear[d](h), linear[d](h), h) }
model mixer[d = 16, mix: block = retains](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    return linear[vocab](norm(h + mix(h)))
}
"""


def recipe(lines: str, name: str = "small") -> str:
    return f"""{MODEL}
recipe {name} {{
    task  flipflop[length = 64]
    model mixer
    train adamw[lr = 1e-3, steps = 3]
    {lines}
}}
"""


def messages(text: str) -> list[str]:
    return [f"{each.code} {each.message}" for each in check_text(text)]


def written(folder: Path, text: str) -> Path:
    file = folder / "program.arch"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_bound_is_the_cost_of_the_card_and_of_the_summary(tmp_path: Path) -> None:
    graph = compile_named(written(tmp_path, recipe("vary seed in 1..2")), None, None, {})
    costs, made = summarize(graph, 512), card(graph)
    assert made.state == "256"
    found = {cost: cost_at(graph, cost, 512).value for cost in ("parameters", "flops", "activations", "state")}
    assert found == {
        "parameters": made.unique, "flops": costs.flops, "activations": costs.activations, "state": 256
    }  # fmt: skip
    for cost, value in found.items():
        place = "" if cost == "parameters" else "[512]"
        at = "" if cost == "parameters" else " at 512 positions"
        assert messages(recipe(f"where {cost}{place} <= {value}")) == []
        (message,) = messages(recipe(f"where {cost}{place} <= {(value or 0) - 1}"))
        assert message == f"E0641 the {cost} of `mixer` are {value:,}{at}, more than {(value or 0) - 1:,}"


def test_without_brackets_a_sample_has_64_positions() -> None:
    (message,) = messages(recipe("where flops <= 1e3"))
    assert "at 64 positions" in message


def test_the_state_of_attention_grows_with_the_length() -> None:
    attends = "vary model.mix in [attention[1, causal = true]]\n    where state[{}] <= 4096"
    assert messages(recipe(attends.format(128))) == []
    (message,) = messages(recipe(attends.format(129)))
    assert message == "E0641 the state of `mixer` are 4,128 at 129 positions, more than 4,096"


def test_the_state_of_a_model_that_sees_the_future_is_unknown() -> None:
    text = recipe("where state <= 10").replace("flipflop[length = 64]", "ctl")
    text = text.replace("logits[n, vocab]", "logits[classes]").replace("norm(h + mix(h))", "mean(mix(reverse(h)))")
    (message,) = messages(text.replace("linear[vocab]", "linear[classes]"))
    assert message == "E0642 the state of `mixer` are unknown of a model that sees the future"


def test_each_point_of_vary_keeps_to_the_bounds() -> None:
    (error,) = check_text(recipe("vary model.d in [8, 64]\n    where parameters <= 2_000"))
    assert (error.code, error.labels[0].text) == ("E0641", "with `model.d = 64`")
    assert error.remedy == "make the model smaller, or raise the bound: `mix.linear` has 46 % of it"


def test_what_is_wrong_in_a_bound_is_said_where_it_stands() -> None:
    lines = "where flop <= 1, flops <= wide, state[0] <= 9, parameters[4] <= 8, parameters <= true"
    mistakes = check_text(recipe(lines))
    assert [(each.code, each.span.text) for each in mistakes] == [
        ("E0642", "flop"), ("E0313", "wide"), ("E0642", "state[0] <= 9"), ("E0642", "4"), ("E0303", "true"),
    ]  # fmt: skip
    assert mistakes[0].edits[0].text == "flops"


def test_costs_that_a_signature_does_not_state_cannot_be_bounded() -> None:
    own = 'extern block own(h: seq[n, d]) -> seq[n, d] reads h causal python "mine:Own"\n'
    text = own + recipe("vary model.mix in [own]\n    where parameters <= 10")
    assert messages(text) == ["E0642 the parameters of `mixer` are unknown of own"]


def test_other_words_than_at_most_are_syntax_mistakes() -> None:
    for sign in (">=", "<", "=="):
        (message,) = messages(recipe(f"where flops {sign} 10"))
        assert message.startswith("E0101")
    (joined,) = check_text(recipe("where flops <= 10 and state <= 3"))
    assert (joined.code, joined.remedy, joined.edits[0].text) == ("E0101", "write `,`", ",")


def test_a_recipe_takes_the_bounds_of_its_base_unless_it_has_its_own() -> None:
    bounded = recipe("where parameters <= 2_000")
    assert messages(f"{bounded}recipe wide from small {{ model mixer[d = 64] }}\n")
    own = "recipe wide from small {\n    model mixer[d = 64]\n    where parameters <= 20_000\n}\n"
    assert messages(bounded + own) == []


def test_a_bound_of_the_base_names_the_recipe_that_exceeds_it_and_its_costs_can_be_seen(tmp_path: Path) -> None:
    text = recipe("where parameters <= 3_000") + "recipe wide from small { model mixer[d = 64] }\n"
    (mistake,) = check_text(text)
    assert (mistake.code, mistake.labels[-1].text) == ("E0641", "in the recipe `wide`")
    graph = compile_named(written(tmp_path, text), None, "wide", {})
    assert card(graph).unique > 3_000


def test_a_setting_of_the_command_line_keeps_to_the_bounds(tmp_path: Path) -> None:
    file = written(tmp_path, recipe("where parameters <= 2_000"))
    assert plan_recipe(file).settings["model.d"] == 16
    with pytest.raises(ProgramError, match="more than 2,000"):
        plan_recipe(file, sets={"model.d": "64"})


def test_a_search_leaves_out_points_beyond_a_bound(tmp_path: Path) -> None:
    text = recipe("search model.d in [8, 16, 64]\n    where parameters <= 2_000")
    assert messages(text) == []
    search = plan_search(written(tmp_path, text))
    assert [search.plan({"model.d": d}) is not None for d in ("8", "16", "64")] == [True, True, False]
    assert "where parameters <= 2_000" in search.base


def test_bounds_are_formatted_as_a_line(tmp_path: Path) -> None:
    text = recipe("where flops[512]<=2e9,parameters<=1e6,\n        state <= 4096")
    line = "    where flops[512] <= 2e9, parameters <= 1e6, state <= 4096\n"
    assert line in format_program(parse(read(written(tmp_path, text))))
