"""A rename never skips the use of a half-written line."""

from pathlib import Path

import pytest

from archlang.diagnostics import ErrorWithRemedy
from archlang.editor.document import Document
from archlang.editor.navigation import rename
from archlang.editor.symbols import Names
from archlang.editor.workspace import Workspace
from archlang.names.library import PACKAGE

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


def opened(tmp_path: Path, files: dict[str, str]) -> Workspace:
    workspace = Workspace()
    for name, text in files.items():
        workspace.open(str(tmp_path / name), text)
    return workspace


def refusal(tmp_path: Path, files: dict[str, str], file: str, text: str, word: str, name: str = "fresh") -> str | None:
    """Returns why a rename is refused; None if it is not."""
    workspace = opened(tmp_path, files)
    offset = files[file].index(text) + text.index(word)
    try:
        rename(workspace, workspace.document(str(tmp_path / file)), offset, name)
    except ErrorWithRemedy as error:
        return str(error).replace(f"{tmp_path}/", "")
    return None


HALF_WRITTEN = [
    ("    v = helper(u", "block helper", "helper"),
    ("    v = helper(u) +", "block helper", "helper"),
    ("    v = u |> helper |>", "block helper", "helper"),
    ("    v = helper[width =", "helper[width: int", "width"),
    ("    if d >", "small[d", "d"),
    ("    v = h +", "h = helper", "h"),
]


@pytest.mark.parametrize(("line", "text", "word"), HALF_WRITTEN)
def test_a_half_written_use_of_a_block_is_not_skipped(tmp_path: Path, line: str, text: str, word: str) -> None:
    files = {"main.arch": HELPER + MAIN.replace("    LINE", line)}
    message = refusal(tmp_path, files, "main.arch", text, word)
    assert message is not None
    assert f"main.arch:8 cannot be read, and may use `{word}`" in message


def test_a_use_in_the_header_of_an_unclosed_statement_is_renamed(tmp_path: Path) -> None:
    """The indentation shows where its body ends."""
    text = HELPER + MAIN.replace("    LINE", "    if helper {")
    workspace = opened(tmp_path, {"main.arch": text})
    document = workspace.document(str(tmp_path / "main.arch"))
    assert 8 in {edit.span.line for edit in rename(workspace, document, text.index("helper"), "fresh")}


@pytest.mark.parametrize(("line", "text", "word"), HALF_WRITTEN[:4])
def test_a_half_written_use_of_another_file_is_not_skipped(tmp_path: Path, line: str, text: str, word: str) -> None:
    main = 'use "./lib.arch" as lib\n' + MAIN.replace("    LINE", line).replace("helper", "lib.helper")
    files = {"lib.arch": HELPER, "main.arch": main}
    message = refusal(tmp_path, files, "lib.arch", text, word)
    assert message is not None
    assert f"main.arch:6 cannot be read, and may use `{word}`" in message


@pytest.mark.parametrize(
    ("whole", "half", "text", "word"),
    [
        ("model small[d = 4]", "model small[", "model small", "small"),
        ("model small[d = 4]", "model small[d =", "small[d", "d"),
        ("vary  model.d in [4, 8]", "vary  model.d in", "small[d", "d"),
    ],
)
def test_a_half_written_line_of_a_recipe_or_a_table_is_not_skipped(
    tmp_path: Path, whole: str, half: str, text: str, word: str
) -> None:
    main = (HELPER + MAIN.replace("    LINE\n", "")).replace(whole, half)
    files = {"main.arch": main}
    line = main[: main.rindex(half)].count("\n") + 1
    message = refusal(tmp_path, files, "main.arch", text, word)
    assert message is not None
    assert f"main.arch:{line} cannot be read, and may use `{word}`" in message


@pytest.mark.parametrize(
    ("line", "text", "word"),
    [
        ("    v = norm(u", "block helper", "helper"),
        ("    v = norm(u # helper", "block helper", "helper"),
        ("    v = h +", "(h: seq", "h"),
        ("    v = norm(u", "recipe zed", "zed"),
        ("    v = helper(u", "h = helper", "h"),
    ],
)
def test_a_half_written_line_that_cannot_mean_the_name_does_not_matter(
    tmp_path: Path, line: str, text: str, word: str
) -> None:
    files = {"main.arch": HELPER + MAIN.replace("    LINE", line)}
    assert refusal(tmp_path, files, "main.arch", text, word) is None


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


