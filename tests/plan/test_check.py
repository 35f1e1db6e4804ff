"""A mistake is reported once, without the mistakes that only follow from it."""

import pytest

from archlang.plan.check import check_text

RECIPE = "recipe q { task ctl model small train adamw[steps = 10] }\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("model small(x: tokens[n]) -> logits[classes] { return embed[8](x) + }\n" + RECIPE, "E0101"),
        ('use "./absent.arch"\n' + RECIPE, "E0208"),
        ('use "./absent.arch" as mine\nblock b(h: seq[n, d]) -> seq[n, d] { return mine.layer(h) }', "E0208"),
        (
            "block a(h: seq[n, d]) -> seq[n, d] { return h + }\nblock b(h: seq[n, d]) -> seq[n, d] { return a(h) }",
            "E0101",
        ),
    ],
    ids=["model with a mistake", "unread file", "unread file with a prefix", "block with a mistake"],
)
def test_a_name_whose_definition_could_not_be_read_is_not_reported(text: str, code: str) -> None:
    assert [diagnostic.code for diagnostic in check_text(text)] == [code]


MODEL = "model small[d = 8](x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[d](x))) }\n"
TRAIN = "train adamw[steps = 10]"
DEFINED_TWICE = {
    "recipe": (
        f"{MODEL}recipe a {{ task parity model small {TRAIN} vary seed in 1..2 }}\n"
        f"recipe a {{ task parity model small {TRAIN} vary model.d in [8, 16] }}\n"
        f"recipe b from a {{ train sgd[steps = 2] }}\n"
        'table t { row "A" b at model.d = 8 column "Test" test.accuracy }',
        ["E0204"],
    ),
    "block": (
        "block b(h: seq[n, d]) -> seq[n, d] { return h }\n"
        "block b[k: int](h: seq[n, d]) -> seq[n, k] { return linear[k](h) }\n"
        "block user(h: seq[n, d]) -> seq[n, 3] { return b[3](h) }\n"
        "model small(x: tokens[n]) -> logits[classes] { return linear[3](last(user(embed[8](x)))) }\n" + RECIPE,
        ["E0204"],
    ),
    "a block beside another mistake": (
        "block b(h: seq[n, d]) -> seq[n, d] { return h }\nblock b(h: seq[n, d]) -> seq[n, d] { return h }\n"
        "block other(h: seq[n, d]) -> seq[n, d] { return nrom(h) }",
        ["E0204", "E0202"],
    ),
    "table": (
        f"{MODEL}recipe a {{ task parity model small {TRAIN} }}\n"
        'table t { row "A" a claims 1.0 column "Test" test.accuracy }\n'
        'table t { row "A" a claims 1.0, 2.0 column "Test" average of t }\n'
        'table u { row "A" a column "Test" average of t }',
        ["E0204"],
    ),
    "task": (
        'extern task own(x: tokens[n]) -> logits[classes] gives vocab = 2, classes = 2 python "own:Own"\n'
        'extern task own(x: seq[n, 3]) -> logits[classes] gives classes = 2 python "own:Own"\n'
        f"{MODEL}recipe a {{ task own[k = 3] model small {TRAIN} }}",
        ["E0204"],
    ),
    "static": (
        "model small[k = 8, k = 0.5](x: tokens[n]) -> logits[classes] {\n"
        "return linear[classes](last(dropout[k](embed[8](x)))) }\n"
        f"recipe a {{ task parity model small[k = 0.1] {TRAIN} }}",
        ["E0205"],
    ),
    "input": ("block b(x: seq[n, d], x: tokens[n]) -> seq[n, d] { return norm(x) + embed[d](x) }", ["E0205"]),
    "instance": (
        "block b(x: seq[n, d]) -> seq[n, 3] {\nlet f = linear[d]\nlet f = linear[3]\nreturn f(f(x))\n}",
        ["E0205"],
    ),
    "value": ("block b(x: seq[n, d]) -> vec[3] {\ny = norm(x)\ny = last(y)\nreturn linear[3](y)\n}", ["E0205"]),
    "lines of a recipe": (
        f"{MODEL}model other[e = 3](x: tokens[n]) -> logits[classes] {{ return linear[classes](last(embed[e](x))) }}\n"
        f"recipe a {{ task parity model small model other {TRAIN} train sgd[lr = 0.1]\nvary model.e in [1, 2] }}",
        ["E0602", "E0602"],
    ),
}


