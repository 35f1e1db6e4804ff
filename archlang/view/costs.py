"""What a block of the library costs: parameters, and the multiplications and additions of its matrix products.

FLOPs are counted as torch.utils.flop_counter counts them: two for each multiplication of a matrix product, none for
what is elementwise. A block that is not in the tables has an unknown cost, which is said and never taken for zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from archlang.graph.graph import Instance
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class Sizes:
    """The statics and features of an instance, as numbers and words."""

    instance: Instance

    def __getitem__(self, name: str) -> int:
        size = self.instance.features.get(name)
        value: StaticValue | None = size.constant if size is not None else self.instance.statics.get(name)
        if not isinstance(value, int):
            raise Unknown(name)
        return int(value)

    def word(self, name: str) -> str:
        return str(self.instance.statics[name])

    @property
    def width(self) -> int:
        """Of all heads together."""
        heads = self["heads"]
        return heads * (self["head_dim"] or self["d"] // heads)


class Unknown(Exception):
    """A cost that depends on what is not known."""


def _linear(into: int, out: int, bias: bool = True) -> int:
    return into * out + out * bias


def _projections(s: Sizes) -> int:
    return 2 * s["d"] * s.width + 2 * s["e"] * s.width


def _halt_width(s: Sizes) -> int:
    return s["d"] * (1 + s["transition"])


def _relative(s: Sizes) -> int:
    return _projections(s) + s["d"] * s.width + 2 * s.width + (s.word("scale") == "learned")


def _gates(s: Sizes) -> int:
    return s["heads"] if s.word("gates") == "per_head" else 1


def _free(s: Sizes) -> int:
    return 0


def _feedforward(s: Sizes) -> int:
    return _linear(s["d"], s["ff"]) + _linear(s["ff"], s["d"])


def _halting(s: Sizes) -> int:
    return _linear(_halt_width(s), s["d"]) + _linear(s["d"], 1)


def _lstm(s: Sizes) -> int:
    h = s["hidden"]
    return sum(4 * h * (into + h + 2) for into in [s["d"]] + [h] * (s["layers"] - 1))


def _bilstm(s: Sizes) -> int:
    h = s["hidden"]
    return sum(2 * 4 * (h // 2) * (into + h // 2 + 2) for into in [s["d"]] + [h] * (s["layers"] - 1))


def _gru(s: Sizes) -> int:
    return 3 * s["hidden"] * (s["d"] + s["hidden"] + 2)


def _stack(s: Sizes) -> int:
    h, w = s["hidden"], s["width"]
    return h * (s["d"] + h + 2) + _linear(w, h) + _linear(h, 2) + _linear(h, w)


def _pointers(s: Sizes) -> int:
    h, bits = s["hidden"], s["bits"]
    if s.word("form") == "code":
        score = 2 * _linear(h, h) + _linear(bits, bits) + _linear(bits, h)
    else:
        score = _linear(bits, s["address_hidden"]) + _linear(s["address_hidden"], h)
    return s["pointers"] * (score + 3 * h * (bits + h + 2))


def _related(s: Sizes) -> int:
    k, d, reads = s["k"], s["d"], s["reads"]
    if s.word("form") == "code":
        return _linear(k, reads * d) + 4 * _linear(d, d)
    return reads * (_linear(k, s["hidden"]) + _linear(s["hidden"], d))


def _attentive(s: Sizes) -> int:
    h, d, e = s["hidden"], s["d"], s["e"]
    return 2 * _linear(h + d, h) + h + 3 * h * (e + d + h + 2)


# Without weights, and without matrix products.
_FREE = (
    "relu",
    "gelu",
    "silu",
    "tanh",
    "sigmoid",
    "softplus",
    "exp",
    "abs",
    "addresses",
    "chunks",
    "concat",
    "copy_gate",
    "dropout",
    "one_hot",
    "zeros",
    "first",
    "last",
    "sum",
    "mean",
    "reverse",
    "absolute_positions",
)

_PARAMETERS: Mapping[str, Callable[[Sizes], int]] = {
    **dict.fromkeys(
        _FREE,
        _free,
    ),
    "attention": _projections,
    "relative_attention": _relative,
    "absrel_attention": lambda s: _relative(s) + _linear(s["d"], _gates(s)),
    "geometric_attention": lambda s: _projections(s) + s.width + _linear(s["d"], 2 * s["heads"]) + 3,
    "act": lambda s: _linear(s["d"], 1),
    "token_halt": _halting,
    "global_halt": _halting,
    "embed": lambda s: s["vocab"] * s["d"],
    "learned": lambda s: s["slots"] * s["d"],
    "linear": lambda s: _linear(s["d"], s["out"], bool(s["bias"])),
    "norm": lambda s: 2 * s["d"],
    "feedforward": _feedforward,
    "gate": _feedforward,
    "mlp": lambda s: _linear(s["d"], s["hidden"]) + _linear(s["hidden"], s["out"]),
    "start_end": lambda s: 2 * s["d"],
    "lstm": _lstm,
    "bilstm": _bilstm,
    "bilstm_final": _bilstm,
    "gru": _gru,
    "gru_from_zero": _gru,
    "stack_rnn": _stack,
    "pointer_unit": _pointers,
    "relational_read": _related,
    "attentive_gru": _attentive,
    "dereference": lambda s: 2 * s["k"] * _linear(s["d"], s["d"]) if s.word("form") == "code" else 0,
}


def parameters(instance: Instance) -> int | None:
    """The numbers that one set of weights of an instance has; None where that is not known."""
    count = _PARAMETERS.get(instance.block) if instance.python.startswith("archlang.blocks.") else None
    try:
        return count(Sizes(instance)) if count is not None else None
    except Unknown:
        return None


# n and m are the positions of the first and the second argument, of one sample.
_FLOPS: Mapping[str, Callable[[Sizes, int, int], int]] = {
    **dict.fromkeys(
        (*_FREE, "embed", "learned", "norm", "start_end"),
        lambda s, n, m: 0,
    ),
    "attention": lambda s, n, m: 4 * s.width * (n * s["d"] + m * s["e"] + n * m),
    "geometric_attention": lambda s, n, m: (
        4 * s.width * (n * s["d"] + m * s["e"] + n * m) + 4 * n * s["d"] * s["heads"]
    ),
    "linear": lambda s, n, m: 2 * n * s["d"] * s["out"],
    "feedforward": lambda s, n, m: 4 * n * s["d"] * s["ff"],
    "gate": lambda s, n, m: 4 * n * s["d"] * s["ff"],
    "mlp": lambda s, n, m: 2 * n * s["hidden"] * (s["d"] + s["out"]),
    "act": lambda s, n, m: 2 * n * s["d"],
    "token_halt": lambda s, n, m: 2 * n * s["d"] * (_halt_width(s) + 1),
    "global_halt": lambda s, n, m: 2 * (n if s["causal"] else 1) * s["d"] * (_halt_width(s) + 1),
}


def flops(instance: Instance, n: int, m: int) -> int | None:
    """What one sample costs at one call; None where that is not known."""
    count = _FLOPS.get(instance.block) if instance.python.startswith("archlang.blocks.") else None
    try:
        return count(Sizes(instance), n, m) if count is not None else None
    except Unknown:
        return None
