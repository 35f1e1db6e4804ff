"""Pointers that walk over addresses."""

from __future__ import annotations

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.past import Past


class DotScore(nn.Module):
    """(Wq (L h + l) + bq) · (Wk (G a + g) + bk) / sqrt(H): the maps of PANM's program.

    L and G start as torch's Linear; Wq and Wk by Xavier with biases 0, as in torch's MultiheadAttention."""

    def __init__(self, hidden: int, bits: int) -> None:
        super().__init__()
        self.state_map = nn.Linear(hidden, hidden)
        self.address_map = nn.Linear(bits, bits)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(bits, hidden)
        for projection in (self.query, self.key):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def keys(self, a: Float[Tensor, "b n bits"]) -> Float[Tensor, "b n hidden"]:
        y: Tensor = self.key(self.address_map(a))
        return y

    def forward(self, h: Float[Tensor, "b hidden"], keys: Float[Tensor, "b n hidden"]) -> Float[Tensor, "b n"]:
        query: Tensor = self.query(self.state_map(h))
        return (keys @ query[..., None])[..., 0] / sqrt(query.shape[-1])


class CosineScore(nn.Module):
    """cos(h, g(a)), g a network with one hidden layer: Eq. 2 as it is printed."""

    def __init__(self, hidden: int, bits: int, width: int, epsilon: float = 1e-8) -> None:
        super().__init__()
        self.hidden = nn.Linear(bits, width)
        self.output = nn.Linear(width, hidden)
        self.epsilon = epsilon

    def keys(self, a: Float[Tensor, "b n bits"]) -> Float[Tensor, "b n hidden"]:
        y: Tensor = self.output(F.relu(self.hidden(a)))
        return y

    def forward(self, h: Float[Tensor, "b hidden"], keys: Float[Tensor, "b n hidden"]) -> Float[Tensor, "b n"]:
        return F.cosine_similarity(h[:, None], keys, dim=-1, eps=self.epsilon)


class Pointer(nn.Module):
    """One pointer: a GRU from address to address, and how addresses are scored."""

    def __init__(self, score: DotScore | CosineScore, hidden: int, bits: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(bits, hidden)
        self.score = score


class PointerUnit(nn.Module):
    """Pointers that walk over addresses, one trajectory of `t` steps each.

        h_t = GRU(p_{t-1}, h_{t-1}),    w_t = softmax_n(score(h_t, a_n)),    p_t = Σ_n w_t[n] a_n

    Le et al., "Pointer-Augmented Neural Memory", 2024, Eqs. 1-3. The score is a scaled dot product in the program and a
    cosine, which leaves w nearly flat, in the paper. Padded slots have no weight; the last address is that of the last
    real slot; both are ours, since the program knows no padding."""

    def __init__(
        self,
        *,
        pointers: int,
        hidden: int,
        form: str,
        scrambled: bool,
        address_hidden: int,
        causal: bool,
        bits: int,
        e: int,
    ) -> None:
        super().__init__()
        self.pointers = nn.ModuleList(
            Pointer(
                DotScore(hidden, bits) if form == "code" else CosineScore(hidden, bits, address_hidden), hidden, bits
            )
            for _ in range(pointers)
        )
        self.starts = ("first", "last") if form == "code" else ("first", "last", "middle")
        self.scrambled = scrambled
        self.causal = causal
        self.hidden = hidden

    def forward(
        self,
        a: Float[Tensor, "b n bits"],
        inputs: Float[Tensor, "b t e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_t: Bool[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t pointers n"]:
        """w"""
        return self._walk(a, inputs.shape[1], mask_n, 0, {})

    def extend(
        self,
        past: Past,
        a: Float[Tensor, "b n bits"],
        inputs: Float[Tensor, "b t e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_t: Bool[Tensor, "b t"] | None = None,
    ) -> Float[Tensor, "b t pointers n"]:
        return self._walk(a, inputs.shape[1], mask_n, past.start, past.kept)

    def _walk(
        self,
        a: Float[Tensor, "b n bits"],
        steps: int,
        mask_n: Bool[Tensor, "b n"] | None,
        begin: int,
        kept: dict[str, Tensor],
    ) -> Float[Tensor, "b t pointers n"]:
        """w of some steps, after what is `kept` of the `begin` ones before them; it is brought up to date."""
        b, n, bits = a.shape
        length = torch.full((b,), n, device=a.device) if mask_n is None else mask_n.sum(1)
        if self.causal:
            length = length.clamp(max=1)  # all that there is when pointers begin
        slots = {"first": torch.zeros_like(length), "last": (length - 1).clamp(min=0), "middle": length // 2}
        bank = a.transpose(0, 1).reshape(b, n, bits) if self.scrambled else a
        seen = None
        if self.causal:
            seen = so_far(begin + steps, n, a.device)[None, begin:]
            seen = seen if mask_n is None else seen & mask_n[:, None]
        walks = []
        for index, pointer in enumerate(self.pointers):
            assert isinstance(pointer, Pointer)
            names = (f"p{index}", f"h{index}", f"keys{index}")
            if begin:
                p, h, keys = (kept[name] for name in names)
            else:
                p = a[torch.arange(b, device=a.device), slots[self.starts[index % len(self.starts)]]]
                h = a.new_zeros(b, self.hidden)
                keys = pointer.score.keys(a)
            walk = []
            for step in range(steps):
                h = pointer.cell(p, h)
                w = over_slots(pointer.score(h, keys), seen[:, step] if seen is not None else mask_n)
                p = (w[:, None] @ bank)[:, 0]
                walk.append(w)
            kept.update(zip(names, (p, h, keys), strict=True))
            walks.append(torch.stack(walk, dim=1) if walk else a.new_zeros(b, 0, n))
        return torch.stack(walks, dim=2)


def over_slots(scores: Float[Tensor, "b *t n"], mask: Bool[Tensor, "_b *_t n"] | None) -> Float[Tensor, "b *t n"]:
    """The softmax over the slots that are seen, [b n] or by each step [b t n]; zeros where there is none."""
    if mask is None:
        return scores.softmax(-1)
    while mask.dim() < scores.dim():
        mask = mask.unsqueeze(-2)
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1).masked_fill(~mask, 0.0)


def so_far(t: int, n: int, device: torch.device) -> Bool[Tensor, "t n"]:
    """The slots of a memory that grows by one with each step: those up to the step itself."""
    return torch.ones(t, n, dtype=torch.bool, device=device).tril()
