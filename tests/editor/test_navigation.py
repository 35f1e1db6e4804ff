"""Definition, references and rename, over the files of a folder."""

import re
from pathlib import Path

import pytest

from archlang.editor.document import Document
from archlang.editor.navigation import definition, references, renamable, rename
from archlang.editor.symbols import DocumentNames
from archlang.editor.workspace import Workspace
from archlang.errors import Edit, ErrorWithRemedy
from archlang.plan.check import check_text
from archlang.resolve.library import BLOCKS, PACKAGE

FILES = {
    "layer.arch": """## A layer.
block layer[width: int = 8](h: seq[n, d]) -> seq[n, d] {
    a = feedforward[width](h)
    repeat 2 { h <- norm(h) }
    return a + h
}
""",
    "model.arch": """use "./layer.arch"

model m[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    return layer[width = d](h) |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m[d = 16]
    train adamw[steps = 1]
    vary  model.d in [8, 16]
}
""",
    "named.arch": """use "./layer.arch" as mine

block twice(h: seq[n, d]) -> seq[n, d] {
    return mine.layer(mine.layer(h))
}
""",
    "model_with_alias.arch": """use "./layer.arch" as mine
use "./model.arch" as lib

block once(h: seq[n, d]) -> seq[n, d] {
    return mine.layer(h)
}

recipe r {
    task  ctl
    model lib.m[d = 16]
    train adamw[steps = 1]
}

table results {
    row "r" r
    column "IID" valid.accuracy
}
""",
    "average.arch": """use "./model_with_alias.arch" as lib

recipe r {
    task  ctl
    model m
    train adamw[steps = 1]
}

table average {
    row "r" r
    column "Mean" average of lib.results
}

model m[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> last |> linear[classes]
}
""",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return workspace


def place(workspace: Workspace, path: Path, text: str, word: str) -> tuple[Document, int]:
    """Returns a file of the workspace and the offset of a word within the first occurrence of a text."""
    document = workspace.document(str(path))
    return document, document.text.index(text) + text.index(word)


def apply(text: str, edits: list[Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: -edit.span.start):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def renamed(workspace: Workspace, folder: Path, edits: tuple[Edit, ...]) -> dict[str, str]:
    return {
        name: apply(text, [edit for edit in edits if edit.span.source.path == str(folder / name)])
        for name, text in FILES.items()
    }


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("layer[width", "layer", "{folder}/layer.arch:2:7"),
        ("embed[d]", "embed", f"{BLOCKS / 'embed.arch'}:"),
        ('"./layer.arch"', "layer", "{folder}/layer.arch:1:1"),
    ],
)
def test_a_name_is_defined_in_the_file_that_is_used(
    workspace: Workspace, tmp_path: Path, text: str, word: str, expected: str
) -> None:
    span = definition(*place(workspace, tmp_path / "model.arch", text, word))
    assert str(span).startswith(expected.format(folder=tmp_path))


def test_references_are_in_every_file_of_the_folder(workspace: Workspace, tmp_path: Path) -> None:
    spans = references(workspace, *place(workspace, tmp_path / "named.arch", "mine.layer(h", "layer"))
    shown = sorted(str(span).removeprefix(f"{tmp_path}/") for span in spans)
    assert shown == [
        "layer.arch:2:7", "model.arch:5:12", "model_with_alias.arch:5:17", "named.arch:4:17", "named.arch:4:28",
    ]  # fmt: skip


def test_a_block_is_renamed_over_three_files(workspace: Workspace, tmp_path: Path) -> None:
    edits = rename(workspace, *place(workspace, tmp_path / "layer.arch", "layer[width", "layer"), "block_of_mine")
    texts = renamed(workspace, tmp_path, edits)
    assert texts["named.arch"].count("mine.block_of_mine(") == 2
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, text in texts.items():
        assert check_text(text, str(tmp_path / name)) == ()


@pytest.mark.parametrize(
    ("file", "text", "word", "changed"),
    [
        ("layer.arch", "width: int", "width", {"model.arch": ["layer[new = d](h)"]}),
        (
            "model.arch", "embed[d]", "d]",
            {"model.arch": ["m[new = 8]", "embed[new](x)", "m[new = 16]", "model.new in", "layer[width = new]"]},
        ),
        (
            "layer.arch", "h <-", "h",
            {"layer.arch": ["[width: int = 8](new: seq[n, d])", "{ new <- norm(new) }", "return a + new"]},
        ),
        (
            "model_with_alias.arch", "table results", "results",
            {"model_with_alias.arch": ["table new {"], "average.arch": ["average of lib.new"]},
        ),
    ],
)  # fmt: skip
def test_statics_states_and_tables_are_renamed_where_they_are_used(
    workspace: Workspace, tmp_path: Path, file: str, text: str, word: str, changed: dict[str, list[str]]
) -> None:
    texts = renamed(workspace, tmp_path, rename(workspace, *place(workspace, tmp_path / file, text, word), "new"))
    assert [part for name, parts in changed.items() for part in parts if part not in texts[name]] == []


