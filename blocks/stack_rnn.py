"""A recurrent network with a stack."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.graph_loops import scan_steps
from archlang.backend.runtime.padded_division import Mask


class StackRnn(nn.Module):
    """A recurrent network with a stack, to which it pushes and pops with continuous weights.

        h_t = tanh(W x_t + b + U (h_{t-1} + R s_{t-1}[0] + r) + c)
        push, pop = softmax(A h_t + a),    e_t = σ(E h_t + e)
        s_t = push [e_t; s_{t-1}[0]; s_{t-1}[1]; …] + pop [s_{t-1}[1]; s_{t-1}[2]; …; 0]

    Suzgun, Gehrmann, Belinkov, Shieber, "Memory-augmented recurrent neural networks can learn generalized Dyck
    languages", 2019. The result is h before the stack is updated, as in its program."""

    def __init__(self, *, hidden: int, slots: int, width: int, d: int) -> None:
        super().__init__()
        self.cell = nn.RNNCell(d, hidden)
        self.top = nn.Linear(width, hidden)
        self.action = nn.Linear(hidden, 2)
        self.element = nn.Linear(hidden, width)
        self.slots = slots
        self.width = width

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n hidden"]:
        return self._walk(x, *self._start(x))[0]

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n hidden"]:
        h, stack = (cache.tensors["h"], cache.tensors["stack"]) if cache.start else self._start(x)
        y, cache.tensors["h"], cache.tensors["stack"] = self._walk(x, h, stack)
        return y

    def _start(self, x: Tensor) -> tuple[Float[Tensor, "b hidden"], Float[Tensor, "b slots width"]]:
        return x.new_zeros(x.shape[0], self.cell.hidden_size), x.new_zeros(x.shape[0], self.slots, self.width)

    def _walk(
        self, x: Float[Tensor, "b n d"], h: Float[Tensor, "b hidden"], stack: Float[Tensor, "b slots width"]
    ) -> tuple[Float[Tensor, "b n hidden"], Float[Tensor, "b hidden"], Float[Tensor, "b slots width"]]:
        """Returns the results of the steps after the states h and s, and the final states."""

        def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            h, stack = self._step(inputs[0], states[0], states[1])
            return [h, stack], [h]

        (h, stack), (y,) = scan_steps(step, [h, stack], [x.transpose(0, 1)])
        return y.transpose(0, 1), h, stack

    def _step(
        self, x_t: Float[Tensor, "b d"], h: Float[Tensor, "b hidden"], stack: Float[Tensor, "b slots width"]
    ) -> tuple[Float[Tensor, "b hidden"], Float[Tensor, "b slots width"]]:
        h = self.cell(x_t, h + self.top(stack[:, 0]))
        push, pop = self.action(h).softmax(-1)[..., None, None].unbind(1)
        element = torch.sigmoid(self.element(h))[:, None]
        pushed = torch.cat((element, stack[:, :-1]), dim=1)
        popped = F.pad(stack[:, 1:], (0, 0, 0, 1))
        return h, push * pushed + pop * popped
