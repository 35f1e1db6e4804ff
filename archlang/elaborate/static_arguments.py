"""The statics of a block: their kinds, and their values from defaults and arguments."""

import os
from collections.abc import Mapping, Sequence

from archlang.errors import Diagnostic, Report, Span
from archlang.errors.effort import keep_nothing, spend
from archlang.errors.names import did_you_mean
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.library import static_called
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.resolve.unused import listed_symbols
from archlang.resolve.values import KINDS, MISFIT, BlockValue, Bound, InstanceValue, Unknown, Value, coerce, describe
from archlang.syntax import tree
from archlang.types import Dim
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol


def parameter_kind(parameter: tree.StaticParameter, file: ResolvedFile) -> str | None:
    """Returns the written kind of a static, or that of its default; None if neither is valid."""
    if parameter.kind is not None:
        return parameter.kind if parameter.kind in KINDS else None
    match parameter.default:
        case tree.Number(value=value) | tree.Unary(operand=tree.Number(value=value)):
            return "float" if isinstance(value, float) else "int"
        case tree.Boolean() | tree.Unary(operator="not"):
            return "bool"
        case tree.Range():
            return "range"
        case tree.ListOf():
            return "list"
        case tree.CallExpression():
            return "block"
        case tree.Name(parts=parts):
            if len(parts) > 1:
                return "path"
            return "block" if parts[0] in file.names() else "symbol"
        case tree.Binary(operator="+" | "-" | "*" | "/" | "%"):
            return "int"
    return None


def configured(
    evaluator: Evaluator, arguments: Sequence[tree.StaticArgument], target: Declaration | BlockValue
) -> BlockValue:
    """Returns a block with its statics that are set: those of `target`, and the arguments of a call."""
    declaration, settled = (target.declaration, target.settled) if isinstance(target, BlockValue) else (target, {})
    item, report = declaration.item, evaluator.report
    spend(len(item.signature.statics))
    parameters = {parameter.name: parameter for parameter in item.signature.statics}
    free = [parameter for parameter in item.signature.statics if parameter.name not in settled]
    statics = dict(settled)
    first: dict[str, Span] = {}
    are_in_place = True  # all values so far
    for position, argument in enumerate(arguments):
        are_in_place &= argument.name is None or (position < len(free) and free[position].name == argument.name)
        if argument.name is None:
            if position >= len(free):
                report(name_mistakes.too_many_statics(argument.span, item.name, len(free), item.name_span))
                break
            parameter = free[position]
            if not are_in_place:
                meant = argument.value.text if isinstance(argument.value, tree.Name) else None
                unset = {each.name for each in free} - {each.name for each in arguments}
                name = meant if meant in unset else next((each.name for each in free if each.name in unset), None)
                report(name_mistakes.static_without_name(argument.span, name))
                # Set without a value, so that it is not reported as missing too.
                if name is not None:
                    statics[name] = Bound(None, argument.span)
                break
        elif argument.name in parameters:
            parameter = parameters[argument.name]
        else:
            beside = {each.name for each in arguments if _are_beside(each, argument)}
            report(
                name_mistakes.unknown_static(
                    argument.span,
                    argument.name,
                    item.name,
                    [name for name in parameters if name not in beside],
                    item.name_span,
                )
            )
            meant = did_you_mean(argument.name, parameters) or static_called(argument.name, parameters)
            if meant is not None:
                statics.setdefault(meant, Bound(None, argument.span))
            continue
        if parameter.name in first:
            report(name_mistakes.static_set_twice(argument.span, parameter.name, first[parameter.name]))
            continue
        first[parameter.name] = argument.span
        named = _named_alone(argument, parameters, evaluator)
        if named is not None and not _may_be_word(argument.value, parameter, declaration):
            kind = parameter_kind(named, declaration.file)
            report(name_mistakes.name_without_value(argument.span, named.name, item.name, kind))
            statics.setdefault(named.name, Bound(None, argument.span))
            continue
        value = static_value(parameter, argument.value, evaluator, declaration.file, report)
        statics[parameter.name] = Bound(value, argument.value.span)
    return BlockValue(declaration, statics)


def evaluator_of(file: ResolvedFile, report: Report) -> Evaluator:
    """An evaluator of expressions that stand outside of blocks, and read the names of a file alone."""
    return Evaluator(lambda name: None, frozenset, file, report, configured)


def _named_alone(
    argument: tree.StaticArgument, parameters: Mapping[str, tree.StaticParameter], evaluator: Evaluator
) -> tree.StaticParameter | None:
    """Returns the static whose name stands in place of a value, as in `attention[4, causal]`; None for a name that has
    a value."""
    value = argument.value
    if argument.name is not None or not isinstance(value, tree.Name) or evaluator.lookup(value.text) is not None:
        return None
    named = parameters.get(value.text)
    return None if named is None or evaluator.file.find(value.text) is not None else named


