"""What a block can break of its signature, worded for the person who wrote the block."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from archlang.contracts.cases import Case
from archlang.diagnostics import ArchlangError, Diagnostic, Label
from archlang.diagnostics.names import listed, suggest
from archlang.source import Span

Facts = Mapping[str, str]


class ContractError(ArchlangError):
    """A block cannot be tested: `message` says why, `remedy` what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}: {remedy}")


# Blocks that cannot be tested


def no_blocks(path: object) -> ContractError:
    message = f"`{path}` has no `extern block`"
    return ContractError(message, "name a program that has one, or none to test the blocks of the library")


def unknown_block(name: str, where: str, known: Collection[str]) -> ContractError:
    return ContractError(f"{where} has no extern block `{name}`", suggest(name, known, f"there are {listed(known)}"))


def no_plugin(path: Path) -> ContractError:
    return ContractError(f"there is no file `{path}` to be a plugin", "name a Python file after `--plugin`")


def plugins_of_one_name(first: Path, second: Path) -> ContractError:
    message = f"the plugins `{first}` and `{second}` have one name"
    return ContractError(message, "`python` names a plugin by its file: rename one")


def foreign_block(block: str, python: str) -> ContractError:
    module = python.partition(":")[0]
    return ContractError(
        f"the block `{block}` is not one of archlang's: its class is `{python}`, and Python of a program is not run "
        "unasked",
        f"read {module}.py, and if you trust it, add `--plugin {module}.py`",
    )


# Blocks that break their word


def raises(case: Case, place: str, error: BaseException, facts: Facts) -> Diagnostic:
    reason = str(error).strip().partition("\n")[0]
    message = f"{place} raises {type(error).__name__}{': ' if reason else ''}{reason}"
    remedy = "mend the class, or let `where` refuse these statics and sizes"
    return _mistake("E0701", message, case.item.python_span, "", case, facts, remedy)


def no_halting_block(case: Case, facts: Facts) -> Diagnostic:
    message = f"`{case.item.name}` gives `prob`, but {case.item.python} is no HaltingBlock"
    remedy = "derive it from archlang.backend.runtime.halting.HaltingBlock"
    return _mistake("E0714", message, case.item.python_span, "no HaltingBlock", case, facts, remedy)


def wrong_shape(case: Case, expected: str, found: str, facts: Facts) -> Diagnostic:
    message = f"the result is {found}, and the signature promises {expected}"
    remedy = "mend the class, or the type of the result"
    return _mistake("E0702", message, _result_span(case), "promised here", case, facts, remedy)


def misread(case: Case, name: str, manner: str, span: Span, change: str, facts: Facts) -> Diagnostic:
    remedy = f"mend the class, or write a manner that allows this, such as `{name} full`"
    return _mistake("E0703", f"`{name}` is read otherwise than `{manner}`", span, change, case, facts, remedy)


def reads_padding(case: Case, change: str, facts: Facts) -> Diagnostic:
    remedy = "use the masks so that only real positions count, or write `depends on padding`"
    return _mistake("E0704", "a sample's result depends on padding", case.item.name_span, change, case, facts, remedy)


def mixes_samples(case: Case, change: str, facts: Facts) -> Diagnostic:
    message = "a sample's result depends on the other samples of the batch"
    remedy = "compute each sample by itself, or write `depends on batch`"
    return _mistake("E0705", message, case.item.name_span, change, case, facts, remedy)


def impure(case: Case, reason: str, facts: Facts) -> Diagnostic:
    message = f"the block is called pure, and {reason}"
    remedy = "remove `pure`, or what breaks it"
    return _mistake("E0706", message, case.item.pure_span or case.item.name_span, "promised here", case, facts, remedy)


def wrong_gradient(case: Case, name: str, reason: str, facts: Facts) -> Diagnostic:
    message = f"the gradient of `{name}` {reason}"
    remedy = "mend the class, or write `stops gradients` if that is meant"
    return _mistake("E0707", message, case.item.name_span, "differentiated", case, facts, remedy)


def wrong_length(case: Case, row: int, size: str, expected: int, places: Sequence[int], facts: Facts) -> Diagnostic:
    where = f"at the positions {', '.join(map(str, places))}" if places else "nowhere"
    message = f"sample {row} of the result has {expected} positions by its type, `{size}`, and its mask is true {where}"
    remedy = "let the mask be true at the first positions of each sample, as many as the type says"
    return _mistake("E0708", message, _result_span(case), "promised here", case, facts, remedy)


def draws(case: Case, when: str, clause: str, facts: Facts) -> Diagnostic:
    message = f"the block draws random numbers in {when}, which its signature does not say"
    remedy = f"write `{clause}`, with the condition after `when`, or draw none"
    return _mistake("E0709", message, case.item.name_span, f"no `{clause}`", case, facts, remedy)


