"""The files that a program uses, apart from the library."""

import os.path
from collections.abc import Iterable, Iterator
from pathlib import Path

from archlang.files.folder import is_unfinished
from archlang.graph.graph import Graph
from archlang.plan.plan import Plan
from archlang.plugins import COPIES
from archlang.record import mistakes
from archlang.record.reading import RECIPE, RESERVED
from archlang.source import Source, Span, package

_PACKAGE = package.FOLDER.resolve()
# The folder of copies whose originals are not below the program's folder.
_ELSEWHERE = "elsewhere"


def used_files(plan: Plan) -> dict[str, str]:
    """Returns the texts of the files that a program uses, and of the plugins, by their paths in the run folder. The
    program can be trained from copies of these files.

    Raises:
        RunError: A file has a name that a run folder needs for itself."""
    spans = (*_spans(plan.graph), *_spans(plan.at_test))
    texts = stored_files(plan.source, (*plan.used, *(span.source for span in spans)))
    texts |= {f"{COPIES}/{plugin.name}": plugin.text for plugin in plan.plugins.files}
    for name in texts:
        first = name.partition("/")[0]
        # Some file systems do not distinguish upper from lower case.
        if first.casefold() in RESERVED or is_unfinished(first):
            raise mistakes.name_taken(plan.source.path, name)
    return texts


def stored_files(program: Source, used: Iterable[Source]) -> dict[str, str]:
    """Returns the texts of the used files that are neither the program nor in the library, by their paths relative to
    the program."""
    program_folder = os.path.dirname(os.path.abspath(program.path))
    texts: dict[str, str] = {}
    for source in used:
        path = os.path.abspath(source.path)
        if source.path == program.path or _is_library(Path(path)):
            continue
        name = os.path.relpath(path, program_folder).replace(os.sep, "/")
        if name.startswith("../") or name.casefold() == RECIPE:
            name = f"{_ELSEWHERE}/{name.replace('../', '')}"
            while texts.get(name, source.text) != source.text:
                name = name.replace("/", "/other/", 1)
        texts[name] = source.text
    return texts


def _is_library(path: Path) -> bool:
    # In a checkout, `blocks` is a link: a path may have its name or its target.
    library = _PACKAGE / "blocks"
    return path.is_relative_to(library) or path.is_relative_to(library.resolve())


def _spans(graph: Graph) -> Iterator[Span]:
    spans = [instance.span for instance in graph.instances.values()]
    spans += [node.span for node in graph.region.walk()]
    yield from (span for span in spans if span is not None)
