"""Diagnostics about names, statements and `use` lines."""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Edit, Label
from archlang.diagnostics.edits import insertion, used, without_item, word_in
from archlang.diagnostics.messages import Message, Messages
from archlang.diagnostics.names import did_you_mean, is_short, is_typing_error, listed, meant_names, misspelt
from archlang.names.library import block_called, outside_prelude
from archlang.source import Span
from archlang.syntax.tree import Definition, Extern
from archlang.types import FEATURED, Type

_rows = Messages("archlang.names")


def __getattr__(name: str) -> Message:
    return _rows.__getattr__(name)


_STATICS = re.compile(r"\[[^\[\]\r\n]*\]")


def unknown_value(span: Span, name: str, possible: Iterable[str], is_block: bool) -> Diagnostic:
    message = f"unknown value `{name}`"
    if is_block:
        remedy = f"apply the block `{name}` to a value, as in `{name}(h)`"
        return Diagnostic("E0201", message, span, "not bound here", remedy=remedy)
    remedy = "bind it with `=` first, or add it to the inputs of the block"
    return misspelt(Diagnostic("E0201", message, span, "not bound here", remedy=remedy), name, possible, is_local=True)


def method_of_value(span: Span, value: str, block: str, has_arguments: bool) -> Diagnostic:
    """`span` is a callee that consists of the names of a value and a block."""
    statics = _STATICS.match(span.source.text, span.end)
    configured = block + (statics[0] if statics else "")
    remedy = f"a value has no methods: write `{configured}({value}{', …' if has_arguments else ''})`"
    return Diagnostic("E0202", f"unknown block `{span.text}`", span, "no such block", remedy=remedy)


def _spelt_otherwise(name: str, possible: Iterable[str]) -> str | None:
    """Returns the block whose name differs by case and underscores only, as `rms_norm` from `nn.RMSNorm`."""
    letters = name.rpartition(".")[2].lower().replace("_", "")
    return next((each for each in sorted(possible) if each != name and each.replace("_", "") == letters), None)


def unknown_block(
    span: Span, name: str, possible: Iterable[str], arguments: Sequence[Type | None] | None = None
) -> Diagnostic:
    """`arguments` are the types of the values of the call, None for one that is unknown; None without a call."""
    remedy = "`archlang blocks` lists the library; `use` brings in the blocks of another file"
    diagnostic = Diagnostic("E0202", f"unknown block `{name}`", span, "no such block", remedy=remedy)
    possible, outside = tuple(possible), outside_prelude(name)
    if outside is None:
        called = block_called(name)
        if called is None:
            called = _spelt_otherwise(name, possible)
        if called is None:
            return misspelt(diagnostic, name, possible, is_guess=is_short(name))
        if called not in possible:
            return diagnostic
        place = word_in(span, name)
        diagnostic = replace(diagnostic, remedy=f"here it is called `{called}`")
        if span.source.text.startswith("[", span.end):  # its statics are others
            return replace(diagnostic, remedy=f"{diagnostic.remedy}, with the statics of `archlang blocks {called}`")
        return diagnostic.with_edits(None if place is None else Edit(place, called))
    module, item = outside
    fits, near = _fits(item, arguments), did_you_mean(name, possible)
    if near is not None and (not fits or is_typing_error(name, near, possible)):
        # The block in use may be meant as well as the other one.
        return misspelt(diagnostic, name, possible, is_guess=True)
    remedy = _use_line(module)
    if not fits:
        reason = "is a model" if item.word == "model" else "takes other values"
        remedy = f"choose another block, or {remedy}, whose `{name}` {reason}"
    return replace(diagnostic, remedy=remedy).with_edits(used(span.source, module), is_safe=fits)


def _use_line(module: str) -> str:
    return f"add `use {module}` at the beginning of the file"


def _fits(item: Definition | Extern, arguments: Sequence[Type | None] | None) -> bool:
    """Returns whether an item is a block that takes arguments of these types; their sizes may differ."""
    if item.word != "block" or arguments is None:
        return item.word == "block"
    inputs = item.signature.inputs
    required = sum(1 for parameter in inputs if parameter.default is None)
    most = math.inf if inputs and inputs[-1].variadic else len(inputs)
    return required <= len(arguments) <= most and all(
        argument is None or argument.name in (FEATURED if parameter.type.name == "data" else (parameter.type.name,))
        for parameter, argument in zip(inputs, arguments, strict=False)
    )


