"""The decoder of decoder.arch as another person writes it, with names of weights of its own."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu, scaled_dot_product_attention


class Attention(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = (each(x).view(b, n, 2, d // 2).transpose(1, 2) for each in (self.q_proj, self.k_proj, self.v_proj))
        return torch.as_tensor(
            self.o_proj(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, d))
        )


class Decoder(nn.Module):
    def __init__(self, vocab: int, d: int) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocab, d)
        self.norm1, self.norm2 = nn.RMSNorm(d, eps=1e-5), nn.RMSNorm(d, eps=1e-5)
        self.attn = Attention(d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.head = nn.Linear(d, vocab)

    def forward(self, x: Tensor) -> Tensor:
        h = self.wte(x)
        h = h + self.attn(self.norm1(h))
        return torch.as_tensor(self.head(h + self.down(relu(self.up(self.norm2(h))))))
