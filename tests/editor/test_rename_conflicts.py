"""A rename that would leave a sound program with a mistake, or give it another meaning, is refused with the reason."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from archlang.diagnostics import Edit, ErrorWithRemedy
from archlang.diagnostics.edits import apply_edits
from archlang.editor.document import Document
from archlang.editor.navigation import renamable, rename
from archlang.editor.symbols import Names
from archlang.editor.workspace import Workspace
from archlang.names.library import PACKAGE
from archlang.plan.check import check_text

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


def refusal(text: str, place: str, word: str, name: str = "fresh") -> str | None:
    """Returns why the rename of a word within the first occurrence of a text is refused; None if it is not."""
    workspace = Workspace()
    workspace.open("/none/p.arch", text)
    try:
        rename(workspace, workspace.document("/none/p.arch"), text.index(place) + place.index(word), name)
    except ErrorWithRemedy as error:
        return str(error)
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


@pytest.mark.parametrize(
    ("place", "word", "name"),
    [
        ("inner: block", "inner", "gelu"),  # a word with which `where` compares
        ("kind: symbol", "kind", "relu"),  # the static's own default
        ("u = embed", "u", "gelu"),  # the value of a static
        ("u = embed", "u", "linear"),  # a block that is called
        ("block helper", "helper", "gelu"),
        ("model small", "small", "gelu"),
        ("d = 8](x", "d", "vocab"),  # sizes that a task gives
        ("n]) -> logits", "n", "classes"),
        ("u = embed", "u", "words"),
        ("block helper", "helper", "vocab"),
    ],
)
def test_a_new_name_that_already_has_a_meaning_is_refused(place: str, word: str, name: str) -> None:
    message = refusal(MODEL, place, word, name)
    assert message is not None
    assert f"`{name}` already has a meaning" in message


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


def test_a_path_of_a_base_names_the_statics_of_the_recipes_that_take_its_line() -> None:
    message = refusal(INHERITED, "deep[d = 8, turns", "turns")
    assert message is not None
    assert "`model.turns` at /none/p.arch:17 also names a static of another model" in message
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
    text = ATTRIBUTES + "\nblock head[of: block](h: seq[n, d]) -> seq[n, d] { return linear[of.width](h) }\n"
    message = refusal(text, "width = 8", "width")
    assert message is not None
    assert "`of.width` at /none/p.arch:11 may name it" in message
    passed = ATTRIBUTES.replace("last |> linear[classes]", "unembed[own] |> last |> linear[classes]")
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


def test_an_instance_is_renamed_in_the_settings_that_name_it() -> None:
    text = renamed(SIGNED, "rows = embed", "ids")
    assert "sign_sgd = [ids]" in text
    assert check_text(text, "p.arch") == check_text(SIGNED, "p.arch") == ()


NAMES = ("fresh_name", "gelu", "norm", "classes", "positions", "full", "seed")
# Folders whose files use only each other and the library.
FOLDERS = ("recipes", "blocks", "tasks", "train")


def mistakes(document: Document) -> list[tuple[str, int]]:
    return [(each.code, each.span.line) for each in document.diagnostics]


def own_names(document: Document) -> Iterator[int]:
    """Yields the place of each name that a document defines."""
    for place in Names(document).occurrences:
        if place.symbol.span == place.span:
            yield place.span.start


def files_after(workspace: Workspace, edits: Iterable[Edit]) -> dict[str, str]:
    by_path: dict[str, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_path[edit.span.source.path].append(edit)
    return {path: apply_edits(workspace.document(path).text, each) for path, each in by_path.items()}


def assert_renames_are_sound(path: Path, names: Iterable[str]) -> int:
    """Renames each name that a file defines to some names, and checks the changed files. Returns how many renames were
    not refused."""
    workspace, changed, count = Workspace(), Workspace(), 0
    document = workspace.document(str(path))
    for start in own_names(document):
        for name in names:
            try:
                edits = rename(workspace, document, start, name)
            except ErrorWithRemedy:
                continue
            count += 1
            assert start in {edit.span.start for edit in edits}
            texts = files_after(workspace, edits)
            for file, text in texts.items():
                changed.open(file, text)
            for file in texts:
                assert mistakes(changed.document(file)) == mistakes(workspace.document(file)), (start, name)
            for file in texts:
                changed.open(file, workspace.document(file).text)
    return count


def copied(folder: Path) -> Path:
    """Copies the shipped programs to a folder: names of the library itself are not renamed."""
    for name in FOLDERS:
        for file in (PACKAGE / name).rglob("*.arch"):
            copy = folder / name / file.relative_to(PACKAGE / name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("file", ["recipes/ndr.arch", "blocks/unembed.arch", "blocks/chunks.arch"])
def test_a_shipped_file_has_no_mistake_after_a_rename(tmp_path: Path, file: str) -> None:
    copy = tmp_path / file
    copy.parent.mkdir(parents=True)
    copy.write_bytes((PACKAGE / file).read_bytes())
    assert assert_renames_are_sound(copy, NAMES) > 0


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["recipes", "blocks", "tasks"])
def test_no_shipped_file_has_a_mistake_after_a_rename(tmp_path: Path, folder: str) -> None:
    for file in sorted((copied(tmp_path) / folder).rglob("*.arch")):
        assert_renames_are_sound(file, NAMES[:2])
