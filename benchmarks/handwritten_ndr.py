"""The Neural Data Router in plain torch, without archlang."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GeometricAttention(nn.Module):
    """Computes weights in log space; sums over nearer keys are differences of one cumulative sum per row."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.output = nn.Linear(d, d, bias=False)
        self.direction = nn.Linear(d, 2 * heads)
        self.query_bias = nn.Parameter(torch.zeros(heads, d // heads))
        self.content_scale = nn.Parameter(torch.full((1,), 1 / math.sqrt(d // heads)))
        self.direction_scale = nn.Parameter(torch.ones(1))
        self.score_bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, hidden: Tensor | None) -> Tensor:
        b, n, d = x.shape
        shape = (b, n, self.heads, d // self.heads)
        q = (self.query(x).view(shape) + self.query_bias).transpose(1, 2)
        k = self.key(x).view(shape).transpose(1, 2)
        v = self.value(x).view(shape).transpose(1, 2)
        left, right = self.direction(x).transpose(1, 2).chunk(2, dim=1)
        place = torch.arange(n, device=x.device)
        ahead = place[None, :] > place[:, None]
        direction = torch.where(ahead, right[..., None], left[..., None])
        logits = self.content_scale * (q @ k.transpose(2, 3)) + self.direction_scale * direction + self.score_bias
        if hidden is not None:
            logits = logits.masked_fill(hidden, -torch.inf)
        result: Tensor = self.output((self.weights(logits) @ v).transpose(1, 2).reshape(b, n, d))
        return result

    @staticmethod
    def weights(logits: Tensor) -> Tensor:
        """log A_ij = log P_ij + Σ log(1 - P_ik) over the keys k nearer to i than j."""
        n = logits.shape[-1]
        place = torch.arange(n, device=logits.device)
        own = torch.eye(n, dtype=torch.bool, device=logits.device)
        closed = -F.softplus(logits).masked_fill(own, 0.0)
        running = F.pad(closed.cumsum(-1), (1, 0))
        i, j = place[:, None], place[None, :]
        distance = (i - j).abs()
        # To the right of i, the nearer keys are those from i - distance + 1 to j - 1; to the left, those from j + 1 to
        # i + distance.
        first = torch.where(j > i, i - distance + 1, j + 1).clamp(0, n)
        last = torch.where(j > i, j, i + distance + 1).clamp(0, n)
        between = running.gather(-1, last.expand_as(logits)) - running.gather(-1, first.expand_as(logits))
        return torch.exp(F.logsigmoid(logits) + between).masked_fill(own, 0.0)


class Ndr(nn.Module):
    """The classifier of table lookup: embedding, shared layers, the last column."""

    def __init__(self, vocab: int, classes: int, d: int, heads: int, ff: int, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.embed = nn.Embedding(vocab, d)
        self.attention = GeometricAttention(d, heads)
        self.norm = nn.LayerNorm(d)
        self.hidden, self.update = nn.Linear(d, ff), nn.Linear(ff, d)
        self.update_norm = nn.LayerNorm(d)
        self.gate_hidden, self.gate = nn.Linear(d, d), nn.Linear(d, d)
        self.classify = nn.Linear(d, classes)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        h = self.embed(tokens)
        place = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = (place >= lengths[:, None])[:, None, None, :]
        for _ in range(self.steps):
            a = self.norm(h + self.attention(h, hidden))
            u = self.update_norm(self.update(F.relu(self.hidden(a))))
            g = torch.sigmoid(self.gate(F.relu(self.gate_hidden(a))))
            h = g * u + (1 - g) * h
        last = h[torch.arange(len(h), device=h.device), lengths - 1]
        result: Tensor = self.classify(last)
        return result