def _may_be_word(name: tree.Expression, parameter: tree.StaticParameter, declaration: Declaration) -> bool:
    """Returns whether a name can be the value of a static, as a symbol, a path or a block."""
    kind = parameter_kind(parameter, declaration.file)
    allowed = listed_symbols(declaration.item.signature).get(parameter.name)
    if kind != "symbol" or allowed is None:
        return kind in ("symbol", "path", "block")
    return isinstance(name, tree.Name) and name.text in allowed


def _are_beside(first: tree.StaticArgument, second: tree.StaticArgument) -> bool:
    """Returns whether two statics stand in the same brackets; a recipe also has those of its base."""
    start, end = sorted((first.span.start, second.span.start))
    return first.span.source is second.span.source and "]" not in first.span.source.text[start:end]


def first_missing_static(block: BlockValue, place: Span) -> Diagnostic | None:
    """Returns the mistake of the first static that a block requires, and that is not set; None if there is none."""
    item = block.declaration.item
    required = (each for each in item.signature.statics if each.default is None and each.name not in block.settled)
    mistakes = (missing_static(block.declaration, each, place) for each in required)
    return next((mistake for mistake in mistakes if mistake is not None), None)


def missing_static(declaration: Declaration, parameter: tree.StaticParameter, place: Span) -> Diagnostic | None:
    """Returns the mistake of a required static that is not set; None if its kind is unknown, which is reported."""
    kind = parameter_kind(parameter, declaration.file)
    if kind is None and parameter.kind is not None:
        return None
    match declaration.item.signature.result:
        case tree.TypeName(dimensions=(*_, tree.Name(parts=(last,)))):
            is_result_size = last == parameter.name
        case _:
            is_result_size = False
    return name_mistakes.missing_static(
        place, parameter.name, kind or "static", declaration.name, parameter.span, is_result_size
    )


def static_value(
    parameter: tree.StaticParameter,
    expression: tree.Expression,
    evaluator: Evaluator,
    file: ResolvedFile,
    report: Report,
) -> Value:
    """Returns the value of a static, converted to its kind; None after a mistake."""
    kind = parameter_kind(parameter, file)
    value = evaluator.value(expression, kind)
    if kind is None:
        return None  # which is reported where the static is declared
    converted = coerce(value, kind)
    if converted is MISFIT:
        report(name_mistakes.wrong_kind(expression.span, parameter.name, kind, describe(value), parameter.span))
        return None
    # A name is a static of the block around, whose path is resolved.
    if kind not in ("file", "files") or isinstance(expression, tree.Name):
        return converted

    def absolute(path: Value, at: tree.Expression) -> Value:
        return _absolute_path(parameter.name, path, at.span, evaluator.file, report)

    if isinstance(converted, tuple) and isinstance(expression, tree.ListOf):
        return tuple(map(absolute, converted, expression.items))
    return absolute(converted, expression)


def _absolute_path(name: str, path: Value, span: Span, file: ResolvedFile, report: Report) -> Value:
    """Returns the absolute path of a file that a program names, if the program may read it."""
    if not isinstance(path, str) or not path:
        return path
    if span.source.is_command_line:  # the user's own words, which may name any file
        return os.path.abspath(os.path.expanduser(path))
    keep_nothing()  # it depends on the links of the disk
    real = file.readable.find(os.path.join(os.path.dirname(span.source.path), path))
    if real is None:
        report(name_mistakes.file_outside(span, name, path))
    return real


def plain(value: Value) -> StaticValue | None:
    """Returns a static as Python receives it; None after a mistake. An unknown size stays a symbol."""
    match value:
        case Dim():
            number = value.constant
            return Symbol(str(value)) if number is None else number
        case InstanceValue(path=path):
            return InstanceOf(path)
        case Unknown():
            return Symbol("?")
        case tuple():
            # A word in a list may be the name of a block.
            items = [Symbol(item.declaration.name) if isinstance(item, BlockValue) else plain(item) for item in value]
            return tuple(item for item in items if item is not None)
        case bool() | float() | str() | Symbol() | Interval():
            return value
    return None


def evaluated(value: object, kind: str | None = None) -> Value:
    """Returns a static of `kind` as the evaluator represents it: the inverse of `plain`."""
    match value:
        case bool() | float() | Interval() | Symbol():
            return value
        case int():
            return Dim.of(value)
        case str():
            return value if kind in ("file", "files") else Symbol(value)
        case tuple():
            return tuple(evaluated(item, kind) for item in value)
    raise TypeError(f"a static cannot be a {type(value).__name__}")
