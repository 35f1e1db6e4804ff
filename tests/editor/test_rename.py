"""A rename that would leave a mistake, give the program another meaning, or skip a half-written use is refused with the
reason."""

import re
from pathlib import Path

import pytest

from archlang.editor.document import Document
from archlang.editor.navigation import renamable, rename
from archlang.editor.symbols import DocumentNames
from archlang.editor.workspace import Workspace
from archlang.errors import ErrorWithRemedy
from archlang.errors.edits import apply_edits
from archlang.resolve.library import PACKAGE

EXTERN = """extern block shift[by: int = 1, wide: bool = false](x: seq[n, d], y: seq[m, e] = x) -> seq[n, d]
    where by > 0 or not wide
    reads x causal
    random in training when wide
    sizes width = d * e
    costs parameters = width
    python "mine:Shift"

block both(h: seq[n, d]) -> seq[n, d] { return shift[by = 2](h) }

extern task even[train: range = 1..8](x: tokens[n], y: seq[n, k]) -> logits[classes]
    gives vocab = 2, classes = 2
    python "even:Even"

extern optimizer signs[lr: float = 1e-3]
    with training
    python "training:Signs"
"""


def refusal(text: str, place: str, word: str, name: str = "fresh", user: str = "") -> str | None:
    """Returns why the rename of a word within the first occurrence of a text is refused; None if it is not. `user` is
    the text of another file, which uses that of the text."""
    workspace = Workspace()
    workspace.open("/none/p.arch", text)
    if user:
        workspace.open("/none/user.arch", user)
    try:
        rename(workspace, workspace.document("/none/p.arch"), text.index(word, text.index(place)), name)
    except ErrorWithRemedy as error:
        return str(error).replace("/none/", "")
    return None


@pytest.mark.parametrize(
    ("place", "word", "reason"),
    [
        ("by: int", "by", "the class `mine:Shift` takes `by` as an argument"),
        ("shift[by = 2", "by", "the class `mine:Shift` takes `by` as an argument"),
        ("when wide", "wide", "the class `mine:Shift` takes `wide` as an argument"),
        ("n, d]", "d", "the class `mine:Shift` takes `d` as an argument"),
        ("m, e]", "m", "the class `mine:Shift` takes `mask_m` as an argument"),
        ("train: range", "train", "the class `even:Even` takes `train` as an argument"),
        ("x: tokens", "x", "the class `even:Even` gives a field `x`"),
        ("-> logits[classes]", "classes", "`classes` is not defined by this program"),
        ("lr: float", "lr", "the class `training:Signs` takes `lr` as an argument"),
    ],
)
def test_a_name_that_the_python_of_an_extern_needs_is_not_renamed(place: str, word: str, reason: str) -> None:
    message = refusal(EXTERN, place, word)
    assert message is not None
    assert reason in message
    with pytest.raises(ErrorWithRemedy, match=re.escape(reason)):
        renamable(Document("/none/p.arch", EXTERN), EXTERN.index(place) + place.index(word))


@pytest.mark.parametrize(("place", "word"), [("x: seq", "x"), ("width = d", "width"), ("block shift", "shift")])
def test_a_name_of_an_extern_that_its_python_does_not_need_is_renamed(place: str, word: str) -> None:
    assert refusal(EXTERN, place, word) is None


MODEL = """block helper[kind: symbol = relu, inner: block = norm](h: seq[n, d]) -> seq[n, d]
    where kind in [relu, gelu] {
    return inner(feedforward[8, activation = kind](h))
}

model small[d = 8](x: tokens[n]) -> logits[classes] {
    u = embed[d](x)
    return u + feedforward[8, activation = gelu](helper(u)) |> last |> linear[classes]
}
"""


def test_a_block_does_not_take_the_name_of_one_that_another_file_uses(tmp_path: Path) -> None:
    lib = "block mine(h: seq[n, d]) -> seq[n, d] { return tanh(h) }\n"
    main = 'use "./lib.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n'
    workspace = Workspace()
    for name, text in (("lib.arch", lib), ("main.arch", main), ("apart.arch", main.partition("\n")[2])):
        workspace.open(str(tmp_path / name), text)
    document = workspace.document(str(tmp_path / "lib.arch"))
    with pytest.raises(ErrorWithRemedy, match="`norm` already has a meaning at .*main.arch:3"):
        rename(workspace, document, lib.index("mine"), "norm")
    workspace.close(str(tmp_path / "main.arch"))
    assert rename(workspace, document, lib.index("mine"), "norm")


INHERITED = """model wide[d = 8, turns = 2](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat turns { h <- norm(h) }
    return h |> last |> linear[classes]
}

model deep[d = 8, turns = 3](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat turns { h <- tanh(h) }
    return h |> last |> linear[classes]
}

recipe first {
    task  ctl
    model wide
    train adamw[steps = 1]
    test  model.turns = 4
    vary  model.d in [8, 16]
}

recipe second from first { model deep[d = 4] }
recipe third from second { model wide }
"""


