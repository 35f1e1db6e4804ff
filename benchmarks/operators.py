"""Operators by length, forward and backward, against torch's own attention and against handwritten forms."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from archlang.blocks.activations import CopyGate
from archlang.blocks.attention import Attention
from archlang.blocks.geometric_attention import GeometricAttention
from archlang.blocks.halting import GlobalHalt, TokenHalt
from archlang.blocks.noise import Dropout
from archlang.blocks.relative_attention import AbsrelAttention, RelativeAttention
from benchmarks import dynamic_halt, handwritten_halt, handwritten_ndr, handwritten_seq2seq
from benchmarks.comparison import share_weights
from benchmarks.measure import Case, Group, Setting, Sides

LENGTHS = (12, 64, 256, 1024, 4096)
STEPS = 4  # of a halting loop
_FIXED = {"causal": False, "dropout": 0.0, "output_dropout": 0.0, "head_dim": 0}


@dataclass(frozen=True)
class Size:
    length: int
    positions: int = 4096
    """positions of a batch, all samples together"""
    d: int = 256
    heads: int = 4

    @property
    def batch(self) -> int:
        return max(1, self.positions // self.length)

    def matrices(self, count: int) -> float:
        """Returns the size of `count` score matrices in GiB."""
        return 4 * count * self.batch * self.heads * self.length**2 / 2**30


# A module, and a function that calls it.
Operator = tuple[nn.Module, Callable[..., Tensor]]


def _softmax(size: Size) -> Operator:
    module = handwritten_halt.Attention(size.d, size.heads, xpos=False)
    return module, lambda x: module(x, x, None, None)


def _xpos_by_hand(size: Size) -> Operator:
    module = handwritten_halt.Attention(size.d, size.heads, xpos=True)
    return module, lambda x: module(x, x, None, None)


def _attention(position: str, size: Size) -> Operator:
    module = Attention(
        heads=size.heads, position=position, causal_rule="always", padded="zero", init="xavier", d=size.d, e=size.d,
        kv_heads=size.heads, window=0, scale=0.0, softcap=0.0, qk_norm=False, sinks=False, bias=False, gate="none",
        base=10_000.0, **_FIXED,  # type: ignore[arg-type]  # values of several kinds
    )  # fmt: skip
    return module, lambda x: module(x, x)


def _geometric(size: Size) -> Operator:
    module = GeometricAttention(
        heads=size.heads, normalised=False, key_dropout=0.0, output_dropout=0.0, head_dim=0, causal=False, offset=0,
        d=size.d, e=size.d,
    )  # fmt: skip
    return module, lambda x: module(x, x)


def _geometric_by_hand(size: Size) -> Operator:
    module = handwritten_ndr.GeometricAttention(size.d, size.heads)
    return module, lambda x: module(x, None)


def _relative(size: Size) -> Operator:
    module = RelativeAttention(
        heads=size.heads, scale="fixed", key_dropout=0.0, init="torch", d=size.d, e=size.d,
        **_FIXED,  # type: ignore[arg-type]  # values of several kinds
    )  # fmt: skip
    return module, lambda x: module(x, x)


def _relative_by_hand(size: Size) -> Operator:
    module = handwritten_seq2seq.RelativeAttention(size.d, size.heads, 0.0)
    return module, lambda x: module(x, x, None)


def _absrel(size: Size) -> Operator:
    module = AbsrelAttention(
        heads=size.heads, gates="per_head", scale="fixed", key_dropout=0.0, init="torch", d=size.d, e=size.d,
        **_FIXED,
    )  # fmt: skip
    return module, lambda x: module(x, x)


def _absrel_by_hand(size: Size) -> Operator:
    module = handwritten_seq2seq.AbsrelAttention(size.d, size.heads, 0.0)
    return module, lambda x: module(x, x, None)


def _copy_gate(size: Size) -> Operator:
    module = CopyGate(column_dropout=0.0, d=size.d)
    return module, lambda x: module(*_gated(x))


def _copy_gate_by_hand(_size: Size) -> Operator:
    def update(x: Tensor) -> Tensor:
        g, u, h = _gated(x)
        return g * u + (1 - g) * h

    return nn.Identity(), update


def _gated(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns a gate, an update and a state."""
    return torch.sigmoid(x), -x, x


