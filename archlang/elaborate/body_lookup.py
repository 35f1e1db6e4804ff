"""Finds the body of a composed block among the known ones; elaborates it, and keeps it, if it is not known."""

from collections.abc import Callable, Hashable
from itertools import islice

from archlang.diagnostics.effort import is_check, spend, spent
from archlang.elaborate.bound_call import BoundCall
from archlang.elaborate.context import Context
from archlang.elaborate.known_bodies import KnownBodies, KnownBody, of_library
from archlang.elaborate.known_calls import plain_statics
from archlang.graph.graph import Region
from archlang.names.resolve import is_shipped
from archlang.types import Type


def known_body(
    context: Context, call: BoundCall, path: str, elaborate: Callable[[], tuple[Region, Type] | None]
) -> tuple[Region, Type] | None:
    """Returns the region of a composed block at a path and the type of its result; None after a mistake. `elaborate`
    elaborates a body that is not known. A known body counts the steps of its elaboration again.

    Outside of checks every body is elaborated, so that ids count the values of one model."""
    bodies = of_library if is_shipped(call.binding.declaration.file) else context.bodies
    key = None if bodies is None or not is_check() else _key(context, bodies, call, path)
    if bodies is None or key is None:
        return elaborate()
    body = bodies.by_key.get(key)
    if body is not None and context.size.grow(body.growth):
        spend(body.steps)
        context.instances.update(body.instances)
        context.own_lengths.update(body.own_lengths)
        context.known_paths.add(path)
        return body.region, body.type
    steps, reported, count, counts = spent(), context.reported, len(context.instances), context.size.counts
    elaborated = elaborate()
    if elaborated is not None and context.reported == reported and context.is_whole:
        instances = dict(islice(context.instances.items(), count, None))
        growth = tuple(after - before for before, after in zip(counts, context.size.counts, strict=True))
        known = KnownBody(*elaborated, instances, growth, dict(context.own_lengths), spent() - steps)
        bodies.keep(key, known)
        context.known_paths.add(path)
    return elaborated


def _key(context: Context, bodies: KnownBodies, call: BoundCall, path: str) -> Hashable | None:
    """Returns what a body depends on; None if that has no text, or if the model has the body already, as where `let`
    names an instance: ids are unique in a model."""
    declaration = call.binding.declaration
    is_applied_again = path in context.applied_paths
    context.applied_paths.add(path)
    words = path.split(".")
    if is_applied_again or any(".".join(words[:end]) in context.known_paths for end in range(1, len(words))):
        return None
    statics = plain_statics(declaration.item, call.binding.statics)
    if statics is None:
        return None
    types = tuple(value.type for value in call.arguments)
    around = (*context.size.around(path), len(context.calls), *sorted(context.own_lengths.items()))
    return bodies.definition(declaration), path, statics, types, around, context.may_be_unknown
