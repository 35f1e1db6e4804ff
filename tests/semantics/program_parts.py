"""The parts of random programs: kinds, values, blocks, names and styles."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# Names that a program may use and that mean something in the language, in Python or in what the compiler writes.
NASTY = (
    "self", "A", "a", "aa", "halting", "carry", "by", "as", "batch", "mask", "mask_n", "inf", "nan", "torch", "device",
    "forward", "block", "model", "tokens", "seq", "number", "number_2", "classify", "lambda", "class", "def", "None",
    "import", "value", "values", "states", "chunk", "outer", "training", "weight", "pytree", "result", "result_2",
    "norm_2", "_", "__", "add", "part", "x_1", "ponder", "depth", "recipe", "use", "pure", "reads", "where", "owner",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A type as text: `seq`, `vec`, `number`, `tokens`, `chunks` or `address`, with a length and a width."""

    name: str
    length: str = ""
    width: str = ""


NUMBER = Kind("number")


@dataclass(frozen=True)
class Value:
    """A name or an expression, of a kind. A causal model may read a `free` value in full: it depends on no token of the
    current chunk, or on none at all."""

    text: str
    kind: Kind
    free: bool = False


@dataclass(frozen=True)
class Instance:
    """An instance that `let` names, with the type of its argument and the width of its result."""

    name: str
    takes: tuple[str, str]  # "seq" or "data", and the width
    width: str
    free: bool  # whether it reads pointwise or causally


@dataclass(frozen=True)
class BlockSignature:
    """A composed block of the program. Its first input is seq[n, d]; `memory` says that it has a second input."""

    name: str
    memory: bool
    pooled: bool
    causal: bool
    statics: tuple[str, ...]


@dataclass
class Chance(random.Random):
    """A random number generator that draws events."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)

    def happens(self, probability: float) -> bool:
        return self.random() < probability


@dataclass
class Names:
    """Fresh names of one definition; some are in NASTY."""

    chance: Chance
    taken: set[str] = field(default_factory=set)
    count: int = 0

    def fresh(self, stem: str) -> str:
        nasty = [name for name in NASTY if name not in self.taken]
        if nasty and self.chance.happens(0.15):
            name = self.chance.choice(nasty)
        else:
            self.count += 1
            name = f"{stem}{self.count}"
        self.taken.add(name)
        return name


@dataclass(frozen=True)
class Style:
    """The style of a program: whether it is causal, and the blocks that it may apply."""

    causal: bool
    blocks: tuple[BlockSignature, ...] = ()
    statics: tuple[str, ...] = ("times", "flag", "rate")
    block_static: str = ""
