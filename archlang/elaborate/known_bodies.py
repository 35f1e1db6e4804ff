"""Bodies of composed blocks without mistakes, so that checks elaborate equal calls of them once."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from archlang.graph.graph import Instance, Region
from archlang.names.resolve import Declaration
from archlang.types import Type

# The steps of the elaborations that are kept; then all are forgotten.
_MOST_STEPS = 1_000_000


@dataclass(frozen=True)
class KnownBody:
    """A body, the type of its result, the instances that it adds to a model, by how much it makes the model larger, and
    the numbers of its own lengths."""

    region: Region
    type: Type
    instances: Mapping[str, Instance]
    growth: tuple[int, ...]
    own_lengths: Mapping[str, int]
    steps: int


@dataclass
class KnownBodies:
    """The bodies of blocks by their calls. `definition` returns what a body depends on, besides its call: its text and
    those of the blocks that it uses."""

    definition: Callable[[Declaration], Hashable]
    by_key: dict[Hashable, KnownBody] = field(default_factory=dict)
    steps: int = 0

    def keep(self, key: Hashable, body: KnownBody) -> None:
        if self.steps > _MOST_STEPS:
            self.forget()
        self.by_key[key] = body
        self.steps += body.steps

    def forget(self) -> None:
        self.by_key.clear()
        self.steps = 0


of_library = KnownBodies(lambda declaration: (declaration.file.program.source.path, declaration.name))
