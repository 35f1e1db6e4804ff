"""Images: the pixels of rows of `columns` pixels, which follow each other as positions."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.runtime.block import MaskN, Weightless, real_only
from archlang.backend.runtime.graph_loops import is_exporting


def _rows(x: Float[Tensor, "b n d"], columns: int, k: int) -> Float[Tensor, "b _groups _k _columns d"]:
    """Returns the rows of an image in groups of k, with rows of zeros until the last group is whole."""
    b, n, d = x.shape
    if is_exporting():
        # Gathered, because torch would branch on how much is missing.
        row = torch.arange(n // (columns * k) + 2, device=x.device)[:, None] * k + torch.arange(k, device=x.device)
        place = (row[..., None] * columns + torch.arange(columns, device=x.device)).clamp(max=n)
        return torch.cat((x, x.new_zeros(b, 1, d)), 1)[:, place]
    # One group where there is none, because torch convolves no empty image.
    groups = max(1, -(-n // (columns * k)))
    return F.pad(x, (0, 0, 0, groups * k * columns - n)).reshape(b, groups, k, columns, d)


def _first(
    y: Float[Tensor, "b _m out"], n: int, k: int, mask_n: MaskN
) -> tuple[Float[Tensor, "b _m out"], Bool[Tensor, "b _m"] | None]:
    """Returns the first n / k² positions, with their mask."""
    if is_exporting() and k == 1:
        return y[:, torch.arange(n, device=y.device)], mask_n
    if not is_exporting():
        return y[:, : n // k**2], None if mask_n is None else mask_n[:, k**2 - 1 :: k**2]
    # With two positions of padding: torch compiles a number of them below two as a constant.
    ends = k**2 * torch.arange(1, n // k**2 + 3, device=y.device)
    count = n if mask_n is None else mask_n.sum(1, keepdim=True)
    return y[:, (ends // k**2 - 1).clamp(max=y.shape[1] - 1)], (ends <= count).expand(y.shape[0], -1)


class ConvolveImage(nn.Conv2d):
    """y_ij = b + Σ_{a, c < width} W_ac x_{stride i + a - before, stride j + c - before},    before = ⌊(width - 1) / 2⌋

    LeCun et al., "Backpropagation applied to handwritten zip code recognition", 1989."""

    def __init__(self, *, out: int, width: int, columns: int, stride: int, groups: int, bias: bool, d: int) -> None:
        super().__init__(d, out, width, stride=stride, groups=groups, bias=bias)
        self.columns = columns
        self.before, self.after = (width - 1) // 2, width // 2

    def forward(  # type: ignore[override]  # a block returns the mask of a length of its own
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> Float[Tensor, "b _m out"] | tuple[Float[Tensor, "b _m out"], Bool[Tensor, "b _m"] | None]:
        stride = self.stride[0]
        image = _rows(real_only(x, mask_n), self.columns, stride).flatten(1, 2).permute(0, 3, 1, 2)
        padded = F.pad(image, (self.before, self.after, self.before, self.after))
        result = _first(super().forward(padded).flatten(2).transpose(1, 2), x.shape[1], stride, mask_n)
        return result[0] if stride == 1 else result


class ImagePatches(Weightless):
    """y_ij = [x_{k i, k j}; x_{k i, k j + 1}; …; x_{k i + k - 1, k j + k - 1}] of the first feature, then of the others

    Dosovitskiy et al., "An image is worth 16x16 words", ICLR 2021, section 3.1."""

    k: int
    columns: int

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> tuple[Float[Tensor, "b _m _w"], Bool[Tensor, "b _m"] | None]:
        k, rows = self.k, _rows(real_only(x, mask_n), self.columns, self.k)
        squares = rows.reshape(*rows.shape[:3], self.columns // k, k, x.shape[2]).permute(0, 1, 3, 5, 2, 4)
        return _first(squares.flatten(3).flatten(1, 2), x.shape[1], k, mask_n)
