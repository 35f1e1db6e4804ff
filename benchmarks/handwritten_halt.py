"""Recurrent Transformers with dynamic halting as in their authors' program: every step runs on the whole batch, with
halted samples masked, until the last sample has halted."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """Multi-head softmax attention. `xpos` rotates queries and keys by position and decays distant keys."""

    def __init__(self, d: int, heads: int, xpos: bool) -> None:
        super().__init__()
        self.heads, self.xpos = heads, xpos
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.output = nn.Linear(d, d, bias=False)

    def forward(self, x: Tensor, memory: Tensor, queries: Tensor | None, keys: Tensor | None) -> Tensor:
        """Masks are [b n] and True at real positions; None means that all are real."""
        q, k, v = (self._split(part) for part in (self.query(x), self.key(memory), self.value(memory)))
        if self.xpos:
            q, k = self._place(q, 1), self._place(k, -1)
        hidden = None
        if keys is not None:
            # Not -inf: of a chunk without real places all keys are hidden.
            hidden = torch.zeros(keys.shape, dtype=q.dtype, device=q.device)
            hidden = hidden.masked_fill(~keys, torch.finfo(q.dtype).min)[:, None, None, :]
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)
        result: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return result if queries is None else result.masked_fill(~queries[..., None], 0.0)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    @staticmethod
    def _place(x: Tensor, sign: int, base: float = 10_000.0, scale: float = 512.0, floor: float = 0.4) -> Tensor:
        n, c = x.shape[2:]
        place = torch.arange(n, dtype=x.dtype, device=x.device)[:, None]
        pair = torch.arange(0, c, 2, dtype=x.dtype, device=x.device)
        angle = place * base ** (-pair / c)
        angle = angle.repeat_interleave(2, dim=-1)
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
        zeta = ((pair + floor * c) / ((1 + floor) * c)).repeat_interleave(2)
        return (x * angle.cos() + turned * angle.sin()) * zeta ** (sign * (place - n // 2) / scale)


class Feedforward(nn.Sequential):
    def __init__(self, d: int, ff: int, out: int | None = None) -> None:
        super().__init__(nn.Linear(d, ff), nn.GELU(), nn.Linear(ff, d if out is None else out))


class Layer(nn.Module):
    """A layer of UT; with `gated`, of GUT."""

    def __init__(self, d: int, heads: int, ff: int, gated: bool) -> None:
        super().__init__()
        self.before, self.norm = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = Attention(d, heads, xpos=True)
        self.feedforward = Feedforward(d, ff)
        self.gate = Feedforward(d, ff) if gated else None

    def forward(self, h: Tensor, s: Tensor, mask: Tensor) -> Tensor:
        a = h + self.attention(self.before(h), self.before(s), mask, mask)
        u = self.norm(a)
        y: Tensor = a + self.feedforward(u)
        if self.gate is None:
            return y
        g = torch.sigmoid(self.gate(u))
        return g * y + (1 - g) * h


class ChunkLayer(nn.Module):
    """A layer of TLB; with `gated`, of GUTLB: a chunk attends to itself, then to a memory."""

    def __init__(self, d: int, heads: int, ff: int, gated: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(4))
        self.attention = Attention(d, heads, xpos=True)
        self.cross = Attention(d, heads, xpos=False)
        self.feedforward = Feedforward(d, ff)
        self.gate = Feedforward(d, ff) if gated else None

    def forward(self, c: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        first, query, key, last = self.norms
        x = first(c)
        a = c + self.attention(x, x, mask, mask)
        b = a + self.cross(query(a), key(memory), mask, None)
        u = last(b)
        y: Tensor = b + self.feedforward(u)
        if self.gate is None:
            return y
        g = torch.sigmoid(self.gate(u))
        return g * y + (1 - g) * c


class MemoryUpdate(nn.Module):
    """Writes a chunk into a memory."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.attention = Attention(d, heads, xpos=False)
        self.feedforward = Feedforward(d, d)

    def forward(self, memory: Tensor, c: Tensor, mask: Tensor) -> Tensor:
        query, key, last = self.norms
        a = memory + self.attention(query(memory), key(c), None, mask)
        result: Tensor = a + self.feedforward(last(a))
        return result


