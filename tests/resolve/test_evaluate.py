"""Static expressions are evaluated for a kind."""

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text

HEAD = "extern block b[mode: symbol = none, width: int = 3, wide: int = 4, rate: float = 0.5"
HEAD += ", steps: range = 2..3, sizes: list = [1, 2..3], words: list = [few]]"
TAIL = '(h: seq[n, d]) -> seq[n, d] {} reads h pointwise python "mine:B"\n'
USE = "block use(h: seq[n, d]) -> seq[n, d] {{ return b{}(h) }}"


def codes(where: str, statics: str = "") -> list[str]:
    return [d.code for d in check_text(HEAD + TAIL.format(f"where {where}") + USE.format(statics))]


HOLDS = [
    "mode == none", "mode in [none, some]", "mode in [none, width, wide]", "not mode == some",
    "width < wide and wide == width + 1", "width in 1..3", "steps in 1..3", "not steps in 3..4", "sizes in 1..3",
    "not sizes in 2..3", "not words in 1..3", "wide % 2 == 0 or width % 2 == 0", "wide / 2 == 2", "rate * 2 == 1.0",
    "rate <= 0.5", "-width < 0", "(1 when mode == none else 0) == 1",
]  # fmt: skip


@pytest.mark.parametrize("where", HOLDS)
def test_a_violated_condition_is_reported_and_its_negation_is_not(where: str) -> None:
    assert codes(where) == []
    assert codes(f"not ({where})") == ["E0304"]


def test_a_symbol_can_have_the_name_of_another_static() -> None:
    assert codes("mode in [none, width]", "[mode = width]") == []


def test_an_unknown_symbol_is_reported_with_the_nearest_one() -> None:
    (diagnostic,) = check_text(HEAD + TAIL.format("where mode in [none, relative, absolute]") + USE.format("[relativ]"))
    assert diagnostic.code == "E0304"
    assert "`relative`" in diagnostic.remedy


@pytest.mark.parametrize(
    ("expression", "code"), [("1 / 0", "E0307"), ("2 % 0", "E0307"), ("9_999_999_999 * 9_999_999_999", "E0307")]
)
def test_invalid_static_expressions_are_reported(expression: str, code: str) -> None:
    assert codes("width > 0", f"[width = {expression}]") == [code]


def test_a_float_static_accepts_an_integer_but_not_vice_versa() -> None:
    assert codes("width > 0", "[rate = 1]") == []
    assert codes("width > 0", "[width = 1.5]") == ["E0303"]


def test_a_condition_on_an_unknown_size_is_undecided() -> None:
    program = (
        'extern block half(h: seq[n, d]) -> seq[n, d] where d % 2 == 0 reads h pointwise python "mine:H"\n'
        "block use(h: seq[n, d]) -> seq[n, d] { return half(h) }"
    )
    assert check_text(program) == ()


TABLE = (
    "model m(x: tokens[n]) -> logits[n, vocab] {{\n    let e = embed[{}]\n    return unembed[e](linear[{}](e(x)))\n}}"
)


@pytest.mark.parametrize("statics", ["8", "d = 8", "d = 8, scaling = none"])
def test_a_static_of_an_instance_is_an_attribute(statics: str) -> None:
    assert check_text(TABLE.format(statics, 8)) == ()
    (diagnostic,) = check_text(TABLE.format(statics, 9))
    assert diagnostic.code == "E0304"
    assert diagnostic.message == "`unembed` requires `d == table.d`, but d = 9, table.d = 8"


@pytest.mark.parametrize(
    ("where", "remedy"), [("width", "compare it, as in `width > …`"), ("mode", "compare it, as in `mode == …`")]
)
def test_a_condition_that_is_a_static_without_a_comparison_asks_for_one(where: str, remedy: str) -> None:
    (mistake,) = check_text(HEAD + TAIL.format(f"where {where}") + USE.format(""))
    assert (mistake.code, mistake.remedy) == ("E0303", remedy)


SYMBOLS = (
    "block b[kind: symbol = relu](h: seq[n, d]) -> seq[n, d] where kind in [relu, gelu] "
    "{{ return norm(h) when {} else h }}"
)


@pytest.mark.parametrize("condition", ["kind == rleu", "kind != rleu", "rleu == kind", "kind in [gelu, rleu]"])
def test_a_static_is_compared_with_symbols_that_its_signature_lists(condition: str) -> None:
    (mistake,) = check_text(SYMBOLS.format(condition), "b.arch")
    assert (mistake.code, mistake.span.text, mistake.remedy) == ("E0304", "rleu", "did you mean `relu`?")
    assert not check_text(apply_edits(SYMBOLS.format(condition), mistake.edits), "b.arch")


@pytest.mark.parametrize("where", ["kind in [relu, other]", "kind in [relu, gelu] or other == tanh", "other == tanh"])
def test_a_static_that_no_condition_restricts_to_symbols_is_compared_with_any(where: str) -> None:
    text = f"block b[kind: symbol = relu, other: symbol = tanh](h: seq[n, d]) -> seq[n, d] where {where} {{ "
    assert not check_text(f"{text}return norm(h) when kind == rleu and other == tanh else h }}", "b.arch")


@pytest.mark.parametrize("condition", ['kind == "relu"', '"gelu" != kind', 'kind in ["relu", gelu]'])
def test_a_symbol_is_not_compared_with_a_string(condition: str) -> None:
    text = (
        f"block b[kind: symbol = relu](h: seq[n, d]) -> seq[n, d] {{\n    return norm(h) when {condition} else h\n}}\n"
    )
    (mistake,) = check_text(text, "b.arch")
    assert (mistake.code, mistake.span.line) == ("E0303", 2)
    assert not check_text(apply_edits(text, mistake.edits), "b.arch")
