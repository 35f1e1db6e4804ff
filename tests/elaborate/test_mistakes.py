"""The edits of mistakes in bodies write what is meant, and leave what other items rely on."""

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text

BLOCK = "block b(h: seq[n, d]) -> seq[n, d] {{\n    {}\n}}\n"
EXTERN = 'extern block s(x: seq[n, d]) -> seq[n, d]\n    {}\n    python "{}"\n'
MODEL = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{\n    return {}\n}}\n"


@pytest.mark.parametrize(
    ("half", "whole"),
    [
        (
            BLOCK.format("f = feedforward[8]\n    return f(f(h))"),
            BLOCK.format("let f = feedforward[8]\n    return f(f(h))"),
        ),
        (BLOCK.format("f = norm[1e-3]\n    return h |> f"), BLOCK.format("let f = norm[1e-3]\n    return h |> f")),
        (BLOCK.format("let f = feedforward[8](h)\n    return f"), BLOCK.format("f = feedforward[8](h)\n    return f")),
        (BLOCK.format("return h + first(learned[1, d])"), BLOCK.format("return h + first(learned[1, d]())")),
        (
            BLOCK.format("repeat 2 { h = norm(h) }\n    return h"),
            BLOCK.format("repeat 2 { h <- norm(h) }\n    return h"),
        ),
        (BLOCK.format("return linear[2 * d](h) + h"), BLOCK.format("return linear[d](linear[2 * d](h)) + h")),
        (BLOCK.format("return h + linear[2 * d](h)"), BLOCK.format("return h + linear[d](linear[2 * d](h))")),
        (BLOCK.format("return nn.LayerNorm(h)"), BLOCK.format("return norm(h)")),
        (BLOCK.format("return nn.RMSNorm(h)"), BLOCK.format("return rms_norm(h)")),
        (BLOCK.format("return linear[d](torch.cat(h, h))"), BLOCK.format("return linear[d](concat(h, h))")),
        (MODEL.format("linear[3](embed[d](x))"), MODEL.format("linear[vocab](embed[d](x))")),
        (MODEL.format("embed[d](x) |> linear[3]"), MODEL.format("embed[d](x) |> linear[vocab]")),
        (MODEL.format("linear[3](embed[d](x)) |> relu"), MODEL.format("linear[vocab](linear[3](embed[d](x)) |> relu)")),
        (MODEL.format("embed[d](x) |> linear"), MODEL.format("embed[d](x) |> linear[out = vocab]")),
        (BLOCK.format("return h + linear[3](h)"), BLOCK.format("return h + linear[d](h)")),
        (
            BLOCK.format("return attention[causal = true, heads](h)").replace("(h:", "[heads: int](h:"),
            BLOCK.format("return attention[causal = true, heads = heads](h)").replace("(h:", "[heads: int](h:"),
        ),
        (
            MODEL.format('embed[d](x) |> linear["9"] |> linear[vocab]'),
            MODEL.format("embed[d](x) |> linear[9] |> linear[vocab]"),
        ),
        (BLOCK.format('return h + dropout["0.5"](h)'), BLOCK.format("return h + dropout[0.5](h)")),
        (BLOCK.format("return linear(h)"), BLOCK.format("return linear[out = d](h)")),
        (
            BLOCK.format("y = linear(h)\n    return norm(h + y)"),
            BLOCK.format("y = linear[out = d](h)\n    return norm(h + y)"),
        ),
    ],
)
def test_the_edit_of_a_mistake_writes_what_is_meant(half: str, whole: str) -> None:
    (mistake,) = check_text(half)
    assert apply_edits(half, mistake.edits) == whole
    assert check_text(whole) == ()


def test_a_name_that_a_loop_without_states_binds_is_no_second_mistake() -> None:
    (mistake,) = check_text(BLOCK.format("repeat 3 { k = norm(h) }\n    return k"))
    assert mistake.code == "E0222"


def test_conditions_about_one_static_are_one_mistake() -> None:
    (mistake,) = check_text(BLOCK.format("return attention[heads = -2, position = rotary](h)"))
    assert mistake.message.startswith("`attention` requires `heads > 0`")


def test_a_size_that_a_condition_refuses_is_not_out_of_range_too() -> None:
    (mistake,) = check_text("block b[k = 8](h: seq[n, d]) -> seq[n, 8] {\n    return linear[k - 8](h)\n}\n")
    assert mistake.code == "E0304"


def test_conditions_about_other_statics_are_others() -> None:
    first, second = check_text(BLOCK.format("return attention[heads = -2, dropout = 3](h)"))
    assert {first.code, second.code} == {"E0304"}


@pytest.mark.parametrize("start", ["0", "1.5", "d"])
def test_a_number_that_is_updated_with_a_vector_is_one_mistake(start: str) -> None:
    text = "block b(h: seq[n, d]) -> vec[d] {{\n    c = {}\n    repeat 3 {{ c <- c + mean(h) }}\n    return c\n}}\n"
    (mistake,) = check_text(text.format(start))
    assert (mistake.code, mistake.remedy) == (
        "E0405",
        "begin with zeros of the type `vec[d]` before the loop, as in `c = 0 * …`",
    )
    assert check_text(text.format("0 * mean(h)")) == ()


