"""Diagnostics about names, statements, `use` lines and statics."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from archlang.errors import Diagnostic, Edit, Label
from archlang.errors.edits import features_declared, insertion, is_in_signature, static_set, used, without_item
from archlang.errors.messages import Message, Messages
from archlang.errors.names import did_you_mean, is_short, is_typing_error, listed, meant_names, misspelt, renamed
from archlang.errors.source import SETTING, Span
from archlang.resolve.library import block_called, outside_prelude, static_called
from archlang.syntax.mistakes import NO_POWER
from archlang.types.dimension import MOST_FACTORS, MOST_TERMS

_rows = Messages("archlang.resolve")


def __getattr__(name: str) -> Message:
    return _rows.__getattr__(name)


def unknown_value(span: Span, name: str, possible: Iterable[str], is_block: bool) -> Diagnostic:
    message = f"unknown value `{name}`"
    if is_block:
        remedy = f"apply the block `{name}` to a value, as in `{name}(h)`"
        return Diagnostic("E0201", message, span, "not bound here", remedy=remedy)
    remedy = "bind it with `=` first, or add it to the inputs of the block"
    return misspelt(Diagnostic("E0201", message, span, "not bound here", remedy=remedy), name, possible, is_local=True)


def _spelt_otherwise(name: str, possible: Iterable[str]) -> str | None:
    """Returns the block whose name differs by case and underscores only, as `rms_norm` from `nn.RMSNorm`."""
    letters = name.rpartition(".")[2].lower().replace("_", "")
    return next((each for each in sorted(possible) if each != name and each.replace("_", "") == letters), None)


def unknown_block(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    remedy = "`archlang blocks` lists the library; `use` brings in the blocks of another file"
    diagnostic = Diagnostic("E0202", f"unknown block `{name}`", span, "no such block", remedy=remedy)
    possible, outside = tuple(possible), outside_prelude(name)
    if outside is None or outside[1].word == "model":
        called = block_called(name)
        if called is None:
            called = _spelt_otherwise(name, possible)
        if called is None:
            return misspelt(diagnostic, name, possible, is_guess=is_short(name))
        if called not in possible:
            return replace(diagnostic, remedy=NO_POWER) if name == "pow" else diagnostic
        if span.source.text.startswith("[", span.end):  # its statics are others
            remedy = f"here it is called `{called}`, with the statics of `archlang blocks {called}`"
            return replace(diagnostic, remedy=remedy)
        return renamed(diagnostic, name, called)
    module, _ = outside
    near = did_you_mean(name, possible)
    if near is not None and is_typing_error(name, near, possible):
        # The block in use may be meant as well as the other one.
        return misspelt(diagnostic, name, possible, is_guess=True)
    return replace(diagnostic, remedy=_use_line(module)).with_edits(used(span.source, module))


def _use_line(module: str) -> str:
    return f"add `use {module}` at the beginning of the file"


def bound_in_loop(span: Span, name: str, first: Span) -> Diagnostic:
    """A loop without carried states binds a name that is bound outside of it."""
    sign = re.compile(r"[ \t]*(=)(?!=)").match(span.source.text, span.end)
    edit = None if sign is None else Edit(Span(span.source, *sign.span(1)), "<-")
    return _rows.bound_twice(span, name, first).with_edits(edit)


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


def state_not_updated(span: Span, name: str, word: str) -> Diagnostic:
    message = f"the {word} `{name}` is never updated in the loop"
    diagnostic = Diagnostic("E0223", message, span, "never updated", remedy=f"write `{name} <- …` in the body")
    return diagnostic.with_edits(without_item(span)) if word == "carried state" else diagnostic


def not_carried(span: Span, name: str, loop: Span, not_updated: Sequence[str]) -> Diagnostic:
    """`not_updated` are the states that the loop carries and does not update; one of them may be meant."""
    message = f"`{name}` is updated in a scan that does not carry it"
    labels = (Label(loop, "this scan"),)
    diagnostic = Diagnostic("E0224", message, span, "updated here", labels, f"add `carry {name}` to the scan")
    if (corrected := misspelt(diagnostic, name, not_updated)) is not diagnostic:
        return corrected
    carry = re.search(r"\bcarry\s+", loop.text)
    end, text = (loop.end, f" carry {name}") if carry is None else (loop.start + carry.end(), f"{name}, ")
    edit = None if carry is None and "truncated" in loop.text else insertion(loop.source, end, text)
    return diagnostic.with_edits(edit, is_safe=True)


def unused_result(loop: Span) -> Diagnostic:
    word = re.match(r"\w+", loop.text)
    span = loop if word is None else Span(loop.source, loop.start, loop.start + word.end())
    message, remedy = "what this loop emits is never used", f"bind its result: `y = {span.text} …`, or delete `emit`"
    return Diagnostic("W0201", message, span, "no name for its result", remedy=remedy).with_edits(
        insertion(loop.source, loop.start, "y = ")
    )


def unknown_path(span: Span, path: str, possible: Iterable[str]) -> Diagnostic:
    message = f"unknown path `{path}` in this recipe"
    remedy = "write `seed`, or `task.`, `model.` or `train.` and the name of a static"
    diagnostic = Diagnostic("E0312", message, span, "no such static", remedy=remedy)
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


# Statics: their kinds, their values, and the conditions of a signature

_RANGE = re.compile(r"[\w.]+?\s*\.\.\s*[\w.]+")

# What precedes the bracket of a list; a name precedes that of a call.
_BEFORE_LIST = re.compile(r"(?<!\w)\[\Z")


def unknown_static(span: Span, name: str, block: str, possible: Iterable[str], declared: Span | None) -> Diagnostic:
    possible = tuple(possible)
    remedy = f"`{block}` has {listed(possible)}" if possible else f"`{block}` has no statics"
    labels = (Label(declared, f"`{block}` is declared here"),) if declared else ()
    message = f"`{block}` has no static `{name}`"
    diagnostic = Diagnostic("E0301", message, span, "unknown static", labels, remedy)
    if name in ("seed", "seeds", "random_seed"):
        return replace(diagnostic, remedy="write a line `vary seed in 1..3`, or `--set seed=2` in the command")
    called = static_called(name, possible)
    if called == "rate" and "micro" in possible:
        called = None  # that of an optimizer is a schedule, not that of dropout
    if called is None and "micro" in possible and name in _ELSEWHERE:
        return replace(diagnostic, remedy=_ELSEWHERE[name])
    if called is None:
        return misspelt(diagnostic, name, possible)
    return renamed(diagnostic, name, called)


# What other libraries set for an optimizer or a training run, and this one elsewhere.
_ACCUMULATION = "write `micro = 16` for the samples that pass through the model at a time; `batch` counts them all"
_ELSEWHERE = {
    "device": "choose the device in the command: `archlang train … --device cuda`",
    "precision": "choose the precision in the command: `archlang train … --precision bf16`",
    **dict.fromkeys(("accumulate", "accumulation", "grad_accum", "accumulation_steps"), _ACCUMULATION),
    "gradient_accumulation_steps": _ACCUMULATION,
}


def missing_static(
    span: Span, name: str, kind: str, block: str, declared: Span, is_result_size: bool = False
) -> Diagnostic:
    """`is_result_size`: it is the number of features of the result, as `out` of `linear`."""
    labels = (Label(declared, "declared without a default here"),)
    remedy = f"write `{block}[{name} = …]` with {_a(kind)}"
    message = f"`{block}` requires the static `{name}`"
    diagnostic = Diagnostic("E0302", message, span, f"`{name}` is missing", labels, remedy)
    # A size or a static of this name around the call is likely meant.
    is_named = is_in_signature(span, name) and not _CHOICE.match(span.source.line(span.line))
    value = name if is_named else _EXAMPLES.get(kind)
    if is_result_size and not is_named:
        value = features_declared(span) or value
    is_call = re.match(rf"(?:\w+\.)*{re.escape(block)}(?!\w)", span.text) is not None
    return diagnostic.with_edits(static_set(span, name, value)) if is_call and value is not None else diagnostic


_EXAMPLES = {"int": "1", "float": "1.0", "bool": "false"}


def wrong_kind(span: Span, name: str, expected: str, value: str, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{name}` is declared here"),) if declared else ()
    subject = f"`{name}`" if name.isidentifier() else name
    message = f"{subject} takes {_a(expected)}, not {value}"
    remedy = _KIND_REMEDY.get(expected, "")
    if name == "a condition" and span.text.replace(".", "").isidentifier():
        remedy = f"compare it, as in `{span.text} {'>' if value.startswith('the integer') else '=='} …`"
    diagnostic = Diagnostic("E0303", message, span, f"expected {_a(expected)}", labels, remedy)
    around = Span(span.source, max(0, span.start - 1), min(span.end + 1, len(span.source.text)))
    is_list = around.text.endswith("]") and _BEFORE_LIST.search(span.source.text, around.start, span.start)
    if is_list and _RANGE.fullmatch(span.text):
        diagnostic = replace(diagnostic, remedy=f"write the range without brackets: `{span.text}`")
        return diagnostic.with_edits(Edit(around, span.text), is_safe=True)
    plain = span.text.strip('"').removesuffix(".0" if expected == "int" else "")
    if plain == span.text or expected not in _KIND_OF_TEXT or not re.fullmatch(_KIND_OF_TEXT[expected], plain):
        return diagnostic
    return replace(diagnostic, remedy=f"write `{plain}`").with_edits(Edit(span, plain), is_safe=True)


# What may stand in quotes by mistake.
_KIND_OF_TEXT = {"symbol": r"[A-Za-z_]\w*", "int": r"\d+", "float": r"\d+(\.\d+)?"}
_KIND_REMEDY = {
    "int": "write an integer such as `4`",
    "float": "write a number such as `0.1`",
    "bool": "write `true` or `false`",
    "symbol": "write a word without quotes, such as `none`",
    "range": "write `1..5`, both ends included",
    "list": "write `[a, b]`",
    "block": "name a block, such as `attention` or `attention[heads = 4]`",
    "path": "write a dotted name such as `valid.accuracy`",
    "file": 'write a path in quotes, relative to the folder of the program: `"words.tsv"`',
    "files": 'write a path in quotes, or a list of them: `["a.txt", "b.txt"]`',
}


def remedy_of_kind(kind: str | None) -> str:
    """What to write in place of a value that is computed at run time. Conditions compare numbers."""
    if kind in (None, "bool", "float"):
        return "use statics and sizes here; what depends on values is a mask, as in `greater(h) * h`"
    return _KIND_REMEDY[kind]


def _a(kind: str) -> str:
    phrases = {
        "int": "an integer",
        "float": "a number",
        "bool": "`true` or `false`",
        "symbol": "a symbol",
        "files": "paths",
    }
    return phrases.get(kind, f"a {kind}")


def where_violated(
    span: Span,
    condition: str,
    block: str,
    facts: Sequence[tuple[str, str, Span | None]],
    written: Span,
    possible: Sequence[str],
) -> Diagnostic:
    """`facts` are the statics of the condition, each with its value and its place; `possible` are the names that the
    first can be."""
    values = ", ".join(f"{name} = {value}" for name, value, _ in facts)
    others = [(name, value, place) for name, value, place in facts if place is not None and place != span]
    labels = (
        Label(written, "required here"),
        *(Label(place, f"{name} = {value}") for name, value, place in others if place is not None),
    )
    message = f"`{block}` requires {condition}, but {values}"
    if not facts:
        return Diagnostic("E0304", f"{condition}, which `{block}` requires, never holds", written, remedy="delete it")
    diagnostic = Diagnostic("E0304", message, span, "does not hold", labels, "change one of these values")
    called = static_called(facts[0][1], possible)
    if called is not None:
        return renamed(diagnostic, facts[0][1], called, is_safe=True)
    return misspelt(diagnostic, facts[0][1], possible)


def static_without_name(span: Span, name: str | None) -> Diagnostic:
    """A value without a name follows a static that is set by name at another place than its own; `name` is a static
    that it may set, None if all are set."""
    message = "a value without a name follows statics that are set by name, in another order than they are declared"
    if name is None:
        return Diagnostic("E0305", message, span, "which static?", remedy="delete it: every static is set")
    text = span.source.text
    if text[span.start - 1] == "," and text[span.start - 2].isdigit() and span.text.isdigit() and len(span.text) == 3:
        diagnostic = Diagnostic("E0305", message, span, "which static?", remedy="write a number without commas")
        return diagnostic.with_edits(Edit(Span(span.source, span.start - 1, span.start), "_"))
    remedy = f"write its name, as in `{name} = {' '.join(span.text.split())}`"
    diagnostic = Diagnostic("E0305", message, span, "which static?", remedy=remedy)
    return diagnostic.with_edits(insertion(span.source, span.start, f"{name} = ")) if name == span.text else diagnostic


def size_too_large(span: Span) -> Diagnostic:
    reason = f"this size has more than {MOST_TERMS} terms, {MOST_FACTORS} factors in a term, or a factor above 2^53"
    return _rows.not_evaluable(span, reason, "make the size a static, or hash tokens before they are paired")


# A comparison, or the end of a condition, after a name.
_COMPARISON_AFTER = re.compile(r"[ \t]*(?:[<>]=?|[=!]=|else\b|\{)(?!-)")


def data_in_static(span: Span, name: str, bound: Span) -> Diagnostic:
    message = f"`{name}` is a run-time value, but a static is fixed at compile time"
    remedy = "pass it in parentheses if the block has an input for it, or use a static"
    if _COMPARISON_AFTER.match(span.source.text, span.end):
        remedy = "use statics and sizes here; what depends on values is a mask, as in `greater(h) * h`"
    return Diagnostic("E0309", message, span, "not static", (Label(bound, f"`{name}` is bound here"),), remedy)


# A line of a recipe, in which no static can be declared.
_CHOICE = re.compile(r"\s*(?:task|model|train)\b[^({]*$")


def unknown_static_name(span: Span, name: str, possible: Iterable[str], kind: str | None = None) -> Diagnostic:
    possible = tuple(possible)
    if span.source.is_command_line and span.source.path == SETTING:
        expected = _a(kind or "int")
        message = f"`{span.source.text.partition('=')[0]}` takes {expected}, not `{name}`, which is no static here"
        example = f"write a list: `[{name}]`" if kind == "list" else f"{_KIND_REMEDY.get(kind or 'int', '')} after `=`"
        return misspelt(Diagnostic("E0313", message, span, f"expected {expected}", remedy=example), name, possible)
    remedy = f"declare it as a static of the block: `block name[{name}: int](…)`"
    if kind == "list":
        remedy = f"write a list: `[{name}]`"
    diagnostic = Diagnostic("E0313", f"unknown static or size `{name}`", span, "not bound here", remedy=remedy)
    lower = name.lower()
    if lower in _TRUTHS and (kind == "bool" or lower in _TRUTHS.values()):
        diagnostic = replace(diagnostic, remedy=f"write `{_TRUTHS[lower]}`")
        return diagnostic.with_edits(Edit(span, _TRUTHS[lower]), is_safe=True)
    if lower in ("none", "null", "nil"):
        remedy = f"{_KIND_REMEDY.get(kind or 'int', '')}, or leave the static out for its default"
    elif name.rpartition(".")[0] in possible:
        remedy = f"declare a static for each part of `{name.rpartition('.')[0]}`: only Python reads its parts"
    elif _CHOICE.match(span.source.line(span.line)):
        is_value = _NAMED.search(span.source.text, span.source.line_bounds(span.line)[0], span.start)
        remedy = _KIND_REMEDY.get(kind or "int", remedy) if is_value else f"set a static by its name: `{name} = …`"
    corrected = misspelt(replace(diagnostic, remedy=remedy), name, possible, is_local=True)
    if kind == "list" and not corrected.edits:
        return corrected.with_edits(Edit(span, f"[{span.text}]"))
    return corrected


_TRUTHS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}

# The name of a static and `=`, at the end of a text.
_NAMED = re.compile(r"\w[ \t]*=[ \t]*\Z")


def unclear_kind(span: Span, name: str) -> Diagnostic:
    message = f"the kind of `{name}` is unknown"
    remedy = f"declare the kind, as in `{name}: int`"
    diagnostic = Diagnostic("E0314", message, span, "no kind and no default that implies one", remedy=remedy)
    kind = "file" if '"' in span.text else "int"
    return diagnostic.with_edits(insertion(span.source, span.start + len(name), f": {kind}"))
