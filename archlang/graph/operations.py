"""What a node of a graph can do: a class for each operation, which holds the facts that the operation needs.

`mnemonic` is the operation's name in the text of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple


class MapPath(NamedTuple):
    """A linear map, by the path of its block's instance and its name in the block."""

    instance: str
    name: str

    def __str__(self) -> str:
        return f"{self.instance}.{self.name}"


@dataclass(frozen=True)
class Call:
    """An extern block, applied. `products` names the maps whose products are the last inputs: a `Join` made them."""

    mnemonic: ClassVar = "call"
    instance: str
    products: tuple[str, ...] = ()


@dataclass(frozen=True)
class Join:
    """Linear maps of one value, with one result each."""

    mnemonic: ClassVar = "join"
    maps: tuple[MapPath, ...]


@dataclass(frozen=True)
class Apply:
    """A composed block, applied, until `inline` dissolves it. Regions: (body,)."""

    mnemonic: ClassVar = "apply"
    block: str
    path: str


class Arithmetic(Enum):
    """Elementwise arithmetic on tensors of one type, or on a tensor and a number."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"
    DIVIDE = "divide"
    NEGATE = "negate"

    @property
    def mnemonic(self) -> str:
        return self.value

    @property
    def commutes(self) -> bool:
        return self in (Arithmetic.ADD, Arithmetic.MULTIPLY)


@dataclass(frozen=True)
class Literal:
    """A number that the program writes."""

    mnemonic: ClassVar = "number"
    value: int | float


@dataclass(frozen=True)
class Part:
    """One result of a node that has several."""

    mnemonic: ClassVar = "part"
    index: int


@dataclass(frozen=True)
class Repeat:
    """A loop whose steps share one set of weights. Regions: (body,)."""

    mnemonic: ClassVar = "repeat"
    count: int


@dataclass(frozen=True)
class Stack:
    """A loop whose steps have weights of their own, at `path`. Regions: (body,)."""

    mnemonic: ClassVar = "stack"
    count: int
    path: str


@dataclass(frozen=True)
class Halting:
    """A loop that stops each position, or each sample, by `instance`. Regions: (body,).

    `state` is the index of the state that halts; `mixture` says that the body reads that state's mixture."""

    mnemonic: ClassVar = "halting"
    limit: int
    instance: str
    state: int
    mixture: bool


@dataclass(frozen=True)
class Scan:
    """A loop over chunks that carries `carried` states. `emits` says that each step returns a chunk of a result.
    Regions: (body,)."""

    mnemonic: ClassVar = "scan"
    carried: int
    emits: bool


Loop = Repeat | Stack | Halting | Scan
SharedLoop = Repeat | Halting | Scan
"""The loops whose steps share their weights."""
Operation = Call | Join | Apply | Arithmetic | Literal | Part | Loop


def step_limit(operation: Operation) -> int | None:
    """Returns how many steps a loop takes at most; None for a scan, and for what is no loop."""
    match operation:
        case Repeat(count=limit) | Stack(count=limit) | Halting(limit=limit):
            return limit
    return None
