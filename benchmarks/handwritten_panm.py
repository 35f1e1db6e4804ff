"""Pointer-Augmented Neural Memory as in its authors' program: output steps run one after the other, and each computes
all of its maps."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """Scaled dot-product attention with one head and projections of queries, keys, values and results."""

    def __init__(self, query: int, key: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(query, width)
        self.key = nn.Linear(key, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
        q, k, v = self.query(query)[:, None], self.key(key), self.value(value)
        weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
        read = self.output(F.dropout(weights, dropout, self.training) @ v)[:, 0]
        return read, weights[:, 0]


class PointerUnit(nn.Module):
    """A GRU from address to address; what it points at is read by an attention with the addresses as keys."""

    def __init__(self, width: int, bits: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(bits, width)
        self.state_map = nn.Linear(width, width)
        self.address_map = nn.Linear(bits, bits)
        self.attention = Attention(width, bits, width)

    def forward(self, p: Tensor, h: Tensor, bank: Tensor, memory: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.cell(p, h)
        read, weights = self.attention(self.state_map(h), self.address_map(bank), memory)
        return read, h, (weights[:, None] @ bank)[:, 0]


class Panm(nn.Module):
    """Copy: a GRU in each direction fills the memory; two pointers, a read of what is related, a controller."""

    def __init__(self, vocab: int, width: int = 128, bits: int = 8) -> None:
        super().__init__()
        self.vocab, self.width, self.bits = vocab, width, bits
        self.ahead = nn.GRU(vocab, width, batch_first=True)
        self.back = nn.GRU(vocab, width, batch_first=True)
        self.units = nn.ModuleList(PointerUnit(width, bits) for _ in range(2))
        self.pointed = nn.Linear(2 * width, width)
        self.related = Attention(width, width, width)
        self.attention = nn.Linear(2 * width, width)
        self.score = nn.Parameter(torch.randn(width))
        self.cell = nn.GRUCell(vocab + 3 * width, width)
        self.output = nn.Linear(2 * width, width)
        self.classify = nn.Linear(4 * width, vocab)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x = F.one_hot(source, self.vocab).float()
        ahead = self.ahead(x)[0]
        memory = ahead + self.back(x.flip(1))[0].flip(1)
        b, n, _ = memory.shape
        device = memory.device
        base = torch.randint(2**self.bits, (b,), device=device)
        places = base[:, None] + torch.arange(n, device=device)
        bank = (places[..., None] >> torch.arange(self.bits, device=device) & 1).float()
        state = ahead[:, -1]
        zeros = torch.zeros(b, self.width, device=device)
        walks = [(bank[:, 0], zeros), (bank[:, -1], zeros)]
        logits = []
        for _ in range(target.shape[1]):
            reads = []
            for index, unit in enumerate(self.units):
                p, h = walks[index]
                read, h, p = unit(p, h, bank, memory)
                walks[index] = p, h
                reads.append(read)
            brought = torch.cat(reads, -1)
            related, _ = self.related(self.pointed(brought), memory, memory, 0.5)
            both = torch.cat((state[:, None].expand(-1, n, -1), memory), -1)
            context = ((F.relu(self.attention(both)) @ self.score).softmax(-1)[:, None] @ memory)[:, 0]
            blank = torch.zeros(b, self.vocab, device=device)
            state = self.cell(torch.cat((blank, brought, context), -1), state)
            output = self.output(torch.cat((state, context), -1))
            logits.append(self.classify(torch.cat((output, brought, related), -1)))
        return torch.stack(logits, 1)