class Halt(nn.Module):
    """A loop with halting probabilities: one for each sample from the mean of its states (`by_sample`), or one for each
    position. With `transition`, they depend on the states before and after a step."""

    def __init__(self, d: int, by_sample: bool, transition: bool, threshold: float = 0.999) -> None:
        super().__init__()
        self.by_sample, self.transition, self.threshold = by_sample, transition, threshold
        self.map = Feedforward(2 * d if transition else d, d, 1)

    def forward(self, layer: nn.Module, h: Tensor, mask: Tensor, limit: int, *memory: Tensor) -> tuple[Tensor, Tensor]:
        """The mixture of the states, and what the steps cost each sample."""
        length = mask.sum(1)
        live = mask.any(1, keepdim=True) if self.by_sample else mask
        zero = h.new_zeros(live.shape)
        mixture, weighted = h, torch.zeros_like(h)
        rest, spent, charged, cost = zero + 1, zero, zero, zero
        for step in range(1, limit + 1):
            context = memory if memory else (h if self.by_sample else mixture,)
            new = layer(h, *context, mask)
            features = self._pool(h, mask)
            if self.transition:
                features = torch.cat((features, self._pool(new, mask)), -1)
            halt = torch.sigmoid(self.map(features))[..., 0]
            alpha = rest * halt
            spent = spent + alpha
            weighted = weighted + alpha[..., None] * h
            charged = charged + alpha * step
            rest = rest * (1 - halt)
            live = live & (spent < self.threshold) & (step <= length[:, None] + 1)
            cost = torch.where(live, charged + (1 - spent) * step, cost)
            mixture = torch.where(live[..., None], (1 - spent)[..., None] * new + weighted, mixture)
            h = torch.where(live[..., None], new, h)
            if not live.any():
                break
        if self.by_sample:
            return mixture, cost[:, 0]
        return mixture, (cost * mask).sum(1) / length.clamp(min=1)

    def _pool(self, h: Tensor, mask: Tensor) -> Tensor:
        return masked_mean(h, mask)[:, None] if self.by_sample else h


def masked_mean(h: Tensor, mask: Tensor) -> Tensor:
    weights = mask.to(h.dtype)[..., None]
    return (h * weights).sum(1) / weights.sum(1).clamp(min=1)


class Universal(nn.Module):
    """The classifier of UT, which reads the mean of all states; or of GUT, which halts whole samples and reads END."""

    def __init__(self, vocab: int, classes: int, d: int, heads: int, ff: int, depth: int, gated: bool) -> None:
        super().__init__()
        self.depth, self.gated = depth, gated
        self.embed = nn.Embedding(vocab, d)
        self.start, self.end = nn.Parameter(torch.randn(d)), nn.Parameter(torch.randn(d))
        self.layer = Layer(d, heads, ff, gated)
        self.halt = Halt(d, by_sample=gated, transition=gated)
        self.hidden, self.classify = nn.Linear(d, d), nn.Linear(d, classes)
        self.ponder = torch.zeros(())

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        b, n = tokens.shape
        rows = torch.arange(b, device=tokens.device)
        h = F.pad(self.embed(tokens), (0, 0, 1, 1)).clone()
        h[:, 0] = self.start
        h[rows, lengths + 1] = self.end
        mask = torch.arange(n + 2, device=tokens.device) < lengths[:, None] + 2
        h, cost = self.halt(self.layer, h, mask, min(self.depth, n + 3))
        self.ponder = cost.mean()
        pooled = h[rows, lengths + 1] if self.gated else masked_mean(h, mask)
        logits: Tensor = self.classify(F.relu(self.hidden(pooled)))
        return logits


class Bottleneck(nn.Module):
    """The classifier of TLB, each of whose layers has its weights; or of GUTLB, whose one gated layer is applied to a
    chunk until it halts. Both read the mean of the last memory."""

    def __init__(
        self, vocab: int, classes: int, d: int, heads: int, ff: int, depth: int, size: int, slots: int, gated: bool
    ) -> None:
        super().__init__()
        self.depth, self.size = depth, size
        self.embed = nn.Embedding(vocab, d)
        self.memory = nn.Parameter(torch.zeros(slots, d))
        self.layers = nn.ModuleList(ChunkLayer(d, heads, ff, gated) for _ in range(1 if gated else depth))
        self.halt = Halt(d, by_sample=True, transition=True) if gated else None
        self.update = MemoryUpdate(d, heads)
        self.norm = nn.LayerNorm(d)
        self.hidden, self.classify = nn.Linear(d, d), nn.Linear(d, classes)
        self.ponder = torch.zeros(())

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        b, n = tokens.shape
        mask = torch.arange(n, device=tokens.device) < lengths[:, None]
        count = math.ceil(n / self.size)
        memory = self.memory.expand(b, -1, -1)
        costs, reals = [], []
        for c, real in zip(self.embed(tokens).chunk(count, 1), mask.chunk(count, 1), strict=True):
            if self.halt is None:
                for layer in self.layers:
                    c = layer(c, memory, real)
            else:
                c, cost = self.halt(self.layers[0], c, real, min(self.depth, c.shape[1] + 1), memory)
                costs.append(cost)
            any_real = real.any(1)
            memory = torch.where(any_real[:, None, None], self.update(memory, c, real), memory)
            reals.append(any_real)
        if costs:
            weights = torch.stack(reals).to(memory.dtype)
            self.ponder = ((torch.stack(costs) * weights).sum(0) / weights.sum(0)).mean()
        logits: Tensor = self.classify(F.relu(self.hidden(self.norm(memory).mean(1))))
        return logits
