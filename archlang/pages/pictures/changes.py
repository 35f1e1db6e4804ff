"""Describes in words what changed between two architectures."""

from collections import Counter
from collections.abc import Iterator

from archlang.graph.graph import Graph
from archlang.graph.operations import Loop, step_limit
from archlang.graph.summary import summarize
from archlang.pages.pictures.changed_values import changed_values, is_same
from archlang.types.statics import StaticValue


def describe_changes(before: Graph, after: Graph) -> tuple[str, ...]:
    """Returns a line for each change: blocks added or removed, loops, depths, statics, values that are computed in
    another way, and parameters. No line: the graphs are equal but for names."""
    changes = (
        *_blocks(before, after), *_loops(before, after), *_statics(before, after), *changed_values(before, after)
    )  # fmt: skip
    if not changes and is_same(before, after):
        return ()
    changes = changes or ("sizes or facts of values changed: `archlang show --graph` prints them",)
    return (*changes, *_parameters(before, after))


def _blocks(before: Graph, after: Graph) -> Iterator[str]:
    old = Counter(instance.block for instance in before.instances.values())
    new = Counter(instance.block for instance in after.instances.values())
    for block in sorted(old.keys() | new.keys()):
        count = new[block] - old[block]
        if count:
            suffix = f" ({abs(count)} times)" if abs(count) > 1 else ""
            yield f"{block.replace('_', ' ')} {'added' if count > 0 else 'removed'}{suffix}"


def _loops(before: Graph, after: Graph) -> Iterator[str]:
    old = [node.operation for node in before.region.walk() if isinstance(node.operation, Loop)]
    new = [node.operation for node in after.region.walk() if isinstance(node.operation, Loop)]
    if len(old) != len(new):
        yield f"loops {len(old)} → {len(new)}"
        return
    for old_loop, new_loop in zip(old, new, strict=True):
        if old_loop.mnemonic != new_loop.mnemonic:
            yield f"loop {old_loop.mnemonic} → {new_loop.mnemonic}"
        old_depth, new_depth = step_limit(old_loop), step_limit(new_loop)
        if old_depth != new_depth and old_depth is not None and new_depth is not None:
            yield f"depth {old_depth} → {new_depth}"


def _statics(before: Graph, after: Graph) -> Iterator[str]:
    """Compares the instances of one block at one path. A change of several instances is one line."""
    changes: Counter[str] = Counter()
    for path in sorted(before.instances.keys() & after.instances.keys()):
        old, new = before.instances[path], after.instances[path]
        if old.block == new.block:
            for name in sorted(old.statics.keys() & new.statics.keys()):
                if old.statics[name] != new.statics[name]:
                    changes[f"{old.block}: {name} {_text(old.statics[name])} → {_text(new.statics[name])}"] += 1
    for change, count in changes.items():
        yield change + (f" ({count} times)" if count > 1 else "")


def _text(value: StaticValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameters(before: Graph, after: Graph) -> Iterator[str]:
    old, new = summarize(before, 1), summarize(after, 1)
    unknown = sorted({*old.unknown, *new.unknown})
    if unknown:
        yield f"the parameters of {', '.join(unknown)} are unknown"
    elif new.unique != old.unique:
        yield f"{'+' if new.unique > old.unique else '−'} {abs(new.unique - old.unique):,} parameters"
