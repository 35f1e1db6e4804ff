"""Sizes pass through blocks, loops and calls; instances are named after the source."""

from pathlib import Path

import pytest

from archlang.compile import compile_graph
from archlang.graph.graph import Graph
from archlang.graph.verifier import verify
from archlang.plan.check import check_text
from archlang.types import Dim


def built(tmp_path: Path, program: str, **statics: int) -> Graph:
    file = tmp_path / "program.arch"
    file.write_text(program)
    graph = compile_graph(file, statics={"vocab": 7, "classes": 3, **statics})
    verify(graph)
    return graph


def codes(program: str) -> list[str]:
    return [diagnostic.code for diagnostic in check_text(program)]


def test_call_sites_own_their_weights_and_let_shares_them(tmp_path: Path) -> None:
    graph = built(
        tmp_path,
        "model m[d = 8](x: tokens[n]) -> logits[classes] { let f = linear[d]\nh = embed[d](x)\n"
        "return linear[classes](last(linear[d](f(f(h))))) }",
    )
    assert [path for path, instance in graph.instances.items() if instance.block == "linear"] == [
        "f",
        "linear",
        "linear_2",
    ]


def test_instances_of_a_stack_are_copies_and_those_of_a_repeat_are_not(tmp_path: Path) -> None:
    graph = built(
        tmp_path,
        "block layer(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
        "model m[d = 8](x: tokens[n]) -> logits[classes] { h = embed[d](x)\n"
        "repeat 3 { h <- layer(h) }\nstack 2 { h <- layer(h) }\nreturn h |> last |> linear[classes] }",
    )
    assert {"layer.norm", "stack.*.layer.norm"} <= set(graph.instances)


NUMBERED = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{ h = embed[d](x)\n{}\nreturn linear[vocab](h) }}"


def test_the_steps_of_a_stack_with_an_index_differ(tmp_path: Path) -> None:
    body = "stack 3 as i { if i == 1 { h <- tanh(h) } else { h <- linear[d](feedforward[4 * i + 4](h)) } }"
    graph = built(tmp_path, NUMBERED.format(body))
    widths = {path: instance.statics.get("ff") for path, instance in graph.instances.items() if "stack" in path}
    assert widths == {
        "stack.0.feedforward": 4, "stack.0.linear": None, "stack.1.tanh": None, "stack.2.feedforward": 12,
        "stack.2.linear": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("stack 3 as i { h <- nrm(h) }", ["E0202"]),
        ("stack 3 as d { h <- norm(h) }", ["E0205"]),
        ("stack 3 as h { h <- norm(h) }", ["E0205"]),
        ("stack 2 as i { stack 2 as i { h <- norm(h) } }", ["E0205"]),
        ("stack 2 as d { h <- linear[d](h) }", ["E0205"]),
        ("stack 2 as n { h <- norm(h) }", ["E0205"]),
        ("stack 2 as i { h <- norm(h) }\nh2 = i * h", ["E0201"]),
        ("stack 2 as i { h <- linear[d + i](h) }", ["E0405"]),
        ("y = stack 2 as i { h <- norm(h) }", ["E0220"]),
        ("stack n as i { h <- norm(h) }", ["E0318"]),
    ],
)
def test_a_mistake_in_a_stack_with_an_index_is_reported_once(body: str, expected: list[str]) -> None:
    recipe = "\nrecipe r {\n    task  flipflop\n    model m\n    train adamw[steps = 1]\n}\n"
    mistakes = [each.code for each in check_text(NUMBERED.format(body) + recipe) if each.is_error]
    assert mistakes == expected


def test_the_body_determines_a_size_that_only_the_result_has(tmp_path: Path) -> None:
    graph = built(
        tmp_path,
        "block pair(a: seq[n, d], b: seq[n, e]) -> seq[n, k] { return concat(a, b) }\n"
        "model m[d = 8](x: tokens[n]) -> logits[classes] { h = embed[d](x)\n"
        "return pair(h, linear[5](h)) |> last |> linear[classes] }",
    )
    assert graph.instances["linear_2"].features["d"] == Dim.of(13)


def test_a_static_block_serves_every_row_of_a_table(tmp_path: Path) -> None:
    program = (
        "block layer[mix: block](h: seq[n, d]) -> seq[n, d] { return h + mix(h) }\n"
        "model m[d = 8](x: tokens[n]) -> logits[classes] { h = embed[d](x)\n"
        "h2 = layer[attention[heads = 2, causal = true]](h)\n"
        "return layer[norm](h2) |> last |> linear[classes] }"
    )
    graph = built(tmp_path, program)
    assert graph.instances["layer.mix"].block == "attention"
    assert graph.instances["layer.mix"].statics["causal"] is True
    assert graph.instances["layer_2.mix"].block == "norm"


