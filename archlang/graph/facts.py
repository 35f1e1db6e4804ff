"""What a block's signature says of one instance besides its types: costs, linear maps of arguments, records, acts."""

from dataclasses import dataclass

from archlang.types import Dim

QUANTITIES = ("parameters", "flops", "activations", "nonzero", "state")
"""The quantities of the clause `costs`, in the order of the fields of `Costs`."""

POSITIONS = "positions"
"""The name in `costs` for the positions of a `data` argument: 1 for a `vec`."""

RECORDS = ("attention", "gate", "pointer")
"""What `records` may name."""

ACTS = (
    # The numbers of the result.
    "bounded", "positive", "rectifies", "exponential", "logarithm", "unit", "normalises", "choice",
    # How they follow from those of the arguments.
    "moves", "masks", "slices", "joins", "columns", "sums", "sums_later", "affine", "bilinear",
    # What the result reads of positions.
    "window", "attends", "relative", "absolute",
    # What becomes of a state from position to position.
    "decays", "fades", "reflects", "adds_rank", "nonlinear", "pushes",
)  # fmt: skip
"""What `acts` may name: docs/card.md says what each means."""

PROBLEMS = ("parity", "counting", "permutations", "nonsolvable", "nonregular")
"""What a task may demand at all lengths, in the words of `demands`: docs/card.md says what each means."""


@dataclass(frozen=True)
class Costs:
    """What one set of weights and one call for one sample cost; None where that is not known.

    `parameters` is the number of weights. `flops` counts two for each multiplication of a matrix product and nothing
    for elementwise work, as torch.utils.flop_counter does. `activations` is about as many numbers as training keeps
    until backward on a CPU, besides the weights, masks, arguments and the result. Both are polynomials over the names
    that the signature has for its lengths, and `positions`. `nonzero` is how many features of a position of the result
    may differ from 0. `state` is how many numbers of the positions before the next one needs: what decoding keeps."""

    parameters: int | None = None
    flops: Dim | None = None
    activations: Dim | None = None
    nonzero: int | None = None
    state: Dim | None = None


UNKNOWN = Costs()


@dataclass(frozen=True)
class LinearMap:
    """A linear map that a block applies to an argument before anything else, so that a loop may compute it before.

    `name` is the attribute of the module and of its `products`, `input` the index of the argument."""

    name: str
    input: int
    width: int


@dataclass(frozen=True)
class Record:
    """A value of each call that a recording stores: the argument with the index `input`, or one that the kind
    implies."""

    kind: str
    input: int | None = None


@dataclass(frozen=True)
class Act:
    """What a block does to numbers, or to the state that it carries from position to position, as `reflects[2](k, b)`:
    one of `ACTS`, with numbers, and the indices of the arguments that it concerns."""

    word: str
    numbers: tuple[float, ...] = ()
    inputs: tuple[int, ...] = ()
