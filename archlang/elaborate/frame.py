"""The names in sight while a body is elaborated, and the region that it fills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from archlang.elaborate.signature import Binding
from archlang.graph.graph import Input, Node
from archlang.names.values import (
    Bound,
    Data,
    InstanceValue,
    Length,
)
from archlang.source import Span
from archlang.syntax.tree import Assign, Body, Halting, If, Let, Move, Repeat, Scan, Stack, Statement
from archlang.types import Type


@dataclass
class Builder:
    """A region that is being filled; an inner one captures what it uses of the outer."""

    parent: Builder | None = None
    inputs: list[Input] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    captured: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Flow:
    """A value that flows: where it was made, and what it is."""

    builder: Builder
    id: str
    type: Type
    span: Span


@dataclass
class Place:
    """Where instances get their names: after their blocks, numbered from the second on. No two are equal."""

    prefix: str
    counts: dict[str, int] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def path(self, name: str) -> str:
        while True:
            count = self.counts[name] = self.counts.get(name, 0) + 1
            word = name if count == 1 else f"{name}_{count}"
            if word not in self.taken:
                self.taken.add(word)
                return self.prefix + word


@dataclass
class Frame:
    """The names in sight while a body is elaborated; a loop's frame looks on into its outer one."""

    binding: Binding
    builder: Builder
    place: Place
    outer: Frame | None = None
    word: str = ""
    span: Span | None = None
    names: dict[str, Flow | InstanceValue | None] = field(default_factory=dict)
    bound: dict[str, Span] = field(default_factory=dict)
    moved: dict[str, Span] = field(default_factory=dict)
    states: frozenset[str] = frozenset()
    mixture: str | None = None
    returned: tuple[Flow | None, Span] | None = None
    emitted: tuple[Flow | None, Span] | None = None
    misplaced: bool = False

    @property
    def root(self) -> Frame:
        """The frame of the definition that this loop stands in."""
        return self if self.outer is None else self.outer.root

    def find(self, name: str) -> tuple[bool, Flow | InstanceValue | None]:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return True, frame.names[name]
            frame = frame.outer
        return False, None

    def place_of(self, name: str) -> Span | None:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.bound:
                return frame.bound[name]
            frame = frame.outer
        return None

    def visible(self) -> Iterator[str]:
        frame: Frame | None = self
        while frame is not None:
            yield from frame.names
            frame = frame.outer

    def lookup(self, name: str) -> Bound | Data | Length | None:
        known, value = self.find(name)
        if known:
            if isinstance(value, InstanceValue):
                return Bound(value, value.span)
            return Data(self.place_of(name) or self.binding.call) if value is not None else Bound(None, None)
        return self.binding.lookup(name)


def moved_names(body: Body) -> dict[str, Span]:
    """The names that a loop's body moves and does not bind itself, each with its first `<-`."""
    moved: dict[str, Span] = {}
    own: set[str] = set()

    def visit(statements: Sequence[Statement], top: bool) -> None:
        for statement in statements:
            match statement:
                case Move(name=name, name_span=span):
                    moved.setdefault(name, span)
                case Assign(name=name) | Let(name=name):
                    own.add(name)
                case If(then=then, otherwise=otherwise):
                    visit(then.statements, top)
                    if otherwise is not None:
                        visit(otherwise.statements, top)
                case Repeat(body=inner) | Stack(body=inner) | Halting(body=inner):
                    moved.update({n: s for n, s in moved_names(inner).items() if n not in moved})
                case Scan():
                    if statement.target:
                        own.add(statement.target)
                    inner_moves = moved_names(statement.body)
                    inner_moves.pop(statement.variable, None)
                    moved.update({n: s for n, s in inner_moves.items() if n not in moved})
                case _:
                    pass

    visit(body.statements, True)
    return {name: span for name, span in moved.items() if name not in own}
