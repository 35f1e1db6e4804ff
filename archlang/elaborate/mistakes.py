"""Diagnostics about types and signatures."""

import re
from collections.abc import Iterable
from dataclasses import replace

from archlang.errors import Diagnostic, Edit, Label, Span
from archlang.errors.edits import closing_bracket, is_in_signature, resized, word_in, wrapped
from archlang.errors.messages import Message, Messages
from archlang.errors.names import listed, misspelt, plural
from archlang.syntax.tree import InputParameter
from archlang.types import FEATURED, Dim, Type

_rows = Messages("archlang.elaborate")


def __getattr__(name: str) -> Message:
    return _rows.__getattr__(name)


# What a name should be.
_KINDS = {
    "type": "E0407", "manner of reading": "E0503", "cost": "E0507", "kind of record": "E0508", "kind of act": "E0508",
    "problem": "E0508",
}  # fmt: skip


def unknown(span: Span, kind: str, name: str, possible: Iterable[str]) -> Diagnostic:
    """`kind` is one of `_KINDS`."""
    possible = tuple(possible)
    noun, *rest = kind.split(" ", 1)
    plural = " ".join([f"{noun}s", *rest])
    remedy = f"the {plural} are {listed(possible)}"
    return misspelt(
        Diagnostic(_KINDS[kind], f"unknown {kind} `{name}`", span, f"no such {noun}", remedy=remedy), name, possible
    )


# Types


def sizes_disagree(
    span: Span,
    block: str,
    name: str,
    expected: str,
    got: str,
    origin: Span | None,
    declared: Span | None,
    is_feature: bool,
) -> Diagnostic:
    """`is_feature`: it is a number of features, not a length."""
    labels = []
    if origin is not None and origin != span:
        labels.append(Label(origin, f"`{name}` is {expected} because of this"))
    if declared is not None:
        labels.append(Label(declared, f"`{block}` requires it here"))
    is_number = name == expected  # the signature has a number instead of a name
    message = f"`{block}` expects {name} = {expected} here, but this has {name} = {got}"
    if is_number:
        message = f"`{block}` expects a size of {expected} here, but this is {got}"
    remedy = f"change the size to {expected}, for example with `linear[{expected}]`"
    if not is_feature:
        remedy = "use sequences of the same length"
    label = got if is_number else f"{name} = {got}"
    diagnostic = Diagnostic("E0401", message, span, label, tuple(labels), remedy)
    return diagnostic.with_edits(*resized(span, got, expected)) if is_feature else diagnostic


def wrong_type(
    span: Span, block: str, parameter: InputParameter, expected: str, got: Type, takes_numbers: bool
) -> Diagnostic:
    """`takes_numbers`: a static of the block is a number."""
    labels = (Label(parameter.span, f"`{parameter.name}` is declared here"),)
    message = f"`{block}` expects `{expected}` as `{parameter.name}`, but this is `{got}`"
    kinds = (expected.split("[")[0], got.name)
    remedy = _TYPE_REMEDY.get(kinds, "apply a block that returns a value of this type")
    if got.name == "number":
        number = " ".join(span.text.split())
        if kinds[0] in ("data", "seq", "vec"):
            remedy = f"make it a sequence, `constant[1, 1]() + {number}`, or a vector, the `first` of that"
        if takes_numbers:  # a number with a name may be no static, as that of a loop
            static = f"in square brackets: `{block}[{number}](…)`"
            is_named = any(map(str.isalpha, number))
            remedy = f"{remedy}; a static stands {static}" if is_named else f"numbers are statics, {static}"
    diagnostic = Diagnostic("E0402", message, span, f"is `{got}`", labels, remedy)
    if got.name == "tokens" and kinds in _TYPE_REMEDY:
        return diagnostic.with_edits(*wrapped(span, "embed[d](" if is_in_signature(span, "d") else "embed[64]("))
    return diagnostic


_TYPE_REMEDY = {
    ("seq", "tokens"): "turn tokens into vectors with `embed[d]`",
    ("data", "tokens"): "turn tokens into vectors with `embed[d]`",
    ("vec", "seq"): "reduce the positions to one vector with `last`, `first` or `mean`",
    ("tokens", "seq"): "pass a field of the task, or tokens made of one",
    ("seq", "chunks"): "read the chunks one by one with `scan c in …`",
    ("seq", "vec"): "pass the sequence from before the reduction, or turn the vector into a sequence with `expand`",
    ("pointer", "address"): "turn addresses into pointers with `pointer_unit`",
}


