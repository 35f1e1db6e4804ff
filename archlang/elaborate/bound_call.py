"""A call whose arguments match the inputs of its block: the type of its result, and its instance."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from archlang.elaborate import mistakes
from archlang.elaborate.binding import LARGEST_FLOAT, LARGEST_SIZE, Binding
from archlang.elaborate.facts import Facts
from archlang.elaborate.region_builder import Flow
from archlang.elaborate.static_arguments import plain
from archlang.errors import Report
from archlang.errors.effort import is_check
from archlang.errors.source import Span
from archlang.graph.graph import Instance
from archlang.resolve.values import BlockValue, Unknown
from archlang.syntax.tree import Conditional, ConditionalType, Extern, Name
from archlang.syntax.walk import walk
from archlang.types import CONSTRUCTORS, Axis, Dim, Type
from archlang.types.causality import MANNERS, Manner
from archlang.types.statics import StaticValue

# With narrower blocks, the limit on modules keeps a model far below the limit on parameters.
_WIDE = 4096


@dataclass
class BoundCall:
    """A call whose arguments match the inputs of its block. `arguments` includes the defaults."""

    report: Report
    binding: Binding
    arguments: list[Flow]

    def result(self, path: str, span: Span) -> tuple[Type, Instance] | None:
        """Returns the type of the result, and the instance of the extern block at `path`; None after a mistake."""
        item = self.binding.declaration.item
        assert isinstance(item, Extern)
        inputs = item.signature.inputs
        features: list[Dim] = []
        if inputs and inputs[-1].variadic:
            features = [size for value in self.arguments[len(inputs) - 1 :] if (size := value.type.feature) is not None]
        kind = None if item.signature.result is None else self.binding.type(item.signature.result, features)
        statics = None if kind is None else self._statics(item, span)
        if kind is None or statics is None:
            return None
        sizes = {name: self.binding.sizes[name].value for name in self.binding.named_sizes(Axis.FEATURE)}
        lengths = self.binding.named_sizes(Axis.LENGTH)
        features_by_name = {name: size for name, size in sizes.items() if isinstance(size, Dim)}
        instance = Instance(
            path=path,
            block=item.name,
            python=item.python,
            statics=statics,
            features=features_by_name,
            lengths=tuple(lengths),
            grows=self._grows(item, lengths),
            pure=item.pure,
            per_position=kind.name == "probs",
            reads=self._reads(item),
            span=span,
            axes=self._axes(item),
            unknown=self._unknown(item),
            written=self.binding.written,
            caveats=self._caveats(item),
        )
        # A check needs no facts, except the parameters of wide blocks; those of the library have no mistakes.
        widths = [size.constant or 0 for size in features_by_name.values()]
        widths += [value for value in statics.values() if isinstance(value, int)]
        is_wide = max(widths, default=0) >= _WIDE
        if not is_check() or is_wide or not item.python.startswith("archlang."):
            facts = Facts(self.binding, item, self.report)
            instance = replace(
                instance, costs=facts.costs(), maps=facts.maps(), records=facts.records(), even=facts.even()
            )
        return kind, instance

    def _statics(self, item: Extern, span: Span) -> dict[str, StaticValue] | None:
        statics: dict[str, StaticValue] = {}
        for parameter in item.signature.statics:
            bound = self.binding.statics[parameter.name]
            if isinstance(bound.value, BlockValue):
                self.report(mistakes.needs_instance(span, item.name, parameter.name))
                return None
            static = plain(bound.value)
            if static is None:
                return None
            if isinstance(static, int) and static > LARGEST_SIZE:
                self.report(mistakes.size_out_of_range(bound.span or span, parameter.name, static, LARGEST_SIZE))
                return None
            if isinstance(static, float) and not abs(static) <= LARGEST_FLOAT:
                self.report(mistakes.float_out_of_range(bound.span or span, parameter.name, static, LARGEST_FLOAT))
                return None
            statics[parameter.name] = static
        return statics

    def _grows(self, item: Extern, lengths: Collection[str]) -> bool:
        """Whether the signature computes a length of the result from those of the inputs, as in `seq[n + 1, d]`."""
        result = item.signature.result
        while isinstance(result, ConditionalType):
            result = result.then if self.binding.evaluator.truth(result.test) else result.otherwise
        if result is None or result.name not in CONSTRUCTORS:
            return False
        return any(
            not isinstance(size, Name) and any(isinstance(node, Name) and node.text in lengths for node in walk(size))
            for size, axis in zip(result.dimensions, CONSTRUCTORS[result.name], strict=False)
            if axis is Axis.LENGTH
        )

    def _unknown(self, item: Extern) -> frozenset[str]:
        values = [self.binding.statics[parameter.name].value for parameter in item.signature.statics]
        names = {name for value in values if isinstance(value, Dim) for name in value.names}
        if any(isinstance(value, Unknown) for value in values):
            names.update(self.binding.unknown_sizes() or ["?"])
        return frozenset(names)

    def _axes(self, item: Extern) -> tuple[tuple[str, ...], ...]:
        """For each argument, the names of its lengths in the signature, "" for a length that is a static."""
        inputs = item.signature.inputs
        names = [self.binding.length_names(parameter) for parameter in inputs]
        return tuple(names[min(position, len(inputs) - 1)] for position in range(len(self.arguments)))

    def _caveats(self, item: Extern) -> tuple[str, ...]:
        truth = self.binding.evaluator.truth
        kinds = (caveat.kind for caveat in item.caveats if caveat.test is None or truth(caveat.test) is not False)
        return tuple(dict.fromkeys(kinds))

    def _reads(self, item: Extern) -> tuple[str, ...]:
        """The manner in which each argument is read: fully, unless the signature says otherwise."""
        written = {reads.input: reads.manner for reads in item.reads}
        manners = []
        inputs = item.signature.inputs
        for position in range(len(self.arguments)):
            manner = written.get(inputs[min(position, len(inputs) - 1)].name)
            while isinstance(manner, Conditional):
                truth = self.binding.evaluator.truth(manner.test)
                manner = None if truth is None else (manner.then if truth else manner.otherwise)
            manners.append(manner.text if isinstance(manner, Name) and manner.text in MANNERS else Manner.FULL.value)
        return tuple(manners)
