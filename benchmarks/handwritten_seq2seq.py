"""The universal relative Transformer of sequence to sequence as its authors' program computes it: one layer of the
encoder and one of the decoder, applied again and again. Decoding keeps what entered each layer; its keys and values are
computed anew."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def split(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def attend(logits: Tensor, v: Tensor, hidden: Tensor | None, dropout: float) -> Tensor:
    """What the heads read, side by side; `hidden` is True where a query must not look."""
    if hidden is not None:
        logits = logits.masked_fill(hidden, -torch.inf)
    weights = F.dropout(logits.softmax(-1), dropout, dropout > 0)
    return (weights @ v).transpose(1, 2).flatten(2)


def sinusoids(first: int, last: int, d: int, like: Tensor, base: float = 10_000.0) -> Tensor:
    """Those of the distances first, …, last."""
    place = torch.arange(first, last + 1, dtype=like.dtype, device=like.device)[:, None]
    rate = torch.exp(torch.arange(0, d, 2, dtype=like.dtype, device=like.device) * (-math.log(base) / d))
    table = like.new_empty(last - first + 1, d)
    table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
    return table


def shift(scores: Tensor) -> Tensor:
    """From scores of query i for the distances -(m-1), …, m-1 to those for the keys 0, …, m-1; the last query stands at
    the last key. Rows that are one longer, read as if they were not, move by one each."""
    n, r = scores.shape[-2:]
    wide = F.pad(scores, (0, 1, 0, 1)).flatten(-2)
    moved = wide.narrow(-1, n - 1, n * r)
    return moved.reshape(*moved.shape[:-1], n, r)[..., : (r + 1) // 2]


class RelativeAttention(nn.Module):
    """Self-attention by content and distance, of the last queries where there are more keys."""

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.position = nn.Linear(d, d, bias=False)
        self.output = nn.Linear(d, d, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, d // heads))
        self.position_bias = nn.Parameter(torch.zeros(heads, 1, d // heads))

    def forward(self, x: Tensor, context: Tensor, hidden: Tensor | None) -> Tensor:
        m, d = context.shape[1:]
        q = split(self.query(x), self.heads)
        k, v = split(self.key(context), self.heads), split(self.value(context), self.heads)
        far = split(self.position(sinusoids(1 - m, m - 1, d, x))[None], self.heads)
        content = (q + self.content_bias) @ k.transpose(2, 3)
        place = self.placed((q + self.position_bias) @ far.transpose(2, 3), x)
        values = attend((content + place) / math.sqrt(q.shape[-1]), v, hidden, self.dropout if self.training else 0.0)
        result: Tensor = self.output(values)
        return result

    def placed(self, scores: Tensor, x: Tensor) -> Tensor:
        return shift(scores)


class AbsrelAttention(RelativeAttention):
    """The same, where each query chooses by a gate between distances and places."""

    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__(d, heads, dropout)
        self.gate = nn.Linear(d, heads)

    def placed(self, scores: Tensor, x: Tensor) -> Tensor:
        r = torch.sigmoid(self.gate(x)).transpose(1, 2)[..., None]
        m = (scores.shape[-1] + 1) // 2
        return r * shift(scores) + (1 - r) * scores[..., m - 1 :]


class CrossAttention(nn.Module):
    def __init__(self, d: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)
        self.value = nn.Linear(d, d, bias=False)
        self.output = nn.Linear(d, d, bias=False)

    def forward(self, x: Tensor, memory: Tensor, hidden: Tensor | None) -> Tensor:
        q, k, v = (split(part, self.heads) for part in (self.query(x), self.key(memory), self.value(memory)))
        logits = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        result: Tensor = self.output(attend(logits, v, hidden, self.dropout if self.training else 0.0))
        return result


class Layer(nn.Module):
    """A layer of the encoder; with `cross`, of the decoder."""

    def __init__(self, d: int, heads: int, ff: int, dropout: float, cross: bool) -> None:
        super().__init__()
        self.attention = RelativeAttention(d, heads, dropout)
        self.cross = CrossAttention(d, heads, dropout) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))
        self.hidden, self.output = nn.Linear(d, ff), nn.Linear(ff, d)
        self.drop = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        context: Tensor,
        hidden: Tensor | None,
        memory: Tensor | None = None,
        unseen: Tensor | None = None,
    ) -> Tensor:
        h = self.norms[0](x + self.drop(self.attention(x, context, hidden)))
        if self.cross is not None:
            h = self.norms[1](h + self.drop(self.cross(h, memory, unseen)))
        result: Tensor = self.norms[-1](h + self.drop(self.output(self.drop(F.relu(self.hidden(h))))))
        return result


class Seq2seq(nn.Module):
    """The encoder's layer and the decoder's, each applied `layers` times; the table of the answer also scores it."""

    def __init__(self, words: int, vocab: int, d: int, heads: int, ff: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.layers = layers
        self.read, self.table = nn.Embedding(words, d), nn.Embedding(vocab, d)
        self.encoder = Layer(d, heads, ff, dropout, cross=False)
        self.decoder = Layer(d, heads, ff, dropout, cross=True)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The memory, and which of its places must not be seen."""
        unseen = (torch.arange(source.shape[1], device=source.device) >= lengths[:, None])[:, None, None, :]
        h = self.read(source)
        for _ in range(self.layers):
            h = self.encoder(h, h, unseen)
        return h, unseen

    def forward(self, source: Tensor, target: Tensor, lengths: dict[str, Tensor]) -> Tensor:
        memory, unseen = self.encode(source, lengths["source"])
        m = target.shape[1]
        ahead = torch.ones(m, m, dtype=torch.bool, device=target.device).triu(1)
        y = self.table(target)
        for _ in range(self.layers):
            y = self.decoder(y, y, ahead, memory, unseen)
        return F.linear(y, self.table.weight, self.bias)

    @torch.no_grad()
    def decode(self, source: Tensor, lengths: Tensor, begin: int, steps: int) -> Tensor:
        """So many tokens, each time the likeliest."""
        memory, unseen = self.encode(source, lengths)
        tokens = torch.full((len(source), 1), begin, device=source.device)
        past: list[Tensor | None] = [None] * self.layers
        chosen = []
        for _ in range(steps):
            y = self.table(tokens)
            for index in range(self.layers):
                before = past[index]
                context = y if before is None else torch.cat((before, y), 1)
                past[index] = context
                y = self.decoder(y, context, None, memory, unseen)
            tokens = F.linear(y, self.table.weight, self.bias).argmax(-1)
            chosen.append(tokens[:, 0])
        return torch.stack(chosen, 1)