@pytest.mark.parametrize(
    ("file", "text", "word", "changed"),
    [
        ("named.arch", "as mine", "mine", ["as own\n", "own.layer(own.layer(h))"]),
        ("named.arch", "mine.layer(h)", "mine", ["as own\n", "own.layer(own.layer(h))"]),
        ("model_with_alias.arch", "as lib", "lib", ['layer.arch" as mine', "as own\n", "model own.m[d = 16]"]),
        ("average.arch", "of lib.", "lib", ["as own\n", "average of own.results"]),
    ],
)
def test_the_alias_of_a_file_is_renamed_in_the_file_that_gives_it(
    workspace: Workspace, tmp_path: Path, file: str, text: str, word: str, changed: list[str]
) -> None:
    cursor = place(workspace, tmp_path / file, text, word)
    span = definition(*cursor)
    assert span is not None
    assert span.source.text[: span.start].endswith(" as ")
    assert renamable(*cursor).text == word
    texts = renamed(workspace, tmp_path, rename(workspace, *cursor, "own"))
    assert [name for name in FILES if texts[name] != FILES[name]] == [file]
    assert [part for part in changed if part not in texts[file]] == []
    assert check_text(texts[file], str(tmp_path / file)) == check_text(FILES[file], str(tmp_path / file)) == ()
    assert len(references(workspace, *cursor)) == texts[file].count("own")


@pytest.mark.parametrize(
    ("file", "text", "word", "name", "message"),
    [
        ("layer.arch", "a =", "a", "h", "already has a meaning"),
        ("named.arch", "as mine", "mine", "h", "already has a meaning"),
        ("named.arch", "twice(h", "h", "mine", "already has a meaning"),
        ("layer.arch", "a =", "a", "return", "cannot be a name"),
        ("layer.arch", "a =", "a", "b c", "cannot be a name"),
        ("layer.arch", "norm", "norm", "mine", "not defined by this program"),
        ("layer.arch", "= 8", "= 8", "b", "no name here"),
    ],
)
def test_a_rename_that_would_change_the_meaning_is_refused(
    workspace: Workspace, tmp_path: Path, file: str, text: str, word: str, name: str, message: str
) -> None:
    with pytest.raises(ErrorWithRemedy, match=message):
        rename(workspace, *place(workspace, tmp_path / file, text, word), name)


def test_only_names_of_the_program_can_be_renamed(workspace: Workspace, tmp_path: Path) -> None:
    span = renamable(*place(workspace, tmp_path / "layer.arch", "feedforward[width]", "width"))
    assert span.text == "width"
    with pytest.raises(ErrorWithRemedy, match="`feedforward` is not defined by this program"):
        renamable(*place(workspace, tmp_path / "layer.arch", "feedforward", "feedforward"))


def test_a_size_of_a_model_that_the_task_gives_cannot_be_renamed() -> None:
    text = "model m(x: tokens[n]) -> logits[n, vocab] {\n    return linear[vocab](embed[8](x))\n}\n"
    with pytest.raises(ErrorWithRemedy, match="`vocab` is not defined by this program"):
        renamable(Document("m.arch", text), text.index("vocab"))
    assert renamable(Document("b.arch", text), text.index("n]")).text == "n"


@pytest.mark.parametrize(
    "name", ["recipes/gutlb.arch", "blocks/concat.arch", "blocks/unembed.arch", "blocks/models/dynamic_halt.arch"]
)
def test_a_shipped_file_with_all_its_local_names_changed_has_no_mistake(name: str) -> None:
    """Every mention of a name is found: one that was missed would be unknown."""
    path = str(PACKAGE / name)
    text = Path(path).read_text(encoding="utf-8")
    kinds = ("value", "input", "instance", "static", "size")
    set_by_tasks = ("x", "classes", "vocab")
    edits = [
        Edit(place.span, f"{place.symbol.name}_renamed")
        for place in DocumentNames(Document(path, text)).occurrences
        if place.symbol.kind in kinds
        and place.symbol.span.source.path == path
        and place.symbol.name not in set_by_tasks
    ]
    assert check_text(text, path) == check_text(apply(text, edits), path) == ()