def wrong_result(span: Span, name: str, expected: Type, got: Type, declared: Span, is_model: bool) -> Diagnostic:
    """`span` is a `return`. The declared result of a model is that of its task, so the value changes."""
    message = f"`{name}` declares the result type `{expected}`, but returns `{got}`"
    labels = (Label(declared, f"declared as `{expected}` here"),)
    remedy = "change the declared type or the returned value"
    diagnostic = Diagnostic("E0404", message, span, f"is `{got}`", labels, remedy)
    if not is_model:
        return diagnostic.with_edits(Edit(declared, str(got)) if _WRITABLE.fullmatch(str(got)) else None)
    size = _size_that_differs(expected, got)
    value = Span(span.source, span.start + len(span.text) - len(span.text.removeprefix("return").lstrip()), span.end)
    return diagnostic if size is None else diagnostic.with_edits(*resized(value, got.dims[-1], size))


# A type whose sizes a program can name.
_WRITABLE = re.compile(r"(?:seq|vec)\[[\w, +*-]+\]")


def state_changes_type(span: Span, name: str, before: Type, after: Type, first: Span | None, length: str) -> Diagnostic:
    labels = (Label(first, f"`{name}` is `{before}` here"),) if first is not None else ()
    message = f"the state `{name}` is `{before}`, but this update is `{after}`; a state keeps its type"
    remedy = "change the value to the type of the state before `<-`"
    if before.name == "number":
        remedy = f"begin with zeros of the type `{after}` before the loop, as in `{name} = 0 * …`"
    elif before.name == after.name == "seq" and before.feature == after.feature:
        remedy = _LENGTH_REMEDY[length].format(name)
    diagnostic = Diagnostic("E0405", message, span, f"is `{after}`", labels, remedy)
    size = _size_that_differs(before, after)
    return diagnostic if size is None else diagnostic.with_edits(*resized(span, after.dims[-1], size))


_KEEP_LENGTH = "keep its length, as with `slice[-4, 4](…)`, which has the last 4 positions"
_LENGTH_REMEDY = {
    "kept": _KEEP_LENGTH,
    "carried": "write `carry {} growing` if it grows in each step; otherwise " + _KEEP_LENGTH,
    "growing": "update it outside of this loop: a growing state grows in its own scan, not in a loop within",
    "of scan": "bind this value to a new name with `=`: the scan rebinds `{}` in each step",
}


def _size_that_differs(wanted: Type, got: Type) -> Dim | None:
    """Returns the features of a type if another one differs from it in nothing else; None if it does."""
    is_alike = wanted.name == got.name and wanted.name in FEATURED and wanted.dims[:-1] == got.dims[:-1]
    return wanted.dims[-1] if is_alike and wanted.dims != got.dims else None


def unlike_operands(span: Span, operator: str, left: Type, right: Type, spans: tuple[Span, Span]) -> Diagnostic:
    """A name keeps its type rather than the value of a call."""
    message = f"`{operator}` works elementwise, but `{left}` and `{right}` do not fit each other"
    labels = (Label(spans[0], f"is `{left}`"), Label(spans[1], f"is `{right}`"))
    kinds = {left.name, right.name}
    if kinds == {"seq", "map"}:
        remedy = "add a sequence to each row or column of a map with `outer_sum`, or use a number"
    elif kinds <= set(FEATURED) and len({left.dims[-1], right.dims[-1]} - {Dim.of(1)}) == 2:
        remedy = f"give both the same number of features, for example with `linear[{left.dims[-1]}]`, or one of them 1"
    elif left.name == right.name == "seq":
        remedy = "use sequences that are as long as each other, or reduce one to a vector, for example with `mean`"
    else:
        remedy = "change one to the type of the other, or use a number"
    diagnostic = Diagnostic("E0406", message, span, "different types", labels, remedy)
    changed, before, wanted = spans[1], right, left
    if spans[1].text.isidentifier() and not spans[0].text.isidentifier():
        changed, before, wanted = spans[0], left, right
    size = _size_that_differs(wanted, before)
    return diagnostic if size is None else diagnostic.with_edits(*resized(changed, before.dims[-1], size))


