"""Selects blocks, and tests each for every property that its signature promises."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from archlang.contracts import mistakes
from archlang.contracts.cases import cases, is_chunked, resized
from archlang.contracts.facts import costs, halting, maps, records
from archlang.contracts.independence import batch, padding, pure, random, saving, seeds
from archlang.contracts.mistakes import Broken, Skipped, Verdict
from archlang.contracts.reading import reads
from archlang.contracts.results import gradients, numbers, result
from archlang.contracts.subject import Subject
from archlang.elaborate.static_arguments import parameter_kind
from archlang.errors import ProgramError
from archlang.plan.check import check
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.resolve import library
from archlang.resolve.resolve import Declaration, ProgramLoader, prelude
from archlang.syntax.tree import Extern

# Each returns, or raises `Broken` or `Skipped`. `result` comes first: if it is broken, the others are not tested.
PROPERTIES: Mapping[str, Callable[[Subject], None]] = {
    "result": result,
    "reads": reads,
    "padding": padding,
    "batch": batch,
    "gradients": gradients,
    "pure": pure,
    "random": random,
    "seeds": seeds,
    "saving": saving,
    "numbers": numbers,
    "halting": halting,
    "costs": costs,
    "maps": maps,
    "records": records,
}
# These are also tested at other sizes of features, to find a size that the class does not take from its arguments.
_SIZED = ("result", "costs")
# These compare the results of several calls, which differ if the block draws random numbers that it does not declare.
_COMPARING = ("reads", "padding", "batch", "gradients", "pure", "saving", "maps")
_LENGTHS = (1, 2, 5)


def library_blocks(names: Sequence[str] = ()) -> list[Declaration]:
    """Returns the Python blocks of the library with these names, or all of them without names.

    Raises:
        ContractError: the library has no block of a name."""
    blocks = {name: prelude(item) for name, item in library.blocks().items() if isinstance(item, Extern)}
    return _selected(blocks, names, "the library")


def program_blocks(path: str | Path, names: Sequence[str] = (), allow: Iterable[str | Path] = ()) -> list[Declaration]:
    """Returns the `extern block`s of a program with these names, or all of them without names. The program may also use
    files of the folders of `allow`.

    Raises:
        ProgramError: the program has errors.
        ContractError: the program has no block of a name, or no `extern block`."""
    errors = [diagnostic for diagnostic in check(path, allow) if diagnostic.is_error]
    if errors:
        raise ProgramError(errors)
    own = ProgramLoader(allow).load(path).own
    blocks = {name: declaration for name, declaration in own.items() if isinstance(declaration.item, Extern)}
    if not blocks:
        raise mistakes.no_blocks(path)
    return _selected(blocks, names, f"`{path}`")


def _selected(blocks: Mapping[str, Declaration], names: Sequence[str], where: str) -> list[Declaration]:
    for name in names:
        if name not in blocks:
            raise mistakes.unknown_block(name, where, blocks)
    return [blocks[name] for name in names or blocks]


def hold(declaration: Declaration, seed: int = 0, plugins: Plugins = NO_PLUGINS) -> list[Verdict]:
    """Returns a verdict for each property of a block, over all its cases. `seed` fixes weights and samples. The class
    of the block is one of archlang's or in a plugin. The state of torch's generator does not change.

    Raises:
        PluginError: the class is in no plugin, or its plugin cannot be imported."""
    name = declaration.name
    if is_chunked(declaration):
        return _untested(name, "chunks are no tensor")
    for static in declaration.item.signature.statics:
        if parameter_kind(static, declaration.file) == "block":
            return _untested(name, f"`{static.name}` is a block")
    subjects = [Subject(case, seed, _LENGTHS, plugins) for case in cases(declaration)]
    if not subjects:
        return _untested(name, "the search found no statics and sizes that `where` allows")
    resized_case = resized(declaration, subjects[0].case)
    extra = [] if resized_case is None else [Subject(resized_case, seed, _LENGTHS, plugins)]
    sized = [*subjects, *extra]
    verdicts: list[Verdict] = []
    with torch.random.fork_rng(devices=[]), _one_thread():
        for title, test in PROPERTIES.items():
            verdicts.append(_verdict(name, title, test, sized if title in _SIZED else subjects))
            if title == "result" and verdicts[0].mistake is not None:
                rest = _untested(name, "the property `result` is broken")
                return [*verdicts, *rest[1:]]
    return _without_consequences(verdicts)


def _without_consequences(verdicts: list[Verdict]) -> list[Verdict]:
    """Skips the comparisons that fail if the block also draws undeclared random numbers, so that one mistake is one
    error."""
    if not any(verdict.property == "random" and verdict.mistake for verdict in verdicts):
        return verdicts
    return [
        Verdict(verdict.block, verdict.property, skipped="the property `random` is broken")
        if verdict.property in _COMPARING and verdict.mistake
        else verdict
        for verdict in verdicts
    ]


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limits torch to one thread: for small samples, more threads are slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _verdict(block: str, title: str, test: Callable[[Subject], None], subjects: list[Subject]) -> Verdict:
    reasons = []
    for subject in subjects:
        try:
            test(subject)
        except Broken as broken:
            return Verdict(block, title, mistake=broken.diagnostic)
        except Skipped as skipped:
            reasons.append(skipped.reason)
    return Verdict(block, title, skipped=reasons[0] if len(reasons) == len(subjects) else "")


def _untested(block: str, reason: str) -> list[Verdict]:
    return [Verdict(block, title, skipped=reason) for title in PROPERTIES]
