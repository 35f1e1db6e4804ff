"""Verdicts on blocks, and the diagnostics about blocks that violate their signatures."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from archlang.backend.mistakes import BuildError, raised
from archlang.contracts.cases import Case
from archlang.errors import Diagnostic, ErrorWithRemedy, Label
from archlang.errors.messages import read_messages
from archlang.errors.names import listed, suggest
from archlang.plugins.plugins import failing_line

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


# Pages that cannot be compared with a module


class EqualityError(ErrorWithRemedy):
    """A page cannot be compared with a module of the user's own."""


no_gradient = EqualityError.wording(
    "the result of the module has no gradient", "leave out `torch.no_grad` and `detach` between weights and result"
)
other_result = EqualityError.wording(
    "the result of the page has the shape ({expected}), that of the module ({found})",
    "give both the same sizes, as by `--set model.d=64`",
)


def unknown_weight(name: str, where: str, possible: Collection[str]) -> EqualityError:
    return EqualityError(f"{where} has no weight `{name}`", suggest(name, possible, f"it has {listed(possible)}"))


def other_shapes(name: str, shape: tuple[int, ...], other: str, found: tuple[int, ...]) -> EqualityError:
    remedy = f"write `--map {name}={other}.T`" if found[::-1] == shape else "map weights of the same shape"
    return EqualityError(f"`{name}` has the shape {shape}, and `{other}` {found}", remedy)


def ambiguous_weights(ours: Sequence[str], theirs: Sequence[str], shape: tuple[int, ...]) -> EqualityError:
    message = (
        f"which of the weights of shape {shape} belong together is unclear: the page has {listed(ours)}, the module "
    )
    remedy = f"map them by hand, as by `--map {ours[0]}={theirs[0]}`"
    return EqualityError(message + listed(theirs), remedy)


def weights_without_partner(
    ours: Mapping[str, tuple[int, ...]], theirs: Mapping[str, tuple[int, ...]]
) -> EqualityError:
    sides = {"the page": ours, "the module": theirs}
    texts = [
        f"{', '.join(f'`{name}` {shape}' for name, shape in side.items())} of {where}"
        for where, side in sides.items()
        if side
    ]
    return EqualityError(f"weights without a partner of their shape: {' and '.join(texts)}", _mapping(ours, theirs))


def _mapping(ours: Mapping[str, tuple[int, ...]], theirs: Mapping[str, tuple[int, ...]]) -> str:
    """Returns how to map weights of the page that are one of the module if they are joined, or if it is transposed."""
    for other, found in theirs.items():
        for turned, end in ((found, ""), (found[::-1], ".T")):
            for shape in dict.fromkeys(ours.values()):
                names = [name for name, each in ours.items() if each == shape]
                count = turned[0] // shape[0] if shape and turned else 0
                if turned[1:] == shape[1:] and turned[:1] == (count * shape[0],) and 0 < count <= len(names):
                    return f"if they belong together, write `--map {'+'.join(names[:count])}={other}{end}`"
    biases = "the module" if not ours else "the page" if not theirs else ""
    only = f": only {biases} has these, such as biases" if biases else ""
    return f"give both the same sizes and biases{only}; `--map a+b=c` joins weights of the page, and `c.T` transposes"


def unknown_arguments(missing: Sequence[str], possible: Collection[str]) -> EqualityError:
    message = f"the module needs {listed(missing)}, which the page does not have"
    remedy = f"write a function of your own that makes the module; it may take {listed(possible)}"
    return EqualityError(message, remedy)


# Blocks that violate their signatures


def broken(row: str, case: Case, facts: Facts, /, **values: object) -> Broken:
    """Returns the mistake of a row of `messages.txt`, with the failing statics, sizes and seed as a label at the class.
    Besides `values`, a row may name the block, its class, and their places."""
    item, message = case.item, read_messages("archlang.contracts")[row]
    result = item.signature.result
    values |= {"block": item.name, "python": item.python, "class_": item.python_span, "name_": item.name_span}
    values |= {"result_": result.span if result else item.name_span, "pure_": item.pure_span or item.name_span}
    diagnostic = message(**{name: values[name] for name in message.facts})
    shown = [*case.chosen.items(), *((name, str(size)) for name, size in case.sizes.items()), *facts.items()]
    seen = "seen with " + ", ".join(f"{name} = {value}" for name, value in shown)
    if diagnostic.span == item.python_span:
        return Broken(replace(diagnostic, label=seen))
    return Broken(replace(diagnostic, labels=(Label(item.python_span, seen),)))


def raises(case: Case, place: str, error: BaseException, facts: Facts) -> Broken:
    line = failing_line(error)
    where = "" if line is None else f", at {line[0]}:{line[1]}"
    return broken("raises", case, facts, place=place, raised=f"{raised(error)}{where}")


def not_built(case: Case, error: BuildError, facts: Facts) -> Broken:
    # The diagnostic names the place and the block already.
    reason = str(error).removeprefix(f"{case.item.python_span}: ").removeprefix(f"`{case.item.name}` ").rstrip(".")
    return broken("not_built", case, facts, reason=reason)


def changed(index: int | None, gap: float, field: str = "result") -> str:
    """Returns a message such as `position 3 of the result changes by 0.2`."""
    what = "the result" if field == "result" else f"`{field}`"
    place = what if index is None else f"position {index} of {what}"
    return f"{place} changes by {gap:.2g}"