def test_a_length_is_not_changed_by_a_layer() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[d, n] {\n    return transpose(h)\n}\n")
    assert (mistake.code, mistake.edits) == ("E0401", ())


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("h > 0", "`greater(a - b)` is 1 where a > b"),
        ("h <= relu(h)", "`1 - greater(a - b)` is 1 where a <= b"),
        ("h == 0", "`equal(a - b)` is 1"),
        ("not h", "write `1 - a` for a mask"),
        ("h % 2", "use `+`, `-`, `*` or `/`"),
        ("h when h > 0 else -h", "use statics and sizes here; what depends on values is a mask"),
    ],
)
def test_a_comparison_of_values_is_told_its_mask(value: str, remedy: str) -> None:
    (mistake,) = check_text(BLOCK.format(f"return {value}"))
    assert mistake.remedy.startswith(remedy)


def test_a_value_in_a_loop_with_carried_states_is_no_update() -> None:
    text = BLOCK.format("s = mean(h)\n    y = scan v in h { s = v\n        emit s }\n    return y")
    (mistake, *_) = [mistake for mistake in check_text(text) if mistake.code == "E0205"]
    assert mistake.edits == ()


def test_a_block_that_no_call_applies_is_applied_where_it_stands() -> None:
    (mistake,) = check_text(BLOCK.format("f = norm[1e-3]\n    return h + f"))
    assert mistake.code == "E0417"
    assert mistake.remedy.startswith("apply the block: `norm[1e-3](h)`")


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        ("attention[0](h)", "heads > 0"),
        ("every[0](h)", "k > 0"),
        ("interleave[3](learned[3, 4]())", "d % k == 0"),
        ("mix_groups[3](learned[3, 4](), learned[3, 4]())", "d % k == 0"),
        ("narrowed[0](learned[3, 4](), h)", "k > 0"),
    ],
)
def test_a_condition_that_does_not_hold_hides_what_has_no_value_for_it(value: str, condition: str) -> None:
    narrowed = EXTERN.format("where k > 0", "mine:S").replace(
        "s(x: seq[n, d]", "narrowed[k: int](x: seq[n, d], y: seq[m, d / k]"
    )
    (mistake,) = check_text(narrowed + BLOCK.format(f"return {value}"))
    assert mistake.code == "E0304"
    assert condition in mistake.message


@pytest.mark.parametrize("reads", ["reads x full\n    reads x causal", "reads x causal, x full"])
def test_an_input_is_read_in_one_manner(reads: str) -> None:
    (mistake,) = check_text(EXTERN.format(reads, "mine:S"))
    assert (mistake.code, mistake.span.text.split()[0]) == ("E0205", "x")


@pytest.mark.parametrize(
    ("value", "code", "remedy"),
    [
        ("norm[h]", "E0309", "pass it in parentheses"),
        ("linear[d](concat[h, h])", "E0305", "delete it, or set a static by name; values stand in parentheses"),
        ("feedforward[hidden = 64](h)", "E0301", "here it is called `ff`"),
        ("LayerNorm[d](h)", "E0202", "here it is called `norm`, with the statics of"),
        ("h.shape[0]", "E0202", "the type of `h` names its sizes"),
    ],
)
def test_the_one_mistake_of_a_call_has_its_remedy(value: str, code: str, remedy: str) -> None:
    (mistake,) = check_text(BLOCK.format(f"return {value}"))
    assert mistake.code == code
    assert mistake.remedy.startswith(remedy)


@pytest.mark.parametrize("condition", ["", " where heads > 0, d % heads == 0"])
def test_a_condition_that_does_not_hold_is_reported_in_place_of_what_the_body_says(condition: str) -> None:
    body = "{ return linear[rank](unit_norm[heads](h)) }"
    block = f"block mix[heads: int, rank: int = d / heads](h: seq[n, d]) -> seq[n, d / heads]{condition} {body}\n"
    mistakes = check_text(f"{block}block b(h: seq[n, 16]) -> seq[n, 4] {{ return norm(mix[3](h)) }}\n")
    assert (len(mistakes) == 1) == bool(condition)
    assert "`mix` requires `d % heads == 0`" in mistakes[0].message or not condition


@pytest.mark.parametrize(
    ("scanned", "message"),
    [
        ("a in h, b in mean(h)", "a scan of several values expects sequences, but this is `vec[d]`"),
        ("a in h, b in chunks[2](h)", "a scan of several values expects sequences, but this is `chunks[n, d, 2]`"),
        ("a in chunks[2](h), b in h", "a scan of several values expects sequences, but this is `chunks[n, d, 2]`"),
        ("a in h, b in append(h, h)", "a scan of several sequences expects one length, but this is `seq[2*n, d]`"),
        ("a in h, a in h", "`a` is bound twice"),
        ("a after b in h, c in h", "a scan of several sequences has no positions before the part"),
    ],
)
def test_what_a_scan_cannot_take_together_is_one_mistake(scanned: str, message: str) -> None:
    used = " + ".join(sorted({name for name in ("a", "b", "c") if f"{name} in" in scanned}))
    (mistake,) = check_text(BLOCK.format(f"y = scan {scanned} {{ emit {used or 'a'} }}\n    return y"))
    assert mistake.message == message


def test_a_sequence_that_a_scan_does_not_read_is_not_computed_and_warned_of() -> None:
    scan = "h = embed[d](x)\n    y = scan a in h, b in attention[1](h) { emit a }\n    return"
    (warning,) = check_text(MODEL.format("linear[vocab](y)").replace("return", scan))
    assert (warning.code, warning.span.text) == ("W0201", "b")


def test_the_names_of_sequences_that_a_scan_takes_together_are_known_and_used() -> None:
    text = BLOCK.format("k = norm(h)\n    y = scan a in h, b in k { emit a * b * c }\n    return y")
    (mistake,) = check_text(text)
    assert mistake.message == "unknown value `c`"
