"""The graphs of the parts of a program: of its recipes, models and blocks, as far as they have no mistake."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from archlang.editor.document import Document
from archlang.editor.recipe_choices import choices
from archlang.editor.symbols import DocumentNames
from archlang.elaborate.elaborator import elaborate
from archlang.errors import ProgramError
from archlang.errors.effort import TooMuchWork, limited
from archlang.errors.log import DiagnosticLog
from archlang.graph.graph import Graph
from archlang.plan.check import MOST_STEPS
from archlang.plan.from_file import UnreadLine, plan_first_point
from archlang.plan.model_graphs import model_graph
from archlang.plan.statics import model_sizes
from archlang.syntax.tree import Definition, Recipe

# The sizes that a task gives, where a model is shown without one.
SIZES = MappingProxyType({"vocab": 32, "classes": 10})
# The codes of a static without a value, and of a size that only a task sets.
_UNKNOWN_SIZES = ("E0302", "E0608")
_NO_SIZES: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class GraphItem:
    """A recipe, a model or a block of a program. `word` is its keyword."""

    word: str
    item: str

    @property
    def name(self) -> str:
        return f"{self.word} {self.item}"


def parts(document: Document) -> Iterator[GraphItem]:
    """Yields what has a graph: the recipes of a program, its models, and its blocks."""
    yield from (GraphItem("recipe", name) for name in document.resolved.recipes)
    items = [each.item for each in document.resolved.own.values() if isinstance(each.item, Definition)]
    for word in ("model", "block"):
        yield from (GraphItem(word, item.name) for item in items if item.word == word)


def part_around(document: Document, offset: int) -> GraphItem | None:
    """Returns the recipe, model or block around an offset; None if there is none."""
    for item in document.program.items:
        if item.span.start <= offset <= item.span.end:
            if isinstance(item, Recipe):
                return GraphItem("recipe", item.name)
            return GraphItem(item.word, item.name) if isinstance(item, Definition) else None
    return None


def graph_of(document: Document, part: GraphItem, sizes: Mapping[str, int] = _NO_SIZES) -> Graph | str:
    """Returns the graph of a part of a program, or a sentence that says why it has none. `sizes` are those that a task
    would give."""
    key = (part.name, tuple(sorted(sizes.items())))
    if key not in document.graphs:
        document.graphs[key] = _graph_of(document, part, sizes)
    return document.graphs[key]


def _graph_of(document: Document, part: GraphItem, sizes: Mapping[str, int]) -> Graph | str:
    subject = f"{part.name[0].upper()}{part.name[1:]}"
    try:
        with limited(MOST_STEPS, needs_costs=True):
            if part.word == "recipe":
                return plan_first_point(document.resolved, part.item, {}).graph
            return model_graph(document.resolved, part.item, sizes)
    except ProgramError as error:
        if error.diagnostics[0].code in _UNKNOWN_SIZES and (graph := _generic_graph(document, part)) is not None:
            return graph
        return f"{subject} cannot be drawn: {error.diagnostics[0].message}."
    except UnreadLine:
        return f"{subject} cannot be drawn: a line of it cannot be read."
    except (TooMuchWork, RecursionError):
        return f"{subject} is too large to be drawn."


def graph_at(document: Document, offset: int) -> tuple[str, Graph] | str:
    """Returns the name and the graph of the block that an offset names, or of the recipe, model or block around it; or
    a sentence that says why there is none."""
    place = DocumentNames(document).at(offset)
    item = place.symbol.item if place is not None else None
    part: GraphItem | None = None
    if isinstance(item, Definition):
        part = GraphItem(item.word, item.name)
        if item.span.source.path != document.path:
            source = item.span.source
            document = Document(source.path, source.text, document.unsaved)
    part = part or part_around(document, offset)
    if part is None:
        return "There is no recipe, model or block here."
    graph = graph_of(document, part)
    return graph if isinstance(graph, str) else (part.name, graph)


def _generic_graph(document: Document, part: GraphItem) -> Graph | None:
    """Returns the graph of a block whose statics have no defaults, with symbols for them; None after a mistake."""
    declaration = document.resolved.own.get(part.item)
    if declaration is None:
        return None
    report = DiagnosticLog()
    ambient = model_sizes({}) if part.word == "model" else {}
    with suppress(ProgramError, TooMuchWork, RecursionError), limited(MOST_STEPS):
        return elaborate(declaration, {}, ambient, declaration.span, report, generic=True)[0]
    return None


def concrete_graph(document: Document, part: GraphItem) -> tuple[Graph, str] | None:
    """Returns a graph of a model or a block with sizes, and the words that name them: of the first recipe that trains
    the model, or with usual sizes of a task. None if it has no graph."""
    choices = [part]
    if part.word == "model":
        choices = [*(GraphItem("recipe", name) for name in _recipes_of(document, part.item)), part]
    for choice in choices:
        graph = graph_of(document, choice, SIZES if choice.word == "model" else _NO_SIZES)
        if not isinstance(graph, str):
            sizes = ", ".join(f"{name} = {size}" for name, size in SIZES.items())
            return graph, {"recipe": f"in `{choice.name}`", "model": f"with {sizes}"}.get(choice.word, "")
    return None


def _recipes_of(document: Document, model: str) -> Iterator[str]:
    own = document.resolved.own.get(model)
    for name in document.resolved.recipes:
        if own is not None and choices(document.resolved, name).get("model") is own.item:
            yield name