def test_a_static_that_a_line_of_a_base_sets_in_another_model_is_renamed_by_hand() -> None:
    message = refusal(INHERITED, "deep[d = 8, turns", "turns")
    assert message is not None
    assert "takes `model.turns` from its base, and its `model` has no such static" in message
    assert refusal(INHERITED, "wide[d = 8, turns", "turns") is not None
    # `second` and what is based on it set `d`, so they do not take the line `vary` of `first`.
    assert refusal(INHERITED, "deep[d = 8", "d") is None
    own_test = INHERITED.replace("{ model deep[d = 4] }", "{\n    model deep[d = 4]\n    test  model.turns = 5\n}")
    assert refusal(own_test, "wide[d = 8, turns", "turns") is not None  # `third` takes the line of `second`
    assert refusal(own_test.replace("third from second", "third from first"), "wide[d = 8, turns", "turns") is None


FILE = """model bert_spans[d = 8, heads = 2, folder: file = ""](x: tokens[n]) -> logits[n, 2] {
    return bert[d, heads, 8, 1, folder](x) |> linear[2]
}
"""


def test_a_static_that_is_a_file_is_renamed_where_it_is_passed_on() -> None:
    assert renamed(FILE, "folder: file", "weights").count("weights") == 2


ATTRIBUTES = """block table[width = 8](x: tokens[n]) -> seq[n, width] { return embed[width](x) }
block scaled[by = 2](h: seq[n, d]) -> seq[n, d] { return by * h }

model small[d = 8](x: tokens[n]) -> logits[classes] {
    let own = table[d]
    let scale = scaled
    h = scale(own(x))
    return linear[own.width](linear[scale.d](h)) |> last |> linear[classes]
}
"""


def renamed(text: str, place: str, name: str) -> str:
    """Returns a text after the rename of what stands at a place."""
    workspace = Workspace()
    workspace.open("/none/p.arch", text)
    return apply_edits(text, rename(workspace, workspace.document("/none/p.arch"), text.index(place), name))


def test_the_attribute_of_an_instance_names_a_static_or_a_size_of_its_block() -> None:
    assert "linear[own.features]" in renamed(ATTRIBUTES, "width = 8", "features")
    assert "linear[scale.k]" in renamed(ATTRIBUTES, "d]) -> seq[n, d] { return by", "k")


def test_a_static_that_the_attribute_of_a_passed_instance_may_name_is_not_renamed() -> None:
    text = ATTRIBUTES.replace("linear[own.width](linear[scale.d](h))", "linear[own.width](h) |> head[own]")
    text += "\nblock head[of: block](h: seq[n, d]) -> seq[n, d] { return linear[of.width](h) }\n"
    message = refusal(text, "width = 8", "width")
    assert message is not None
    assert "with the new name, p.arch:8 would have a mistake" in message
    passed = text.replace("head[own] |> last |> linear[classes]", "unembed[own] |> last |> linear[classes]")
    assert refusal(passed.replace("width", "vocab"), "vocab = 8", "vocab") is not None


SIGNED = """model small[d = 8](x: tokens[n]) -> logits[classes] {
    let rows = embed[d]
    return rows(x) |> last |> linear[classes]
}

recipe r {
    task  ctl
    model small
    train adamw[steps = 1, sign_sgd = [rows]]
}
"""


# Half-written lines, whose words have no meaning yet

HELPER = "block helper[width: int = 8](h: seq[n, d]) -> seq[n, d] {\n    return h + feedforward[width](h)\n}\n"
MAIN = """
model small[d = 8](x: tokens[n]) -> logits[classes] {
    u = embed[d](x)
    h = helper[width = 4](u)
    LINE
    return h |> last |> linear[classes]
}

block apart[width: int = 8](h: seq[n, d]) -> seq[n, d] {
    return h + feedforward[width](h)
}

recipe zed {
    task  ctl
    model small[d = 4]
    train adamw[steps = 1]
    vary  model.d in [4, 8]
}

table shown {
    row    "A" zed
    column "IID" valid.accuracy
}
"""


READ = """
block scaled[mix: block = helper](h: seq[n, d]) -> seq[n, d] {
    loss width = mean(linear[1](h))
    return feedforward[8, activation = relu](mix(h))
}

block cut(h: seq[n, d]) -> seq[n, d] {
    v = norm(h +
    return h
}
"""
USED = 'use "./p.arch" as lib\n' + MAIN.replace("helper", "lib.helper")
TABLE = "block table(x: tokens[n, k]) -> seq[n, k] { return embed[k](x) }\n"
ONE = (HELPER + TABLE + MAIN).replace("    u = embed[d](x)", "    let one = table\n    u = one(x)")


def half(line: str, whole: str = "    LINE", text: str = HELPER + MAIN) -> str:
    """Returns a text with a half-written line in place of a whole one."""
    return text.replace(whole, line).replace("    LINE\n", "")


HALF_WRITTEN = [
    ("    v = helper(u", "block helper", "helper"),
    ("    v = helper(u) +", "block helper", "helper"),
    ("    v = u |> helper |>", "block helper", "helper"),
    ("    v = helper[width =", "helper[width: int", "width"),
    ("    if d >", "small[d", "d"),
    ("    v = h +", "h = helper", "h"),
]


