"""What changed from one architecture to another, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from archlang.graph.graph import Graph
from archlang.graph.operations import Loop, step_limit
from archlang.graph.summary import summarize


def differences(before: Graph, after: Graph) -> tuple[str, ...]:
    """Blocks that came and went, loops that became longer or shorter, statics that changed, and the parameters."""
    return (*_blocks(before, after), *_loops(before, after), *_statics(before, after), *_parameters(before, after))


def _blocks(before: Graph, after: Graph) -> Iterator[str]:
    old = Counter(one.block for one in before.instances.values())
    new = Counter(one.block for one in after.instances.values())
    for block in sorted(old.keys() | new.keys()):
        count = new[block] - old[block]
        if count:
            many = f" ({abs(count)} times)" if abs(count) > 1 else ""
            yield f"{block.replace('_', ' ')} {'added' if count > 0 else 'removed'}{many}"


def _loops(before: Graph, after: Graph) -> Iterator[str]:
    old = [node for node in before.region.walk() if isinstance(node.operation, Loop)]
    new = [node for node in after.region.walk() if isinstance(node.operation, Loop)]
    if len(old) != len(new):
        yield f"loops {len(old)} → {len(new)}"
        return
    for one, other in zip(old, new, strict=True):
        was, is_now = one.operation.mnemonic, other.operation.mnemonic
        if was != is_now:
            yield f"loop {was} → {is_now}"
        first, second = step_limit(one.operation), step_limit(other.operation)
        if first != second and first is not None and second is not None:
            yield f"depth {first} → {second}"


def _statics(before: Graph, after: Graph) -> Iterator[str]:
    """Of instances that stand at the same path; a change of several is said once."""
    said: Counter[str] = Counter()
    for path in sorted(before.instances.keys() & after.instances.keys()):
        one, other = before.instances[path], after.instances[path]
        if one.block == other.block:
            for name in sorted(one.statics.keys() & other.statics.keys()):
                if one.statics[name] != other.statics[name]:
                    said[f"{one.block}: {name} {one.statics[name]} → {other.statics[name]}"] += 1
    for text, times in said.items():
        yield text + (f" ({times} times)" if times > 1 else "")


def _parameters(before: Graph, after: Graph) -> Iterator[str]:
    old, new = summarize(before, 1), summarize(after, 1)
    unknown = sorted({*old.unknown, *new.unknown})
    if unknown:
        yield f"parameters of {', '.join(unknown)} are not known"
    elif new.unique != old.unique:
        yield f"{'+' if new.unique > old.unique else '−'} {abs(new.unique - old.unique):,} parameters"
