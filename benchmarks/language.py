"""A training step of GPT-2 in bf16, of a page and of a module written by hand in plain torch, which torch compiles.

The sides have the sizes of GPT-2 small (124 M weights, 1,024 tokens), random weights, and torch's fused AdamW. The
share of the GPU's peak (MFU) is the measured number beside that of the device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from benchmarks.measure import TFLOPS, Call, Case, Group, Setting, Sides, captured

_PAGE = Path(archlang.__file__).parent / "weights" / "families" / "gpt2.arch"


@dataclass(frozen=True)
class Size:
    """The sizes of GPT-2, and of a batch."""

    vocab: int = 50_257
    d: int = 768
    heads: int = 12
    depth: int = 12
    length: int = 1024
    batch: int = 16


TINY = Size(vocab=31, d=16, heads=2, depth=2, length=8, batch=2)


class Layer(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.ln_1, self.ln_2 = nn.LayerNorm(size.d), nn.LayerNorm(size.d)
        self.attention, self.projection = nn.Linear(size.d, 3 * size.d), nn.Linear(size.d, size.d)
        self.mlp = nn.Sequential(
            nn.Linear(size.d, 4 * size.d), nn.GELU(approximate="tanh"), nn.Linear(4 * size.d, size.d)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attention(self.ln_1(x)).unflatten(-1, (3, self.heads, -1)).transpose(1, 3)
        q, k, v = parts.unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.projection(y)
        result: Tensor = x + self.mlp(self.ln_2(x))
        return result


class Gpt2(nn.Module):
    """GPT-2 in plain torch; the embeddings are the weights of the output."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(size.vocab, size.d), nn.Embedding(size.length, size.d)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.depth))
        self.ln_f = nn.LayerNorm(size.d)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


def page(size: Size) -> nn.Module:
    """Returns the page of GPT-2."""
    statics: dict[str, Any] = {  # Any: statics are of several kinds
        "vocab": size.vocab, "d": size.d, "heads": size.heads, "depth": size.depth, "most": size.length,
    }  # fmt: skip
    return archlang.load(_PAGE, "gpt2", **statics)


def flops(size: Size, module: nn.Module) -> float:
    """Returns the FLOPs of a step: 6 for each weight and token, and 12 n d for each token of a layer, as Chowdhery et
    al. count in appendix B of "PaLM", 2022."""
    weights = sum(weight.numel() for weight in set(module.parameters())) - size.length * size.d
    return size.batch * size.length * (6 * weights + 12 * size.depth * size.length * size.d)


def step(module: nn.Module, size: Size, setting: Setting, forward: Callable[..., Tensor] | None = None) -> Call:
    """Returns a training step, which returns its TFLOPs."""
    run = module if forward is None else forward
    torch.manual_seed(0)
    tokens = torch.randint(size.vocab, (size.batch, size.length + 1), device=setting.device)
    is_on_gpu = setting.device.type == "cuda"
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True, capturable=is_on_gpu)
    amount = flops(size, module) / 1e12

    def call() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(setting.device.type, dtype=torch.bfloat16):
            logits = run(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return amount

    return call


@cache
def _compiled_by_hand(setting: Setting) -> Call:
    """Returns the step of plain torch, compiled: that takes longer than all steps of a case."""
    size = TINY if setting.tiny else Size()
    module = Gpt2(size).to(setting.device)
    call = step(module, size, setting, _compiled(module, setting))
    call()
    return call


def _compiled(module: nn.Module, setting: Setting) -> Callable[..., Tensor]:
    return torch.compile(module, backend="eager" if setting.tiny else "inductor")


def _sides(form: str, setting: Setting) -> Sides:
    size = TINY if setting.tiny else Size()
    ours = page(size).to(setting.device)
    own = step(ours, size, setting, _compiled(ours, setting) if "compiled" in form else ours)
    own()
    return Sides(captured(own) if "as a CUDA graph" in form else own, _compiled_by_hand(setting))


def _cases(setting: Setting) -> Iterator[Case]:
    is_too_large = setting.device.type == "cpu" and not setting.tiny
    for form in () if is_too_large else ("eager", "as a CUDA graph", "compiled", "compiled, as a CUDA graph"):
        name = f"GPT-2, 124 M, 1,024 tokens, bf16, {form}"
        yield Case(name, "plain torch, compiled", partial(_sides, form, setting), TFLOPS)


GROUP = Group(
    "language", "A training step of 16 samples with AdamW. The peak of an H200 in bf16 is 989 TFLOP/s.", _cases
)  # fmt: skip
