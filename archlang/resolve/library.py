"""The shipped blocks, tasks, optimizers and recipe files, found by name."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from archlang.disk import package
from archlang.errors import Source
from archlang.syntax.parser import parse_part
from archlang.syntax.tree import Definition, Extern

PACKAGE = package.FOLDER
BLOCKS, _TASKS, _OPTIMIZERS = PACKAGE / "blocks", PACKAGE / "tasks", PACKAGE / "train"
_SPLITS = _TASKS / "kit"
_PREFIX = str(PACKAGE)
_HEADS = re.compile(
    r"(?:^##.*\n)*^(?:extern[ \t]+)?(?:block|model|task|optimizer|settings)[ \t]+([A-Za-z_]\w*)", re.MULTILINE
)
_SETTINGS = "training"


@cache
def _source(path: Path) -> Source:
    return Source(str(path), path.read_text(encoding="utf-8"))


@cache
def _index(folder: Path) -> Mapping[str, tuple[Path, int, int]]:
    """The file of each name, with the start and the end of its item: a program needs few of the items of a file."""
    index: dict[str, tuple[Path, int, int]] = {}
    for file in sorted(folder.glob("*.arch")):
        text = _source(file).text
        heads = list(_HEADS.finditer(text))
        ends = [*(head.start() for head in heads[1:]), len(text)]
        # Of two with one name in a file, the first.
        index |= {head[1]: (file, head.start(), end) for head, end in zip(reversed(heads), reversed(ends), strict=True)}
    return index


@cache
def _get(folder: Path, name: str) -> Definition | Extern | None:
    if (place := _index(folder).get(name)) is None:
        return None
    file, start, end = place
    (item,) = parse_part(_source(file), start, end).nodes
    assert isinstance(item, Definition | Extern), "what `_HEADS` finds"
    return item


def has(path: str) -> bool:
    """Returns whether a file ships with archlang."""
    return path.startswith(_PREFIX) and Path(path).is_relative_to(PACKAGE)


def block_names() -> frozenset[str]:
    """Returns the names of the prelude's blocks."""
    return frozenset(_index(BLOCKS))


def block(name: str) -> Definition | Extern | None:
    """Returns a block of the prelude, or None."""
    return _get(BLOCKS, name)


@cache
def block_that_acts(word: str) -> Definition | Extern:
    """Returns the block of the prelude whose clause `acts` begins with a word."""
    clause = f"\n    acts {word}"
    (name,) = (name for name, (file, *part) in _index(BLOCKS).items() if clause in _source(file).text[slice(*part)])
    item = _get(BLOCKS, name)
    assert item is not None
    return item


def block_called(name: str) -> str | None:
    """Returns the block of the prelude that other libraries or papers call by a name, as `layer_norm` is `norm`; an
    empty string for one that the prelude does not have, such as `cos`; None for a name that they do not use either."""
    return _other_names().get(name.rpartition(".")[2].lower().replace("_", ""))


@cache
def _other_names() -> Mapping[str, str]:
    return dict(_lines_of("other_names.tsv"))


def static_called(name: str, possible: Iterable[str]) -> str | None:
    """The static that other libraries call by a name, as `learning_rate` is `lr`; None if it is not possible."""
    own = {static for called, static in _other_static_names() if called == name.lower().replace("_", "")}
    return next((static for static in possible if static in own), None)


@cache
def _other_static_names() -> tuple[tuple[str, str], ...]:
    return tuple(_lines_of("other_static_names.tsv"))


def _lines_of(table: str) -> Iterator[tuple[str, str]]:
    for line in Path(__file__).with_name(table).read_text(encoding="utf-8").splitlines()[1:]:
        name, own = line.split("\t")
        yield name, own


@cache
def task(name: str) -> Extern | None:
    """Returns the signature of a shipped task, or None."""
    item = _get(_TASKS, name)
    if not isinstance(item, Extern) or item.body is None:
        return item if isinstance(item, Extern) else None
    settings = splits(item)
    assert settings is not None, "the check of a page requires them"
    documentation = (*item.documentation, "", *settings.documentation)
    # Runs name a shipped task so, whether it is a page or a class.
    python = f"archlang.tasks.{name}:{name.title().replace('_', '')}"
    return replace(with_settings(item), documentation=documentation, python=python)


@cache
def optimizer(name: str) -> Extern | None:
    """Returns an optimizer with the statics and conditions of the settings that it includes, or None."""
    item = _get(_OPTIMIZERS, name)
    return with_settings(item) if isinstance(item, Extern) and item.word == "optimizer" else None