@pytest.mark.parametrize(
    ("text", "word"), [("helper[width: int", "width"), ("small[d", "d"), ("apart[width: int", "width")]
)
def test_a_word_of_a_line_that_is_read_does_not_matter(tmp_path: Path, text: str, word: str) -> None:
    """Such as the name of an auxiliary loss, whose meaning no other line can change."""
    files = {"main.arch": HELPER + MAIN.replace("    LINE\n", "") + READ.replace("width", word)}
    assert refusal(tmp_path, files, "main.arch", text, word) is None
    assert refusal(tmp_path, files, "main.arch", "(h: seq[n, d]) -> seq[n, d] {\n    v", "h") is not None


@pytest.mark.parametrize(
    ("line", "text", "word"),
    [("    v = linear[one.k](h", "tokens[n, k]", "k"), ("    v = linear[one.k", "tokens[n, k]", "k")],
)
def test_a_half_written_attribute_may_name_a_size_of_a_block(tmp_path: Path, line: str, text: str, word: str) -> None:
    table = "block table(x: tokens[n, k]) -> seq[n, k] { return embed[k](x) }\n"
    main = (HELPER + table + MAIN).replace("    u = embed[d](x)", "    let one = table\n    u = one(x)")
    files = {"main.arch": main.replace("    LINE", line)}
    message = refusal(tmp_path, files, "main.arch", text, "k]")
    assert message is not None
    assert "cannot be read, and may use `k`" in message


def test_a_half_written_setting_may_name_an_instance(tmp_path: Path) -> None:
    main = (HELPER + MAIN).replace("    LINE\n", "    let rows = norm\n")
    files = {"main.arch": main.replace("adamw[steps = 1]", "adamw[sign_sgd = [rows")}
    message = refusal(tmp_path, files, "main.arch", "rows = norm", "rows")
    assert message is not None
    assert "cannot be read, and may use `rows`" in message


def test_a_half_written_line_of_a_file_that_cannot_know_the_name_does_not_matter(tmp_path: Path) -> None:
    other = HELPER + MAIN.replace("    LINE", "    v = helper(u")
    files = {"lib.arch": HELPER, "other.arch": other}
    assert refusal(tmp_path, files, "lib.arch", "block helper", "helper") is None


def test_a_half_written_use_line_hides_the_uses_of_its_file(tmp_path: Path) -> None:
    main = 'use "./lib.arch" as\n' + MAIN.replace("    LINE\n", "").replace("helper", "lib.helper")
    files = {"lib.arch": HELPER, "main.arch": main}
    message = refusal(tmp_path, files, "lib.arch", "block helper", "helper")
    assert message is not None
    assert "main.arch:1 cannot be read, and may use `helper` at main.arch:5" in message


def test_a_half_written_line_may_bind_the_new_name(tmp_path: Path) -> None:
    files = {"main.arch": HELPER + MAIN.replace("    LINE", "    v = norm(u |>")}
    message = refusal(tmp_path, files, "main.arch", "h = helper", "h", "v")
    assert message is not None
    assert "`v` already has a meaning at main.arch:8" in message


@pytest.mark.parametrize("tail", ["", " +", "(", ":", " |>"])
def test_no_use_at_the_end_of_a_cut_line_is_left_behind(tmp_path: Path, tail: str) -> None:
    """Each line of a shipped program is cut after each name of the program, which is then renamed."""
    path, text = str(tmp_path / "p.arch"), (PACKAGE / "recipes" / "gutlb.arch").read_text(encoding="utf-8")
    places = [place for place in Names(Document(path, text)).occurrences if place.symbol.span.source.path == path]
    tried = 0
    for place in places[::4]:
        line_end, defined = text.index("\n", place.span.end), place.symbol.span.start
        if place.span.start <= defined < line_end:
            continue
        cut = text[: place.span.end] + tail + text[line_end:]
        start = defined if defined < place.span.start else defined - (line_end - place.span.end) + len(tail)
        workspace = opened(tmp_path, {"p.arch": cut})
        try:
            edits = rename(workspace, workspace.document(path), start, "fresh")
        except ErrorWithRemedy:
            tried += 1
            continue
        assert place.span.start in {edit.span.start for edit in edits}
    assert tried > 10