def draws_elsewhere(case: Case, when: str, facts: Facts) -> Diagnostic:
    message = f"the result in {when} depends on random numbers that are not torch's"
    remedy = "draw numbers from torch's generator, so that a seed reproduces a run"
    return _mistake("E0709", message, case.item.name_span, "draws from Python or numpy", case, facts, remedy)


def remembers(case: Case, change: str, when: str, facts: Facts) -> Diagnostic:
    message = "a second call with the same input and the same seed gives another result"
    remedy = "keep nothing between calls"
    return _mistake("E0709", message, case.item.name_span, f"{change} in {when}", case, facts, remedy)


def unseeded(case: Case, reason: str, facts: Facts) -> Diagnostic:
    remedy = "draw initial values from torch's generator only, and do not seed it"
    return _mistake("E0710", reason, case.item.python_span, "", case, facts, remedy)


def unsaved(case: Case, copy: str, reason: str, facts: Facts) -> Diagnostic:
    remedy = "register what the result depends on as parameters and buffers"
    return _mistake("E0711", f"{copy} {reason}", case.item.python_span, "", case, facts, remedy)


def not_finite(case: Case, where: str, facts: Facts) -> Diagnostic:
    message = f"the result {where} has NaN or infinite numbers"
    remedy = "guard divisions, logarithms and the softmax of nothing"
    return _mistake("E0712", message, case.item.name_span, "not finite", case, facts, remedy)


def wrong_tally(case: Case, name: str, expected: str, found: str, facts: Facts) -> Diagnostic:
    message = f"`{name}` of the tally is {found}, and should be {expected}"
    remedy = "see `archlang.backend.runtime.halting.Tally`"
    return _mistake("E0713", message, _result_span(case), "decides so", case, facts, remedy)


def accepts_what_has_halted(case: Case, reason: str, facts: Facts) -> Diagnostic:
    remedy = "let `accepted` and `live` be true only where the tally before was live"
    return _mistake("E0714", reason, case.item.name_span, "halts loops", case, facts, remedy)


def moves_after_halting(case: Case, name: str, gap: float, facts: Facts) -> Diagnostic:
    message = f"`{name}` of a sample changes by {_number(gap)} after none of its positions is live"
    remedy = "keep the mixture, the ponder and the steps of a sample once it has halted"
    return _mistake("E0715", message, case.item.name_span, "halts loops", case, facts, remedy)


def wrong_parameters(case: Case, stated: int, counted: int, facts: Facts) -> Diagnostic:
    return _mistake(
        "E0716",
        f"the block has {counted} parameters, and `costs` states {stated}",
        next(cost.span for cost in case.item.costs if cost.quantity == "parameters"),
        "stated here",
        case,
        facts,
        "count the weights of the class for any statics and sizes, and correct the clause",
    )


def wrong_map(case: Case, name: str, reason: str, facts: Facts) -> Diagnostic:
    remedy = "make it an `archlang.kernels.linear.Linear`, and read it with `mapped` from `products`"
    return _mistake("E0717", f"the map `{name}` {reason}", case.item.maps[0].span, "stated here", case, facts, remedy)


def wrong_record(case: Case, expected: str, found: str, facts: Facts) -> Diagnostic:
    return _mistake(
        "E0718",
        f"the method `weights` returns {found}, and attention is {expected}",
        next(record.span for record in case.item.records if record.kind == "attention"),
        "stated here",
        case,
        facts,
        "return a weight for each sample, head, query and key",
    )


def changed(index: int | None, gap: float, field: str = "result") -> str:
    """`position 3 of the result changes by 0.2`"""
    what = "the result" if field == "result" else f"`{field}`"
    place = what if index is None else f"position {index} of {what}"
    return f"{place} changes by {_number(gap)}"


def _number(gap: float) -> str:
    return f"{gap:.2g}"


def _result_span(case: Case) -> Span:
    result = case.item.signature.result
    return case.item.name_span if result is None else result.span


def _mistake(code: str, message: str, span: Span, label: str, case: Case, facts: Facts, remedy: str) -> Diagnostic:
    """A diagnostic about a case; the input that shows it stands at the class."""
    values = [*case.chosen.items(), *((name, str(size)) for name, size in case.sizes.items()), *facts.items()]
    seen = "seen with " + ", ".join(f"{name} = {value}" for name, value in values)
    place = case.item.python_span
    if span == place:
        return Diagnostic(code, f"`{case.item.name}`: {message}", span, seen, remedy=remedy)
    return Diagnostic(code, f"`{case.item.name}`: {message}", span, label, (Label(place, seen),), remedy)