@pytest.mark.parametrize(("text", "codes"), DEFINED_TWICE.values(), ids=DEFINED_TWICE)
def test_what_is_there_twice_is_one_mistake(text: str, codes: list[str]) -> None:
    assert [diagnostic.code for diagnostic in check_text(text)] == codes


@pytest.mark.parametrize("supervise", ["last", "every"])
@pytest.mark.parametrize(
    ("block", "code"), [("global_halt", []), ("token_halt", ["E0620"]), ("global_halt[causal = true]", ["E0620"])]
)
def test_steps_without_a_halting_probability_for_each_result_are_not_supervised(
    block: str, code: list[str], supervise: str
) -> None:
    text = f"""
    model m(x: tokens[n]) -> logits[classes] {{
        h = embed[4](x)
        y = repeat 3 halting h by {block} {{
            h <- tanh(h)
            emit linear[classes](last(h))
        }}
        return y
    }}
    recipe r {{
        task ctl
        model m
        train adamw[steps = 1, supervise = {supervise}]
    }}
    """
    expected = [] if supervise == "last" else code
    assert [diagnostic.code for diagnostic in check_text(text)] == expected


def test_an_unknown_model_of_a_module_that_is_not_in_use_names_the_module() -> None:
    (mistake,) = check_text(f"{MODEL}recipe a {{ task parity model moeut {TRAIN} }}")
    assert (mistake.code, mistake.remedy) == ("E0214", "add `use archlang.models.moeut` at the beginning of the file")
    assert [edit.text for edit in mistake.edits] == ["use archlang.models.moeut\n\n"]


@pytest.mark.parametrize(("value", "block"), [("source", "scores"), ("h", "hh")])
def test_a_value_is_no_remedy_for_an_unknown_block(value: str, block: str) -> None:
    text = f"block b({value}: seq[n, d]) -> seq[n, d] {{ return {value} + {block}s({value}) }}"
    (mistake,) = check_text(text)
    assert f"`{value}`" not in (mistake.remedy or "")


def test_a_loop_without_emit_that_is_bound_names_its_states() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] { y = repeat 3 { h <- norm(h) }\nreturn y }"
    (mistake,) = check_text(text)
    assert mistake.remedy == "end the body with `emit …`, or delete `y =` and use `h` after the loop"


SMALL = """model m[d: int, k = 2](x: tokens[n]) -> logits[classes] where d > k {
    return embed[d](x) |> last |> linear[classes]
}
recipe good { task ctl model m[d = 4] train adamw[steps = 1] vary model.d in [8, 16] }
"""
BEST = 'table best { row "A" c best of model.d column "B" test.accuracy }\n'
ONE_MISTAKE = {
    "a base that is no recipe, with statics": (f"recipe c from aaa {{ model m[k = 9] }}\n{BEST}", "E0604"),
    "a recipe based on itself": (
        f'recipe c from c {{ model m[k = 3] claim test.accuracy = 1 from "x" }}\n{BEST}',
        "E0631",
    ),
    "two recipes based on each other": (
        f"recipe c from e {{ vary model.k in [1, 2] }}\nrecipe e from c {{ task ctl model m }}\n{BEST}",
        "E0631",
    ),
    "a base with a syntax error": (
        f"recipe e from good {{ test model.k = }}\nrecipe c from e {{ model m[k = 3] }}\n{BEST}",
        "E0101",
    ),
    "an unknown model": (
        f"recipe c {{ task ctl model none train adamw[steps = 1] vary model.d in [1] }}\n{BEST}",
        "E0214",
    ),
    "a recipe whose name follows a sign": (f"recipe = c from good {{ test model.k = 3 }}\n{BEST}", "E0101"),
    "a misspelt word of a recipe": (f"recipes c from good {{\n    test model.k = 3\n}}\n{BEST}", "E0101"),
    "a recipe without a brace": (
        "recipe c from good\n    model m\n    train adamw[steps = 1]\n    test model.k = 3\n}\n" + BEST,
        "E0101",
    ),
    "a line without a bracket": (f"recipe c from good {{\n    vary model.k in 1, 2]\n}}\n{BEST}", "E0101"),
    "an unknown static after best of, of two recipes": (
        "recipe c from good { model m[k = 3] }\n"
        'table best { row "A" c row "B" good column "B" test.accuracy best of model.dd }',
        "E0312",
    ),
    "an unknown static of a task": ("recipe c from good { task ctl[symbol = 4] }", "E0301"),
    "two braces": (f"recipe c from good {{ {{\n    test model.k = 3\n}}\n{BEST}", "E0101"),
    "a title that is there twice, averaged": (
        'table first { row "A" good row "A" good at model.k = 1 column "B" test.accuracy }\n'
        'table second { row "A" good row "B" good column "B" average of first }',
        "E0611",
    ),
}


