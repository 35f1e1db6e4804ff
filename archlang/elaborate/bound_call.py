"""A call whose arguments fit: what it gives, and the instance of an extern block that it uses."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import is_limited
from archlang.elaborate import mistakes
from archlang.elaborate.binding import LARGEST_SIZE, Binding
from archlang.elaborate.facts import Facts
from archlang.elaborate.region_builder import Flow
from archlang.elaborate.static_arguments import plain
from archlang.graph.graph import Instance
from archlang.names.values import (
    BlockValue,
    Unknown,
)
from archlang.source import Span
from archlang.syntax.tree import Conditional, ConditionalType, Extern, Name
from archlang.syntax.walk import walk
from archlang.types import CONSTRUCTORS, Axis, Dim, Type
from archlang.types.causality import MANNERS, Manner
from archlang.types.statics import StaticValue


@dataclass
class BoundCall:
    """A call whose arguments fit: what it gives, and the instance of an extern block that it uses."""

    report: Callable[[Diagnostic], None]
    binding: Binding
    arguments: list[Flow]

    def result(self, path: str, span: Span) -> tuple[Type | None, Instance | None]:
        item = self.binding.declaration.item
        assert isinstance(item, Extern)
        inputs = item.signature.inputs
        features: list[Dim] = []
        if inputs and inputs[-1].variadic:
            features = [size for value in self.arguments[len(inputs) - 1 :] if (size := value.type.feature) is not None]
        kind = None if item.signature.result is None else self.binding.type(item.signature.result, features)
        if kind is None:
            return None, None
        statics = self._statics(item, span)
        if statics is None:
            return None, None
        sizes = {
            name: self.binding.sizes[name].value
            for parameter in inputs
            for name in self.binding.sizes_by_axis(parameter, Axis.FEATURE)
        }
        lengths = dict.fromkeys(
            name for parameter in inputs for name in self.binding.sizes_by_axis(parameter, Axis.LENGTH)
        )
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
            caveats=self._caveats(item),
        )
        if not is_limited():  # a check needs no facts
            facts = Facts(self.binding, item)
            instance = replace(
                instance, costs=facts.costs(), maps=facts.maps(), records=facts.records(), even=facts.even()
            )
        return kind, instance

    def _statics(self, item: Extern, span: Span) -> dict[str, StaticValue] | None:
        statics: dict[str, StaticValue] = {}
        for parameter in item.signature.statics:
            value = self.binding.given[parameter.name].value
            if isinstance(value, BlockValue):
                self.report(mistakes.needs_instance(span, item.name, parameter.name))
                return None
            plain_value = plain(value)
            if plain_value is None:
                return None
            if isinstance(plain_value, int) and plain_value > LARGEST_SIZE:
                bound = self.binding.given[parameter.name]
                place = bound.span or span
                self.report(mistakes.size_out_of_range(place, parameter.name, plain_value, LARGEST_SIZE))
                return None
            statics[parameter.name] = plain_value
        return statics

    def _grows(self, item: Extern, lengths: Collection[str]) -> bool:
        """Whether the result has a length that is computed from those of the inputs, and is none of them. Its signature
        says so, whatever the lengths of a call are."""
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
        """The sizes that are not known and that statics are computed from."""
        values = [self.binding.given[parameter.name].value for parameter in item.signature.statics]
        names = {name for value in values if isinstance(value, Dim) for name in value.names}
        if any(isinstance(value, Unknown) for value in values):
            names.update(self.binding.unknown_sizes() or ["?"])
        return frozenset(names)

    def _axes(self, item: Extern) -> tuple[tuple[str, ...], ...]:
        """For each argument the names of its lengths in the signature, "" for one that is a static."""
        inputs = item.signature.inputs
        named = [self.binding.length_names(parameter) for parameter in inputs]
        return tuple(named[min(position, len(inputs) - 1)] for position in range(len(self.arguments)))

    def _caveats(self, item: Extern) -> tuple[str, ...]:
        """The kinds of the caveats that apply; one whose condition is not known does."""
        truth = self.binding.evaluator.truth
        applying = (one.kind for one in item.caveats if one.test is None or truth(one.test) is not False)
        return tuple(dict.fromkeys(applying))

    def _reads(self, item: Extern) -> tuple[str, ...]:
        """How each argument is read; what a signature does not say is read fully."""
        written = {reads.input: reads.mode for reads in item.reads}
        modes = []
        inputs = item.signature.inputs
        for position in range(len(self.arguments)):
            mode = written.get(inputs[min(position, len(inputs) - 1)].name)
            while isinstance(mode, Conditional):
                truth = self.binding.evaluator.truth(mode.test)
                mode = None if truth is None else (mode.then if truth else mode.otherwise)
            modes.append(mode.text if isinstance(mode, Name) and mode.text in MANNERS else Manner.FULL.value)
        return tuple(modes)
