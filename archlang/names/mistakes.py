"""Diagnostics about names, `use` lines and statics."""

from collections.abc import Iterable, Sequence

from archlang.diagnostics import Diagnostic, Label
from archlang.diagnostics.names import did_you_mean, listed, plural, suggest
from archlang.names.library import module_of
from archlang.source import Span
from archlang.types.dimension import MOST_FACTORS, MOST_TERMS

# Names


def unknown_value(span: Span, name: str, possible: Iterable[str], is_block: bool) -> Diagnostic:
    if is_block:
        remedy = f"apply the block `{name}` to a value, as in `{name}(h)`"
    else:
        remedy = suggest(name, possible, "bind it with `=` first, or add it to the inputs of the block")
    return Diagnostic("E0201", f"unknown value `{name}`", span, "not bound here", remedy=remedy)


def unknown_block(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    module = module_of(name)
    remedy = (
        f"add `use {module}` at the beginning of the file"
        if module
        else suggest(name, possible, "`archlang blocks` lists the library; `use` brings in the blocks of another file")
    )
    return Diagnostic("E0202", f"unknown block `{name}`", span, "no such block", remedy=remedy)


def defined_twice(span: Span, name: str, first: Span) -> Diagnostic:
    message = f"`{name}` is defined twice in this file"
    labels = (Label(first, "first definition"),)
    return Diagnostic("E0204", message, span, "second definition", labels, "rename one of them, or delete it")


def bound_twice(span: Span, name: str, first: Span) -> Diagnostic:
    remedy = f"choose another name, or update the state of a loop with `{name} <- …`"
    return Diagnostic("E0205", f"`{name}` is bound twice", span, "bound again", (Label(first, "bound here"),), remedy)


def update_of_unbound(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    message = f"`{name} <-` updates a state, but `{name}` is not bound outside this loop"
    remedy = suggest(name, possible, f"bind the initial state before the loop with `{name} = …`")
    return Diagnostic("E0206", message, span, "unknown state", remedy=remedy)


def update_of_mixture(span: Span, name: str, state: str, bound: Span) -> Diagnostic:
    message = f"`{name}` is the mixture of `{state}`, which the halting loop computes; it cannot be updated"
    labels = (Label(bound, f"`{name}` names the mixture here"),)
    remedy = f"update `{state}`, or bind the result to a new name"
    return Diagnostic("E0230", message, span, "update of the mixture", labels, remedy)


def carried_twice(span: Span, name: str, first: Span) -> Diagnostic:
    message = f"`{name}` is carried twice"
    return Diagnostic("E0231", message, span, "carried again", (Label(first, "carried here"),), "delete one")


def update_outside_loop(span: Span, name: str, first: Span) -> Diagnostic:
    message = f"`{name} <-` is outside every loop"
    remedy = "bind a new name with `=`, or move the line into `repeat`, `stack` or `scan`"
    return Diagnostic("E0207", message, span, "not in a loop", (Label(first, f"`{name}` is bound here"),), remedy)


def file_not_found(span: Span, path: str, exists: bool) -> Diagnostic:
    message = f"`{path}` is not a regular file" if exists else f"there is no file `{path}`"
    return Diagnostic("E0208", message, span, "not found", remedy="write the path relative to this file")


def not_an_arch_file(span: Span, path: str) -> Diagnostic:
    message = f"`{path}` is not an `.arch` file, or is a link to another kind of file"
    return Diagnostic("E0232", message, span, "not a program", remedy="name a file that ends in `.arch`")


def used_file_outside(span: Span, path: str) -> Diagnostic:
    message = f"`{path}` is outside the folder of the program"
    remedy = "move the file into the folder, or allow its folder: `--allow FOLDER`"
    return Diagnostic("E0233", message, span, "outside the folder", remedy=remedy)


def import_cycle(span: Span, cycle: Sequence[str]) -> Diagnostic:
    message = f"circular `use`: {' -> '.join(cycle)}"
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
    by_end = {file.rpartition(".")[2]: file for file in possible}
    end = name.rpartition(".")[2]
    near = end if end in by_end else did_you_mean(end, by_end)
    own = "write the path of your own file in quotes; blocks of the prelude need no `use`"
    remedy = f"did you mean `{by_end[near]}`?" if near else own
    return Diagnostic("E0211", f"unknown library file `{name}`", span, "no such library file", remedy=remedy)


def unknown_task(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    remedy = suggest(name, possible, "`archlang tasks` lists the tasks")
    return Diagnostic("E0212", f"unknown task `{name}`", span, "no such task", remedy=remedy)


def unknown_optimizer(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    remedy = suggest(name, possible, f"the optimizers are {listed(possible)}")
    return Diagnostic("E0213", f"unknown optimizer `{name}`", span, "no such optimizer", remedy=remedy)


def no_model(span: Span) -> Diagnostic:
    message = "this file has no model"
    return Diagnostic("E0214", message, span, "no model", remedy="write `model name(x: tokens[n]) -> … { … }`")


def unknown_model(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    otherwise = f"the models are {listed(possible)}" if possible else "write a `model`, or bring one in with `use`"
    message = f"unknown model `{name}`"
    return Diagnostic("E0214", message, span, "no such model", remedy=suggest(name, possible, otherwise))


def not_a_block(span: Span, name: str, value: str) -> Diagnostic:
    remedy = "apply a block, an instance named by `let`, or a static of kind `block`"
    return Diagnostic("E0215", f"`{name}` is {value} and cannot be applied", span, "not a block", remedy=remedy)


def no_return(span: Span, name: str) -> Diagnostic:
    message = f"`{name}` has no `return`"
    return Diagnostic("E0216", message, span, "returns no value", remedy="end the body with `return …`")


def unreachable(span: Span, returned: Span) -> Diagnostic:
    message = "statements after `return`"
    remedy = "move `return` to the end, or delete the statements after it"
    return Diagnostic("E0217", message, span, "unreachable", (Label(returned, "returns here"),), remedy)


def return_in_loop(span: Span) -> Diagnostic:
    remedy = "update a state with `<-` in the loop, and return it after the loop"
    return Diagnostic("E0218", "`return` inside a loop", span, "in a loop", remedy=remedy)


def emit_outside_loop(span: Span) -> Diagnostic:
    remedy = "move it to the end of the body of a loop that binds it, as `y = repeat 4 { … }` or `y = scan c in …`"
    return Diagnostic("E0219", "`emit` outside a loop", span, "not directly in a loop that can emit", remedy=remedy)


def emit_missing(span: Span, name: str) -> Diagnostic:
    message = f"this loop binds `{name}`, but its body has no `emit`"
    return Diagnostic("E0220", message, span, "no `emit`", remedy=f"end the body with `emit …`, or delete `{name} =`")


def emit_twice(span: Span, first: Span) -> Diagnostic:
    remedy = "join the two values with `concat`"
    return Diagnostic("E0221", "two `emit` in one loop", span, "second `emit`", (Label(first, "first `emit`"),), remedy)


def loop_without_state(span: Span, word: str) -> Diagnostic:
    remedy = "update a state that is bound before the loop: `h <- …`"
    return Diagnostic("E0222", f"this {word} updates no state", span, "no `<-` in the body", remedy=remedy)


def state_not_updated(span: Span, name: str, word: str) -> Diagnostic:
    message = f"the {word} `{name}` is never updated in the loop"
    return Diagnostic("E0223", message, span, "never updated", remedy=f"write `{name} <- …` in the body")


def not_carried(span: Span, name: str, loop: Span, word: str = "scan") -> Diagnostic:
    if word == "experts":
        message = f"`{name}` is updated in `experts`, which have no states"
        remedy = "bind another name with `=`, and `emit` the result"
        return Diagnostic("E0224", message, span, "updated here", (Label(loop, "these experts"),), remedy)
    message = f"`{name}` is updated in a scan that does not carry it"
    labels = (Label(loop, "this scan"),)
    return Diagnostic("E0224", message, span, "updated here", labels, f"add `carry {name}` to the scan")


def unused_name(span: Span, name: str) -> Diagnostic:
    return Diagnostic("W0201", f"`{name}` is never used", span, "unused", remedy="delete the line, or use the value")


def too_deep(span: Span, limit: int) -> Diagnostic:
    message = f"blocks are nested more than {limit} deep"
    return Diagnostic("E0225", message, span, "too deep", remedy="do not pass a block to itself as a static")


def too_deep_together(span: Span, name: str) -> Diagnostic:
    message = f"blocks, loops and expressions in `{name}` are nested too deep"
    remedy = "bind inner values to names, and nest fewer blocks and loops"
    return Diagnostic("E0225", message, span, "too deep", remedy=remedy)


# Statics


def unknown_static(span: Span, name: str, block: str, possible: Iterable[str], declared: Span | None) -> Diagnostic:
    possible = tuple(possible)
    otherwise = f"`{block}` has {listed(possible)}" if possible else f"`{block}` has no statics"
    labels = (Label(declared, f"`{block}` is declared here"),) if declared else ()
    message = f"`{block}` has no static `{name}`"
    return Diagnostic("E0301", message, span, "unknown static", labels, suggest(name, possible, otherwise))


def missing_static(span: Span, name: str, kind: str, block: str, declared: Span) -> Diagnostic:
    labels = (Label(declared, "declared without a default here"),)
    remedy = f"write `{block}[{name} = …]` with {_a(kind)}"
    return Diagnostic("E0302", f"`{block}` requires the static `{name}`", span, f"`{name}` is missing", labels, remedy)


def wrong_kind(span: Span, name: str, expected: str, value: str, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{name}` is declared here"),) if declared else ()
    subject = f"`{name}`" if name.isidentifier() else name
    message = f"{subject} takes {_a(expected)}, not {value}"
    return Diagnostic("E0303", message, span, f"expected {_a(expected)}", labels, _KIND_REMEDY.get(expected, ""))


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


def _a(kind: str) -> str:
    phrases = {"int": "an integer", "float": "a number", "bool": "`true` or `false`", "symbol": "a symbol"}
    return phrases.get(kind, f"a {kind}")


def file_outside(span: Span, name: str, path: str) -> Diagnostic:
    message = f"`{path}` is outside the folder of the program"
    remedy = (
        f"move the file into the folder, pass its path on the command line (`--set 'task.{name}=\"…\"'`), or allow its "
        "folder: `--allow FOLDER`"
    )
    return Diagnostic("E0316", message, span, "outside the folder", remedy=remedy)


def class_of_archlang(span: Span, name: str, python: str) -> Diagnostic:
    message = f"the task `{name}` of this program names a class of archlang: `{python}`"
    remedy = "use the shipped task, or name a class in a Python file beside the program"
    return Diagnostic("E0317", message, span, "class of archlang", remedy=remedy)


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
    remedy = f"did you mean `{near}`?" if near else "change one of these values"
    return Diagnostic("E0304", f"`{block}` requires {condition}, but {values}", span, "does not hold", labels, remedy)


def too_many_statics(span: Span, block: str, count: int, declared: Span | None) -> Diagnostic:
    labels = (Label(declared, f"`{block}` is declared here"),) if declared else ()
    allowed = "no statics" if count == 0 else f"at most {plural(count, 'static')}"
    message = f"`{block}` takes {allowed}"
    return Diagnostic("E0305", message, span, "too many statics", labels, "delete it, or set a static by name")


def static_set_twice(span: Span, name: str, first: Span) -> Diagnostic:
    message = f"`{name}` is set twice"
    return Diagnostic("E0306", message, span, "second value", (Label(first, "first value"),), "delete one of them")


def not_evaluable(span: Span, reason: str, remedy: str) -> Diagnostic:
    return Diagnostic("E0307", reason, span, "cannot be evaluated", remedy=remedy)


def declared_by_library_only(span: Span, name: str) -> Diagnostic:
    message = f"only archlang's own files declare settings of training: `{name}` would have no effect"
    remedy = "delete it, and declare statics of your own at an `extern optimizer`"
    return Diagnostic("E0234", message, span, "has no effect", remedy=remedy)


def incomplete_optimizer(span: Span, name: str) -> Diagnostic:
    message = f"the optimizer `{name}` needs a static `lr: float`, `with training`, and a class of your own"
    remedy = f'write `extern optimizer {name}[lr: float = 1e-3] with training python "mine:{name.capitalize()}"`'
    return Diagnostic("E0235", message, span, "incomplete optimizer", remedy=remedy)


def size_too_large(span: Span) -> Diagnostic:
    reason = f"this size has more than {MOST_TERMS} terms, {MOST_FACTORS} factors in a term, or a factor above 2^53"
    return not_evaluable(span, reason, "make the size a static of the block")


def bad_count(span: Span, word: str, value: str, least: int = 0) -> Diagnostic:
    unit = "positions" if word == "after" else "steps"
    message = f"`{word}` takes from {least} to 10000 {unit}, not {value}"
    remedy = f"write an integer from {least} to 10000, or a static of kind `int`"
    return Diagnostic("E0308", message, span, f"invalid number of {unit}", remedy=remedy)


def data_in_static(span: Span, name: str, bound: Span) -> Diagnostic:
    message = f"`{name}` is a run-time value, but a static is fixed at compile time"
    remedy = "pass it in parentheses, or use a static of the block"
    return Diagnostic("E0309", message, span, "not static", (Label(bound, f"`{name}` is bound here"),), remedy)


def length_in_static(span: Span, name: str, bound: Span) -> Diagnostic:
    labels = (Label(bound, f"`{name}` counts positions here"),) if bound != span else ()
    message = f"`{name}` is a length, which differs from sample to sample, but a static is fixed at compile time"
    remedy = "write a number or a static of the block; only lengths in types can depend on a length"
    return Diagnostic("E0318", message, span, "a length", labels, remedy)


def nothing_to_vary(span: Span) -> Diagnostic:
    remedy = "write a list such as `[true, false]`, or a range such as `1..5`"
    return Diagnostic("E0310", "no values to vary", span, "empty", remedy=remedy)


def unknown_kind(span: Span, kind: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    remedy = suggest(kind, possible, f"the kinds are {listed(possible)}")
    return Diagnostic("E0311", f"unknown kind of static `{kind}`", span, "no such kind", remedy=remedy)


def unknown_path(span: Span, path: str, possible: Iterable[str]) -> Diagnostic:
    remedy = suggest(path, possible, "write `seed`, or `task.`, `model.` or `train.` and the name of a static")
    return Diagnostic("E0312", f"unknown path `{path}` in this recipe", span, "no such static", remedy=remedy)


def unknown_static_name(span: Span, name: str, possible: Iterable[str], kind: str | None = None) -> Diagnostic:
    if span.source.path.startswith("--set "):
        expected = _a(kind or "int")
        message = f"`{span.source.path}` takes {expected}, not `{name}`, which is no static here"
        example = f"write a list: `[{name}]`" if kind == "list" else f"{_KIND_REMEDY.get(kind or 'int', '')} after `=`"
        remedy = suggest(name, possible, example)
        return Diagnostic("E0313", message, span, f"expected {expected}", remedy=remedy)
    declare = "declare it as a static of the block: `block name[" + name + ": int](…)`"
    remedy = suggest(name, possible, f"write a list: `[{name}]`" if kind == "list" else declare)
    return Diagnostic("E0313", f"unknown static or size `{name}`", span, "not bound here", remedy=remedy)


def unclear_kind(span: Span, name: str) -> Diagnostic:
    message = f"the kind of `{name}` is unknown"
    remedy = f"declare the kind, as in `{name}: int`"
    return Diagnostic("E0314", message, span, "no kind and no default that implies one", remedy=remedy)


def test_changes_weights(span: Span, path: str) -> Diagnostic:
    message = f"`{path}` changes the weights of the model and cannot differ at test time"
    remedy = "change only statics that leave the weights unchanged, such as the steps of a `repeat`"
    return Diagnostic("E0315", message, span, "changes weights", remedy=remedy)


# Limits


def too_many_uses(span: Span, limit: int) -> Diagnostic:
    message = f"this program and the files that it uses have more than {limit} `use` lines"
    remedy = "merge the files that the program needs"
    return Diagnostic("E0226", message, span, f"`use` line {limit + 1}", remedy=remedy)


def too_many_used_words(span: Span, limit: int) -> Diagnostic:
    message = f"the files that this program uses have more than {limit:_} tokens in total"
    remedy = "use smaller files that contain only the blocks that the program needs"
    return Diagnostic("E0227", message, span, "exceeded with this file", remedy=remedy)


def too_much_work(span: Span, name: str, limit: int) -> Diagnostic:
    message = f"this program takes more than {limit:_} steps to check; the limit is reached in `{name}`"
    remedy = "apply a block many times with `repeat` or `stack`, or split the file"
    return Diagnostic("E0228", message, span, "limit reached here", remedy=remedy)