def _halting(by_sample: bool, size: Size) -> Operator:
    block: GlobalHalt | TokenHalt
    if by_sample:
        block = GlobalHalt(threshold=0.999, transition=True, causal=False, length_cap=True, ponder="code", d=size.d)
    else:
        block = TokenHalt(threshold=0.999, transition=True, length_cap=True, ponder="code", d=size.d)

    def loop(x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        halting = block.start(x, mask)
        for _ in range(STEPS):
            halting = block.advance(halting, halting.state + 1, mask)
            if not halting.live.any():
                break
        return halting.mixture + halting.ponder[:, None, None]

    return block, loop


def _halting_by_hand(by_sample: bool, size: Size) -> Operator:
    halt = handwritten_halt.Halt(size.d, by_sample=by_sample, transition=True)

    def loop(x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        mixture, cost = halt(_Add(), x, mask, STEPS)
        result: Tensor = mixture + cost[:, None, None]
        return result

    return halt, loop


class _Add(nn.Module):
    def forward(self, h: Tensor, _s: Tensor, _mask: Tensor) -> Tensor:
        return h + 1


def _chunks(size: Size) -> tuple[Operator, Operator]:
    model = dynamic_halt.Size(
        "temporal_latent_bottleneck", depth=1, mean=0, chunk=20, d=size.d, heads=size.heads, ff=2 * size.d
    )
    lengths = torch.full((size.batch,), size.length)

    def run(module: nn.Module, x: Tensor) -> Tensor:
        tokens = (x[..., 0] > 0).long()
        result: Tensor = module(tokens, lengths=lengths.to(x.device))
        return result

    ours, theirs = dynamic_halt.pair(model)
    return (ours, partial(run, ours)), (theirs, partial(run, theirs))


def _dropout(size: Size) -> tuple[Operator, Operator]:
    ours, theirs = Dropout(rate=0.1, d=size.d), nn.Dropout(0.1)
    return (ours, ours), (theirs, theirs)


def _pair_of(ours: Callable[[Size], Operator], theirs: Callable[[Size], Operator], size: Size) -> tuple[Operator, ...]:
    return ours(size), theirs(size)


TORCH = "torch's own attention"
_HAND = "plain torch, by hand"
# Keys: the operator and its baseline. Values: both operators, and about how many score matrices they use at most.
OPERATORS: dict[tuple[str, str], tuple[Callable[[Size], tuple[Operator, ...]], int]] = {
    ("geometric attention", _HAND): (partial(_pair_of, _geometric, _geometric_by_hand), 20),
    ("geometric attention", TORCH): (partial(_pair_of, _geometric, _softmax), 10),
    ("relative attention", _HAND): (partial(_pair_of, _relative, _relative_by_hand), 12),
    ("relative attention", TORCH): (partial(_pair_of, _relative, _softmax), 12),
    ("absolute/relative attention", _HAND): (partial(_pair_of, _absrel, _absrel_by_hand), 18),
    ("absolute/relative attention", TORCH): (partial(_pair_of, _absrel, _softmax), 18),
    ("rotary attention", TORCH): (partial(_pair_of, partial(_attention, "rotary"), _softmax), 0),
    ("xPos attention", _HAND): (partial(_pair_of, partial(_attention, "xpos"), _xpos_by_hand), 0),
    ("xPos attention", TORCH): (partial(_pair_of, partial(_attention, "xpos"), _softmax), 0),
    ("dropout", "torch's own dropout"): (_dropout, 0),
    ("copy gate", _HAND): (partial(_pair_of, _copy_gate, _copy_gate_by_hand), 0),
    (f"halting of samples, {STEPS} steps", _HAND): (
        partial(_pair_of, partial(_halting, True), partial(_halting_by_hand, True)), 0,
    ),
    (f"halting of positions, {STEPS} steps", _HAND): (
        partial(_pair_of, partial(_halting, False), partial(_halting_by_hand, False)), 0,
    ),
    ("chunk recurrence", _HAND): (_chunks, 0),
}  # fmt: skip
# From archlang's names of halting and gates to the handwritten modules'.
NAMES = {"": "", "hidden.": "map.0.", "relative_gate.": "gate."}
_HALT_OUTPUT = {"output.": "map.2."}


def pair(name: str, beside: str, size: Size) -> tuple[Operator, ...]:
    """Returns both operators; the handwritten one has equal weights."""
    torch.manual_seed(0)
    ours, theirs = OPERATORS[name, beside][0](size)
    if beside == _HAND and name != "chunk recurrence":
        names = {**NAMES, **_HALT_OUTPUT} if name.startswith("halting") else NAMES
        share_weights(ours[0], theirs[0], names)
    return ours, theirs


def operand(size: Size) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(size.batch, size.length, size.d)


def _sides(name: str, beside: str, size: Size, device: torch.device) -> Sides:
    x = operand(size).to(device).requires_grad_()
    return Sides(
        *(partial(_forward_and_backward, module.to(device), call, x) for module, call in pair(name, beside, size))
    )


def _forward_and_backward(module: nn.Module, call: Callable[[Tensor], Tensor], x: Tensor) -> None:
    module.zero_grad(set_to_none=True)
    x.grad = None
    call(x).sum().backward()  # type: ignore[no-untyped-call]


TINY = Size(7, positions=14, d=16, heads=2)


def _cases(setting: Setting) -> Iterator[Case]:
    for (name, beside), (_, matrices) in OPERATORS.items():
        for size in (TINY,) if setting.tiny else map(Size, LENGTHS):
            build = partial(_sides, name, beside, size, setting.device)
            yield Case(f"{name}, N = {size.length}", beside, build, memory=size.matrices(matrices))


GROUP = Group(
    "operators",
    "Forward and backward, 4096 positions a batch at every length (341 sequences of 12, 1 of 4096), d 256, 4 heads; "
    "projections are part of an attention.",
    _cases,
)
