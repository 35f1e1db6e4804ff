"""Pointers that move over addresses."""

from collections.abc import Sequence
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.masked_softmax import masked_softmax
from archlang.backend.runtime.graph_loops import scan_steps
from archlang.backend.runtime.padded_division import Mask


class DotScore(nn.Module):
    """(Wq (L h + l) + bq) · (Wk (G a + g) + bk) / sqrt(H): the maps of PANM's program.

    L and G start as torch's Linear; Wq and Wk as Xavier with biases 0, as in torch's MultiheadAttention."""

    def __init__(self, hidden: int, bits: int) -> None:
        super().__init__()
        self.state_map = nn.Linear(hidden, hidden)
        self.address_map = nn.Linear(bits, bits)
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(bits, hidden)
        for projection in (self.query, self.key):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def joint_map(self) -> tuple[Float[Tensor, "_bits hidden"], Float[Tensor, " _bits"]]:
        """Returns U and u of the scores [a; 1] · (U h + u). All maps are linear, so their product is one map to bits +
        1 numbers."""
        weights = torch.cat((self.address_map.weight, self.address_map.bias[:, None]), dim=1)
        bias = F.pad(self.key.bias[None], (0, 0, len(self.address_map.bias), 0))
        of_key = (weights.T @ self.key.weight.T + bias) / sqrt(self.key.out_features)
        of_state = self.query.weight @ self.state_map.weight
        return of_key @ of_state, of_key @ F.linear(self.state_map.bias, self.query.weight, self.query.bias)


class CosineScore(nn.Module):
    """cos(h, g(a)), g a network with one hidden layer: Eq. 2 as printed."""

    def __init__(self, hidden: int, bits: int, width: int, epsilon: float = 1e-8) -> None:
        super().__init__()
        self.hidden = nn.Linear(bits, width)
        self.output = nn.Linear(width, hidden)
        self.epsilon = epsilon

    def keys(self, a: Float[Tensor, "b n bits"]) -> Float[Tensor, "b n hidden"]:
        """Returns g(a) / |g(a)|."""
        return F.normalize(self.output(F.relu(self.hidden(a))), dim=-1, eps=self.epsilon)