@pytest.mark.parametrize(
    ("text", "place", "word", "name", "reason"),
    [
        (MODEL, "inner: block", "inner", "gelu", "`gelu` already has a meaning"),  # `where` compares with it
        (MODEL, "kind: symbol", "kind", "relu", "`relu` already has a meaning"),  # the static's own default
        (MODEL, "u = embed", "u", "linear", "`linear` already has a meaning"),  # a block that is called
        (MODEL, "block helper", "helper", "gelu", "`gelu` already has a meaning"),
        (MODEL, "model small", "small", "gelu", "`gelu` already has a meaning"),
        (MODEL, "d = 8](x", "d", "vocab", "`vocab` is a size that tasks set"),
        (MODEL, "u = embed", "u", "gelu", None),  # a symbol as the value of a static stays one
        (SIGNED, "rows = embed", "rows", "ids", "would have a mistake"),
        *((half(line), place, word, "fresh", f"p.arch:8 cannot be read, and may use `{word}`")
          for line, place, word in HALF_WRITTEN),
        (half("model small[", "model small[d = 4]"), "model small", "small", "fresh", "p.arch:17 cannot be read"),
        (half("model small[d =", "model small[d = 4]"), "small[d", "d", "fresh", "p.arch:17 cannot be read"),
        (half("vary  model.d in", "vary  model.d in [4, 8]"), "small[d", "d", "fresh", "p.arch:19 cannot be read"),
        # Half-written lines that cannot mean the name.
        (half("    v = norm(u"), "block helper", "helper", "fresh", None),
        (half("    v = norm(u # helper"), "block helper", "helper", "fresh", None),
        (half("    v = norm(u"), "recipe zed", "zed", "fresh", None),
        (half("    v = helper(u"), "h = helper", "h", "fresh", None),
        # Lines that are read, such as the name of an auxiliary loss, whose meaning no other line can change.
        (half("") + READ, "helper[width: int", "width", "fresh", None),
        (half("") + READ.replace("width", "d"), "small[d", "d", "fresh", None),
        (half("") + READ, "apart[width: int", "width", "fresh", None),
        (half("") + READ, "cut(h", "h", "fresh", "cannot be read"),
        # Attributes, settings of a recipe, and the new name.
        (half("    v = linear[one.k](h", text=ONE), "n, k]", "k", "fresh", "cannot be read, and may use `k`"),
        (half("    v = linear[one.k", text=ONE), "n, k]", "k", "fresh", "cannot be read, and may use `k`"),
        (half("    let rows = norm").replace("adamw[steps = 1]", "adamw[sign_sgd = [rows"), "rows = norm", "rows",
         "fresh", "cannot be read, and may use `rows`"),
        (half("    v = norm(u |>"), "h = helper", "h", "v", "`v` already has a meaning at p.arch:8"),
    ],
)  # fmt: skip
def test_a_rename_that_a_line_may_contradict_is_refused(
    text: str, place: str, word: str, name: str, reason: str | None
) -> None:
    message = refusal(text, place, word, name)
    assert (message is None) == (reason is None)
    assert (reason or "") in (message or "")


@pytest.mark.parametrize(
    ("user", "place", "word", "reason"),
    [
        *((half(line.replace("helper", "lib.helper"), text=USED), place, word, "user.arch:6 cannot be read")
          for line, place, word in HALF_WRITTEN[:4]),
        (half("", text=USED).replace(" as lib", " as"), "block helper", "helper",
         "user.arch:1 cannot be read, and may use `helper` at user.arch:5"),
    ],
)  # fmt: skip
def test_a_half_written_use_of_another_file_is_not_skipped(user: str, place: str, word: str, reason: str) -> None:
    assert reason in (refusal(HELPER, place, word, user=user) or "")


def test_a_use_in_the_header_of_an_unclosed_statement_is_renamed() -> None:
    """The indentation shows where its body ends."""
    assert "if fresh {" in renamed(half("    if helper {"), "helper", "fresh")


@pytest.mark.parametrize("tail", ["", " +", "(", ":", " |>"])
def test_no_use_at_the_end_of_a_cut_line_is_left_behind(tail: str) -> None:
    """Each line of a shipped program is cut after each name of the program, which is then renamed."""
    path, text = "/none/p.arch", (PACKAGE / "recipes" / "gutlb.arch").read_text(encoding="utf-8")
    places = [
        place for place in DocumentNames(Document(path, text)).occurrences if place.symbol.span.source.path == path
    ]
    tried = 0
    for place in places[::4]:
        line_end, defined = text.index("\n", place.span.end), place.symbol.span.start
        if place.span.start <= defined < line_end:
            continue
        cut = text[: place.span.end] + tail + text[line_end:]
        start = defined if defined < place.span.start else defined - (line_end - place.span.end) + len(tail)
        workspace = Workspace()
        workspace.open(path, cut)
        try:
            edits = rename(workspace, workspace.document(path), start, "fresh")
        except ErrorWithRemedy:
            tried += 1
            continue
        assert place.span.start in {edit.span.start for edit in edits}
    assert tried > 10
