"""The wording of mistakes about names, imports and statics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archlang.diagnostics import Diagnostic, Label
from archlang.diagnostics.names import listed, suggest
from archlang.source import Span
from archlang.types.dimension import MOST_FACTORS, MOST_TERMS

# Names


def unknown_value(span: Span, name: str, possible: Iterable[str], is_block: bool) -> Diagnostic:
    if is_block:
        remedy = f"`{name}` is a block: apply it to a value, as in `{name}(h)`"
    else:
        remedy = suggest(name, possible, "bind it first with `=`, or take it as an input of the block")
    return Diagnostic("E0201", f"no value is called `{name}` here", span, "not bound", remedy=remedy)


def unknown_block(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    remedy = suggest(
        name, possible, "`archlang blocks` lists the library; `use` brings in a module or a file with other blocks"
    )
    return Diagnostic("E0202", f"no block is called `{name}`", span, "unknown block", remedy=remedy)


def defined_twice(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0204",
        f"`{name}` is defined twice in this file",
        span,
        "second definition",
        (Label(first, "first definition"),),
        "rename one of them, or delete it",
    )


def bound_twice(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0205",
        f"`{name}` is bound twice; a name is bound once",
        span,
        "bound again",
        (Label(first, "bound here"),),
        f"choose another name, or move a loop's state with `{name} <- …`",
    )


def move_unbound(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    return Diagnostic(
        "E0206",
        f"`{name} <-` moves a state, but no `{name}` exists outside this loop",
        span,
        "nothing to move",
        remedy=suggest(name, possible, f"bind the first state before the loop with `{name} = …`"),
    )


def mixture_moved(span: Span, name: str, state: str, bound: Span) -> Diagnostic:
    return Diagnostic(
        "E0230",
        f"`{name}` is the mixture of `{state}` that the halting loop computes, and cannot be moved",
        span,
        "moves the mixture",
        (Label(bound, f"`{name}` names the mixture here"),),
        f"move `{state}`, or bind a new name to the result",
    )


def carried_twice(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0231",
        f"`{name}` is carried twice",
        span,
        "carried again",
        (Label(first, "carried here"),),
        "delete one",
    )


def move_outside_loop(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0207",
        f"`{name} <-` stands outside every loop, where nothing recurs",
        span,
        "not in a loop",
        (Label(first, f"`{name}` is bound here"),),
        "bind a new name with `=`, or put the line into `repeat`, `stack` or `scan`",
    )


def file_not_found(span: Span, path: str, exists: bool) -> Diagnostic:
    return Diagnostic(
        "E0208",
        f"`{path}` is not a regular file" if exists else f"there is no file `{path}`",
        span,
        "not found",
        remedy="a path is relative to the file that says `use`",
    )


def no_program_to_use(span: Span, path: str) -> Diagnostic:
    return Diagnostic(
        "E0232",
        f"`{path}` is no program: a file that is used is called `….arch`, also behind links",
        span,
        "not an `.arch` file",
        remedy="name an `.arch` file, or rename it",
    )


def import_circle(span: Span, circle: Sequence[str]) -> Diagnostic:
    return Diagnostic(
        "E0209",
        f"these files use one another in a circle: {' -> '.join(circle)}",
        span,
        "closes the circle",
        remedy="move what both need into a third file",
    )


def block_circle(span: Span, circle: Sequence[str], spans: Sequence[Span]) -> Diagnostic:
    labels = tuple(
        Label(place, f"`{user}` uses `{used}` here")
        for place, user, used in zip(spans[1:], circle[1:], circle[2:], strict=False)
    )
    return Diagnostic(
        "E0210",
        f"a block cannot contain itself: {' -> '.join(circle)}",
        span,
        f"`{circle[0]}` uses `{circle[1]}` here",
        labels,
        "use `repeat` or `stack` to apply a block many times",
    )


def unknown_library_file(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    return Diagnostic(
        "E0211",
        f"the library has no module `{name}`",
        span,
        "unknown module",
        remedy=suggest(name, possible, "blocks of the prelude need no `use`; a file is named in quotes"),
    )


def unknown_task(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    return Diagnostic(
        "E0212",
        f"no task is called `{name}`",
        span,
        "unknown task",
        remedy=suggest(name, possible, "`archlang tasks` lists those there are"),
    )


def unknown_optimizer(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0213",
        f"no optimizer is called `{name}`",
        span,
        "unknown optimizer",
        remedy=suggest(name, possible, f"there are {listed(possible)}"),
    )


def no_model(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0214", "this file has no model", span, "no model", remedy="write `model name(x: tokens[n]) -> … { … }`"
    )


def unknown_model(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    there = (
        f"this file has {listed(possible)}" if possible else "write `model …` in this file, or bring one in with `use`"
    )
    return Diagnostic(
        "E0214", f"no model is called `{name}`", span, "unknown model", remedy=suggest(name, possible, there)
    )


def not_a_block(span: Span, name: str, what: str) -> Diagnostic:
    return Diagnostic(
        "E0215",
        f"`{name}` is {what}, and cannot be applied",
        span,
        "not a block",
        remedy="only a block, a `let` instance or a static of kind `block` is applied to values",
    )


def no_return(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0216", f"`{name}` never returns a value", span, "no `return`", remedy="end the body with `return …`"
    )


def unreachable(span: Span, returned: Span) -> Diagnostic:
    return Diagnostic(
        "E0217",
        "nothing after `return` is computed",
        span,
        "never reached",
        (Label(returned, "returns here"),),
        "move `return` to the end, or delete what follows",
    )


def return_in_loop(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0218",
        "`return` stands inside a loop",
        span,
        "in a loop",
        remedy="move a state with `<-` in the loop and return it after the loop",
    )


def emit_outside_scan(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0219",
        "`emit` gives a chunk's part of a scan's result, but this is no `scan`",
        span,
        "not directly in a `scan`",
        remedy="put it at the end of the body of `y = scan c in …`",
    )


def emit_missing(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0220",
        f"this scan gives `{name}`, but its body emits nothing",
        span,
        "no `emit`",
        remedy=f"end the body with `emit …`, or drop `{name} =`",
    )


def emit_twice(span: Span, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0221",
        "a scan's body emits once",
        span,
        "second `emit`",
        (Label(first, "first `emit`"),),
        "join the two values with `concat`",
    )


def loop_without_state(span: Span, word: str) -> Diagnostic:
    return Diagnostic(
        "E0222",
        f"this {word} moves no state, so nothing recurs",
        span,
        "no `<-` inside",
        remedy="move a state that is bound before the loop: `h <- …`",
    )


def state_not_moved(span: Span, name: str, word: str) -> Diagnostic:
    return Diagnostic(
        "E0223",
        f"the {word} `{name}` is never moved in the loop",
        span,
        "never moved",
        remedy=f"write `{name} <- …` in the body",
    )


def not_carried(span: Span, name: str, scan: Span) -> Diagnostic:
    return Diagnostic(
        "E0224",
        f"`{name}` is moved in a scan that does not carry it",
        span,
        "moved here",
        (Label(scan, "this scan"),),
        f"add it to the scan: `carry {name}`",
    )


def unused_name(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "W0201",
        f"`{name}` is never used",
        span,
        "unused",
        remedy="delete the line, or use the value",
    )


def too_deep(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0225",
        f"blocks are nested more than {limit} deep",
        span,
        "too deep",
        remedy="a block that is handed to itself as a static never ends",
    )


def too_deep_together(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0225",
        f"in `{name}`, blocks, loops and expressions are nested too deep in one another",
        span,
        "too deep",
        remedy="give inner values names of their own, and call fewer blocks from inside of loops of blocks",
    )


# Statics


def unknown_static(span: Span, name: str, block: str, possible: Iterable[str], declared: Span | None) -> Diagnostic:
    possible = tuple(possible)
    has = f"`{block}` has {listed(possible)}" if possible else f"`{block}` has none"
    labels = (Label(declared, f"`{block}` is declared here"),) if declared else ()
    return Diagnostic(
        "E0301",
        f"`{block}` has no static called `{name}`",
        span,
        "unknown static",
        labels,
        suggest(name, possible, has),
    )


def missing_static(span: Span, name: str, kind: str, block: str, declared: Span) -> Diagnostic:
    return Diagnostic(
        "E0302",
        f"`{block}` needs its static `{name}`",
        span,
        f"`{name}` is missing",
        (Label(declared, "declared without a default here"),),
        f"write `{block}[{name} = …]` with {_a(kind)}",
    )


def wrong_kind(span: Span, name: str, expected: str, found: str, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{name}` is declared here"),) if declared else ()
    return Diagnostic(
        "E0303",
        f"`{name}` takes {_a(expected)}, and this is {found}",
        span,
        f"expected {_a(expected)}",
        labels,
        _KIND_REMEDY.get(expected, ""),
    )


_KIND_REMEDY = {
    "int": "write a whole number such as `4`",
    "float": "write a number such as `0.1`",
    "bool": "write `true` or `false`",
    "symbol": "write a bare word such as `none`",
    "range": "write `1..5`, both ends included",
    "list": "write `[a, b]`",
    "block": "name a block, such as `attention` or `attention[heads = 4]`",
    "path": "write a dotted name such as `valid.accuracy`",
    "file": 'write its name in quotes, as seen from the folder of the program: `"words.tsv"`',
}


def _a(kind: str) -> str:
    words = {"int": "a whole number", "float": "a number", "bool": "`true` or `false`", "symbol": "a bare word"}
    return words.get(kind, f"a {kind}")


def file_outside(span: Span, name: str, path: str) -> Diagnostic:
    return Diagnostic(
        "E0316",
        f"`{path}` leads out of the folder of the program, and a program names only files beside it or below",
        span,
        "not beside the program",
        remedy=f"put the file there; or name it yourself, on the command line: `--set 'task.{name}=\"…\"'`",
    )


def class_of_archlang(span: Span, name: str, python: str) -> Diagnostic:
    return Diagnostic(
        "E0317",
        f"the task `{name}` of this program has a class of archlang's: `{python}`",
        span,
        "not a class of your own",
        remedy="name the shipped task itself, or a class in a Python file beside the program",
    )


def where_violated(
    span: Span,
    condition: str,
    block: str,
    facts: Sequence[tuple[str, str, Span | None]],
    written: Span,
    near: str | None,
) -> Diagnostic:
    values = ", ".join(f"{name} = {value}" for name, value, _ in facts)
    others = [(name, value, place) for name, value, place in facts if place is not None and place != span]
    labels = (
        Label(written, "required here"),
        *(Label(place, f"{name} = {value}") for name, value, place in others if place is not None),
    )
    remedy = f"did you mean `{near}`?" if near else "change one of these values so that the condition holds"
    return Diagnostic("E0304", f"`{block}` requires {condition}, but {values}", span, "does not hold", labels, remedy)


def too_many_statics(span: Span, block: str, count: int, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{block}` is declared here"),) if declared else ()
    plural = "static" if count == 1 else "statics"
    return Diagnostic(
        "E0305", f"`{block}` has {count} {plural}", span, "one too many", labels, "delete it, or give it by its name"
    )


def static_given_twice(span: Span, name: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0306",
        f"`{name}` is given twice",
        span,
        "second value",
        (Label(first, "first value"),),
        "keep one of them",
    )


def not_computable(span: Span, reason: str, remedy: str) -> Diagnostic:
    return Diagnostic("E0307", reason, span, "cannot be computed", remedy=remedy)


def size_too_large(span: Span) -> Diagnostic:
    reason = f"this size has more than {MOST_TERMS} terms, {MOST_FACTORS} factors in a term, or a factor above 2^53"
    return not_computable(span, reason, "give the size a name of its own: take it as a static of the block")


def bad_count(span: Span, word: str, value: str) -> Diagnostic:
    return Diagnostic(
        "E0308",
        f"`{word}` takes a whole number of steps from 0 to 10000, and this is {value}",
        span,
        "not a number of steps",
        remedy="write the number of steps, or a static of kind `int`",
    )


def data_in_static(span: Span, name: str, bound: Span) -> Diagnostic:
    return Diagnostic(
        "E0309",
        f"`{name}` flows at run time, but this is fixed at compile time",
        span,
        "not static",
        (Label(bound, f"`{name}` is bound here"),),
        "pass it in parentheses, or take a static of the block instead",
    )


def length_in_static(span: Span, name: str, bound: Span) -> Diagnostic:
    labels = (Label(bound, f"`{name}` counts positions here"),) if bound != span else ()
    return Diagnostic(
        "E0318",
        f"`{name}` is a length, which differs from sample to sample, but this is fixed at compile time",
        span,
        "a length",
        labels,
        "write a number, or take a static of the block; only the lengths of types can be computed from a length",
    )


def nothing_to_vary(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0310",
        "there is nothing to vary over here",
        span,
        "no values",
        remedy="write a list such as `[true, false]`, or a range such as `1..5`",
    )


def unknown_kind(span: Span, kind: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0311",
        f"no kind of static is called `{kind}`",
        span,
        "unknown kind",
        remedy=suggest(kind, possible, f"the kinds are {listed(possible)}"),
    )


def unknown_path(span: Span, path: str, possible: Iterable[str]) -> Diagnostic:
    return Diagnostic(
        "E0312",
        f"nothing in this recipe is called `{path}`",
        span,
        "unknown path",
        remedy=suggest(path, possible, "a path is `task.`, `model.` or `train.` with a static's name, or `seed`"),
    )


def unknown_static_name(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    return Diagnostic(
        "E0313",
        f"no static or size is called `{name}` here",
        span,
        "unknown",
        remedy=suggest(name, possible, "take it as a static of the block: `block name[" + name + ": int](…)`"),
    )


def unclear_kind(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0314",
        f"the kind of `{name}` cannot be seen",
        span,
        "no kind",
        remedy=f"write `{name}: int`, or give it a default",
    )


def test_changes_weights(span: Span, path: str) -> Diagnostic:
    return Diagnostic(
        "E0315",
        f"`{path}` changes the weights of the model, so it cannot differ at test time",
        span,
        "changes weights",
        remedy="only statics that leave every weight as it is may differ, such as the steps of a `repeat`",
    )


# Limits


def too_many_uses(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0226",
        f"this program has more than {limit} lines with `use`, also in the files that it uses",
        span,
        f"`use` number {limit + 1}",
        remedy="put what the program needs into fewer files",
    )


def too_many_used_words(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0227",
        f"the files that this program uses have more than {limit:_} words and signs together",
        span,
        "too much with this file",
        remedy="use smaller files, with only those blocks that the program needs",
    )


def too_much_work(span: Span, name: str, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0228",
        f"this program takes more than {limit:_} steps to check; they are used up in `{name}`",
        span,
        "checked up to here",
        remedy="use `repeat` or `stack` where a block is applied many times, or divide the file",
    )