def bound_in_loop(span: Span, name: str, first: Span) -> Diagnostic:
    """A loop without carried states binds a name that is bound outside of it."""
    sign = re.compile(r"[ \t]*(=)(?!=)").match(span.source.text, span.end)
    edit = None if sign is None else Edit(Span(span.source, *sign.span(1)), "<-")
    return _rows.bound_twice(span, name, first).with_edits(edit)


def import_cycle(span: Span, cycle: Sequence[str]) -> Diagnostic:
    message = f"circular `use`: {' -> '.join(cycle)}"
    if len(cycle) == 2:
        diagnostic = Diagnostic("E0209", message, span, "closes the cycle", remedy="delete the line")
        line = Span(span.source, *span.source.line_bounds(span.line))
        return diagnostic.with_edits(Edit(line, ""), is_safe=True)
    return Diagnostic("E0209", message, span, "closes the cycle", remedy="move the shared blocks into a third file")


def block_cycle(span: Span, cycle: Sequence[str], spans: Sequence[Span]) -> Diagnostic:
    labels = tuple(
        Label(place, f"`{user}` uses `{used}` here")
        for place, user, used in zip(spans[1:], cycle[1:], cycle[2:], strict=False)
    )
    message = f"recursive block: {' -> '.join(cycle)}"
    remedy = "apply a block many times with `repeat` or `stack`"
    return Diagnostic("E0210", message, span, f"`{cycle[0]}` uses `{cycle[1]}` here", labels, remedy)


