"""Calls of library blocks without mistakes, so that an equal call in any program is not bound again."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from archlang.diagnostics.effort import is_check, is_limited, spend, spent
from archlang.graph.graph import Instance
from archlang.names import library
from archlang.names.values import BlockValue, Bound, InstanceValue, Value
from archlang.syntax.tree import Definition, Extern
from archlang.types import Type

_MOST = 20_000


@dataclass(frozen=True)
class KnownCall:
    """A call without mistakes: the type of its result, and its instance, whose path and place are those of another
    call. Which values are its arguments is not known: it may have been applied twice to the same one."""

    type: Type
    instance: Instance


_known: dict[Hashable, tuple[KnownCall, int]] = {}


def known_call(
    block: BlockValue,
    arguments: Sequence[Type],
    may_be_unknown: bool,
    bind: Callable[[], tuple[KnownCall | None, bool]],
) -> KnownCall | None:
    """Returns a call of an extern block with arguments of these types; None after a mistake. `bind` binds a call that
    is not known, and returns whether it has reported nothing. A known call counts the steps of its binding again."""
    key = _key(block, arguments, may_be_unknown)
    if key is None:
        return bind()[0]
    if key in _known:
        call, steps = _known[key]
        spend(steps)
        return call
    before = spent()
    bound, is_silent = bind()
    if bound is not None and is_silent:
        if len(_known) >= _MOST:
            _known.clear()
        _known[key] = bound, spent() - before
    return bound


def _key(block: BlockValue, arguments: Sequence[Type], may_be_unknown: bool) -> Hashable:
    """Returns what a call depends on; None for a block of a program, and for statics that are blocks or instances."""
    item = block.declaration.item
    if not isinstance(item, Extern) or library.block(item.name) is not item:
        return None
    statics = plain_statics(item, block.settled)
    if statics is None:
        return None
    return item.name, statics, tuple(arguments), may_be_unknown, is_check(), is_limited()


def plain_statics(item: Definition | Extern, settled: Mapping[str, Bound]) -> Hashable | None:
    """Returns the values of statics, with their types and texts; None if one is a block or an instance."""
    statics = []
    for parameter in item.signature.statics:
        bound = settled.get(parameter.name)
        if bound is not None:
            if not _is_plain(bound.value):
                return None
            statics.append((parameter.name, type(bound.value), repr(bound.value)))
    return tuple(statics)


def _is_plain(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return not isinstance(value, BlockValue | InstanceValue | None)