class Pointer(nn.Module):
    """One pointer: a GRU over addresses, and the score of addresses."""

    def __init__(self, score: DotScore | CosineScore, hidden: int, bits: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(bits, hidden)
        self.score = score


class PointerUnit(nn.Module):
    """Pointers that move over addresses for t steps.

        h_t = GRU(p_{t-1}, h_{t-1}),    w_t = softmax_n(score(h_t, a_n)),    p_t = Σ_n w_t[n] a_n

    Le et al., "Enhancing Length Extrapolation in Sequential Models with Pointer-Augmented Neural Memory", 2024, Eqs.
    1-3. The score is a scaled dot product in the program, and in the paper a cosine, which keeps w nearly uniform.
    Padded slots have weight 0, and the last address is that of the last real slot; both are ours, because the program
    has no padding. The paper does not define the last address of a memory that grows: with `restart`, it is that of the
    current step."""

    def __init__(
        self,
        *,
        pointers: int,
        hidden: int,
        form: str,
        scrambled: bool,
        address_hidden: int,
        causal: bool,
        restart: bool,
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
        self.cosine = form != "code"
        self.scrambled = scrambled
        self.causal = causal
        self.restart = restart
        self.hidden = hidden

    def forward(
        self,
        a: Float[Tensor, "b n bits"],
        inputs: Float[Tensor, "b t e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t pointers n"]:
        """Returns w."""
        return self._walk(a, inputs.shape[1], mask_n, 0, {})

    def extend(
        self,
        cache: BlockCache,
        a: Float[Tensor, "b n bits"],
        inputs: Float[Tensor, "b t e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t pointers n"]:
        return self._walk(a, inputs.shape[1], mask_n, cache.start, cache.tensors)

    def _walk(
        self,
        a: Float[Tensor, "b n bits"],
        steps: int,
        mask_n: Bool[Tensor, "b n"] | None,
        begin: int,
        tensors: dict[str, Tensor],
    ) -> Float[Tensor, "b t pointers n"]:
        """Returns w of `steps` steps after the first `begin` steps, whose final state is in `tensors`, and updates
        `tensors`."""
        b, n, bits = a.shape
        length = torch.full((b,), n, device=a.device) if mask_n is None else mask_n.sum(1)
        if self.causal:
            length = length.clamp(max=1)  # the memory has one slot at the first step
        slots = {"first": torch.zeros_like(length), "last": (length - 1).clamp(min=0), "middle": length // 2}
        bank = a.transpose(0, 1).reshape(b, n, bits) if self.scrambled else a
        seen = None
        if self.causal:
            seen = so_far(begin + steps, n, a.device)[None, begin:]
            seen = seen if mask_n is None else seen & mask_n[:, None]
        if not begin:
            starts = [slots[self._start(index)] for index in range(len(self.pointers))]
            rows = torch.arange(b, device=a.device)
            # Pointers of a memory without slots start at zero.
            addresses = a if n else a.new_zeros(b, 1, bits)
            tensors["p"] = torch.stack([addresses[rows, start] for start in starts])
            tensors["h"] = a.new_zeros(len(starts), b, self.hidden)
        ends = self._last_so_far(a, mask_n, begin, steps) if self.restart and n else None
        w, _, tensors["p"], tensors["h"] = self.walk(tensors["p"], tensors["h"], a, bank, steps, seen, mask_n, ends)
        return w

    def _start(self, index: int) -> str:
        return self.starts[index % len(self.starts)]

    def _last_so_far(
        self, a: Float[Tensor, "b n bits"], mask_n: Bool[Tensor, "b n"] | None, begin: int, steps: int
    ) -> Float[Tensor, "b t bits"]:
        """Returns the last address of a growing memory at each of `steps` steps after the first `begin`."""
        b, n, bits = a.shape
        last = torch.full((b,), n - 1, device=a.device) if mask_n is None else (mask_n.sum(1) - 1).clamp(min=0)
        slots = torch.minimum(torch.arange(begin, begin + steps, device=a.device)[None], last[:, None])
        return a.gather(1, slots[..., None].expand(b, steps, bits))

    def walk(
        self,
        p: Float[Tensor, "k b bits"],
        h: Float[Tensor, "k b hidden"],
        a: Float[Tensor, "b n bits"],
        bank: Float[Tensor, "b n bits"],
        steps: int,
        seen: Bool[Tensor, "_b t n"] | None,
        mask_n: Bool[Tensor, "b n"] | None,
        ends: Float[Tensor, "b t bits"] | None = None,
    ) -> tuple[Float[Tensor, "b t k n"], Float[Tensor, "b t k hidden"], Float[Tensor, "k b bits"], Tensor]:
        """Returns w and h of `steps` steps of all pointers, and their final p and h. p is computed from `bank`. `ends`
        has the address at which pointers that restart begin each step."""
        units = [pointer for pointer in self.pointers if isinstance(pointer, Pointer)]
        joint_maps = [unit.score.joint_map() for unit in units if isinstance(unit.score, DotScore)]
        keys = [unit.score.keys(a) for unit in units if isinstance(unit.score, CosineScore)]
        of_input, input_bias = _stacked([(unit.cell.weight_ih, unit.cell.bias_ih) for unit in units])
        # The next gates and the score are computed from the same state, in one product.
        of_state, state_bias = _stacked(
            [
                (torch.cat((unit.cell.weight_hh, of_h)), torch.cat((unit.cell.bias_hh, bias)))
                for unit, (of_h, bias) in zip(units, joint_maps, strict=True)
            ]
            if joint_maps
            else [(unit.cell.weight_hh, unit.cell.bias_hh) for unit in units]
        )
        gates = 3 * self.hidden
        compared = torch.stack(keys) if keys else F.pad(a, (0, 1), value=1.0)
        products = torch.baddbmm(state_bias, h, of_state)

        restarts = torch.tensor([self._start(index) == "last" for index in range(len(units))], device=a.device)[
            :, None, None
        ]

        def step(carried: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            """Returns the next p, h and products, and w and h."""
            p, h, products = carried
            p = p if ends is None else torch.where(restarts, inputs[1], p)
            h = gated(torch.baddbmm(input_bias, p, of_input), products[..., :gates], h)
            products = torch.baddbmm(state_bias, h, of_state)
            if keys:
                scores = compared @ F.normalize(h, dim=-1, eps=1e-8)[..., None]
            else:
                scores = compared @ products[..., gates:, None]
            mask = mask_n if seen is None else inputs[0]
            w = over_slots(scores[..., 0], None if mask is None else mask[None])
            return [(w[..., None, :] @ bank)[..., 0, :], h, products], [w, h]

        order = torch.arange(steps, device=a.device) if seen is None else seen.transpose(0, 1)
        by_step = [order] if ends is None else [order, ends.transpose(0, 1)]
        (p, h, _), (all_w, all_h) = scan_steps(step, [p, h, products], by_step)
        return all_w.permute(2, 0, 1, 3), all_h.permute(2, 0, 1, 3), p, h


def _stacked(maps: Sequence[tuple[Tensor, Tensor]]) -> tuple[Float[Tensor, "k d c"], Float[Tensor, "k 1 c"]]:
    """Stacks several linear maps for torch.baddbmm."""
    weights, biases = zip(*maps, strict=True)
    return torch.stack(weights).transpose(1, 2), torch.stack(biases)[:, None]


def gated(
    of_input: Float[Tensor, "*b _gates"], of_state: Float[Tensor, "*b _gates"], h: Float[Tensor, "*b hidden"]
) -> Float[Tensor, "*b hidden"]:
    """Returns the next state of a GRU, from the terms of its input and state in reset gate, update gate and
    candidate."""
    width = h.shape[-1]
    r, z = torch.sigmoid(of_input[..., : 2 * width] + of_state[..., : 2 * width]).chunk(2, dim=-1)
    new = torch.tanh(of_input[..., 2 * width :] + r * of_state[..., 2 * width :])
    if new.dtype == h.dtype:
        return torch.lerp(new, h, z)
    return new + z * (h - new)  # under autocast


def over_slots(scores: Float[Tensor, "b *t n"], mask: Bool[Tensor, "_b *_t n"] | None) -> Float[Tensor, "b *t n"]:
    """Returns the softmax over the slots in a mask, [b n] or [b t n]; a step without slots has zeros."""
    while mask is not None and mask.dim() < scores.dim():
        mask = mask.unsqueeze(-2)
    return masked_softmax(scores, mask)


def so_far(t: int, n: int, device: torch.device) -> Bool[Tensor, "t n"]:
    """Returns the slots of a memory that grows by one slot per step: those up to each step."""
    return torch.ones(t, n, dtype=torch.bool, device=device).tril()
