"""The text about the name under the cursor, and the types after bound names."""

from pathlib import Path

import pytest

from archlang.editor.document import Document
from archlang.editor.hover import hints, hover
from tests.editor.conftest import at_cursor

MODEL = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    y = scan c in chunks[4](h) { emit norm(c) }
    return y |> last |> linear[classes]
}
"""


@pytest.mark.parametrize(
    ("before", "name", "text"),
    [
        ("", "h = embed", "h: seq[n, 8]"),
        ("in chunks[4](", "h)", "h: seq[n, 8]"),
        ("norm(", "c)", "c: seq[c.length, 8]"),
        ("embed[", "d](x)", "d = 8"),
        ("h = ", "embed", "embed(…): seq[n, 8]"),
        ("h = ", "embed", "block embed["),
        ("h = ", "embed", "Source"),
        ("h = ", "embed", "embed.arch:"),
        ("|> ", "last", "block last"),
        ("model ", "m[d", "model m["),
    ],
)
def test_a_name_shows_what_it_means(before: str, name: str, text: str) -> None:
    document, offset = at_cursor(MODEL.replace(before + name, f"{before}¦{name}", 1))
    description = hover(document, offset)
    assert description is not None
    assert text in description.text


def test_a_place_without_a_name_shows_nothing() -> None:
    assert hover(*at_cursor(MODEL.replace("= 8", "=¦ 8"))) is None


def test_the_statics_of_a_recipe_show_their_declaration() -> None:
    text = MODEL + "recipe r {\n    task ctl[¦order = forward]\n    model m\n    train adamw[steps = 1]\n}\n"
    description = hover(*at_cursor(text))
    assert description is not None
    assert "order: symbol = backward" in description.text


def test_bound_values_have_their_types_as_hints() -> None:
    document = Document("m.arch", MODEL)
    shown = {document.text[: hint.offset].split()[-1]: hint.text for hint in hints(document)}
    assert shown == {"h": ": seq[n, 8]", "y": ": seq[n, 8]", "c": ": seq[c.length, 8]"}


TRAINED = """model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    a = attention[2, causal = true](h)
    repeat 2 { h <- h + layer(a) }
    return linear[vocab](h)
}
block layer[width = 16](h: seq[n, d]) -> seq[n, d] {
    return h + feedforward[width](h)
}
recipe r {
    task flipflop
    model m[d = 32]
    train adamw[steps = 10]
    vary model.d in [32, 64]
}
"""


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("attention[", "- 4,096 parameters and 1,048,576 FLOPs for 64 positions, in `recipe r`."),
        ("attention[", "- Position i may depend on positions 0 to i of `x`."),
        ("a = att", "- Position i may depend on positions 0 to i of `x`."),
        ("layer(a)", "in `recipe r`."),
        ("m[d = 8]", "parameters and"),
        ("layer[width", "- Position i may depend on position i of `h`."),
        ("d](x)", "- Declared at `m.arch:1`."),
    ],
)
def test_costs_dependences_and_the_origin_of_statics_are_shown(place: str, text: str) -> None:
    description = hover(Document("m.arch", TRAINED), TRAINED.index(place))
    assert description is not None
    assert text in description.text


SHARED = """model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    let f = linear[d]
    repeat 3 {
        h <- h + layer(h)
        h <- f(f(h))
    }
    stack 3 { h <- h + feedforward[16](h) }
    y = several(h)
    return linear[vocab](y)
}
block layer[width = 16](h: seq[n, d]) -> seq[n, d] {
    return h + feedforward[width](h)
}
block several(h: seq[n, d]) -> seq[n, d] {
    stack 4 { h <- layer(h) }
    repeat 4 { h <- layer(h) }
    return h
}
"""


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("layer(h)", "- 280 parameters and 98,304 FLOPs for"),  # 2 * 8 * 16 + 16 + 8, in three steps
        ("feedforward[16]", "- 280 parameters and 98,304 FLOPs for"),
        ("several(h)\n", "- 1,400 parameters and 262,144 FLOPs for"),  # four copies, and one that four steps share
    ],
)
def test_a_call_counts_the_weights_that_steps_share_once(place: str, text: str) -> None:
    description = hover(Document("m.arch", SHARED), SHARED.index(place))
    assert description is not None
    assert text in description.text


def test_a_model_without_a_recipe_says_with_which_sizes_it_is_counted() -> None:
    description = hover(Document("m.arch", MODEL), MODEL.index("m["))
    assert description is not None
    assert "with vocab = 32, classes = 10." in description.text


def test_a_mistake_leaves_the_hover_without_costs() -> None:
    text = MODEL.replace("norm(c)", "nrom(c)")
    description = hover(Document("m.arch", text), text.index("embed"))
    assert description is not None
    assert "parameters and" not in description.text


LOOPS = """block b(h: seq[n, d], q: seq[k, d]) -> seq[n, d] {
    memory = learned[4, d]()
    y = scan c in chunks[4](h) carry memory, q growing {
        memory <- memory + attention[1](memory, c)
        q <- append(q, c)
        emit c
    }
    repeat 4 halting y as s by global_halt { y <- norm(y + s) }
    return y
}
"""


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("y = scan", "y: seq[n, d]"),
        ("memory, q", "memory: seq[4, d]"),
        ("q growing", "q: seq[k, d]"),
        ("y as", "y: seq[n, d]"),
        ("s by", "s: seq[n, d]"),
        ("y <- norm", "y: seq[n, d]"),
        ("s) }", "s: seq[n, d]"),
    ],
)
def test_names_in_the_head_of_a_loop_show_their_types(place: str, text: str) -> None:
    description = hover(Document("b.arch", LOOPS), LOOPS.index(place))
    assert description is not None
    assert f"```arch\n{text}\n```" in description.text


def test_a_value_whose_type_is_unknown_is_shown_without_one() -> None:
    text = LOOPS.replace("4, d", "4, dd")
    description = hover(Document("b.arch", text), text.index("memory"))
    assert description is not None
    assert "?" not in description.text
    assert description.text.startswith("```arch\nvalue memory\n```")


INSTANCES = """block b(h: seq[n, d], v: vec[d], f: seq[n, d]) -> seq[n, d] {
    let widen = linear[2 * d, bias = false]
    let halt = token_halt[threshold = 0.9]
    w = widen(h)
    u = v |> widen
    repeat 4 halting h by halt { h <- norm(h + linear[d](w)) }
    return h
}
block c[mixer: block](h: seq[n, d]) -> seq[n, d] {
    let mix = mixer
    return mix(mix(h))
}
"""


@pytest.mark.parametrize(
    ("place", "texts"),
    [
        ("widen = ", ("let widen = linear[2 * d, bias = false]\n```\n\ninstance of `linear`", "block linear[")),
        ("widen(h)", ("widen(…): seq[n, 2*d]", "let widen = linear[2 * d, bias = false]", "block linear[")),
        ("widen\n    repeat", ("widen(…): vec[2*d]", "let widen = linear")),
        ("halt = ", ("let halt = token_halt[threshold = 0.9]\n```", "instance of `token_halt`")),
        ("halt {", ("let halt = token_halt[threshold = 0.9]\n```", "block token_halt[")),
        ("mix = ", ("let mix = mixer\n```", "instance of `mixer`", "mixer: block")),
    ],
)
def test_an_instance_shows_its_block_with_its_statics(place: str, texts: tuple[str, ...]) -> None:
    description = hover(Document("b.arch", INSTANCES), INSTANCES.index(place))
    assert description is not None
    assert [text for text in texts if text not in description.text] == []
    assert "?" not in description.text


def test_an_alias_shows_which_file_it_names(tmp_path: Path) -> None:
    (tmp_path / "lib.arch").write_text(MODEL, encoding="utf-8")
    text = 'use "./lib.arch" as lib\nrecipe r { task ctl model lib.m train adamw[steps = 1] }\n'
    description = hover(Document(str(tmp_path / "p.arch"), text), text.index("lib.m"))
    assert description is not None
    assert 'use "./lib.arch" as lib' in description.text
    assert description.text.endswith(f"File: `{tmp_path}/lib.arch`")


UPDATED = """block mix(h: seq[n, d]) -> seq[n, d] {
    a = norm(h)
    repeat 2 {
        a <- a + attention[1](a)
    }
    return a
}

model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat 2 { h <- mix(h) }
    return linear[vocab](h)
}
"""


@pytest.mark.parametrize(
    ("before", "after"), [("", "h = embed"), ("{ ", "h <- mix"), ("mix(", "h) }"), ("vocab](", "h)")]
)
def test_a_value_that_a_loop_updates_shows_what_each_line_may_depend_on(before: str, after: str) -> None:
    document, offset = at_cursor(UPDATED.replace(before + after, f"{before}¦{after}"))
    description = hover(document, offset)
    assert description is not None
    text = description.text
    assert "Line 10: position i may depend on position i of `x`" in text
    assert "Line 11: position i may depend on every position of `x`" in text


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("order", ["With `order = backward`", "Values: `forward`, `backward`."]),
        ("schedule", ["`schedule`", "Values: `constant`, `warmup`"]),
        ("steps", ["A run takes `steps` steps"]),
    ],
)
def test_a_static_tells_what_it_sets_and_what_it_can_be(name: str, texts: list[str]) -> None:
    text = "recipe r {\n    task ctl[order = forward]\n    train adamw[schedule = cosine, steps = 5]\n}\n"
    answer = hover(Document("r.arch", text), text.index(name))
    assert answer is not None
    assert all(each in answer.text for each in texts)