def test_unknown_names_are_reported_in_branches_that_the_defaults_exclude() -> None:
    program = """block z[g = true, mode: symbol = a](h: seq[n, d]) -> seq[n, d] where mode in [a, b] {
    if g { x = h } else { x = nowhere }
    if not g {
        let f = linear[d]
        u = f(h)
    }
    if not g {
        x2 = f(u) + unknown(h)
        if mode == b { y = x2 + gone }
    } else { x2 = x }
    return linear[d](x2)
}"""
    mistakes = [each for each in check_text(program) if each.is_error]
    assert [(each.code, each.span.text) for each in mistakes] == [
        ("E0201", "nowhere"),
        ("E0202", "unknown"),
        ("E0201", "gone"),
    ]


def test_sizes_and_names_bound_twice_in_excluded_branches_are_no_mistakes() -> None:
    program = """block b[g = true](h: seq[n, d]) -> seq[n, d] {
    if g { x = h }
    if not g { x = linear[d + 1](h) }
    if not g { y = linear[d](x) } else { y = x + h }
    return y
}"""
    assert codes(program) == []


def test_a_static_if_leaves_no_dead_branch(tmp_path: Path) -> None:
    program = (
        "model m[d = 8, gated = true](x: tokens[n]) -> logits[classes] { h = embed[d](x)\n"
        "if gated { g = sigmoid(h) } else { g = relu(linear[d](h)) }\nreturn g |> last |> linear[classes] }"
    )
    assert "relu" not in built(tmp_path, program).instances
    assert "sigmoid" not in built(tmp_path, program, gated=False).instances


def test_test_time_statics_may_change_steps_but_not_weights() -> None:
    model = (
        "model m[d = 8, steps = 2](x: tokens[n]) -> logits[classes] { h = embed[d](x)\n"
        "repeat steps { h <- norm(h) }\nreturn h |> last |> linear[classes] }\n"
    )
    recipe = "recipe r {{ task ctl model m train adamw[steps = 10] test {} }}"
    assert codes(model + recipe.format("model.steps = 9")) == []
    assert codes(model + recipe.format("model.d = 9")) == ["E0315"]


def test_every_point_of_vary_is_checked() -> None:
    model = "model m[d = 8, heads = 2](x: tokens[n]) -> logits[classes] { "
    model += "return embed[d](x) |> attention[heads] |> last |> linear[classes] }\n"
    recipe = "recipe r { task ctl model m train adamw[steps = 10] vary model.heads in [1, 2, 3] }"
    assert codes(model + recipe) == ["E0304"]


def test_a_mistake_in_a_block_shows_the_call_that_leads_to_it() -> None:
    program = (
        "block layer[heads: int](h: seq[n, d]) -> seq[n, d] { return attention[heads](h) }\n"
        "model m[d = 9](x: tokens[n]) -> logits[classes] { return embed[d](x) |> layer[2] |> last |> linear[classes] }"
    )
    (diagnostic,) = check_text(program)
    assert diagnostic.code == "E0304"
    assert any(label.text == "in this call" and label.span.text == "layer[2]" for label in diagnostic.labels)


def test_both_places_of_a_size_mismatch_are_shown() -> None:
    program = (
        "model m[d = 8](x: tokens[n]) -> logits[classes] { h = embed[d](x)\n"
        "return copy_gate(sigmoid(h), linear[4](h), h) |> last |> linear[classes] }"
    )
    (diagnostic,) = check_text(program)
    assert diagnostic.code == "E0401"
    assert diagnostic.span.text == "linear[4](h)"
    assert "sigmoid(h)" in [label.span.text for label in diagnostic.labels]


def test_all_independent_errors_are_found_in_one_run() -> None:
    program = (
        "block a(h: seq[n, d]) -> seq[n, d] { return nothing(h) }\n"
        "block b(h: seq[n, d]) -> seq[n, d] { x = missing\nreturn attention[head = 2](h) }\n"
        "model c(x: tokens[n]) -> logits[classes] { return last(x) }"
    )
    assert sorted(codes(program)) == ["E0201", "E0202", "E0301", "E0402"]


@pytest.mark.parametrize(
    ("scan", "expected"),
    [
        ("y = scan c after b[d] in chunks[4](h) { b <- norm(b)\nemit attention[1](c, append(b, c)) }", []),
        ("y = scan c after b[0] in chunks[4](h) { emit c }", ["E0308"]),
        ("y = scan c after b[n] in chunks[4](h) { emit c }", ["E0318"]),
        ("y = scan c after c in chunks[4](h) { emit c }", ["E0205"]),
        ("y = scan c after b in chunks[4](h) { emit b }", ["E0412"]),
        ("y = scan v after b in h { emit b }", ["E0412"]),
        ("m = learned[2, d]()\ny = scan c in chunks[4](h) carry m { m <- append(m, c)\nemit c }", ["E0405"]),
    ],
)
def test_what_is_before_a_part_is_a_sequence_of_its_own_length(scan: str, expected: list[str]) -> None:
    assert codes(f"block a[d: int](h: seq[n, d]) -> seq[n, d] {{ {scan}\nreturn y }}") == expected


