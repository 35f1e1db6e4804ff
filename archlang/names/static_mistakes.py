"""Diagnostics of statics: their kinds, their values, and the conditions of a signature."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Edit, Label
from archlang.diagnostics.edits import features_declared, insertion, is_in_signature, static_set, word_in
from archlang.diagnostics.messages import Message, Messages
from archlang.diagnostics.names import did_you_mean, listed, misspelt
from archlang.names.library import static_called
from archlang.source import Span
from archlang.source.source import SETTING
from archlang.types.dimension import MOST_FACTORS, MOST_TERMS

_rows = Messages("archlang.names")


def __getattr__(name: str) -> Message:
    return _rows.__getattr__(name)


_RANGE = re.compile(r"[\w.]+?\s*\.\.\s*[\w.]+")

# What precedes the bracket of a list; a name precedes that of a call.
_BEFORE_LIST = re.compile(r"(?<!\w)\[\Z")


def unknown_static(
    span: Span, name: str, block: str, possible: Iterable[str], declared: Span | None, unlisted: Iterable[str] = ()
) -> Diagnostic:
    """`unlisted` are further possible names, which the signature does not list."""
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
        return misspelt(diagnostic, name, (*possible, *unlisted))
    diagnostic = replace(diagnostic, remedy=f"here it is called `{called}`")
    place = word_in(span, name)
    return diagnostic.with_edits(None if place is None else Edit(place, called))


# What other libraries set for an optimizer or a training run, and this one elsewhere.
_ACCUMULATION = "write `micro = 16` for the samples that pass through the model at a time; `batch` counts them all"
_ELSEWHERE = {
    "device": "choose the device in the command: `archlang train … --device cuda`",
    "precision": "choose the precision in the command: `archlang train … --precision bf16`",
    "compile": "choose it in the command: `archlang train … --compile`",
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


def by_place(diagnostic: Diagnostic, name: str, block: str, names: Sequence[str]) -> Diagnostic:
    """A mistake in a value without a name, which sets the static `name`; `names` are those of the block in order."""
    if diagnostic.code != "E0303" or diagnostic.edits:
        return diagnostic
    order = ", ".join(f"`{each}`" for each in names[:3]) + (", …" if len(names) > 3 else "")
    remedy = f"without a name it sets `{name}`: the statics of `{block}` are {order}"
    return replace(diagnostic, remedy=remedy)


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
    text = _in_kind(span.text, expected)
    if text is not None and span.text[0] in '"[':
        diagnostic = replace(diagnostic, remedy=f"write `{text}`")
    elif expected == "symbol":
        diagnostic = replace(diagnostic, remedy="write a word without quotes or brackets")
    # A value in a list may be another one than the value alone.
    return diagnostic if text is None else diagnostic.with_edits(Edit(span, text), is_safe=expected != "list")


def string_for_symbol(span: Span) -> Diagnostic:
    """`span` is a string, or a list with one, that is compared with a symbol."""
    message = "a symbol is never equal to a string"
    written = re.sub(r'"([A-Za-z_]\w*)"', r"\1", span.text)
    diagnostic = Diagnostic("E0303", message, span, "expected a symbol", remedy=f"write `{written}`, without quotes")
    return diagnostic.with_edits(Edit(span, written), is_safe=True) if '"' not in written else diagnostic


def _in_kind(written: str, kind: str) -> str | None:
    """Returns the same value as another kind of static is written; None if it has none."""
    if kind == "symbol" and re.fullmatch(r'"[A-Za-z_]\w*"', written):
        return written.strip('"')
    if kind == "symbol" and (match := re.fullmatch(r"\[\s*([A-Za-z_]\w*)\s*\]", written)):
        return match[1]
    if kind in ("int", "float") and (match := re.fullmatch(r'"(\d[\d_]*(?:\.\d+)?(?:[eE]-?\d+)?)"', written)):
        return match[1] if kind == "float" or match[1].replace("_", "").isdecimal() else None
    if kind == "file" and re.fullmatch(r"[\w./-]+", written):
        return f'"{written}"'
    if kind == "int" and (match := re.fullmatch(r"(\d+)\.0+", written)):
        return match[1]
    if kind == "int" and re.fullmatch(r"\d(?:\.\d)?[eE]\d", written) and float(written).is_integer():
        return f"{int(float(written)):_}"
    if kind == "list" and re.fullmatch(r"(?!(?:true|false)$)[\w.]+", written):
        return f"[{written}]"
    if kind == "bool" and written in ("0", "1"):
        return "true" if written == "1" else "false"
    return None


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
}


def remedy_of_kind(kind: str | None) -> str:
    """What to write in place of a value that is computed at run time. Conditions compare numbers."""
    if kind in (None, "bool", "float"):
        return "use statics and sizes here; what depends on values is a mask, as in `greater(h) * h`"
    return _KIND_REMEDY[kind]


def _a(kind: str) -> str:
    phrases = {"int": "an integer", "float": "a number", "bool": "`true` or `false`", "symbol": "a symbol"}
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
    near = did_you_mean(facts[0][1], possible) if facts else None
    remedy = "change one of these values"
    message = f"`{block}` requires {condition}, but {values}"
    if not facts:
        return Diagnostic("E0304", f"{condition}, which `{block}` requires, never holds", written, remedy="delete it")
    diagnostic = Diagnostic("E0304", message, span, "does not hold", labels, remedy)
    return diagnostic if near is None else misspelt(diagnostic, facts[0][1], possible)


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


def range_with_minus(span: Span) -> Diagnostic:
    written = re.sub(r"\s*-\s*", "..", span.text)
    diagnostic = _rows.not_evaluable(span, "this is a difference, not a range", f"write `{written}`")
    return diagnostic.with_edits(Edit(span, written))


def path_with_brackets(span: Span, path: str) -> Diagnostic:
    reason = "a path has no brackets: weights are chosen by a metric of a whole split"
    return _rows.not_evaluable(span, reason, f"write `{path}`").with_edits(Edit(span, path))


def size_too_large(span: Span) -> Diagnostic:
    reason = f"this size has more than {MOST_TERMS} terms, {MOST_FACTORS} factors in a term, or a factor above 2^53"
    return _rows.not_evaluable(span, reason, "make the size a static of the block")


# A comparison, or the end of a condition, after a name.
_COMPARISON_AFTER = re.compile(r"[ \t]*(?:[<>]=?|[=!]=|else\b|\{)(?!-)")


def data_in_static(span: Span, name: str, bound: Span) -> Diagnostic:
    message = f"`{name}` is a run-time value, but a static is fixed at compile time"
    remedy = "pass it in parentheses, or use a static of the block"
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
    lower = name.lower()
    if kind == "bool" and lower in _TRUTHS:
        diagnostic = Diagnostic("E0313", f"unknown static or size `{name}`", span, "not bound here")
        diagnostic = replace(diagnostic, remedy=f"write `{_TRUTHS[lower]}`")
        return diagnostic.with_edits(Edit(span, _TRUTHS[lower]), is_safe=True)
    declare = "declare it as a static of the block: `block name[" + name + ": int](…)`"
    remedy = f"write a list: `[{name}]`" if kind == "list" else declare
    static = name.rpartition(".")[0]
    if static and static in possible:
        remedy = f"declare a static for each part of `{static}` that the program reads: only Python reads its parts"
    if _CHOICE.match(span.source.line(span.line)):
        remedy = f"set a static by its name: `{name} = …`"
    if lower in ("none", "null", "nil"):
        remedy = f"{_KIND_REMEDY.get(kind or 'int', '')}, or leave the static out for its default"
    elif _NAMED.search(span.source.text, span.source.line_bounds(span.line)[0], span.start):
        remedy = _KIND_REMEDY.get(kind or "int", remedy) if _CHOICE.match(span.source.line(span.line)) else remedy
    diagnostic = Diagnostic("E0313", f"unknown static or size `{name}`", span, "not bound here", remedy=remedy)
    if name.lower() in _BOOLEANS:
        return misspelt(diagnostic, name, _BOOLEANS)
    corrected = misspelt(diagnostic, name, possible, is_local=True)
    if corrected is diagnostic and kind == "list":
        return diagnostic.with_edits(Edit(span, f"[{span.text}]"))
    return corrected


_BOOLEANS = ("true", "false")

_TRUTHS = {"yes": "true", "on": "true", "no": "false", "off": "false"}

# The name of a static and `=`, at the end of a text.
_NAMED = re.compile(r"\w[ \t]*=[ \t]*\Z")


def unclear_kind(span: Span, name: str) -> Diagnostic:
    message = f"the kind of `{name}` is unknown"
    remedy = f"declare the kind, as in `{name}: int`"
    diagnostic = Diagnostic("E0314", message, span, "no kind and no default that implies one", remedy=remedy)
    kind = "file" if '"' in span.text else "int"
    return diagnostic.with_edits(insertion(span.source, span.start + len(name), f": {kind}"))
