"""A static or a value that nothing reads is reported."""

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text


@pytest.mark.parametrize("statics", ["a: int = 1", "a: int = 1, b: int = 2", "b: int = 2, a = 1"])
def test_a_static_that_nothing_reads_is_reported(statics: str) -> None:
    (mistake,) = check_text(f"block f[{statics}](h: seq[n, d]) -> seq[n, d] {{ return h{' * b' * ('b' in statics)} }}")
    assert (mistake.code, mistake.span.text) == ("W0201", next(s for s in statics.split(", ") if s.startswith("a")))


@pytest.mark.parametrize(
    "text",
    [
        "block f[_a: int = 1](h: seq[n, d]) -> seq[n, d] { return h }",
        "block f[a: int = 1](h: seq[n, d]) -> seq[n, d] where a > 0 { return h }",
        "block f[a: int = 1, b: int = a](h: seq[n, d]) -> seq[n, d] { return h * b }",
        "block f[a: int](h: seq[n, a]) -> seq[n, a] { return h }",
        "block f[a: bool = true](h: seq[n, d]) -> seq[n, d] { if a { y = h } else { y = norm(h) } return y }",
        "block f[a: block = norm](h: seq[n, d]) -> seq[n, d] { return a(h) }",
    ],
)
def test_a_static_that_a_condition_a_default_a_type_or_the_body_reads_is_not(text: str) -> None:
    assert check_text(text) == ()


@pytest.mark.parametrize(
    "loop",
    ["scan v in h { emit relu(v) }", "repeat 2 { h <- norm(h) emit h }", "stack 2 { h <- norm(h) if true { emit h } }"],
)
def test_what_a_loop_without_a_name_emits_is_reported(loop: str) -> None:
    text = f"block f(h: seq[n, d]) -> seq[n, d] {{ {loop} return h }}"
    (mistake,) = check_text(text)
    assert (mistake.code, mistake.span.text) == ("W0201", loop.split()[0])
    assert apply_edits(text, mistake.edits).startswith(text[: text.index(loop)] + "y = " + loop.split()[0])


def test_a_loop_in_a_loop_may_emit_for_itself() -> None:
    text = "repeat 2 { y = scan v in h { emit relu(v) } h <- y }"
    assert check_text(f"block f(h: seq[n, d]) -> seq[n, d] {{ {text} return h }}") == ()


@pytest.mark.parametrize(
    ("body", "state"),
    [
        ("s = h repeat 3 { s <- s + h } return h", "s"),
        ("s = h repeat 3 { h <- norm(h) s <- h } return h", "s"),
        ("repeat 3 { h <- norm(h) } return x", "h"),
        ("m = mean(h) y = scan v in h carry m { m <- m + v emit v } return y", "m"),
        ("s = h repeat 3 { s <- s + h } return s", ""),
        ("a = h b = h repeat 3 { a <- b b <- a } return h", ""),
        ("m = mean(h) y = scan v in h carry m { m <- m + v emit m } return y", ""),
        ("_s = h repeat 3 { _s <- _s + h } return h", ""),
    ],
)
def test_a_state_that_only_its_own_updates_read_is_reported(body: str, state: str) -> None:
    mistakes = check_text(f"block f(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {{ {body} }}")
    assert [(mistake.code, mistake.span.text) for mistake in mistakes] == [("W0201", state)] * bool(state)


BODY = "block f(h: seq[n, d]) -> seq[n, d] { return h }\n"


@pytest.mark.parametrize(
    ("text", "is_unused"),
    [
        ("use archlang.models.panm\n", True),
        ("use archlang.models.panm as p\nblock panm(h: seq[n, d]) -> seq[n, d] { return h }\n", True),
        ("use archlang.models.panm  # for panm\n", False),
    ],
)
def test_a_file_that_is_used_for_nothing_is_reported(text: str, is_unused: bool) -> None:
    mistakes = check_text(text + BODY)
    assert [(mistake.code, mistake.span.text) for mistake in mistakes] == [
        ("W0201", "archlang.models.panm")
    ] * is_unused
    if is_unused:
        assert apply_edits(text + BODY, mistakes[0].edits) == (text + BODY).partition("\n")[2]


USES = "use archlang.models.rwkv\nuse archlang.models.attention_weights\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("use archlang.models.rwkv\nblock token_shift(h: seq[n, d]) -> seq[n, d] { return h }\nCALL", "token_shift"),
        (f"{USES}CALL", "archlang.models.attention_weights"),
        (f"{USES.replace('rwkv', 'rwkv as r')}CALL", None),
        (f"{USES.replace('attention_weights', 'rwkv')}CALL", None),
        (
            f"{USES}block f(h: seq[n, d]) -> seq[n, d] {{ return rwkv7_channel_mix[8](forgetting_attention[1](h)) }}",
            None,
        ),
    ],
)
def test_a_name_that_two_files_bring_is_reported_where_it_is_called(text: str, place: str | None) -> None:
    call = "block f(h: seq[n, d]) -> seq[n, d] { return token_shift(h) }"
    mistakes = [mistake for mistake in check_text(text.replace("CALL", call)) if mistake.code.startswith("W")]
    assert [(mistake.code, mistake.span.text) for mistake in mistakes] == [("W0210", place)] * (place is not None)