@pytest.mark.parametrize(
    ("scan", "expected"),
    [
        ("scan v in h carry m growing { m <- append(m, expand(v)) }", []),
        ("scan v in h carry m growing { m <- append(expand(v), norm(append(m, expand(v)))) }", []),
        ("scan c in chunks[4](h) carry m growing { m <- append(m, append(c, learned[k, d]())) }", []),
        ("s = mean(m)\nscan v in h carry s, m growing { s <- s + mean(m)\nm <- append(m, expand(s)) }", []),
        ("scan c in chunks[4](h) carry m growing { scan v in c carry m growing { m <- append(m, expand(v)) } }", []),
        ("scan v in h carry m growing { if k > 2 { m <- append(m, expand(v)) } else { m <- append(m, m2) } }", []),
        ("s = mean(m)\nscan v in h carry s growing { s <- s + v }", ["E0437"]),
        ("scan v in h carry m growing { m <- norm(m) }", ["E0437"]),
        ("scan v in h carry m growing { m <- m2 }", ["E0437"]),
        ("scan v in h carry m growing { m <- append(m, m) }", ["E0437"]),
        ("u = append(m, m)\nscan v in h carry m and u growing { m <- append(m, m2)\nu <- append(u, m2) }", ["E0437"]),
        ("u = m\nscan v in h carry m and u growing { m <- append(m, expand(v))\nu <- append(u, m2) }", ["E0437"]),
        ("u = m\nscan v in h carry m and u growing { m <- append(m, expand(mean(u)))\nu <- m }", []),
        ("scan v in h carry m growing { m <- append(m, h) }", ["E0437"]),
        ("scan c in chunks[4](h) carry m growing { scan v in c carry m { m <- append(m, expand(v)) } }", ["E0405"]),
        ("scan v in h carry m growing { m <- linear[7](append(m, expand(v))) }", ["E0405"]),
        ("scan v in h carry m growing { m <- v }", ["E0405"]),
        ("scan v in h carry m { m <- append(m, expand(v)) }", ["E0405"]),
        ("repeat 2 { m <- append(m, m2) }", ["E0405"]),
        ("z = repeat 2 { h <- norm(h)\nscan c in chunks[4](h) carry m growing { m <- append(m, m2) }\nemit m }\n"
         "repeat 1 { h <- h + attention[1](h, z) }",
         ["E0405"]),
        ("z = repeat 2 { g = m\nh <- norm(h)\nscan v in h carry g growing { g <- append(g, m2) }\nemit g }\n"
         "repeat 1 { h <- h + attention[1](h, z) }", []),
    ],
)  # fmt: skip
def test_a_growing_state_grows_by_the_same_piece_in_each_step(scan: str, expected: list[str]) -> None:
    program = (
        "block a[k: int](h: seq[n, d]) -> seq[n, d] { m = learned[2, d]()\nm2 = learned[2, d]()\n"
        f"y = h + attention[1](h, m2)\n{scan}\nreturn y + h + k * mean(m) }}"
    )
    assert codes(program) == expected


@pytest.mark.parametrize(
    ("start", "loop", "remedy", "corrected_start", "corrected_loop"),
    [
        (
            "learned[2, d]()", "scan v in h carry s { s <- append(s, expand(v)) }", "`carry s growing`",
            "learned[2, d]()", "scan v in h carry s growing { s <- append(s, expand(v)) }",
        ),
        (
            "0 * h", "repeat 3 { s <- append(s, h) }", "`slice[-4, 4](…)`",
            "slice[-4, 4](pad[4, 0](0 * h))", "repeat 3 { s <- slice[-4, 4](append(s, h)) }",
        ),
        (
            "scan v after b in h { b <- append(b, expand(v))\nemit mean(b) }", "", "a new name with `=`",
            "scan v after b in h { b2 = append(b, expand(v))\nemit mean(b2) }", "",
        ),
        (
            "learned[2, d]()", "scan v in h carry s growing { repeat 2 { s <- append(s, expand(v)) } }",
            "outside of this loop: a growing state",
            "learned[2, d]()", "scan v in h carry s growing { s <- append(s, expand(v)) }",
        ),
    ],
)  # fmt: skip
def test_a_state_that_changes_its_length_is_corrected_by_its_remedy(
    start: str, loop: str, remedy: str, corrected_start: str, corrected_loop: str
) -> None:
    program = "block a(h: seq[n, d]) -> seq[n, d] {{ s = {}\n{}\nreturn h + mean(s) }}"
    (mistake,) = check_text(program.format(start, loop))
    assert (mistake.code, remedy in mistake.remedy) == ("E0405", True)
    assert codes(program.format(corrected_start, corrected_loop)) == []


