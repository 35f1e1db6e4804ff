"""Verdicts on blocks, and the diagnostics about blocks that violate their signatures."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from archlang.backend.mistakes import BuildError
from archlang.contracts.cases import Case
from archlang.diagnostics import Diagnostic, ErrorWithRemedy, Label
from archlang.diagnostics.names import listed, suggest
from archlang.plugins.plugins import failing_line
from archlang.source import Span

Facts = Mapping[str, str]


class ContractError(ErrorWithRemedy):
    """A block cannot be tested."""


class Broken(Exception):
    """A block violates a property. `diagnostic` shows the clause of the signature and the failing input."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Skipped(Exception):
    """A property does not apply to a block, or its signature exempts the block from it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Verdict:
    """Whether a block has a property: `mistake` is set if it violates the property, `skipped` if no case tests it."""

    block: str
    property: str
    mistake: Diagnostic | None = None
    skipped: str = ""


# Blocks that cannot be tested


no_blocks = ContractError.wording(
    "`{path}` has no `extern block`", "name a program with extern blocks, or omit the file to test the library"
)


def unknown_block(name: str, where: str, possible: Collection[str]) -> ContractError:
    remedy = suggest(name, possible, f"its extern blocks are {listed(possible)}")
    return ContractError(f"{where} has no extern block `{name}`", remedy)


# Blocks that violate their signatures


def raises(case: Case, place: str, error: BaseException, facts: Facts) -> Broken:
    reason = str(error).strip().partition("\n")[0]
    line = failing_line(error)
    where = "" if line is None else f", at {line[0]}:{line[1]}"
    message = f"{place} raises {type(error).__name__}{': ' if reason else ''}{reason}{where}"
    remedy = "fix the class, or exclude these statics and sizes with `where`"
    return _mistake("E0701", message, case.item.python_span, "", case, facts, remedy)


def not_built(case: Case, error: BuildError, facts: Facts) -> Broken:
    # The diagnostic names the place and the block already.
    reason = str(error).removeprefix(f"{case.item.python_span}: ").removeprefix(f"`{case.item.name}` ").rstrip(".")
    return _mistake("E0701", reason, case.item.python_span, "", case, facts, "fix the class")


def without_shape(case: Case, facts: Facts) -> Broken:
    reason = "its weights have no shapes before the first call, so they can be neither counted nor saved"
    remedy = "give each layer its sizes, as in `nn.Linear(d, d)` for `nn.LazyLinear(d)`"
    return _mistake("E0701", reason, case.item.python_span, "", case, facts, remedy)


def no_halting_block(case: Case, facts: Facts) -> Broken:
    message = f"its result is `prob`, but {case.item.python} is not a HaltingBlock"
    remedy = "derive the class from archlang.backend.runtime.halting.HaltingBlock"
    return _mistake("E0714", message, case.item.python_span, "not a HaltingBlock", case, facts, remedy)


def wrong_shape(case: Case, expected: str, actual: str, facts: Facts) -> Broken:
    message = f"the result is {actual}, but the signature declares {expected}"
    remedy = "fix the class or the type of the result"
    return _mistake("E0702", message, _result_span(case), "declared here", case, facts, remedy)


def wrong_precision(case: Case, actual: torch.dtype, facts: Facts) -> Broken:
    message = f"the result is {str(actual).removeprefix('torch.')} although all inputs and weights are float32"
    remedy = "create tensors with the `dtype` of the inputs"
    return _mistake("E0702", message, _result_span(case), "declared here", case, facts, remedy)


def misread(case: Case, name: str, manner: str, span: Span, change: str, facts: Facts) -> Broken:
    remedy = f"fix the class, or declare a manner that allows this, such as `{name} full`"
    return _mistake(
        "E0703", f"`{name}` is declared `{manner}`, but the block reads more of it", span, change, case, facts, remedy
    )


def reads_padding(case: Case, change: str, facts: Facts) -> Broken:
    remedy = "exclude padding with the masks, or declare `depends on padding`"
    return _mistake("E0704", "a sample's result depends on padding", case.item.name_span, change, case, facts, remedy)


def mixes_samples(case: Case, change: str, facts: Facts) -> Broken:
    message = "a sample's result depends on the other samples of the batch"
    remedy = "compute each sample independently, or declare `depends on batch`"
    return _mistake("E0705", message, case.item.name_span, change, case, facts, remedy)


def impure(case: Case, reason: str, facts: Facts) -> Broken:
    message = f"the block is declared pure, but {reason}"
    remedy = "remove `pure`, or fix the class"
    return _mistake("E0706", message, case.item.pure_span or case.item.name_span, "declared here", case, facts, remedy)


def wrong_gradient(case: Case, name: str, reason: str, facts: Facts) -> Broken:
    message = f"the gradient of `{name}` {reason}"
    remedy = "fix the class, or declare `stops gradients`"
    return _mistake("E0707", message, case.item.name_span, "wrong gradient", case, facts, remedy)


def wrong_length(case: Case, row: int, size: str, expected: int, places: Sequence[int], facts: Facts) -> Broken:
    where = f"at the positions {', '.join(map(str, places))}" if places else "nowhere"
    message = f"the type declares {expected} positions (`{size}`) for sample {row}, but its mask is true {where}"
    remedy = "make the mask true at the first positions of each sample, as many as the type declares"
    return _mistake("E0708", message, _result_span(case), "declared here", case, facts, remedy)


def draws(case: Case, when: str, clause: str, facts: Facts) -> Broken:
    message = f"the block draws random numbers in {when}, but its signature does not declare it"
    remedy = f"declare `{clause}`, with a condition after `when` if it has one, or draw no numbers"
    return _mistake("E0709", message, case.item.name_span, f"no `{clause}`", case, facts, remedy)


def draws_elsewhere(case: Case, when: str, facts: Facts) -> Broken:
    message = f"the result in {when} depends on random numbers of Python or NumPy"
    remedy = "draw numbers from torch's generator, so that a seed reproduces a run"
    return _mistake("E0709", message, case.item.name_span, "not from torch's generator", case, facts, remedy)


def remembers(case: Case, change: str, when: str, facts: Facts) -> Broken:
    message = "a second call with the same input and seed returns a different result"
    remedy = "keep no state between calls"
    return _mistake("E0709", message, case.item.name_span, f"{change} in {when}", case, facts, remedy)


def unseeded(case: Case, reason: str, facts: Facts) -> Broken:
    remedy = "draw initial values from torch's generator only, and do not seed it"
    return _mistake("E0710", reason, case.item.python_span, "", case, facts, remedy)


def unsaved(case: Case, copy: str, reason: str, facts: Facts) -> Broken:
    remedy = "register what the result depends on as parameters and buffers"
    return _mistake("E0711", f"{copy} {reason}", case.item.python_span, "", case, facts, remedy)


def not_finite(case: Case, where: str, facts: Facts) -> Broken:
    message = f"the result {where} contains NaN or infinity"
    remedy = "guard divisions, logarithms and the softmax over no positions"
    return _mistake("E0712", message, case.item.name_span, "not finite", case, facts, remedy)


def wrong_tally(case: Case, name: str, expected: str, actual: str, facts: Facts) -> Broken:
    message = f"`{name}` of the tally is {actual}, but must be {expected}"
    remedy = "see `archlang.backend.runtime.halting.Tally`"
    return _mistake("E0713", message, _result_span(case), "declared here", case, facts, remedy)


def accepts_after_halting(case: Case, reason: str, facts: Facts) -> Broken:
    remedy = "set `accepted` and `live` only where the previous tally is live"
    return _mistake("E0714", reason, case.item.name_span, "halting block", case, facts, remedy)


def changes_after_halting(case: Case, name: str, gap: float, facts: Facts) -> Broken:
    message = f"`{name}` of a sample changes by {_number(gap)} although none of its positions is live"
    remedy = "keep the mixture, ponder and steps of a halted sample"
    return _mistake("E0715", message, case.item.name_span, "halting block", case, facts, remedy)


def changes_input(case: Case, name: str, facts: Facts) -> Broken:
    message = f"its forward changes `{name}` in place, which other parts of a model may read"
    remedy = "compute a new tensor, as `x * 2` does in place of `x *= 2`"
    return _mistake("E0719", message, case.item.python_span, "", case, facts, remedy)


def wrong_cost(case: Case, quantity: str, stated: int, counted: str, facts: Facts) -> Broken:
    meaning = {"parameters": "counts the weights of the class", "nonzero": "is the largest count"}[quantity]
    span = next(cost.span for cost in case.item.costs if cost.quantity == quantity)
    remedy = f"correct the clause: it {meaning} for all statics and sizes"
    return _mistake("E0716", f"{counted}, but `costs` states {stated}", span, "stated here", case, facts, remedy)


def wrong_map(case: Case, name: str, reason: str, facts: Facts) -> Broken:
    remedy = "use a `torch.nn.Linear`, and apply it with `mapped` and `products`"
    return _mistake("E0717", f"the map `{name}` {reason}", case.item.maps[0].span, "stated here", case, facts, remedy)


def record_raises(case: Case, error: Exception, masks: Iterable[str], facts: Facts) -> Broken:
    takes = " and ".join(["the inputs", *(f"`{name}`" for name in masks)])
    reason = f"raises {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return wrong_record(case, reason, f"write a method that takes {takes}, or delete the clause", facts)


def wrong_record(case: Case, reason: str, remedy: str, facts: Facts) -> Broken:
    span = next(record.span for record in case.item.records if record.kind == "attention")
    return _mistake("E0718", f"the method `weights` {reason}", span, "stated here", case, facts, remedy)


def changed(index: int | None, gap: float, field: str = "result") -> str:
    """Returns a message such as `position 3 of the result changes by 0.2`."""
    what = "the result" if field == "result" else f"`{field}`"
    place = what if index is None else f"position {index} of {what}"
    return f"{place} changes by {_number(gap)}"


def _number(gap: float) -> str:
    return f"{gap:.2g}"


def _result_span(case: Case) -> Span:
    result = case.item.signature.result
    return case.item.name_span if result is None else result.span


def _mistake(code: str, message: str, span: Span, label: str, case: Case, facts: Facts, remedy: str) -> Broken:
    """Returns an error with the failing statics, sizes and seed as a label at the class."""
    values = [*case.chosen.items(), *((name, str(size)) for name, size in case.sizes.items()), *facts.items()]
    seen = "seen with " + ", ".join(f"{name} = {value}" for name, value in values)
    place = case.item.python_span
    if span == place:
        return Broken(Diagnostic(code, f"`{case.item.name}`: {message}", span, seen, remedy=remedy))
    return Broken(Diagnostic(code, f"`{case.item.name}`: {message}", span, label, (Label(place, seen),), remedy))
