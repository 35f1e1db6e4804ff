"""The wording of mistakes about types and signatures."""

from __future__ import annotations

from collections.abc import Iterable

from archlang.diagnostics import Diagnostic, Label
from archlang.diagnostics.names import listed, suggest
from archlang.source import Span
from archlang.types import Type
from archlang.types.causality import MANNERS


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


# Types


def sizes_disagree(
    span: Span, block: str, name: str, expected: str, found: str, origin: Span | None, declared: Span | None
) -> Diagnostic:
    labels = []
    if origin is not None and origin != span:
        labels.append(Label(origin, f"`{name}` is {expected} because of this"))
    if declared is not None:
        labels.append(Label(declared, f"`{block}` asks for it here"))
    return Diagnostic(
        "E0401",
        f"`{block}` needs {name} = {expected} here, and this has {found}",
        span,
        f"{name} = {found}",
        tuple(labels),
        f"bring it to size {expected}, with `linear[{expected}]` for example"
        if name not in ("n", "m", "t")
        else "both must be sequences of the same length",
    )


def wrong_type(span: Span, block: str, parameter: str, expected: str, found: Type, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{parameter}` is declared here"),) if declared is not None else ()
    return Diagnostic(
        "E0402",
        f"`{block}` takes `{expected}` as `{parameter}`, and this is `{found}`",
        span,
        f"is `{found}`",
        labels,
        _TYPE_REMEDY.get((expected.split("[")[0], found.name), "apply a block that gives such a value"),
    )


_TYPE_REMEDY = {
    ("seq", "tokens"): "turn tokens into vectors with `embed[d]`",
    ("data", "tokens"): "turn tokens into vectors with `embed[d]`",
    ("vec", "seq"): "reduce the positions to one vector with `last`, `first` or `mean`",
    ("tokens", "seq"): "only a task's fields are tokens",
    ("seq", "chunks"): "walk the chunks with `scan c in …`",
    ("seq", "vec"): "a vector has no positions left; take the sequence from before the reduction",
    ("pointer", "address"): "walk over the addresses with `pointer_unit` first",
}


def wrong_number_of_arguments(span: Span, block: str, expected: str, found: int, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{block}` is declared here"),) if declared is not None else ()
    return Diagnostic(
        "E0403",
        f"`{block}` takes {expected}, and here it gets {found}",
        span,
        _plural(found, "value"),
        labels,
        "what is fixed at compile time goes into brackets, what flows into parentheses",
    )


def wrong_result(span: Span, name: str, expected: str, found: Type, declared: Span) -> Diagnostic:
    return Diagnostic(
        "E0404",
        f"`{name}` promises `{expected}`, and this returns `{found}`",
        span,
        f"is `{found}`",
        (Label(declared, f"promised `{expected}` here"),),
        "change the promise or the value, so that they agree",
    )


def state_changes_type(span: Span, name: str, before: Type, after: Type, first: Span | None) -> Diagnostic:
    labels = (Label(first, f"`{name}` is `{before}` here"),) if first is not None else ()
    return Diagnostic(
        "E0405",
        f"the state `{name}` is `{before}` and would become `{after}`; a state keeps its type",
        span,
        f"is `{after}`",
        labels,
        "bring the value back to the state's sizes before `<-`",
    )


def unlike_operands(span: Span, operator: str, left: Type, right: Type, spans: tuple[Span, Span]) -> Diagnostic:
    return Diagnostic(
        "E0406",
        f"`{operator}` works elementwise, and `{left}` and `{right}` have not the same type",
        span,
        "not the same type",
        (Label(spans[0], f"is `{left}`"), Label(spans[1], f"is `{right}`")),
        "bring both to one type, or use a number",
    )


def unknown_type(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0407",
        f"no type is called `{name}`",
        span,
        "unknown type",
        remedy=suggest(name, possible, f"the types are {listed(possible)}"),
    )


def wrong_number_of_sizes(span: Span, name: str, expected: str, found: int) -> Diagnostic:
    return Diagnostic(
        "E0408",
        f"`{name}` has {expected}, and here it gets {found}",
        span,
        _plural(found, "size"),
        remedy="`seq[n, d]`, `vec[d]`, `tokens[n]`, `logits[classes]`, `map[n, m]`, `prob`, `address[n, bits]`, "
        "`pointer[t, n, k]`",
    )


def address_is_no_data(span: Span, what: str, found: Type) -> Diagnostic:
    return Diagnostic(
        "E0409",
        f"{what} would mix `{found}` with data; addresses stay apart from what they point to",
        span,
        f"is `{found}`",
        remedy="move an address with a pointer block, and turn it into data with `dereference`",
    )


def address_escapes(span: Span, block: str, result: str) -> Diagnostic:
    return Diagnostic(
        "E0410",
        f"`{block}` takes an address and gives `{result}`; only `dereference` turns addresses into data",
        span,
        "gives data",
        remedy="give `address` back, or build on the library's pointer blocks",
    )


def not_chunks(span: Span, found: Type) -> Diagnostic:
    return Diagnostic(
        "E0411",
        f"`scan` walks over chunks, and this is `{found}`",
        span,
        f"is `{found}`",
        remedy="cut the sequence first: `scan c in chunks[10](h) …`",
    )


def emitted_off_axis(span: Span, found: Type, chunk: Type) -> Diagnostic:
    return Diagnostic(
        "E0412",
        f"`emit` gives one value for each position of the chunk `{chunk}`, and this is `{found}`",
        span,
        f"is `{found}`",
        remedy="emit a sequence as long as the chunk",
    )


def not_halting(span: Span, block: str) -> Diagnostic:
    return Diagnostic(
        "E0413",
        f"a loop cannot halt by `{block}`: it gives no halting probabilities",
        span,
        "gives no `prob`",
        remedy="halt by `token_halt`, `global_halt`, or an extern block that gives `prob`",
    )


def size_unknown(span: Span, name: str, block: str) -> Diagnostic:
    return Diagnostic(
        "E0414",
        f"the size `{name}` of the result of `{block}` follows from none of its inputs or statics",
        span,
        "unknown size",
        remedy=f"take `{name}` as a static, or from an input",
    )


def shared_with_other_sizes(span: Span, name: str, difference: str, first: Span | None) -> Diagnostic:
    labels = (Label(first, "first used here"),) if first is not None else ()
    return Diagnostic(
        "E0415",
        f"`{name}` shares its weights between its calls, but {difference}",
        span,
        "used with other sizes",
        labels,
        "use a second instance where the sizes differ",
    )


def not_applied(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0417",
        f"`{name}` is a block that is not applied to anything",
        span,
        "a block, not a value",
        remedy=f"apply it: `{name}(h)`, or `h |> {name}`",
    )


def static_as_value(span: Span, what: str) -> Diagnostic:
    return Diagnostic(
        "E0418",
        f"{what} is a static, and cannot flow through the model",
        span,
        "a static",
        remedy="only numbers may be used in arithmetic with tensors; other statics go into brackets",
    )


def bad_operator(span: Span, operator: str) -> Diagnostic:
    return Diagnostic(
        "E0419",
        f"`{operator}` does not work on tensors",
        span,
        "statics only",
        remedy="tensors have `+`, `-`, `*` and `/`",
    )


def instance_configured(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0420",
        f"`{name}` is an instance whose statics are settled by its `let`",
        span,
        "settled already",
        (Label(first, "settled here"),),
        f"write `{name}(…)`, or a `let` of its own",
    )


def too_large(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0421",
        f"this model unfolds to more than {limit} operations or modules",
        span,
        "too large",
        remedy="use `repeat` or `stack` instead of blocks that contain each other many times",
    )


def too_many_steps(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0421",
        f"the loops around this one and itself take more than {limit} steps",
        span,
        "too many steps",
        remedy="use smaller counts",
    )


def bad_let(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0422",
        f"`let {name}` names an instance of a block, and this is something else",
        span,
        "not a block",
        remedy=f"write `let {name} = block[…]`, or bind a value with `{name} = …`",
    )


def needs_instance(span: Span, block: str, name: str) -> Diagnostic:
    return Diagnostic(
        "E0423",
        f"`{block}` takes an instance as `{name}`, so that both share its weights",
        span,
        "not an instance",
        remedy="name one first: `let e = embed[d]`, then `unembed[e](y)`",
    )


def misplaced_family(span: Span, block: str) -> Diagnostic:
    return Diagnostic(
        "E0424",
        f"`data` stands for either `seq` or `vec` in the signature of `{block}`, but no input says which",
        span,
        "which one?",
        remedy="take an input of type `data[…]` too, or write `seq` or `vec`",
    )


def length_and_feature(span: Span, name: str, other: Span) -> Diagnostic:
    return Diagnostic(
        "E0425",
        f"`{name}` counts positions here, and features elsewhere",
        span,
        "a length",
        (Label(other, "a number of features"),),
        "give one of them another name",
    )


def size_out_of_range(span: Span, written: str, number: int, largest: int) -> Diagnostic:
    return Diagnostic(
        "E0426",
        f"a size is a number from 1 to {largest}, and `{written}` is {number}",
        span,
        "no size",
        remedy="write a number in this range",
    )


def no_state(span: Span, name: str, kind: Type, word: str) -> Diagnostic:
    loop = {"halting": "a halting loop", "scan": "a scan"}.get(word, f"`{word}`")
    what = "a number" if kind.name == "number" else f"`{kind}`"
    return Diagnostic(
        "E0427",
        f"`{name}` is {what}, which cannot be a state of {loop}",
        span,
        "no state",
        remedy="move a `seq` or a `vec`; samples and chunks that move by themselves need a value each"
        if kind.name == "number"
        else "cut the sequence inside of the loop, and move the sequence",
    )


def halting_block_applied(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0428",
        f"`{name}` decides when a loop halts, and is not applied to a value",
        span,
        "a halting block",
        remedy=f"write `repeat 20 halting h by {name} {{ … }}`",
    )


def no_arithmetic(span: Span, what: str, kind: Type) -> Diagnostic:
    return Diagnostic(
        "E0429",
        f"{what} does not apply to {kind.name}",
        span,
        f"is `{kind}`",
        remedy="turn tokens into vectors with `embed[d]`"
        if kind.name == "tokens"
        else "compute with the sequence before it is cut, or with each chunk in a `scan`",
    )


# Signatures


def reads_unknown_input(span: Span, name: str, block: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    there = f"it has {listed(possible)}" if possible else "it has none"
    return Diagnostic(
        "E0502",
        f"`{block}` has no input called `{name}`",
        span,
        "unknown input",
        remedy=suggest(name, possible, there),
    )


def unknown_mode(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0503",
        f"an input is not read in the manner `{name}`",
        span,
        "unknown manner",
        remedy=suggest(name, MANNERS, f"the manners are {listed(MANNERS)}"),
    )


def unknown_caveat(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0504",
        f"a block may depend on `padding` or on the `batch`, and `{name}` is neither",
        span,
        "unknown dependence",
        remedy=suggest(name, ("padding", "batch"), "write `depends on padding` or `depends on batch`"),
    )


def unknown_quantity(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0507",
        f"a block has no cost called `{name}`",
        span,
        "unknown cost",
        remedy=suggest(name, possible, f"the costs are {listed(possible)}"),
    )


def unknown_record(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0508",
        f"a recording has nothing called `{name}`",
        span,
        "unknown kind of record",
        remedy=suggest(name, possible, f"the kinds are {listed(possible)}"),
    )


def pure_but_random(span: Span, block: str, pure: Span) -> Diagnostic:
    return Diagnostic(
        "E0505",
        f"`{block}` is both pure and random",
        span,
        "draws random numbers",
        (Label(pure, "never draws any"),),
        "remove `pure`, or the clause `random`",
    )


def no_class(span: Span, python: str) -> Diagnostic:
    return Diagnostic(
        "E0506",
        f"`{python}` does not name a class of Python",
        span,
        "no class",
        remedy='write the module and the class: `python "mine:Shift"`',
    )


# Tasks


def static_of_task_model(span: Span, name: str, model: str) -> Diagnostic:
    return Diagnostic(
        "E0607",
        f"`{name}` is given to `{model}` by the task",
        span,
        "the task's",
        remedy="rename this static; `classes` and `vocab` come from the task",
    )


def needs_task(span: Span, model: str, sizes: Iterable[str]) -> Diagnostic:
    sizes = tuple(sizes)
    return Diagnostic(
        "E0608",
        f"`{model}` needs {listed(sizes) if sizes else 'a size'}, which only a task or a static can give",
        span,
        "not known here",
        remedy="choose a task that gives it, write a number, or give it: `archlang.load(path, classes=10, vocab=15)`",
    )
