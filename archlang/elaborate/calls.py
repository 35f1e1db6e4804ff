"""Calls: what is applied, with which weights, and whether the arguments fit."""

from __future__ import annotations

from collections.abc import Sequence

from archlang.elaborate import mistakes
from archlang.elaborate.application import Applied
from archlang.elaborate.frame import Builder, Flow, Frame, Place
from archlang.elaborate.regions import Regions
from archlang.graph import operations
from archlang.graph.graph import Instance, Region
from archlang.names import mistakes as name_mistakes
from archlang.names.resolve import Declaration
from archlang.names.values import (
    BlockValue,
    Bound,
    InstanceValue,
    Unknown,
    describe,
)
from archlang.source import Span
from archlang.syntax.tree import (
    ConditionalType,
    Extern,
    Name,
    StaticArgument,
)

_DEEPEST = 40


class Calls(Regions):
    """Applies blocks and instances to values."""

    def _callee(self, callee: Name, frame: Frame) -> BlockValue | InstanceValue | None:
        """What is applied: a block, a static that is a block, or an instance named by `let`."""
        known, value = frame.find(callee.text)
        if isinstance(value, InstanceValue):
            return value
        if known:
            if value is not None:
                self.report(name_mistakes.not_a_block(callee.span, callee.text, f"a value of type `{value.type}`"))
            return None
        static = frame.binding.lookup(callee.text) if len(callee.parts) == 1 else None
        if isinstance(static, Bound):
            if isinstance(static.value, BlockValue | InstanceValue):
                return static.value
            if static.value is not None and not isinstance(static.value, Unknown):
                self.report(name_mistakes.not_a_block(callee.span, callee.text, describe(static.value)))
            return None
        declaration = self._module(frame).find(callee.text)
        if declaration is None:
            possible = self._module(frame).names() | set(frame.visible())
            self.report(name_mistakes.unknown_block(callee.span, callee.text, possible))
            return None
        return BlockValue(declaration)

    def _settled(
        self, target: BlockValue | InstanceValue, statics: Sequence[StaticArgument], callee: Name, frame: Frame
    ) -> BlockValue:
        if isinstance(target, InstanceValue):
            if statics:
                self.report(mistakes.instance_configured(callee.span, target.name, target.span))
            return target.block
        return self._configure(target, statics, self._evaluator(frame))

    def _apply(
        self,
        callee: Name,
        statics: Sequence[StaticArgument],
        values: Sequence[tuple[Flow | None, Span]],
        span: Span,
        frame: Frame,
    ) -> Flow | None:
        target = self._callee(callee, frame)
        if target is None:
            return None
        shared = target if isinstance(target, InstanceValue) else None
        block = self._settled(target, statics, callee, frame)
        path = shared.path if shared else frame.place.path(callee.parts[-1])
        arguments = [(value, place) for value, place in values if value is not None]
        if len(arguments) != len(values):
            return None
        call = self._bind(block, arguments, span)
        if call is None:
            return None
        if isinstance(block.declaration.item, Extern):
            if gives_probabilities(block.declaration.item):
                self.report(mistakes.halting_block_applied(callee.span, block.declaration.name))
                return None
            kind, instance = call.result(path, span)
            if kind is None or instance is None or not self._register(instance, shared):
                return None
            return self._node(frame.builder, operations.Call(path), call.arguments, [kind], span)[0]
        return self._inside(block.declaration, call, path, span, frame)

    def _inside(self, declaration: Declaration, call: Applied, path: str, span: Span, frame: Frame) -> Flow | None:
        """Applies a composed block: its body becomes a region of its own."""
        if len(self._calls) >= _DEEPEST:
            self.report(name_mistakes.too_deep(span, _DEEPEST))
            return None
        builder = Builder()
        inner = Frame(call.binding, builder, Place(f"{path}."))
        for parameter, value in zip(declaration.item.signature.inputs, call.arguments, strict=True):
            self._declare(inner, parameter.name, parameter.span)
            inner.names[parameter.name] = self._input(builder, value.type, parameter.name, parameter.span)
        self._calls.append(span)
        try:
            result = self._body_of(declaration, inner)
        finally:
            self._calls.pop()
        if result is None:
            return None
        region = Region(tuple(builder.inputs), tuple(builder.nodes), (result.id,))
        return self._node(
            frame.builder,
            operations.Apply(declaration.name, path),
            call.arguments,
            [result.type],
            span,
            [region],
        )[0]

    def _bind(self, block: BlockValue, arguments: Sequence[tuple[Flow, Span]], span: Span) -> Applied | None:
        """Binds arguments to the inputs of a block; None after a mistake."""
        declaration = block.declaration
        item = declaration.item
        inputs = item.signature.inputs
        binding = self._binding(declaration, dict(block.settled), span, {}, False)
        required = sum(1 for parameter in inputs if parameter.default is None)
        variadic = bool(inputs) and inputs[-1].variadic
        if len(arguments) < required or (len(arguments) > len(inputs) and not variadic):
            expected = _expected(required, len(inputs), variadic)
            self.report(mistakes.wrong_number_of_arguments(span, item.name, expected, len(arguments), item.name_span))
            return None
        paired: list[tuple[Flow, Span]] = list(arguments)
        places = {parameter.name: place for place, parameter in reversed(list(enumerate(inputs)))}
        while len(paired) < len(inputs):
            place_of_default = places.get(inputs[len(paired)].default or "", len(inputs))
            if place_of_default >= len(paired):
                return None
            paired.append(paired[place_of_default])
        fine = True
        for position, (value, place) in enumerate(paired):
            if position < len(arguments) or fine:
                fine &= binding.match(inputs[min(position, len(inputs) - 1)], value.type, place)
        if not fine:
            return None
        binding.finish()
        return Applied(self.report, binding, [value for value, _ in paired])

    def _register(self, instance: Instance, shared: InstanceValue | None) -> bool:
        """Notes an instance; a shared one must be used with one set of sizes."""
        known = self.instances.get(instance.path)
        if shared is not None:
            shared.features.update(instance.features)
        if known is None:
            self.instances[instance.path] = instance
            self._count_modules(instance.path, 1, instance.span or self._calls[-1])
            return True
        if known == instance:
            return True
        differences = [
            f"{name} is {known.features.get(name)} in one and {size} in another"
            for name, size in instance.features.items()
            if known.features.get(name) != size
        ]
        name = shared.name if shared else instance.path
        where = instance.span or known.span
        if where is not None:
            reason = "; ".join(differences) or "its statics differ"
            self.report(mistakes.shared_with_other_sizes(where, name, reason, known.span))
        return False

    def _body_of(self, declaration: Declaration, frame: Frame) -> Flow | None:
        """Runs a definition's body; statements do."""
        raise NotImplementedError


def gives_probabilities(item: Extern) -> bool:
    """Whether an extern block decides when a loop halts."""
    result = item.signature.result
    while isinstance(result, ConditionalType):
        result = result.then
    return result is not None and result.name == "prob"


def _expected(required: int, total: int, variadic: bool) -> str:
    if variadic:
        return f"{required} values or more"
    if required == total:
        return f"{total} value" if total == 1 else f"{total} values"
    return f"{required} to {total} values"