@pytest.mark.parametrize("steps", ["0", "10000"])
def test_a_loop_may_have_few_or_many_steps(steps: str) -> None:
    assert codes(f"block b(h: seq[n, d]) -> seq[n, d] {{ repeat {steps} {{ h <- norm(h) }} return h }}") == []


def test_an_update_outside_every_loop_of_a_new_name_is_one_mistake() -> None:
    (mistake,) = check_text("block b[d = 8](x: tokens[n]) -> seq[n, d] { h <- embed[d](x)\nreturn norm(h) }")
    assert (mistake.code, mistake.message) == ("E0207", "`h <-` is outside every loop")
    assert mistake.remedy == "bind the name with `h = …`"


def test_a_loop_that_binds_an_outer_name_again_is_one_mistake() -> None:
    body, head = "{ repeat 3 { h = h + norm(h) }\nreturn h }", "block b(h: seq[n, d]) -> seq[n, d]"
    assert codes(f"{head} {body}") == ["E0205"]
    assert codes(f"{head} {body.replace('h =', 'a =')}") == ["E0222"]


def test_a_misspelt_state_of_a_scan_is_one_mistake() -> None:
    text = (
        "block b(h: seq[n, d]) -> seq[n, d] {\n    memory = 0 * first(h)\n    y = scan x in h carry memory {\n"
        "        memory <- memory + x\n        emit memory\n    }\n    return y\n}\n"
    )
    assert check_text(text) == ()
    (mistake,) = check_text(text.replace("memory <-", "memry <-"))
    assert (mistake.code, mistake.remedy, mistake.is_safe) == ("E0224", "did you mean `memory`?", True)
    remedies = [each.remedy for each in check_text(text.replace("memory <-", "total <-"))]
    assert remedies == ["write `memory <- …` in the body", "add `carry total` to the scan"]


def test_a_static_that_a_call_lacks_is_reported_beside_an_unknown_argument() -> None:
    mistakes = check_text("block b(h: seq[n, d]) -> seq[n, d] { return linear(nowhere) + h }")
    assert sorted((each.code, each.span.text) for each in mistakes) == [
        ("E0201", "nowhere"),
        ("E0302", "linear(nowhere)"),
    ]


def test_a_static_that_an_instance_lacks_is_reported_where_let_binds_it() -> None:
    body = "let f = linear\nlet e = f\nreturn f(f[d](h)) + g(h)"
    (mistake,) = check_text(f"block b[g: block](h: seq[n, d]) -> seq[n, d] {{ {body} }}")
    assert (mistake.code, mistake.span.text, mistake.span.line) == ("E0302", "linear", 1)
    assert [(edit.span.start, edit.text) for edit in mistake.edits] == [(mistake.span.end, "[out = d]")]


def test_a_number_in_place_of_a_value_belongs_in_square_brackets() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d] {\n    return h |> linear(8)\n}\n")
    assert mistake.remedy == "write statics in brackets and values in parentheses"


_TO_VALUE = "make it a sequence, `constant[1, 1]() + {}`, or a vector, the `first` of that"


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("norm(8)", "numbers are statics, in square brackets: `norm[8](…)`"),
        ("norm(t)", _TO_VALUE.format("t") + "; a static stands in square brackets: `norm[t](…)`"),
        ("cos(t)", _TO_VALUE.format("t")),
        ("cos(8)", _TO_VALUE.format("8")),
        ("gather(h, t)", _TO_VALUE.format("t")),
    ],
)
def test_a_number_in_place_of_a_value_is_a_static_only_where_the_block_takes_one(value: str, remedy: str) -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {{ t = 0\nrepeat 3 {{ t <- t + 1\nh <- h + {} }}\nreturn h }}"
    (mistake,) = check_text(text.format(value))
    assert (mistake.code, mistake.remedy) == ("E0402", remedy)


def test_the_remedy_for_a_number_in_place_of_a_value_works() -> None:
    body = "t = 0\nrepeat 3 { t <- t + 1\nh <- h * cos(first(constant[1, 1]() + t)) }\nreturn h"
    assert codes(f"block b(h: seq[n, d]) -> seq[n, d] {{ {body} }}") == []


def test_a_value_takes_no_brackets() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d] {\n    u = h[0]\n    return h + u\n}\n")
    assert (mistake.code, mistake.message) == ("E0417", "`h` is a value, which takes no brackets")
