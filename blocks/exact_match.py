"""Whether the answers of a model are right, which training knows."""

from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.targets import TargetReader
from archlang.blocks.weightless import Weightless


class ExactMatch(TargetReader, Weightless):
    """y = 1 if the prediction of x is the target in every scored position, else 0; 0 in evaluation"""

    def forward(self, x: Float[Tensor, "b *n d"], **masks: Bool[Tensor, "b _"] | None) -> Float[Tensor, "b 1"]:
        if self.judge is None:
            return x.new_zeros(x.shape[0], 1)
        return self.judge(x.detach()).to(x.dtype)[:, None]
