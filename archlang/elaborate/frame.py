"""The names in sight while a body is elaborated, and the paths that its instances get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from archlang.elaborate.binding import Binding
from archlang.elaborate.region_builder import Flow, RegionBuilder
from archlang.errors import Span
from archlang.resolve.resolve import ResolvedFile
from archlang.resolve.values import Bound, Data, InstanceValue, Length
from archlang.syntax.tree import CallExpression, Name, Pipe, walk
from archlang.types import Dim


@dataclass
class InstancePaths:
    """Gives paths to instances: a prefix and the name of the block, numbered from the second on."""

    prefix: str
    _counts: dict[str, int] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def unused(self, name: str) -> str:
        """Returns a path for a block of this name that was not returned before."""
        while True:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            word = name if count == 1 else f"{name}_{count}"
            if word not in self._used:
                self._used.add(word)
                return self.prefix + word


@dataclass
class Frame:
    """The names in sight while a body is elaborated. In a loop, `outer` is the frame around it, and `word` the kind of
    the loop.

    `names` are the values of this body, None after a mistake; `bound` says where each name was bound. `states` are the
    names that the loop may update, `growing` the lengths of those that grow, `mixture` the name of a halting loop's
    mixture, `statics` the number of the step of a stack, by its name. `returned` and `emitted` are the values of
    `return` and `emit` with their places. `misplaced` says that a loop contains a `return`."""

    binding: Binding
    builder: RegionBuilder
    paths: InstancePaths
    outer: Frame | None = None
    word: str = ""
    span: Span | None = None
    names: dict[str, Flow | InstanceValue | None] = field(default_factory=dict)
    bound: dict[str, Span] = field(default_factory=dict)
    states: frozenset[str] = frozenset()
    growing: Mapping[str, Dim] = field(default_factory=dict)
    mixture: str | None = None
    statics: Mapping[str, Bound] = field(default_factory=dict)
    returned: tuple[Flow | None, Span] | None = None
    emitted: tuple[Flow | None, Span] | None = None
    misplaced: bool = False

    @cached_property
    def applied(self) -> Set[str]:
        """The names that the definition applies to values, as instances."""
        names = set()
        for node in walk(self.binding.declaration.item):
            match node:
                case CallExpression(callee=Name(text=name), arguments=tuple()) | Pipe(stage=Name(text=name)):
                    names.add(name)
        return names

    @property
    def file(self) -> ResolvedFile:
        """The file of the definition that is elaborated."""
        return self.binding.declaration.file

    @property
    def root(self) -> Frame:
        """The frame of the definition, outside of its loops."""
        return self if self.outer is None else self.outer.root

    def _inside_out(self) -> Iterator[Frame]:
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.outer

    def find(self, name: str) -> tuple[bool, Flow | InstanceValue | None]:
        """Returns whether a name is in sight, and its value."""
        for frame in self._inside_out():
            if name in frame.names:
                return True, frame.names[name]
        return False, None

    def length_of(self, name: str) -> str:
        """Returns how the length of a state of this loop is set: kept, carried by a scan, growing or of the scan."""
        if self.word == "scan":
            return "carried" if self.outer is not None and self.outer.find(name)[0] else "of scan"
        return "growing" if any(name in frame.growing for frame in self._inside_out()) else "kept"

    def forget(self, name: str) -> None:
        """Makes a value unknown, here and wherever it is bound around."""
        for frame in self._inside_out():
            if name in frame.names:
                frame.names[name] = None

    def binding_span(self, name: str) -> Span | None:
        """Returns the place that binds a name; None for a name that no statement binds."""
        return next((frame.bound[name] for frame in self._inside_out() if name in frame.bound), None)

    def visible(self) -> Iterator[str]:
        """Yields the names in sight, inner before outer."""
        for frame in self._inside_out():
            yield from frame.names

    def instances(self) -> Iterator[str]:
        """Yields the names in sight that `let` binds to instances."""
        return (name for name in self.visible() if isinstance(self.find(name)[1], InstanceValue))

    def lookup(self, name: str) -> Bound | Data | Length | None:
        """Returns a name as a static expression sees it; None for an unknown name."""
        is_bound, value = self.find(name)
        if is_bound:
            if isinstance(value, InstanceValue):
                return Bound(value, value.span)
            return Data(self.binding_span(name) or self.binding.call) if value is not None else Bound(None, None)
        statics = (frame.statics[name] for frame in self._inside_out() if name in frame.statics)
        return next(statics, None) or self.binding.lookup(name)
