"""Changes between two architectures in words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import archlang
from archlang.compile import compile_graph
from archlang.graph.graph import Graph
from archlang.plan.from_file import plan_recipe
from archlang.reports.pictures.changes import describe_changes

NDR = Path(archlang.__file__).parent / "recipes" / "ndr.arch"


def test_a_changed_depth_names_both_numbers() -> None:
    before, after = plan_recipe(NDR).graph, plan_recipe(NDR, sets={"model.steps": "20"}).graph
    assert describe_changes(before, after) == ("depth 12 → 20",)


def test_truth_values_are_spelled_as_in_a_program() -> None:
    before = plan_recipe(NDR, "baseline").graph
    paths = {path: replace(each, statics={"causal": False}) for path, each in before.instances.items()}
    after = {path: replace(each, statics={"causal": True}) for path, each in before.instances.items()}
    changes = describe_changes(replace(before, instances=paths), replace(before, instances=after))
    assert any("causal false → true" in change for change in changes)


def test_added_blocks_are_named_with_their_parameters() -> None:
    changes = describe_changes(plan_recipe(NDR, "baseline").graph, plan_recipe(NDR).graph)
    assert any(change.startswith("copy gate added") for change in changes)
    assert changes[-1].endswith("parameters")


PROGRAM = """block mixer(h: seq[n, d]) -> seq[n, d] {
    s = 2 * h
    return attention[1](s)
}

model m[d: int = 8](x: tokens[n, v]) -> logits[n, v] {
    h = embed[d](x)
    let f = linear[d]
    mix = relu(h)
    repeat 4 truncated 2 {
        h <- norm(h + mixer(h))
        loss open = sum_features(mean(h))
    }
    z = attention[1](h, mix)
    return linear[v](f(f(z)))
}
"""


def graph(text: str, folder: Path) -> Graph:
    file = folder / "m.arch"
    file.write_text(text, encoding="utf-8")
    return compile_graph(file)


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("h + mixer(h)", "h - mixer(h)", "`h = norm((h + mixer(h)))` → `h = norm((h - mixer(h)))`"),
        ("s = 2 * h", "s = 0 * h", "`in mixer: s = (2 * h)` → `in mixer: s = (0 * h)`"),
        ("truncated 2", "truncated 3", "`h = loop(h), truncated 2` → `h = loop(h), truncated 3`"),
        ("(h, mix)", "(h)", "`z = attention(h, mix)` → `z = attention(h, h)`"),
        ("(h, mix)", "(mix, h)", "`z = attention(h, mix)` → `z = attention(mix, h)`"),
        ("mean(h))", "mean(mix))", "`loss open = loss(sum_features(mean(h)))` → "),
        ("relu(h)", "relu(relu(h))", "`mix = relu(h)` → `mix = relu(relu(h))`"),
        ("mix = relu(h)", "mix = 1 * h", "`mix = relu(h)` → `mix = (1 * h)`"),
        ("d: int = 8", "d: int = 16", ""),
        ("f(f(z))", "f(z)", "`return linear(linear@f(linear@f(z)))` → `return linear(linear(z))`"),
    ],
)
def test_another_size_operation_argument_or_fact_of_a_loop_is_a_change(
    old: str, new: str, change: str, tmp_path: Path
) -> None:
    changes = describe_changes(graph(PROGRAM, tmp_path), graph(PROGRAM.replace(old, new), tmp_path))
    assert any(line.startswith(change) for line in changes), changes


@pytest.mark.parametrize(
    "replacements",
    [
        (), (("s = 2 * h\n    return attention[1](s)", "return attention[1](2 * h)"),),
        (("mix =", "blend ="), ("(h, mix)", "(h, blend)"), ("let f", "let map"), ("f(f(z))", "map(map(z))")),
    ],
)  # fmt: skip
def test_another_name_is_no_change(replacements: Sequence[tuple[str, str]], tmp_path: Path) -> None:
    other = PROGRAM
    for old, new in replacements:
        assert old in other
        other = other.replace(old, new)
    assert describe_changes(graph(PROGRAM, tmp_path), graph(other, tmp_path)) == ()


def test_of_many_changes_their_number_is_told(tmp_path: Path) -> None:
    first = "model m(x: seq[n, d]) -> seq[n, d] {\n" + "".join(f"    a{i} = {i} * x\n" for i in range(9))
    other = first.replace("* x", "+ x")
    last = f"    return {' + '.join(f'a{i}' for i in range(9))}\n}}\n"
    (change,) = describe_changes(graph(first + last, tmp_path), graph(other + last, tmp_path))
    assert change == "9 values are computed in another way"


def test_a_state_is_not_the_value_with_which_it_begins(tmp_path: Path) -> None:
    body = "    g = norm(h)\n    s = g\n    repeat 3 { s <- relu(s + g) }\n    return s\n"
    first = f"model b[d: int = 4](h: seq[n, d]) -> seq[n, d] {{\n{body}}}\n"
    (change,) = describe_changes(graph(first, tmp_path), graph(first.replace("s + g", "g + g"), tmp_path))
    assert change == "`s = relu((s + g))` → `s = relu((g + g))`"
