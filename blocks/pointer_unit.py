"""Pointers that move over the addresses of a memory, and reads of its slots."""

from collections.abc import Sequence
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.kernels.masked_softmax import masked_softmax
from archlang.backend.runtime.block import Mask, MaskN, Weightless, real_only
from archlang.backend.runtime.graph_loops import is_exporting, scan_steps
from archlang.blocks.positions import filled


class Addresses(Weightless):
    """The binary numbers base, base + 1, …, one for each slot of a memory.

        a_n = the bits of (base + n) mod 2^bits, the least significant first

    Le et al., "Enhancing Length Extrapolation in Sequential Models with Pointer-Augmented Neural Memory", 2024,
    section 2.2. The paper writes the most significant bit first, its program the least. With `base = training` the base
    is 0 in evaluation, where the program draws it too."""

    bits: int
    base: str

    def forward(self, memory: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n bits"]:
        b, n = memory.shape[:2]
        return self.bank(self.bases(b, memory.device)[:, None], n).to(memory.dtype)

    def bases(self, b: int, device: torch.device) -> Int[Tensor, " b"]:
        """Returns the first address of each sample."""
        if self.base == "always" or (self.base == "training" and self.training):
            return torch.randint(2**self.bits, (b,), device=device)
        return torch.zeros(b, dtype=torch.int64, device=device)

    def bank(self, base: Int[Tensor, "b 1"], n: int) -> Int[Tensor, "b n bits"]:
        """Returns the bits of n addresses from each base; addresses wrap around to 0."""
        address = base + torch.arange(n, device=base.device)
        if is_exporting():  # ONNX shifts unsigned numbers only
            power = 2 ** torch.arange(self.bits, device=base.device)
            return (address[..., None] % (2 * power) >= power).to(torch.int64)
        return (address[..., None] >> torch.arange(self.bits, device=base.device)) & 1


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
        self, a: Float[Tensor, "b n bits"], inputs: Float[Tensor, "b t e"], *, mask_n: MaskN = None, **_: Mask
    ) -> Float[Tensor, "b t pointers n"]:
        """Returns w."""
        return self._walk(a, inputs.shape[1], mask_n, 0, {})

    def extend(
        self,
        cache: BlockCache,
        a: Float[Tensor, "b n bits"],
        inputs: Float[Tensor, "b t e"],
        *,
        mask_n: MaskN = None,
        **_: Mask,
    ) -> Float[Tensor, "b t pointers n"]:
        return self._walk(a, inputs.shape[1], mask_n, cache.start, cache.tensors)

    def _walk(
        self, a: Float[Tensor, "b n bits"], steps: int, mask_n: MaskN, begin: int, tensors: dict[str, Tensor]
    ) -> Float[Tensor, "b t pointers n"]:
        """Returns w of `steps` steps after the first `begin` steps, whose final state is in `tensors`, and updates
        `tensors`."""
        b, n, bits = a.shape
        length = torch.full((b,), n, device=a.device) if mask_n is None else mask_n.sum(1)
        if self.causal:
            length = length.clamp(max=1)  # the memory has one slot at the first step
        slots = {"first": torch.zeros_like(length), "last": (length - 1).clamp(min=0), "middle": length // 2}
        bank = a.transpose(0, 1).reshape(b, n, bits) if self.scrambled else a
        seen = so_far(begin, steps, n, a.device, mask_n) if self.causal else None
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
        self, a: Float[Tensor, "b n bits"], mask_n: MaskN, begin: int, steps: int
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
        mask_n: MaskN,
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

        is_last = [self._start(index) == "last" for index in range(len(units))]
        restarts = filled(is_last, a, torch.bool)[:, None, None]

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


def so_far(begin: int, steps: int, n: int, device: torch.device, mask_n: MaskN = None) -> Bool[Tensor, "_b t n"]:
    """Returns the real slots of a memory that grows by one slot per step: those up to each step from `begin`."""
    seen = torch.ones(steps, n, dtype=torch.bool, device=device).tril(begin)[None]
    return seen if mask_n is None else seen & mask_n[:, None]


class Dereference(nn.Module):
    """Reads the slots that pointers point at, and concatenates them.

        y_t = concat over pointers of  Wo (Σ_n w_t[n] (Wv m_n + bv)) + bo    (code)
                                       Σ_n w_t[n] m_n                        (paper)

    Le et al., "Enhancing Length Extrapolation in Sequential Models with Pointer-Augmented Neural Memory", 2024,
    section 2.3.2, mode 1. The maps, one pair per pointer, are in its program only; Wv starts as Xavier, Wo as torch's
    Linear, and both biases at 0, as in torch's MultiheadAttention."""

    def __init__(self, *, form: str, causal: bool, k: int, d: int) -> None:
        super().__init__()
        self.causal = causal
        projected = k if form == "code" else 0
        self.value = nn.ModuleList(nn.Linear(d, d) for _ in range(projected))
        self.output = nn.ModuleList(nn.Linear(d, d) for _ in range(projected))
        for value, output in zip(self.value, self.output, strict=True):
            nn.init.xavier_uniform_(value.get_parameter("weight"))
            nn.init.zeros_(value.get_parameter("bias"))
            nn.init.zeros_(output.get_parameter("bias"))

    def forward(
        self, w: Float[Tensor, "b t k n"], memory: Float[Tensor, "b n d"], *, mask_n: MaskN = None, **_: Mask
    ) -> Float[Tensor, "b t k*d"]:
        memory = real_only(memory, mask_n)
        return self._read(w, [value(memory) for value in self.value] or [memory], 0)

    def extend(
        self,
        cache: BlockCache,
        w: Float[Tensor, "b t k n"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_n: MaskN = None,
        **_: Mask,
    ) -> Float[Tensor, "b t k*d"]:
        memory = real_only(memory, mask_n)
        # The memory has as many slots as w, which has all of them at each step: it does not grow.
        if not cache.start:
            cache.tensors |= {str(i): value(memory) for i, value in enumerate(self.value)}
        return self._read(w, list(cache.tensors.values()) or [memory], cache.start)

    def _read(
        self, w: Float[Tensor, "b t k n"], values: list[Float[Tensor, "b n d"]], begin: int
    ) -> Float[Tensor, "b t k*d"]:
        """Returns the reads of the steps from `begin`. `values` has the slots of each pointer, or of all pointers."""
        if self.causal:
            w = w.masked_fill(~so_far(begin, w.shape[1], w.shape[3], w.device)[:, :, None], 0.0)
        if not self.output:
            return (w @ values[0][:, None]).flatten(2)
        return torch.cat([output(w[:, :, i] @ values[i]) for i, output in enumerate(self.output)], dim=-1)


class DotRead(nn.Module):
    """q = Wq (L p_t + l) + bq,  w = softmax_n(q · (Wk m_n + bk) / sqrt(d)),  y_t = Wo (Σ_n w[n] (Wv m_n + bv)) + bo

    Wq, Wk and Wv start as Xavier of one joint matrix, L and Wo as torch's Linear, all biases except l at 0."""

    def __init__(self, reads: int, k: int, d: int, dropout: float) -> None:
        super().__init__()
        self.pointed = nn.Linear(k, reads * d)  # L and l of all reads
        self.query = nn.Linear(d, d)
        self.key = nn.Linear(d, d)
        self.value = nn.Linear(d, d)
        self.output = nn.Linear(d, d)
        for projection in (self.query, self.key, self.value):
            bound = sqrt(6 / (4 * d))
            nn.init.uniform_(projection.weight, -bound, bound)
            nn.init.zeros_(projection.bias)
        nn.init.zeros_(self.output.bias)
        self.reads = reads
        self.dropout = dropout

    def weights(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads n"]:
        pointed: Tensor = self.pointed(p)
        # One product for all steps and reads of a sample.
        query = self.query(pointed.reshape(p.shape[0], -1, memory.shape[-1]))
        scores = query @ self.key(memory).transpose(-1, -2) / sqrt(memory.shape[-1])
        return over_slots(scores.view(*p.shape[:2], self.reads, memory.shape[1]), mask)

    def forward(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads d"]:
        weights = dropout(self.weights(p, memory, mask), self.dropout, self.training)
        y: Tensor = self.output(weights.flatten(1, 2) @ self.value(memory))
        return y.view(*p.shape[:2], self.reads, memory.shape[-1])


class CosineRead(nn.Module):
    """q = W2 relu(W1 p_t + b1) + b2,  w = softmax_n(cos(q, m_n)),  y_t = Σ_n w[n] m_n: Eqs. 4-6 as printed."""

    def __init__(self, reads: int, k: int, d: int, width: int, dropout: float, epsilon: float = 1e-8) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(k, width) for _ in range(reads))
        self.output = nn.ModuleList(nn.Linear(width, d) for _ in range(reads))
        self.dropout = dropout
        self.epsilon = epsilon

    def weights(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads n"]:
        maps = zip(self.hidden, self.output, strict=True)
        query = torch.stack([output(F.relu(hidden(p))) for hidden, output in maps], dim=2)
        size = query.norm(dim=-1, keepdim=True) * memory.norm(dim=-1)[:, None, None]
        scores = query @ memory[:, None].transpose(-1, -2) / size.clamp(min=self.epsilon)
        return over_slots(scores, mask)

    def forward(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads d"]:
        return dropout(self.weights(p, memory, mask), self.dropout, self.training) @ memory[:, None]


class RelationalRead(nn.Module):
    """Reads slots of a memory that resemble the values that pointers point at: y_t concatenates all reads.

    Le et al., "Enhancing Length Extrapolation in Sequential Models with Pointer-Augmented Neural Memory", 2024, Eqs.
    4-6 (mode 2), in the form of its program (DotRead: a scaled dot product, reads share all maps except L, dropout 0.5
    on w) or of the paper (CosineRead)."""

    def __init__(self, *, reads: int, hidden: int, form: str, dropout: float, causal: bool, k: int, d: int) -> None:
        super().__init__()
        self.reads = reads
        self.causal = causal
        self.read: DotRead | CosineRead
        if form == "code":
            self.read = DotRead(reads, k, d, dropout)
        else:
            self.read = CosineRead(reads, k, d, hidden, dropout)

    def forward(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], *, mask_n: MaskN = None, **_: Mask
    ) -> Float[Tensor, "b t {self.reads}*d"]:
        return self._read(p, memory, mask_n, 0)

    def extend(
        self,
        cache: BlockCache,
        p: Float[Tensor, "b t k"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_n: MaskN = None,
        **_: Mask,
    ) -> Float[Tensor, "b t {self.reads}*d"]:
        if cache.grows[1]:
            memory = cache.append("memory", memory)
        return self._read(p, memory, mask_n, cache.start)

    def _read(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask_n: MaskN, begin: int
    ) -> Float[Tensor, "b t {self.reads}*d"]:
        """Returns the reads of the steps from `begin`."""
        seen = mask_n
        if self.causal:
            seen = so_far(begin, p.shape[1], memory.shape[1], p.device, mask_n)
        y: Tensor = self.read(p, real_only(memory, mask_n), seen)
        return y.flatten(2)