@pytest.mark.parametrize(("text", "code"), ONE_MISTAKE.values(), ids=ONE_MISTAKE)
def test_what_follows_from_a_mistake_in_a_recipe_or_a_table_is_not_reported(text: str, code: str) -> None:
    assert [mistake.code for mistake in check_text(SMALL + text)] == [code]


def test_a_block_in_place_of_a_model_is_said_to_be_one() -> None:
    text = f"block b(h: seq[n, d]) -> seq[n, d] {{ return norm(h) }}\n{MODEL}recipe a {{ task parity model b {TRAIN} }}"
    (mistake,) = check_text(text)
    assert (mistake.code, mistake.message) == ("E0214", "`b` is a block; a recipe trains a model")
    assert mistake.remedy == "write a model that applies `b`, or choose one of `small`"


def test_a_condition_on_an_unknown_name_reports_the_name() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d]\n    where lr == 1 {\n    return h\n}\n")
    assert (mistake.code, mistake.message, mistake.span.line) == ("E0313", "unknown static or size `lr`", 2)


def test_a_condition_without_names_that_does_not_hold_is_the_place_of_its_mistake() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d]\n    where 1 == 2 {\n    return h\n}\n")
    assert (mistake.code, mistake.message) == ("E0304", "`1 == 2`, which `b` requires, never holds")
    assert mistake.span.text == "1 == 2"


def test_a_use_of_a_folder_of_the_library_lists_its_files() -> None:
    (mistake,) = check_text("use archlang.models\n")
    assert (mistake.code, mistake.label) == ("E0211", "a folder")
    assert mistake.remedy.startswith("name one of its files: `")
    assert "`panm`" in mistake.remedy


HEAD = "block b(h: seq[n, d]) -> seq[n, d] {\n"
SIGN = "recipe r {\n    task ctl\n    …\n    train adamw[steps = 3]\n}\n" + HEAD + "return nrm(h) }\n"
SCAN = HEAD + "m = mean(h)\n y = scan c in h carry m {\n…\n emit m\n}\n return y\n}\n"
EXACTLY = {
    "a misspelt block beside a syntax error": (
        HEAD.replace("b(", "a(") + "return h + }\n" + HEAD + "return nrom(h) }", [("E0101", 2), ("E0202", 4)]
    ),
    "a recipe and a table that could not be parsed": (
        SMALL + "recipe bad { task ctl model m train adamw[steps = ] }\n"
        'table first { row "A" good claims 1, column "B" test.accuracy }\n'
        'table second { row "A" bad column "C" average of first }\n',
        [("E0101", 5), ("E0101", 6)],
    ),
    "a model of a file that could not be used": (
        f"use archlang.models.panmm\nrecipe a {{ task parity model panm {TRAIN} }}", [("E0211", 1)]
    ),
    "lines of a recipe with an unknown base": (
        SMALL + "recipe c from aaa { model m[width = 3] task ctl[order = 1] vary model.w in [1] }",
        [("E0604", 5), ("E0301", 5), ("E0303", 5), ("E0312", 5)],
    ),
    "a name that no header can have defined": (
        SMALL + 'recipe e from gone { test model.k = }\ntable t { row "A" gone column "B" test.accuracy }',
        [("E0101", 5), ("E0604", 6)],
    ),
    "a carried state that is bound again": (SCAN.replace("…", "m = m + c"), [("E0205", 4)]),
    "a halting state that is bound again": (
        HEAD + "repeat 3 halting h by global_halt[0.9] {\n h = norm(h)\n }\n return h\n}\n", [("E0205", 3)]
    ),
    "a sign in a line": (SIGN.replace("…", "model = small"), [("E0101", 3), ("E0202", 7)]),
    "a sign in each line": (
        "recipe r {\n    task = ctl\n    model = small\n    train = adamw[steps = 3]\n}\n",
        [("E0101", line) for line in (2, 3, 4)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "mistakes"), EXACTLY.values(), ids=EXACTLY)
def test_a_program_has_exactly_its_own_mistakes(text: str, mistakes: list[tuple[str, int]]) -> None:
    assert [(mistake.code, mistake.span.line) for mistake in check_text(text)] == mistakes