PLANNED = """table early {
    row    "Wide" wide at model.width = 8 best of model.depth, task.order
    row    "Deep" deep
    column "All" test.accuracy at model.depth = 2 best of model.width
    columns "Each" test.accuracy at model.width in [8, 16], task.order = forward best of train.lr
}

table averages {
    row    "Wide" wide
    column "Mean" average of early at model.width = 8
}

recipe wide from base {
    test   model.depth = 8
    vary   model.depth in [1, 2]
    search model.width in [8, 16], train.lr in 1e-4..1e-2 log
    claim  test.accuracy = 1.0 at model.width = 8, task.order = forward from "a paper"
}

recipe base {
    task  own_task[order = forward]
    model layers[width = 4]
    train own_optimizer[steps = 1, lr = 1e-3]
}

recipe deep from base { model narrow }

model layers[width = 8, depth = 1](x: tokens[n]) -> logits[classes] {
    h = embed[width](x)
    repeat depth { h <- norm(h) }
    return h |> last |> linear[classes]
}
model narrow[width = 8](x: tokens[n]) -> logits[classes] { return embed[width](x) |> last |> linear[classes] }
extern task own_task[order: symbol = forward](x: tokens[n]) -> logits[classes]
    gives vocab = 8, classes = 2
    python "own:Task"
extern optimizer own_optimizer[lr: float = 1e-3]
    with training
    python "own:Optimizer"
"""


@pytest.mark.parametrize(
    ("static", "path"),
    [
        ("width = 8, depth", "model.width"),
        ("depth = 1]", "model.depth"),
        ("order: symbol", "task.order"),
        ("lr: float", "train.lr"),
    ],
)
def test_each_path_of_a_recipe_and_a_table_names_the_static(tmp_path: Path, static: str, path: str) -> None:
    file, name = tmp_path / "planned.arch", path.partition(".")[2]
    file.write_text(PLANNED, encoding="utf-8")
    cursor = place(Workspace(), file, static, name)
    starts = [span.start for span in references(Workspace(), *cursor)]
    paths = [match.start(1) for match in re.finditer(rf"{path.partition('.')[0]}\.({name})\b", PLANNED)]
    assert [start for start in paths if start not in starts] == []
    for start in paths:
        defined = definition(cursor[0], start)
        assert defined is not None
        assert PLANNED[defined.start :].startswith(name)


def test_a_path_of_a_table_names_the_static_of_each_row(tmp_path: Path) -> None:
    file = tmp_path / "planned.arch"
    file.write_text(PLANNED, encoding="utf-8")
    cursor = place(Workspace(), file, "narrow[width", "width")
    shown = {PLANNED[: span.start].splitlines()[-1].strip() for span in references(Workspace(), *cursor)}
    assert 'column "All" test.accuracy at model.depth = 2 best of model.' in shown
    assert 'columns "Each" test.accuracy at model.' in shown
    assert not any(line.startswith(("row", "search")) for line in shown)
    for word in ("narrow[width", "layers[width"):
        with pytest.raises(ErrorWithRemedy, match="the name at .*:4 also names something else"):
            rename(Workspace(), *place(Workspace(), file, word, "width"), "size")


def test_a_static_is_renamed_in_every_path_that_names_it(tmp_path: Path) -> None:
    file = tmp_path / "planned.arch"
    file.write_text(PLANNED, encoding="utf-8")
    text = apply(PLANNED, list(rename(Workspace(), *place(Workspace(), file, "depth = 1]", "depth"), "other")))
    assert not re.search(r"\bdepth\b", text)
    assert [each.code for each in check_text(text, str(file))] == [each.code for each in check_text(PLANNED, str(file))]


LOSSES = """block sparse(h: seq[n, d]) -> seq[n, d] {
    g = sigmoid(linear[1](h))
    open = mean(g)
    loss open = open
    return g * h
}

model m[d = 8](x: tokens[n]) -> logits[classes] {
    h = sparse(embed[d](x))
    loss halted = mean(linear[1](h))
    loss halted = mean(linear[1](2 * h))
    return h |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m
    train adamw[steps = 1, losses.open = 0.5, losses.halted = 0.0]
    vary  train.losses.open in [0.1, 0.5]
}

recipe deep {
    task  ctl
    model m
    train adamw[steps = 1, supervise = deep, halt = halted]
}
"""


def loss_in(folder: Path, text: str, name: str) -> tuple[Document, int]:
    """Returns a document and the offset of the first auxiliary loss of a name."""
    file = folder / "main.arch"
    file.write_text(text, encoding="utf-8")
    return Workspace().document(str(file)), text.index(f"loss {name}") + len("loss ")


@pytest.mark.parametrize("name", ["open", "halted"])
def test_a_loss_that_a_recipe_names_is_renamed_by_hand(tmp_path: Path, name: str) -> None:
    document, offset = loss_in(tmp_path, LOSSES, name)
    with pytest.raises(ErrorWithRemedy, match="would have a mistake: .*no auxiliary loss"):
        rename(Workspace(), document, offset, "paid")
    alone, offset = loss_in(tmp_path, LOSSES.partition("recipe")[0], name)
    assert {edit.span.text for edit in rename(Workspace(), alone, offset, "paid")} == {name}


def test_a_loss_takes_no_name_of_another_one_but_that_of_a_value(tmp_path: Path) -> None:
    document, offset = loss_in(tmp_path, LOSSES.partition("recipe")[0], "open")
    assert rename(Workspace(), document, offset, "g")
    with pytest.raises(ErrorWithRemedy, match="`halted` already has a meaning"):
        rename(Workspace(), document, offset, "halted")
