"""The operations of nodes: a class for each, with its facts.

`mnemonic` is the name of the operation in the text of a graph."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar


@dataclass(frozen=True)
class Call:
    """Applies an extern block. `products` names the linear maps whose results, each of a `Product`, are the last
    inputs."""

    mnemonic: ClassVar = "call"
    instance: str
    products: tuple[str, ...] = ()


@dataclass(frozen=True)
class Product:
    """Applies the linear map `name` of an instance's block to a value."""

    mnemonic: ClassVar = "product"
    instance: str
    name: str


@dataclass(frozen=True)
class Apply:
    """Applies a composed block; `inline` replaces it by the body. `statics` are the texts of its statics, of which
    `written` are those that the call sets. Regions: (body,)."""

    mnemonic: ClassVar = "apply"
    block: str
    path: str
    statics: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    written: frozenset[str] = field(default=frozenset(), compare=False, repr=False)


class Arithmetic(Enum):
    """Computes elementwise, with operands that broadcast (`Type.broadcast`)."""

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
    """A number in the program."""

    mnemonic: ClassVar = "number"
    value: int | float


@dataclass(frozen=True)
class Loss:
    """Adds a number of each sample to the training loss, under a name. It has no result, and is needed by itself."""

    mnemonic: ClassVar = "loss"
    name: str


LOSSES = "losses."
"""the beginning of the names of auxiliary losses, and of their weights, among other names"""


@dataclass(frozen=True)
class Part:
    """One result of a node that has several."""

    mnemonic: ClassVar = "part"
    index: int


@dataclass(frozen=True)
class Repeat:
    """A loop whose steps share one set of weights. Regions: (body,).

    Gradients flow through the last `truncated` steps only; through all if that is None. `emits` says that each step
    returns a result, of which the loop's is the last. If `drawn` is not "", the instance of this path draws the number
    of steps in training; in evaluation it is `count`. A `settled` loop has the gradient of a fixed point, of which
    `truncated` is the number of terms, all steps if that is None."""

    mnemonic: ClassVar = "repeat"
    count: int
    truncated: int | None = None
    emits: bool = False
    drawn: str = ""
    settled: bool = False


@dataclass(frozen=True)
class Stack:
    """A loop with separate weights for each step, at `path`. Regions: (body,). `emits` is as in `Repeat`."""

    mnemonic: ClassVar = "stack"
    count: int
    path: str
    emits: bool = False


@dataclass(frozen=True)
class Halting:
    """A loop that halts each position, or each sample, by `instance`. Regions: (body,).

    `state` is the index of the halting state; `mixture` says that the body reads the mixture of that state. `emits`
    says that each step returns a result, of which the loop's is that of the last accepted step."""

    mnemonic: ClassVar = "halting"
    limit: int
    instance: str
    state: int
    mixture: bool
    emits: bool = False


@dataclass(frozen=True)
class Scan:
    """A loop over chunks, or over the positions of a sequence, that carries `carried` states. `emits` says that each
    step returns a chunk, or a position, of a result. The gradient of the carried states is cut after every `truncated`
    parts; nowhere if that is None. The body also takes the last `before` positions before the part, all of them if that
    is 0; none are taken if it is None. Regions: (body,)."""

    mnemonic: ClassVar = "scan"
    carried: int
    emits: bool
    truncated: int | None = None
    before: int | None = None


@dataclass(frozen=True)
class Experts:
    """Applies `count` sets of weights, at `path`, to each position, and adds up their results by the routing weights.
    Regions: (body,)."""

    mnemonic: ClassVar = "experts"
    count: int
    path: str


@dataclass(frozen=True)
class Gradient:
    """Returns the gradient of the result of its body, a loss, with respect to the first input. Regions: (body,)."""

    mnemonic: ClassVar = "gradient"


Loop = Repeat | Stack | Halting | Scan | Experts | Gradient
OwnWeights = Stack | Experts
"""The loops whose steps have weights of their own, at a path."""
SharedLoop = Repeat | Halting | Scan | Gradient
"""The loops whose steps share their weights."""
Operation = Call | Product | Apply | Arithmetic | Literal | Loss | Part | Loop


def emits(operation: Operation) -> bool:
    """Returns whether each step of a loop returns a result beside the states."""
    return isinstance(operation, Repeat | Stack | Halting | Scan) and operation.emits


def step_limit(operation: Operation) -> int | None:
    """Returns the most steps that a loop takes; None for a scan and for any other operation."""
    match operation:
        case Repeat(count=limit) | Stack(count=limit) | Halting(limit=limit):
            return limit
    return None
