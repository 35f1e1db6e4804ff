"""From a block or model with its statics to a typed graph."""

from collections.abc import Mapping

from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls
from archlang.elaborate.context import Context, Observe
from archlang.elaborate.frame import Frame, InstancePaths
from archlang.elaborate.region_builder import Flow, TooLarge
from archlang.elaborate.statements import Statements
from archlang.errors import Diagnostic, Report
from archlang.errors.source import Span
from archlang.graph.graph import Graph
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import Declaration
from archlang.resolve.unused import unlisted_symbols
from archlang.resolve.values import Bound
from archlang.syntax.tree import Definition, Name
from archlang.types import Dim, Type


class _Elaborator:
    """Elaborates one block or model, and the composed blocks that it calls."""

    def __init__(self, report: Report, may_be_unknown: bool, observe: Observe | None) -> None:
        self._context = Context(report, may_be_unknown, observe)
        self._statements = Statements(self._context, Calls(self._context, self._body))

    def graph(
        self,
        declaration: Declaration,
        statics: Mapping[str, Bound],
        ambient: Mapping[str, Bound],
        span: Span,
        generic: bool,
    ) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
        item = declaration.item
        assert isinstance(item, Definition)
        binding = self._context.binding(declaration, dict(statics), span, ambient, generic)
        builder = self._context.new_region()
        frame = Frame(binding, builder, InstancePaths(""))
        types = []
        binding.bind_names()
        for parameter in item.signature.inputs:
            if parameter.type.name == "data":
                binding.family = ("seq", (Dim.of("n"),))
            kind = binding.type(parameter.type)
            is_first = self._context.declare(frame, parameter.name, parameter.span, name_mistakes.declared_twice)
            frame.names[parameter.name] = None
            if kind is not None:
                types.append(kind)
                flow = builder.add_input(kind, parameter.name, parameter.span)
                frame.names[parameter.name] = flow if is_first else None
        binding.finish()
        result = self._body(declaration, frame)
        if result is None or len(types) < len(item.signature.inputs) or not item.is_whole:
            return None, None, ()
        region, instances = builder.finish([result.id]), dict(self._context.instances)
        graph = Graph(item.name, region, instances, self._context.is_whole, item.word)
        return graph, result.type, tuple(types)

    def _body(self, declaration: Declaration, frame: Frame) -> Flow | None:
        """Elaborates the body of a definition. Returns its result if that has the promised type, else None."""
        item = declaration.item
        assert isinstance(item, Definition)
        self._context.is_whole &= item.is_whole
        for mistake in unlisted_symbols(item):
            self._context.report(mistake)
        self._statements.run(item.body.statements, frame)
        if frame.returned is None:
            if not frame.misplaced:
                self._context.report(name_mistakes.no_return(item.name_span, item.name))
            return None
        result, span = frame.returned
        promised = item.signature.result
        if result is None or promised is None:
            return result
        names, sizes = _promised_names(item), result.type.dims

        def free(name: str) -> Dim:
            # The body determines a size that only the result names.
            return sizes[names.index(name)] if name in names and len(names) <= len(sizes) else Dim.of(name)

        expected_type = frame.binding.type(promised, free=free)
        if expected_type is not None and not _keeps(expected_type, result.type):
            is_model = item.word == "model"
            self._context.report(
                mistakes.wrong_result(span, item.name, expected_type, result.type, promised.span, is_model)
            )
            return None
        return result


def elaborate(
    declaration: Declaration,
    statics: Mapping[str, Bound],
    ambient: Mapping[str, Bound],
    span: Span,
    report: Report,
    generic: bool = False,
    may_be_unknown: bool = False,
    observe: Observe | None = None,
) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
    """Returns the graph of a block or model, the type of its result and those of its inputs. After an error, which is
    reported, the graph is None.

    `ambient` are the sizes that a task sets; `span` is the place to blame for a missing static. With `generic`, statics
    without a default may be missing. With `may_be_unknown`, the sizes of `ambient` may lack a value, and parts of the
    program that depend on them are checked as far as possible. `observe` is called with the places and the types of its
    values, also after errors."""
    errors: list[Diagnostic] = []

    def note(diagnostic: Diagnostic) -> None:
        if diagnostic.is_error:
            errors.append(diagnostic)
        report(diagnostic)

    elaborator = _Elaborator(note, generic or may_be_unknown, observe)
    try:
        graph, result, types = elaborator.graph(declaration, statics, ambient, span, generic)
    except TooLarge as error:
        report(error.mistake)
        return None, None, ()
    except RecursionError:
        # Calls in loops in calls: each is within its own limit of depth, but together they are too deep.
        report(name_mistakes.too_deep_together(declaration.span, declaration.name))
        return None, None, ()
    return (None if errors else graph), result, types


def _keeps(promised: Type, actual: Type) -> bool:
    """Whether a result has the promised type. The promised type of chunks need not state their length."""
    if promised.part == Dim.of(0) and actual.name == promised.name:
        return promised.dims[:-1] == actual.dims[:-1]
    return promised == actual


def _promised_names(item: Definition) -> list[str | None]:
    """The names of the sizes in the type of a definition's result, in order; None for a size that is no name."""
    result = item.signature.result
    dimensions = getattr(result, "dimensions", ())
    return [size.text if isinstance(size, Name) else None for size in dimensions]
