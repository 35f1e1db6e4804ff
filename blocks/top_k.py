"""The largest features."""

from jaxtyping import Float
from torch import Tensor, nn


class TopK(nn.Module):
    """y_c = 1 if x_c is among the k largest features, else 0

    Among equal features, the first are chosen. They are counted, because ONNX has no stable sort.
    With `straight_through`, ∂y/∂x is the identity, as in Bengio, Léonard, Courville, "Estimating or propagating
    gradients through stochastic neurons", 2013."""

    def __init__(self, *, k: int, straight_through: bool, d: int) -> None:
        super().__init__()
        self.k = k
        self.straight_through = straight_through

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        values = x.detach()
        smallest_chosen = values.sort(dim=-1, descending=True).values[..., self.k - 1 : self.k]
        larger, equal = values > smallest_chosen, values == smallest_chosen
        remaining = self.k - larger.long().sum(-1, keepdim=True)
        y = (larger | (equal & (equal.long().cumsum(-1) <= remaining))).to(x.dtype)
        # x - x is 0 also in rounding, unlike y - x + x.
        return y + (x - x.detach()) if self.straight_through else y
