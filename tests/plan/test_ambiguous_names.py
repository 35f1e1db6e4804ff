"""A name with two definitions hides what may follow from it, and leaves unknown names."""

from archlang.plan.check import check_text

BLOCK = """block b(h: seq[n, d]) -> seq[n, d] {
    return h + unknown
}
"""
MODEL = """model m[size = 8](x: tokens[n]) -> logits[n, vocab] {
    return linear[vocab](embed[size](x))
}
"""
RECIPE = """recipe r {
    task  flipflop[nowhere = 1]
    model m[nothing = 3]
    train adamw[steps = 10]
    vary  model.none in [1]
}
"""
TABLE = """table t {
    row    "r" missing
    column "accuracy" test.accuracy
}
"""


def mistakes(text: str) -> list[tuple[str, int]]:
    return [(each.code, each.span.line) for each in check_text(text, "program.arch")]


def test_each_of_two_blocks_of_one_name_is_checked() -> None:
    assert mistakes(BLOCK * 2) == [("E0201", 2), ("E0204", 4), ("E0201", 5)]


def test_the_second_of_two_recipes_or_tables_of_one_name_is_the_mistake() -> None:
    assert [code for code, _ in mistakes(MODEL + RECIPE)] == ["E0301", "E0301", "E0312"]
    assert mistakes(MODEL + RECIPE * 2) == [("E0204", 10)]
    assert mistakes(TABLE * 2) == [("E0204", 5)]


def test_two_inputs_or_statics_of_one_name_leave_the_unknown_names_of_the_body() -> None:
    inputs = BLOCK.replace("(h: seq[n, d])", "(h: seq[n, d], h: seq[n, d])")
    statics = BLOCK.replace("b(", "b[s = 3, s = 4](")
    assert mistakes(inputs) == mistakes(statics) == [("E0205", 1), ("E0201", 2)]


def test_an_unknown_name_beside_a_call_of_a_block_with_two_definitions_is_reported() -> None:
    caller = "block c(h: seq[n, d]) -> seq[n, d] {\n    return b(h) + missing\n}\n"
    assert ("E0201", 8) in mistakes(BLOCK.replace(" + unknown", "") * 2 + caller)


def test_what_may_follow_from_two_definitions_is_not_reported() -> None:
    other = "block b(h: seq[n, d]) -> vec[d] {\n    return mean(h)\n}\n"
    caller = "block c(h: seq[n, d]) -> seq[n, d] {\n    return mean(b(h))\n}\n"
    assert mistakes(BLOCK.replace(" + unknown", "") + other + caller) == [("E0204", 4)]


def test_half_a_definition_beside_a_whole_one_is_no_second_definition() -> None:
    caller = "block c(h: seq[n, d]) -> seq[n, d] {\n    return b(h) + missing\n}\n"
    whole = BLOCK.replace(" + unknown", "")
    for half in ("block b(h: seq[n, d]) -> seq[n, d] {\n", "block b[\n"):
        assert mistakes(half + whole + caller) == [("E0103", 1), ("E0201", 6)]
        assert mistakes(whole + half + caller) == [("E0103", 4), ("E0201", 6)]
    assert mistakes("recipe r {\n" + MODEL + RECIPE)[0] == ("E0103", 1)
    assert "E0204" not in [code for code, _ in mistakes(MODEL + "recipe r {\n" + RECIPE)]


def test_a_name_that_a_body_binds_twice_hides_nothing() -> None:
    twice = "block a(h: seq[n, d]) -> seq[n, d] {\n    u = norm(h)\n    u = relu(h)\n    return u\n}\n"
    wrong = "block c(h: seq[n, d]) -> seq[n, d] {\n    return mean(h)\n}\n"
    assert mistakes(twice + wrong) == [("E0205", 3), ("E0404", 7)]
