"""Which instances the statics of another hold, as `unembed[e]` holds `e`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from archlang.types.statics import InstanceOf, StaticValue


def held(statics: Iterable[StaticValue]) -> Iterator[str]:
    """The paths of the instances among some statics, also in lists."""
    for static in statics:
        if isinstance(static, InstanceOf):
            yield static.path
        elif isinstance(static, tuple):
            yield from held(static)
