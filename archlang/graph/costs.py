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
    result: int | None = None
    """the last size of what a call gives, where it is known"""

    def __getitem__(self, name: str) -> int:
        if name == "result":
            if self.result is None:
                raise Unknown(name)
            return self.result
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
    # The table is the embedding's.
    "unembed": lambda s: s["result"] if s.instance.statics["bias"] is True else 0,
}


def parameters(instance: Instance, result: int | None = None) -> int | None:
    """The numbers that one set of weights of an instance has; None where that is not known. `result` is the last size
    of what it gives."""
    count = _PARAMETERS.get(instance.block) if instance.python.startswith("archlang.blocks.") else None
    try:
        return count(Sizes(instance, result)) if count is not None else None
    except Unknown:
        return None


def _attending(s: Sizes, n: int, m: int) -> int:
    return 4 * s.width * (n * s["d"] + m * s["e"] + n * m)


def _distances(s: Sizes, n: int, m: int) -> int:
    """Attention with keys for n + m distances."""
    return _attending(s, n, m) + 2 * s.width * (n + m) * (s["d"] + n)


def _walking(s: Sizes, slots: int, steps: int) -> int:
    h, bits = s["hidden"], s["bits"]
    moved = 6 * h * (bits + h) + 2 * slots * bits
    if s.word("form") == "code":
        return s["pointers"] * steps * (moved + 2 * (bits + 1) * (h + slots))
    width = s["address_hidden"]
    return s["pointers"] * (steps * (moved + 2 * slots * h) + 2 * slots * width * (bits + h))


def _reading(s: Sizes, places: int, slots: int) -> int:
    """`places` are the steps times the slots."""
    steps, d, k = places // max(1, slots), s["d"], s["k"]
    maps = 2 * d * d * (slots + steps) if s.word("form") == "code" else 0
    return k * (2 * steps * slots * d + maps)


def _relating(s: Sizes, steps: int, slots: int) -> int:
    k, d, reads = s["k"], s["d"], s["reads"]
    looked = 4 * steps * reads * slots * d
    if s.word("form") == "code":
        return looked + 2 * steps * reads * d * (k + 2 * d) + 4 * slots * d * d
    return looked + 2 * steps * reads * s["hidden"] * (k + d)


def _controlling(s: Sizes, steps: int, slots: int) -> int:
    h, d, e = s["hidden"], s["d"], s["e"]
    step = 2 * h * h + 2 * slots * h + 4 * slots * d + 6 * h * (e + d + h) + 2 * h * (h + d)
    return 2 * slots * d * h + steps * step


def _lstm_steps(s: Sizes, n: int) -> int:
    h = s["hidden"]
    return sum(8 * n * h * (into + h) for into in [s["d"]] + [h] * (s["layers"] - 1))


def _bilstm_steps(s: Sizes, n: int) -> int:
    h = s["hidden"]
    return sum(8 * n * h * (into + h // 2) for into in [s["d"]] + [h] * (s["layers"] - 1))


def _stack_steps(s: Sizes, n: int) -> int:
    h, w = s["hidden"], s["width"]
    return 2 * n * h * (s["d"] + h + 2 * w + 2)


# n and m are the positions of the first and the second argument, of one sample.
_FLOPS: Mapping[str, Callable[[Sizes, int, int], int]] = {
    **dict.fromkeys(
        (*_FREE, "embed", "learned", "norm", "start_end"),
        lambda s, n, m: 0,
    ),
    "attention": _attending,
    "relative_attention": _distances,
    "absrel_attention": lambda s, n, m: _distances(s, n, m) + 2 * n * s["d"] * _gates(s),
    "geometric_attention": lambda s, n, m: _attending(s, n, m) + 4 * n * s["d"] * s["heads"],
    "unembed": lambda s, n, m: 2 * n * s["d"] * s["result"],
    "lstm": lambda s, n, m: _lstm_steps(s, n),
    "bilstm": lambda s, n, m: _bilstm_steps(s, n),
    "bilstm_final": lambda s, n, m: _bilstm_steps(s, n),
    "gru": lambda s, n, m: 6 * n * s["hidden"] * (s["d"] + s["hidden"]),
    "gru_from_zero": lambda s, n, m: 6 * n * s["hidden"] * (s["d"] + s["hidden"]),
    "stack_rnn": lambda s, n, m: _stack_steps(s, n),
    "pointer_unit": _walking,
    "dereference": _reading,
    "relational_read": _relating,
    "attentive_gru": _controlling,
    "linear": lambda s, n, m: 2 * n * s["d"] * s["out"],
    "feedforward": lambda s, n, m: 4 * n * s["d"] * s["ff"],
    "gate": lambda s, n, m: 4 * n * s["d"] * s["ff"],
    "mlp": lambda s, n, m: 2 * n * s["hidden"] * (s["d"] + s["out"]),
    "act": lambda s, n, m: 2 * n * s["d"],
    "token_halt": lambda s, n, m: 2 * n * s["d"] * (_halt_width(s) + 1),
    "global_halt": lambda s, n, m: 2 * (n if s["causal"] else 1) * s["d"] * (_halt_width(s) + 1),
}


def flops(instance: Instance, n: int, m: int, result: int | None = None) -> int | None:
    """What one sample costs at one call; None where that is not known. What a call computes from its weights alone,
    whatever the batch, is counted for relative attention and left out for pointers."""
    count = _FLOPS.get(instance.block) if instance.python.startswith("archlang.blocks.") else None
    try:
        return count(Sizes(instance, result), n, m) if count is not None else None
    except Unknown:
        return None
