"""The reference of blocks, tasks and optimizers, made from their signatures."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from archlang.cli.library import declared_facts, fact_lines
from archlang.editor.hover import paragraphs
from archlang.resolve import library
from archlang.resolve.library import PACKAGE
from archlang.syntax.printer import signature_text
from archlang.syntax.tree import Definition, Extern

Item = Definition | Extern

_FOLDER = "docs/reference"


def reference() -> Mapping[str, str]:
    """Returns the pages of the reference, in Markdown, by their address."""
    modules = {
        module: dict(items)
        for module, items in groupby(sorted(library.blocks().items(), key=lambda item: _module(item[0])), _module_of)
    }
    prelude = modules.pop("")
    pages = {
        "blocks": _page("Blocks", "The blocks that every program can use, as `archlang blocks` prints them.", prelude),
        "tasks": _page("Tasks by name", "The shipped tasks, as `archlang tasks` prints them; "
                       "[Tasks](../tasks.md) compares them.", library.tasks()),
        "optimizers": _page("Optimizers and settings", "What `train` of a recipe can set, as `archlang optimizers` "
                            "prints it; [The language](../language.md) explains the settings.", library.optimizers()),
        "models": _models(modules),
    }  # fmt: skip
    for module, blocks in modules.items():
        pages[module.replace(".", "/")] = _page(module.rpartition(".")[2], f"`use archlang.{module}`", blocks)
    return {f"{_FOLDER}/{name}.md": text for name, text in pages.items()}


def _module(name: str) -> str:
    return name.rpartition(".")[0]


def _module_of(item: tuple[str, Item]) -> str:
    return _module(item[0])


def _models(modules: Iterable[str]) -> str:
    lines = [f"- [{module.rpartition('.')[2]}]({module.replace('.', '/')}.md)" for module in modules]
    return "\n".join(["# Models", "", "The modules of the library, each with the blocks of a model.", "", *lines, ""])


def _page(title: str, introduction: str, items: Mapping[str, Item]) -> str:
    sections = (_section(name.rpartition(".")[2], item) for name, item in items.items())
    return "\n\n".join([f"# {title}", introduction, *sections]) + "\n"


def _section(name: str, item: Item) -> str:
    program = item.span.text if isinstance(item, Definition) else signature_text(item)
    file = item.span.source.path.removeprefix(f"{PACKAGE}/")
    # A fence of this form has no link to the playground: a signature is no program, nor is a part of a module.
    fence = f"```{{ .arch }}\n{program}\n```"
    facts = [f"- {line}" for line in [*fact_lines(declared_facts(item)), f"File: `archlang/{file}`"]]
    return "\n\n".join([f"## {name}", *paragraphs(item.documentation), fence, "\n".join(facts)])
