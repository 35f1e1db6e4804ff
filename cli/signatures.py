"""Prints signatures with their documentation, for `blocks` and `tasks`."""

from collections.abc import Callable, Iterator, Mapping

from rich.text import Text

from archlang.cli import console
from archlang.diagnostics.names import suggest
from archlang.names import library
from archlang.syntax.comments import first_sentence
from archlang.syntax.printer import signature_text, unparse
from archlang.syntax.tree import Definition, Extern

Item = Definition | Extern
FactsOf = Callable[[Item], Mapping[str, object]]


def list_or_show(
    kind: str, items: Mapping[str, Item], name: str | None, as_json: bool, more_facts: FactsOf = lambda item: {}
) -> None:
    """Prints one line for each item, or everything about the item called `name`.

    `kind` is "block" or "task". `more_facts` returns facts about an item that its signature does not state."""
    if name is not None and name not in items:
        # `panm` for `models.panm.panm`.
        ends = [key for key in items if key.rpartition(".")[2] == name]
        name = ends[0] if len(ends) == 1 else name
    if name is not None and name not in items:
        remedy = _elsewhere(name) or suggest(name, items, f"`archlang {kind}s` lists all {kind}s")
        console.fail(f"there is no {kind} `{name}`", remedy, code=2)
    if as_json:
        selected = {name: items[name]} if name is not None else items
        facts = [{**_facts(key, item), **more_facts(item)} for key, item in selected.items()]
        console.out.write_json(facts)
    elif name is not None:
        _show(name, items[name], more_facts(items[name]))
    else:
        _list(items)


def _elsewhere(name: str) -> str:
    """Returns the remedy for the name of an item of another kind; empty if there is none."""
    if name in library.task_names():
        return f"`{name}` is a task: `archlang tasks {name}`"
    if name in library.optimizer_names():
        return f"`{name}` is an optimizer: `archlang optimizers {name}`"
    if name in library.block_names():
        return f"`{name}` is a block: `archlang blocks {name}`"
    return ""


def _list(items: Mapping[str, Item]) -> None:
    """Prints one line for each item, truncated to the terminal's width, below a `use` line for each module."""
    width = max(len(key.rpartition(".")[2]) for key in items) + 2
    module = ""
    for key, item in sorted(items.items(), key=lambda pair: pair[0].rpartition(".")[0]):
        head, _, name = key.rpartition(".")
        if head != module:
            module = head
            console.out.print(Text(f"\nuse archlang.{head}", "dim"))
        line = Text(name.ljust(width), "bold")
        line.append(first_sentence(item.documentation), "not bold")
        if console.out.is_terminal:
            console.out.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)
        else:
            console.out.print(line)


def _show(name: str, item: Item, more: Mapping[str, object]) -> None:
    console.out.write(signature_text(item))
    console.out.write("\n")
    for line in item.documentation:
        console.out.write(line)
    console.out.write("\n")
    for line in fact_lines(more):
        console.out.write(line)
    if isinstance(item, Extern):
        console.out.write(f"Python: {item.python}")
    console.out.write(f"File: {item.span.source.path}:{item.span.line}")


def fact_lines(facts: Mapping[str, object]) -> Iterator[str]:
    """Yields facts by name, such as `broken_down_by`, as text."""
    for fact, value in facts.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        yield f"{fact.replace('_', ' ').capitalize()}: {shown}"


def _facts(name: str, item: Item) -> dict[str, object]:
    return {
        "name": name,
        "signature": signature_text(item),
        "documentation": "\n".join(item.documentation),
        "statics": [
            {
                "name": parameter.name,
                "kind": parameter.kind,
                "default": None if parameter.default is None else unparse(parameter.default),
            }
            for parameter in item.signature.statics
        ],
        "file": item.span.source.path,
        "line": item.span.line,
    }