def unknown_type(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    diagnostic = unknown(span, "type", name, possible)
    if name.lower() not in ("tensor", "array", "ndarray", "matrix", "vector", "float"):
        return diagnostic
    remedy = "write `vec[d]` for a vector or `seq[n, d]` for a sequence; the batch axis is implicit"
    return replace(diagnostic, remedy=remedy, edits=(), is_safe=False)


def wrong_number_of_sizes(span: Span, name: str, expected: str, got: int) -> Diagnostic:
    message = f"`{name}` has {expected}, but {got} {'is' if got == 1 else 'are'} written here"
    remedy = (
        "the types are `seq[n, d]`, `vec[d]`, `tokens[n]`, `logits[classes]`, `map[n, m]`, `map[n, m, h]`, `prob`, "
        "`address[n, bits]`, `pointer[t, n, k]`"
    )
    diagnostic = Diagnostic("E0408", message, span, plural(got, "size"), remedy=remedy)
    sizes = _USUAL_SIZES.get(name, ())
    if not sizes or got != len(sizes) + 1 or name == "pointer":
        return diagnostic
    remedy = f"leave out the batch axis, which is implicit: `{name}[{', '.join(sizes)}]`"
    return replace(diagnostic, remedy=remedy)


_USUAL_SIZES = {
    "vec": ("d",),
    "tokens": ("n",),
    "seq": ("n", "d"),
    "map": ("n", "m"),
    "address": ("n", "bits"),
    "pointer": ("t", "n", "k"),
}


def no_weights_of_experts(span: Span, got: Type, values: Type) -> Diagnostic:
    message = f"`experts` needs a weight of each expert for each position of `{values}`, but this is `{got}`"
    expected = Type(values.name, (*values.dims[:-1], Dim.of("e")))
    remedy = f"pass `{expected}`, whose e features are the weights of e experts"
    return Diagnostic("E0431", message, span, f"is `{got}`", remedy=remedy)


_MASKS = {
    ">": "`greater(a - b)` is 1 where a > b, else 0",
    "<": "`greater(b - a)` is 1 where a < b, else 0",
    ">=": "`1 - greater(b - a)` is 1 where a >= b, else 0",
    "<=": "`1 - greater(a - b)` is 1 where a <= b, else 0",
    "==": "`equal(a - b)` is 1 where a and b are equal, else 0",
    "!=": "`1 - equal(a - b)` is 1 where a and b differ, else 0",
    "and": "multiply two masks of 0 and 1: `a * b`",
    "or": "write `a + b - a * b` for two masks of 0 and 1",
    "not": "write `1 - a` for a mask of 0 and 1",
}


def bad_operator(span: Span, operator: str) -> Diagnostic:
    message = f"`{operator}` does not apply to tensors"
    return Diagnostic(
        "E0419", message, span, "for statics only", remedy=_MASKS.get(operator, "use `+`, `-`, `*` or `/`")
    )


def instance_configured(span: Span, name: str, first: Span) -> Diagnostic:
    message = f"`{name}` is an instance, whose statics its `let` sets"
    remedy = f"write `{name}(…)`, or bind a second instance with `let`"
    diagnostic = Diagnostic("E0420", message, span, "statics set again", (Label(first, "set here"),), remedy)
    end = closing_bracket(span.source.text, span.end)
    return diagnostic.with_edits(None if end is None else Edit(Span(span.source, span.end, end + 1), ""))


def let_of_value(span: Span, name: str, let: Span, is_applied: bool) -> Diagnostic:
    """`span` is a value that a `let` binds, and `let` the place of `let` and the name. `is_applied` if the body applies
    the name."""
    message = f"`let {name}` names a block that shares its weights, and this is a value"
    remedy = f"bind the value without `let`: `{name} = {span.text}`"
    if is_applied:
        remedy = "name the block without the parentheses: the body applies it"
    diagnostic = Diagnostic("E0422", message, span, "a value", remedy=remedy)
    return diagnostic if is_applied else diagnostic.with_edits(Edit(let, name))


def loss_of_several_numbers(span: Span, name: str, kind: Type) -> Diagnostic:
    message = f"the auxiliary loss `{name}` is `{kind}`, not one number for each sample"
    remedies = {
        "seq": "take the `mean` or the `sum` of the positions, and `sum_features` of the features",
        "vec": "add up the features with `sum_features`",
        "number": "make an auxiliary loss of a value that the model computes",
    }
    remedy = remedies.get(kind.name, "reduce it to `vec[1]`")
    diagnostic = Diagnostic("E0430", message, span, f"is `{kind}`", remedy=remedy)
    if kind.name not in FEATURED:
        return diagnostic
    before = "mean(" * (kind.name == "seq")
    return diagnostic.with_edits(*wrapped(span, before if kind.dims[-1] == Dim.of(1) else f"sum_features({before}"))


# Signatures


def reads_unknown_input(span: Span, name: str, block: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    inputs = f"its inputs are {listed(possible)}" if possible else "it has no inputs"
    message = f"`{block}` has no input `{name}`"
    diagnostic = misspelt(Diagnostic("E0502", message, span, "unknown input", remedy=inputs), name, possible)
    if diagnostic.edits or len(possible) != 1:
        return diagnostic
    place = word_in(span, name)
    return diagnostic if place is None else diagnostic.with_edits(Edit(place, possible[0]), is_safe=True)
