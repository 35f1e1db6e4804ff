"""Calls: the block that is applied, its weights, and its arguments."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from archlang.elaborate import mistakes
from archlang.elaborate.binding import LARGEST_FLOAT, LARGEST_SIZE, Binding
from archlang.elaborate.context import Context
from archlang.elaborate.facts import Facts
from archlang.elaborate.frame import Frame, InstancePaths
from archlang.elaborate.region_builder import Flow
from archlang.elaborate.static_arguments import configured, first_missing_static, plain
from archlang.errors import Report, Span
from archlang.errors.effort import is_check, memoized
from archlang.errors.names import plural
from archlang.graph import operations
from archlang.graph.graph import Instance, Region
from archlang.resolve import library
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import Declaration, prelude
from archlang.resolve.values import BlockValue, Bound, InstanceValue, Unknown, Value, describe, show
from archlang.syntax import tree
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Conditional, ConditionalType, Definition, Extern, InputParameter, Name, StaticArgument
from archlang.types import CONSTRUCTORS, Axis, Dim, Type
from archlang.types.causality import COUNTED, MANNERS, Manner
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
            facts = Facts(self.binding, item, self.binding.report)
            instance = replace(
                instance, costs=facts.costs(), maps=facts.maps(), records=facts.records(), even=facts.even(),
                acts=facts.acts(),
            )  # fmt: skip
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
            not isinstance(size, Name)
            and any(node.text in lengths for node in tree.walk(size) if isinstance(node, Name))
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
            manners.append(self._manner(manner))
        return tuple(manners)

    def _manner(self, manner: tree.Expression | None) -> str:
        if isinstance(manner, Name) and manner.text in MANNERS:
            return manner.text
        if isinstance(manner, tree.CallExpression) and manner.callee.text in COUNTED:
            count = self.binding.evaluator.value(manner.statics[0].value, "int")
            if isinstance(count, Dim) and (count.constant or 0) > 0:
                return f"{manner.callee.text}.{count}"
        return Manner.FULL.value


DEEPEST_CALL = 40
"""The most calls of composed blocks inside one another."""


def _key_of_call(block: BlockValue, arguments: Sequence[Type], may_be_unknown: bool) -> Hashable:
    """What a call of a library block depends on; None for a block of a program, and if a static is a block."""
    item = block.declaration.item
    if not isinstance(item, Extern) or library.block(item.name) is not item:
        return None
    values = {name: bound.value for name, bound in block.settled.items()}
    if not all(map(_is_plain, values.values())):
        return None
    statics = frozenset((name, type(value), repr(value)) for name, value in values.items())
    return "call", item.name, statics, tuple(arguments), may_be_unknown, is_check()


def _is_plain(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return not isinstance(value, BlockValue | InstanceValue | None)


class Calls:
    """Applies blocks and instances to values. `elaborate_body` elaborates the body of a composed block in a frame."""

    def __init__(self, context: Context, elaborate_body: Callable[[Declaration, Frame], Flow | None]) -> None:
        self._context = context
        self._report = context.report
        self._elaborate_body = elaborate_body

    def target(self, callee: Name, frame: Frame) -> BlockValue | InstanceValue | None:
        """Returns what a callee names: a block, a static that is a block, or an instance bound by `let`. Reports any
        other name, and returns None for it."""
        is_bound, value = frame.find(callee.text)
        if isinstance(value, InstanceValue):
            return value
        if is_bound:
            if value is not None:
                self._report(name_mistakes.not_a_block(callee.span, callee.text, f"a value of type `{value.type}`"))
            return None
        static = frame.binding.lookup(callee.text) if len(callee.parts) == 1 else None
        if isinstance(static, Bound):
            if isinstance(static.value, BlockValue | InstanceValue):
                return static.value
            if static.value is not None and not isinstance(static.value, Unknown):
                self._report(name_mistakes.not_a_block(callee.span, callee.text, describe(static.value)))
            return None
        declaration = frame.file.find(callee.text)
        if declaration is None:
            possible = frame.file.names() | set(frame.instances())
            receiver, _, block = callee.text.partition(".")
            is_value, bound = frame.find(receiver)
            if block in possible and is_value and not isinstance(bound, InstanceValue):
                self._report(name_mistakes.method_of_value(callee.span, receiver, block))
                return None
            self._report(name_mistakes.unknown_block(callee.span, callee.text, possible))
            return None
        return BlockValue(declaration)

    def settled(
        self, target: BlockValue | InstanceValue, statics: Sequence[StaticArgument], callee: Name, frame: Frame
    ) -> BlockValue:
        """Returns the block of a target with the statics of the call settled."""
        if isinstance(target, InstanceValue):
            if statics:
                self._report(mistakes.instance_configured(callee.span, target.name, target.span))
            return target.block
        return configured(self._context.evaluator(frame), statics, target)

    def apply(
        self,
        callee: Name,
        statics: Sequence[StaticArgument],
        values: Sequence[tuple[Flow | None, Span]],
        span: Span,
        frame: Frame,
    ) -> Flow | None:
        """Applies what `callee` names to values with their places. Returns the result, None after a mistake."""
        target = self.target(callee, frame)
        if target is None:
            return None
        shared = target if isinstance(target, InstanceValue) else None
        block = self.settled(target, statics, callee, frame)
        arguments = [(value, place) for value, place in values if value is not None]
        if len(arguments) != len(values):
            if (mistake := first_missing_static(block, span)) is not None:
                self._context.report(mistake)
            return None
        path = shared.path if shared else frame.paths.unused(callee.parts[-1])
        if not isinstance(block.declaration.item, Extern):
            call = self.bind(block, arguments, span)
            return None if call is None else self._apply_composed(block.declaration, call, path, span, frame)
        return self._apply_extern(block, arguments, callee.span, path, span, frame, shared)

    def apply_library(self, act: str, statics: Mapping[str, Dim], values: Sequence[Flow], frame: Frame) -> Flow | None:
        """Applies the block of the library that acts so to values, the first of which has the place of the call."""
        declaration, span = prelude(library.block_that_acts(act)), values[0].span
        block = BlockValue(declaration, {name: Bound(value, span) for name, value in statics.items()})
        arguments, path = [(value, value.span) for value in values], frame.paths.unused(declaration.name)
        return self._apply_extern(block, arguments, span, path, span, frame)

    def _apply_extern(
        self,
        block: BlockValue,
        arguments: Sequence[tuple[Flow, Span]],
        callee: Span,
        path: str,
        span: Span,
        frame: Frame,
        shared: InstanceValue | None = None,
    ) -> Flow | None:
        bound = self._call_of_extern(block, arguments, callee, path, span)
        if bound is None:
            return None
        kind, instance = bound
        if not self.register(replace(instance, path=path, span=span), shared):
            return None
        inputs = [value for value, _ in _with_defaults(arguments, block.declaration.item.signature.inputs)]
        return frame.builder.add_node(operations.Call(path), inputs, [kind], span)[0]

    def _call_of_extern(
        self, block: BlockValue, arguments: Sequence[tuple[Flow, Span]], callee: Span, path: str, span: Span
    ) -> tuple[Type, Instance] | None:
        """Returns the type of the result of an extern block, and its instance, whose path and place may be those of an
        equal call; None after a mistake."""

        def bind() -> tuple[Type, Instance] | None:
            call = self.bind(block, arguments, span)
            if call is not None and gives_probabilities(block.declaration.item):
                self._report(mistakes.halting_block_applied(callee, block.declaration.name))
                return None
            return None if call is None else call.result(path, span)

        key = _key_of_call(block, [value.type for value, _ in arguments], self._context.may_be_unknown)
        return memoized(key, bind)

    def _apply_composed(
        self, declaration: Declaration, call: BoundCall, path: str, span: Span, frame: Frame
    ) -> Flow | None:
        if len(self._context.calls) >= DEEPEST_CALL:
            self._report(name_mistakes.too_deep(span, DEEPEST_CALL))
            return None
        body = self._region_and_type(declaration, call, path, span)
        if body is None:
            return None
        region, kind = body
        statics = {name: show(bound.value) for name, bound in call.binding.statics.items() if bound.value is not None}
        operation = operations.Apply(declaration.name, path, statics, call.binding.written)
        return frame.builder.add_node(operation, call.arguments, [kind], span, [region])[0]

    def _region_and_type(
        self, declaration: Declaration, call: BoundCall, path: str, span: Span
    ) -> tuple[Region, Type] | None:
        builder = self._context.new_region()
        inner = Frame(call.binding, builder, InstancePaths(f"{path}."))
        for parameter, value in zip(declaration.item.signature.inputs, call.arguments, strict=True):
            flow = builder.add_input(value.type, parameter.name, parameter.span)
            if self._context.declare(inner, parameter.name, parameter.span, name_mistakes.declared_twice):
                inner.names[parameter.name] = flow
        self._context.calls.append(span)
        try:
            result = self._elaborate_body(declaration, inner)
        finally:
            self._context.calls.pop()
        return None if result is None else (builder.finish([result.id]), result.type)

    def bind(self, block: BlockValue, arguments: Sequence[tuple[Flow, Span]], span: Span) -> BoundCall | None:
        """Binds arguments with their places to the inputs of a block. Returns None after a mistake."""
        declaration = block.declaration
        item = declaration.item
        inputs = item.signature.inputs
        binding = self._context.binding(declaration, dict(block.settled), span, {})
        if item.word == "model":  # whose result may name a size that the task sets for the caller
            named, of_task = binding.named_sizes(Axis.FEATURE), self._context.task_sizes
            binding.ambient = {name: size for name, size in of_task.items() if name not in named}
        required = sum(1 for parameter in inputs if parameter.default is None)
        variadic = bool(inputs) and inputs[-1].variadic
        if len(arguments) < required or (len(arguments) > len(inputs) and not variadic):
            expected = _expected(required, len(inputs), variadic)
            missing = [f"{each.name}: {unparse(each.type)}" for each in inputs] if len(arguments) < len(inputs) else ()
            self._report(
                mistakes.wrong_number_of_arguments(span, item.name, expected, len(arguments), missing, item.name_span)
            )
            return None
        paired = _with_defaults(arguments, inputs)
        if len(paired) < len(inputs):
            return None
        # Inputs with defaults are matched only if the written ones fit: else their mistakes repeat.
        fine = True
        for position, (value, place) in enumerate(paired):
            if position < len(arguments) or fine:
                fine &= binding.match(inputs[min(position, len(inputs) - 1)], value.type, place)
        if not fine:
            return None
        # A body would only repeat what a condition says, in words of the library.
        is_fine = binding.finish() or isinstance(item, Extern)
        if not binding.match_computed() or not is_fine:
            return None
        return BoundCall(self._report, binding, [value for value, _ in paired])

    def register(self, instance: Instance, shared: InstanceValue | None) -> bool:
        """Adds an instance to the model. Reports a `shared` instance that is used with other sizes than before, and
        returns False for it."""
        first = self._context.instances.get(instance.path)
        # `table.vocab` reads the sizes of an instance, which its first call decides.
        if shared is not None:
            shared.features.update(instance.features)
        if first is None:
            self._context.instances[instance.path] = instance
            span = instance.span or self._context.calls[-1]
            self._context.size.add_modules(instance.path, span, parameters=instance.costs.parameters or 0)
            return True
        if first == instance:
            return True
        differences = [
            f"{name} is {first.features.get(name)} in one and {size} in another"
            for name, size in instance.features.items()
            if first.features.get(name) != size
        ]
        name = shared.name if shared else instance.path
        where = instance.span or first.span
        if where is not None:
            reason = "; ".join(differences) or "its statics differ"
            self._report(mistakes.shared_with_other_sizes(where, name, reason, first.span))
        return False


def _with_defaults(arguments: Sequence[tuple[Flow, Span]], inputs: Sequence[InputParameter]) -> list[tuple[Flow, Span]]:
    """Returns arguments and those that stand in for inputs left out, up to an input without a default."""
    paired = list(arguments)
    places = {parameter.name: place for place, parameter in reversed(list(enumerate(inputs)))}
    while len(paired) < len(inputs):
        place_of_default = places.get(inputs[len(paired)].default or "", len(inputs))
        if place_of_default >= len(paired):
            break
        paired.append(paired[place_of_default])
    return paired


def gives_probabilities(item: Definition | Extern) -> bool:
    """Whether an extern block decides when a loop halts."""
    result = item.signature.result
    while isinstance(result, ConditionalType):
        result = result.then
    return result is not None and result.name == "prob"


def _expected(required: int, total: int, variadic: bool) -> str:
    if variadic:
        return f"{plural(required, 'value')} or more"
    if required == total:
        return plural(total, "value")
    return f"{required} to {total} values"
