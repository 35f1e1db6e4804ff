"""Bodies of composed library blocks without mistakes, so that checks elaborate equal calls of them once."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from archlang.diagnostics.effort import is_check, spend, spent
from archlang.elaborate.bound_call import BoundCall
from archlang.elaborate.context import Context
from archlang.elaborate.known_calls import plain_statics
from archlang.graph.graph import Instance, Region
from archlang.names.resolve import is_shipped
from archlang.types import Type

# The steps of the elaborations that are kept; then all are forgotten.
_MOST_STEPS = 2_000_000


@dataclass(frozen=True)
class _KnownBody:
    """A body, the type of its result, the instances that it adds to a model, by how much it makes the model larger, and
    the numbers of its own lengths."""

    region: Region
    type: Type
    instances: Mapping[str, Instance]
    growth: tuple[int, ...]
    own_lengths: Mapping[str, int]
    steps: int


@dataclass
class _KnownBodies:
    by_key: dict[Hashable, _KnownBody] = field(default_factory=dict)
    steps: int = 0

    def keep(self, key: Hashable, body: _KnownBody) -> None:
        if self.steps > _MOST_STEPS:
            self.forget()
        self.by_key[key] = body
        self.steps += body.steps

    def forget(self) -> None:
        self.by_key.clear()
        self.steps = 0


_known = _KnownBodies()


def known_body(
    context: Context, call: BoundCall, path: str, elaborate: Callable[[], tuple[Region, Type] | None]
) -> tuple[Region, Type] | None:
    """Returns the region of a composed block at a path and the type of its result; None after a mistake. `elaborate`
    elaborates a body that is not known. A known body counts the steps of its elaboration again.

    Outside of checks every body is elaborated, so that ids count the values of one model."""
    key = _key(context, call, path)
    if key is None:
        return elaborate()
    body = _known.by_key.get(key)
    if body is not None and context.size.grow(body.growth):
        spend(body.steps)
        context.instances.update(body.instances)
        context.own_lengths.update(body.own_lengths)
        context.known_paths.add(path)
        return body.region, body.type
    steps, reported, count, counts = spent(), context.reported, len(context.instances), context.size.counts
    elaborated = elaborate()
    if elaborated is not None and context.reported == reported:
        instances = dict(islice(context.instances.items(), count, None))
        growth = tuple(after - before for before, after in zip(counts, context.size.counts, strict=True))
        known = _KnownBody(*elaborated, instances, growth, dict(context.own_lengths), spent() - steps)
        _known.keep(key, known)
        context.known_paths.add(path)
    return elaborated


def _key(context: Context, call: BoundCall, path: str) -> Hashable | None:
    """Returns what a body depends on; None if it is not known to stay the same, or if the model has it already, as
    where `let` names an instance: ids are unique in a model."""
    declaration = call.binding.declaration
    if not is_check() or not is_shipped(declaration.file):
        return None
    words = path.split(".")
    if any(".".join(words[:end]) in context.known_paths for end in range(1, len(words) + 1)):
        return None
    statics = plain_statics(declaration.item, call.binding.statics)
    if statics is None:
        return None
    types = tuple(value.type for value in call.arguments)
    around = (*context.size.around(path), len(context.calls), *sorted(context.own_lengths.items()))
    return declaration.file.program.source.path, declaration.name, path, statics, types, around, context.may_be_unknown