def unknown_library_file(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    # All names begin alike, so their ends are compared.
    possible = sorted(possible)
    message = f"unknown library file `{name}`"
    if inside := [file for file in possible if file.startswith(f"{name}.")]:
        remedy = f"name one of its files: {listed(file.rpartition('.')[2] for file in inside)}"
        return Diagnostic("E0211", message, span, "a folder", remedy=remedy)
    by_end = {file.rpartition(".")[2]: file for file in possible}
    end = name.rpartition(".")[2]
    near = end if end in by_end else did_you_mean(end, by_end)
    own = "write the path of your own file in quotes; blocks of the prelude need no `use`"
    diagnostic = Diagnostic("E0211", message, span, "no such library file", remedy=own)
    if near is None:
        return diagnostic
    is_safe = near == end or is_typing_error(end, near, by_end)
    diagnostic = replace(diagnostic, remedy=f"did you mean `{by_end[near]}`?")
    return diagnostic.with_edits(Edit(span, by_end[near]), is_safe=is_safe)


def unknown_choice(span: Span, name: str, models: Sequence[str], blocks: Sequence[str]) -> Diagnostic:
    """A name of no model or block of a file, where either can be chosen."""
    parts = [f"the {kind} are {listed(names)}" for kind, names in (("models", models), ("blocks", blocks)) if names]
    remedy = "; ".join(parts) or "write a `model` or a `block` in the file"
    diagnostic = Diagnostic("E0214", f"unknown model or block `{name}`", span, "no such model or block", remedy=remedy)
    return misspelt(diagnostic, name, [*models, *blocks], is_guess=is_short(name))


def unknown_model(span: Span, name: str, possible: Iterable[str], is_block: bool = False) -> Diagnostic:
    possible = tuple(possible)
    if is_block:
        remedy = f"write a model that applies `{name}`" + (f", or choose one of {listed(possible)}" if possible else "")
        return Diagnostic("E0214", f"`{name}` is a block; a recipe trains a model", span, "a block", remedy=remedy)
    remedy = f"the models are {listed(possible)}" if possible else "write a `model`, or bring one in with `use`"
    diagnostic = Diagnostic("E0214", f"unknown model `{name}`", span, "no such model", remedy=remedy)
    outside = outside_prelude(name)
    if outside is None or outside[1].word != "model" or did_you_mean(name, possible) is not None:
        return misspelt(diagnostic, name, possible, is_guess=is_short(name))
    module, _ = outside
    return replace(diagnostic, remedy=_use_line(module)).with_edits(used(span.source, module), is_safe=True)


def no_return(span: Span, name: str, last: tuple[Span, str] | None) -> Diagnostic:
    """`last` is the last statement of the body with the name that it binds; None if it binds none."""
    message = f"`{name}` has no `return`"
    diagnostic = Diagnostic("E0216", message, span, "returns no value", remedy="end the body with `return …`")
    if last is None:
        return diagnostic
    statement, value = last
    start, _ = statement.source.line_bounds(statement.line)
    before = statement.source.text[start : statement.start]
    text = f"\n{before}return {value}" if not before.strip() else f" return {value}"
    return diagnostic.with_edits(insertion(statement.source, statement.end, text))


def state_not_updated(span: Span, name: str, word: str, updated: Collection[str] = ()) -> Diagnostic:
    """`updated` are the names that the body updates."""
    message = f"the {word} `{name}` is never updated in the loop"
    diagnostic = Diagnostic("E0223", message, span, "never updated", remedy=f"write `{name} <- …` in the body")
    if word == "halting state" and len(updated) == 1:
        (state,) = updated
        return replace(diagnostic, remedy=f"halt on the state of the loop: `halting {state}`").with_edits(
            Edit(span, state)
        )
    return diagnostic.with_edits(without_item(span)) if word == "carried state" else diagnostic


def not_carried(span: Span, name: str, loop: Span, not_updated: Sequence[str]) -> Diagnostic:
    """`not_updated` are the states that the loop carries and does not update; one of them may be meant."""
    message = f"`{name}` is updated in a scan that does not carry it"
    labels = (Label(loop, "this scan"),)
    diagnostic = Diagnostic("E0224", message, span, "updated here", labels, f"add `carry {name}` to the scan")
    if (corrected := misspelt(diagnostic, name, not_updated)) is not diagnostic:
        return corrected
    carry = re.search(r"\bcarry\s+\w+(?:\s*,\s*\w+)*", loop.text)
    if carry is not None:
        return diagnostic.with_edits(insertion(loop.source, loop.start + carry.end(), f", {name}"), is_safe=True)
    truncated = re.search(r"\s+truncated\b", loop.text)
    end = loop.start + truncated.start() if truncated else loop.end
    return diagnostic.with_edits(insertion(loop.source, end, f" carry {name}"), is_safe=True)


def unused_result(loop: Span) -> Diagnostic:
    word = re.match(r"\w+", loop.text)
    span = loop if word is None else Span(loop.source, loop.start, loop.start + word.end())
    message, remedy = "what this loop emits is never used", f"bind its result: `y = {span.text} …`, or delete `emit`"
    return Diagnostic("W0201", message, span, "no name for its result", remedy=remedy).with_edits(
        insertion(loop.source, loop.start, "y = ")
    )


def incomplete_optimizer(span: Span, name: str, python: Span | None) -> Diagnostic:
    """`python` is the place of the class of an optimizer that lacks nothing but `with training`."""
    message = f"the optimizer `{name}` needs a static `lr: float`, `with training`, and a class of your own"
    remedy = f'write `extern optimizer {name}[lr: float = 1e-3] with training python "mine:{name.capitalize()}"`'
    diagnostic = Diagnostic("E0235", message, span, "incomplete optimizer", remedy=remedy)
    if python is None:
        return diagnostic
    clause = python.source.text.rfind("python", 0, python.start)
    return diagnostic.with_edits(insertion(python.source, clause, "with training "), is_safe=True)


def unknown_path(span: Span, path: str, possible: Iterable[str]) -> Diagnostic:
    message = f"unknown path `{path}` in this recipe"
    remedy = "write `seed`, or `task.`, `model.` or `train.` and the name of a static"
    diagnostic = Diagnostic("E0312", message, span, "no such static", remedy=remedy)
    if path in ("task", "model", "train"):
        return replace(diagnostic, remedy=f"name a static, as in `{path}.…`; another {path} is another recipe")
    if path in ("task.seed", "model.seed", "train.seed"):
        return replace(diagnostic, remedy="write `seed`").with_edits(Edit(span, "seed"))
    possible = tuple(possible)
    of_this_name = sorted(each for each in possible if each.rpartition(".")[2] == path)
    kind, _, name = path.rpartition(".")
    if kind:
        of_this_kind = [each for each in possible if each.rpartition(".")[0] == kind]
        if of_this_kind:
            diagnostic = replace(diagnostic, remedy=f"write a static of `{kind}`: {listed(of_this_kind)}")
        # Two paths of one kind are similar, whatever the names.
        names = {each: each.rpartition(".")[2] for each in of_this_kind or possible}
        near = {name, *meant_names(name, names.values())}
        return misspelt(diagnostic, path, [each for each in names if names[each] in near])
    if not of_this_name:
        return misspelt(diagnostic, path, possible)
    diagnostic = replace(diagnostic, remedy=f"did you mean {' or '.join(f'`{each}`' for each in of_this_name)}?")
    return diagnostic.with_edits(Edit(span, of_this_name[0])) if len(of_this_name) == 1 else diagnostic


def too_many_uses(span: Span, limit: int) -> Diagnostic:
    message = f"this program and the files that it uses have more than {limit} `use` lines"
    remedy = "merge the files that the program needs"
    return Diagnostic("E0226", message, span, f"`use` line {limit + 1}", remedy=remedy)