def with_settings(item: Extern) -> Extern:
    """Returns an optimizer, or a task that is a page, with the statics and conditions of the settings that it includes,
    of which its own statics replace those of the same names."""
    settings = splits(item) if item.body is not None else training_settings() if item.includes else None
    if settings is None:
        return item
    signature, own = item.signature, {static.name for static in item.signature.statics}
    others = (static for static in settings.signature.statics if static.name not in own)
    conditions = (condition for condition in settings.signature.where if condition not in signature.where)
    signature = replace(signature, statics=(*signature.statics, *others), where=(*signature.where, *conditions))
    return replace(item, signature=signature, includes=() if item.body is None else item.includes)


def splits(page: Extern) -> Extern | None:
    """Returns the settings that say how the splits of a task are drawn; None if its page names none."""
    settings = _get(_SPLITS, page.includes[0].text) if page.includes else None
    return settings if isinstance(settings, Extern) else None


def splits_names() -> frozenset[str]:
    return frozenset(_index(_SPLITS))


def training_settings() -> Extern:
    """The `extern settings training` that optimizers include."""
    settings = _get(_OPTIMIZERS, _SETTINGS)
    assert isinstance(settings, Extern), "the library has them"
    return settings


def task_names() -> frozenset[str]:
    return frozenset(_index(_TASKS))


def optimizer_names() -> frozenset[str]:
    return frozenset(_index(_OPTIMIZERS)) - {_SETTINGS}


def blocks() -> Mapping[str, Definition | Extern]:
    """Returns the prelude's blocks by name, and the blocks of other library files by dotted name."""
    items = {name: _get(BLOCKS, name) for name in sorted(block_names())}
    for folder in sorted(path for path in BLOCKS.iterdir() if path.is_dir()):
        for name in sorted(_index(folder)):
            items[f"{folder.name}.{_index(folder)[name][0].stem}.{name}"] = _get(folder, name)
    return {name: item for name, item in items.items() if item is not None}


def tasks() -> Mapping[str, Extern]:
    return {name: item for name in sorted(task_names()) if (item := task(name)) is not None}


def optimizers() -> Mapping[str, Extern]:
    return {name: item for name in sorted(optimizer_names()) if (item := optimizer(name)) is not None}


def library_file(dotted: str) -> Path | None:
    """Returns the file of `use archlang.a.b`, which is `blocks/a/b.arch`, or None if it does not exist."""
    head, *rest = dotted.split(".")
    if head != "archlang" or not rest:
        return None
    file = BLOCKS.joinpath(*rest).with_suffix(".arch")
    # `Path.is_file` would raise an error for a name that is too long.
    return file if os.path.isfile(file) else None


def outside_prelude(name: str) -> tuple[str, Definition | Extern] | None:
    """Returns the module of a block or model outside of the prelude, such as `archlang.models.panm`, and its item; None
    if there is none."""
    for folder in _subfolders(BLOCKS):
        if (item := _get(folder, name)) is not None:
            return f"archlang.{folder.name}.{_index(folder)[name][0].stem}", item
    return None


@cache
def _subfolders(folder: Path) -> tuple[Path, ...]:
    return tuple(each for each in folder.iterdir() if each.is_dir())


def library_files() -> tuple[str, ...]:
    """Returns the dotted name of each library file."""
    files = sorted(BLOCKS.glob("**/*.arch"))
    return tuple("archlang." + ".".join(file.relative_to(BLOCKS).with_suffix("").parts) for file in files)


_RECIPES = package.FOLDER / "recipes"


def recipe_files() -> Mapping[str, Path]:
    """Returns the shipped files by name: those that train in minutes first, then the papers' own settings."""
    files = sorted(_RECIPES.rglob("*.arch"), key=lambda file: (len(file.relative_to(_RECIPES).parts), file))
    return {file.relative_to(_RECIPES).with_suffix("").as_posix(): file for file in files}


def program_text(file: Path) -> str:
    """Returns the text of a file that ships with archlang."""
    return file.read_text(encoding="utf-8")


def summary(text: str) -> str:
    """Returns the first sentence of the comment that begins a program."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# "))
    return " ".join(lines).partition(". ")[0].rstrip(".") + "."


def items(text: str) -> str:
    """Returns the names of the models, recipes and tables that a program declares, such as `model a; recipes b, c`."""
    names = {kind: re.findall(rf"^{kind}\s+(\w+)", text, re.MULTILINE) for kind in ("model", "recipe", "table")}
    return "; ".join(f"{kind}{'s' * (len(each) > 1)} {', '.join(each)}" for kind, each in names.items() if each)
