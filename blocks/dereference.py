"""The memory slots that pointers point at."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.padded_division import Mask, real_only
from archlang.blocks.pointer_unit import so_far


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
        self,
        w: Float[Tensor, "b t k n"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t k*d"]:
        memory = real_only(memory, mask_n)
        return self._read(w, [value(memory) for value in self.value] or [memory], 0)

    def extend(
        self,
        cache: BlockCache,
        w: Float[Tensor, "b t k n"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
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
            w = w.masked_fill(~so_far(begin + w.shape[1], w.shape[3], w.device)[begin:, None], 0.0)
        if not self.output:
            return (w @ values[0][:, None]).flatten(2)
        return torch.cat([output(w[:, :, i] @ values[i]) for i, output in enumerate(self.output)], dim=-1)
