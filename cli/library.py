"""`archlang blocks`, `tasks`, `optimizers`, `recipes` and `explain`: lists and documents what ships with archlang."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archlang.cli import arguments, console
from archlang.errors.names import suggest

if TYPE_CHECKING:
    from archlang.syntax.tree import Definition, Extern

    Item = Definition | Extern
    FactsOf = Callable[[Item], Mapping[str, object]]


def _name(what: str) -> Any:  # Any: as of typer
    return typer.Argument(help=f"{what} Without it, list all.", autocompletion=_names)


def _names(context: typer.Context, incomplete: str) -> list[str]:
    """What the shell completes: the names that the command lists."""
    from archlang.errors import codes
    from archlang.resolve import library
    from archlang.resolve.library import recipe_files

    listed: Mapping[str | None, Callable[[], Iterable[str]]] = {
        "blocks": library.blocks, "tasks": library.task_names, "optimizers": library.optimizer_names,
        "recipes": recipe_files, "explain": codes.titles,
    }  # fmt: skip
    names = {name.rpartition(".")[2] for name in listed[context.info_name]()}
    return sorted(name for name in names if name.startswith(incomplete))


def blocks(
    name: Annotated[str | None, _name("The name of a block.")] = None, as_json: arguments.AsJson = False
) -> None:
    """List the blocks of the library, or print one with signature, equations, defaults and source.

    Example: archlang blocks geometric_attention
    """
    from archlang.resolve import library

    _list_or_show("block", library.blocks(), name, as_json)


def tasks(name: Annotated[str | None, _name("The name of a task.")] = None, as_json: arguments.AsJson = False) -> None:
    """List the tasks, or print one: its statics, fields, splits and source.

    Example: archlang tasks ctl
    """
    from archlang.resolve import library

    _list_or_show("task", library.tasks(), name, as_json, declared_facts)


def optimizers(
    name: Annotated[str | None, _name("The name of an optimizer.")] = None, as_json: arguments.AsJson = False
) -> None:
    """List the optimizers, or print one: its statics, the training settings, their defaults and bounds.

    Example: archlang optimizers adamw
    """
    from archlang.resolve import library

    _list_or_show("optimizer", library.optimizers(), name, as_json)


def _list_or_show(
    kind: str, items: Mapping[str, Item], name: str | None, as_json: bool, more_facts: FactsOf = lambda item: {}
) -> None:
    """Prints one line for each item, or everything about the item called `name`.

    `more_facts` returns facts about an item that its signature does not state."""
    if name is not None and name not in items:
        # `panm` for `models.panm.panm`.
        ends = [key for key in items if key.rpartition(".")[2] == name]
        name = ends[0] if len(ends) == 1 else name
    if name is not None and name not in items:
        remedy = _remedy_of_other_kind(name) or suggest(name, items, f"`archlang {kind}s` lists all {kind}s")
        console.fail(f"there is no {kind} `{name}`", remedy, code=2)
    if as_json:
        selected = {name: items[name]} if name is not None else items
        console.out.write_json([{**_facts(key, item), **more_facts(item)} for key, item in selected.items()])
    elif name is not None:
        _show(items[name], more_facts(items[name]))
    else:
        _list(items)


def _remedy_of_other_kind(name: str) -> str:
    from archlang.resolve import library

    names = {"task": library.task_names(), "optimizer": library.optimizer_names(), "block": library.block_names()}
    kind = next((kind for kind, known in names.items() if name in known), None)
    article = "an" if kind == "optimizer" else "a"
    return "" if kind is None else f"`{name}` is {article} {kind}: `archlang {kind}s {name}`"


def _list(items: Mapping[str, Item]) -> None:
    from rich.text import Text

    from archlang.syntax.tree import first_sentence

    width = max(len(key.rpartition(".")[2]) for key in items) + 2
    module = ""
    for key, item in sorted(items.items(), key=lambda pair: pair[0].rpartition(".")[0]):
        head, _, name = key.rpartition(".")
        if head != module:
            module = head
            console.out.print(Text(f"\nuse archlang.{head}", "dim"))
        console.print_row(Text(name.ljust(width), "bold").append(first_sentence(item.documentation), "not bold"))


def _show(item: Item, more: Mapping[str, object]) -> None:
    from archlang.syntax.printer import signature_text

    python = getattr(item, "python", None)
    lines = [signature_text(item), "", *item.documentation, "", *fact_lines(more)]
    if getattr(item, "body", None) is not None and item.word == "task":
        lines += [item.span.text, ""]
    elif python is not None:
        lines.append(f"Python: {python}")
    for line in (*lines, f"File: {item.span.source.path}:{item.span.line}"):
        console.out.write(line)


def fact_lines(facts: Mapping[str, object]) -> Iterator[str]:
    """Yields facts by name, such as `broken_down_by`, as text."""
    for fact, value in facts.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        yield f"{fact.replace('_', ' ').capitalize()}: {shown}"


def _facts(name: str, item: Item) -> dict[str, object]:
    from archlang.syntax.printer import signature_text, unparse

    statics = [
        {"name": each.name, "kind": each.kind, "default": None if each.default is None else unparse(each.default)}
        for each in item.signature.statics
    ]
    return {
        "name": name, "signature": signature_text(item), "documentation": "\n".join(item.documentation),
        "statics": statics, "file": item.span.source.path, "line": item.span.line,
    }  # fmt: skip


def declared_facts(item: Item) -> dict[str, object]:
    """Returns the facts of a shipped task with its default statics."""
    from archlang.syntax.tree import Extern
    from archlang.tasks.kit.make_task import unchecked_task

    if not isinstance(item, Extern) or not item.python.startswith("archlang.tasks."):
        return {}
    task = unchecked_task(item.name, item.python, {})
    return {
        "kind": task.kind.value, "splits": list(task.split_names()), "in_distribution": list(task.in_distribution),
        "broken_down_by": task.breakdown, "metrics": list(task.metrics),
    }  # fmt: skip


def recipes(
    name: Annotated[str | None, _name("A file, as `gutlb` or `papers/ndr/table1`.")] = None,
    copy: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Copy the file to a folder.")] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """List the recipe files that ship with archlang, print one, or copy it.

    Every command that takes a program also takes these names, from any folder.

    Example: archlang recipes gutlb
    """
    from rich.text import Text

    from archlang.resolve.library import program_text, recipe_files, summary

    files = recipe_files()
    if name is not None and name not in files:
        console.fail(f"there is no recipe file `{name}`", suggest(name, files, "`archlang recipes` lists all"), code=2)
    if copy is not None:
        if name is None:
            console.fail("`--copy` needs the name of a file", "write `archlang recipes gutlb --copy .`", code=2)
        _copy(files[name], program_text(files[name]), copy)
    elif as_json:
        names = files if name is None else [name]
        facts = [{"name": key, "summary": summary(program_text(files[key])), "path": str(files[key])} for key in names]
        console.out.write_json(facts)
    elif name is not None:
        console.out.write(program_text(files[name]).removesuffix("\n"))
    else:
        width = max(map(len, files)) + 2
        for key, file in files.items():
            console.out.print(Text(key.ljust(width), "bold").append(summary(program_text(file)), "not bold"))


def _copy(file: Path, text: str, folder: Path) -> None:
    from archlang.reports.pages import write_file

    target = folder / file.name
    if os.path.lexists(target):
        console.fail(f"{target} exists", "name another folder; nothing was written")
    write_file(target, text)
    console.out.print(f"wrote {target}\nnext, type")
    for command in ("check", "train"):
        console.out.print(f"    archlang {command} {target}")


def explain(code: Annotated[str | None, _name("A code such as E0401.")] = None) -> None:
    """Explain an error or warning by its code, with a failing and a corrected program.

    Example: archlang explain E0401
    """
    from rich.text import Text

    from archlang.errors import codes

    titles = codes.titles()
    if code is None:
        for known, title in titles.items():
            console.out.print(Text.assemble((known, "bold"), f"  {title}"))
        return
    if code.upper() not in titles:
        remedy = suggest(code.upper(), titles, "`archlang explain` lists all codes")
        console.fail(f"there is no code {code}", remedy, code=2)
    page = codes.explain(code.upper())
    if console.out.is_terminal:
        from rich.markdown import Markdown

        console.out.print(Markdown(page))
    else:
        console.out.write(page)
