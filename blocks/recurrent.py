"""Networks that read a sequence position by position."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.graph_loops import is_exporting, scan_steps
from archlang.backend.runtime.padded_division import Mask
from archlang.backend.runtime.stacking import is_stacked, model_by_model
from archlang.blocks.pointer_unit import gated
from archlang.blocks.pooling import First, Last
from archlang.blocks.weightless import Weightless


def reverse(x: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b n d"]:
    """Reverses the real positions of each sample; padding stays at the end."""
    if mask is None:
        return x.flip(1)
    place = torch.arange(x.shape[1], device=x.device)
    mirrored = mask.sum(1, keepdim=True) - 1 - place
    return x.gather(1, torch.where(mask, mirrored, place)[..., None].expand_as(x))


def states(
    network: nn.LSTM | nn.GRU, x: Float[Tensor, "b n d"], start: Float[Tensor, "1 b hidden"] | None = None
) -> Float[Tensor, "b n hidden"]:
    """Returns the states of the last layer at each position. The initial state is `start`, by default zero."""
    y: Tensor
    if x.shape[1] == 0:
        return x.new_zeros(*x.shape[:2], network.hidden_size)  # torch raises an error for an empty sequence
    if is_exporting():
        return _scanned(network, x, start)
    if not is_stacked():
        y = network(x, start)[0]
        return y

    def of_one(x: Tensor, start: Tensor, *weights: Tensor) -> Tensor:
        form = (True, network.num_layers, network.dropout, network.training, False, True)
        if isinstance(network, nn.LSTM):
            y = torch.lstm(x, (start, start), weights, *form)[0]
        else:
            y = torch.gru(x, start, weights, *form)[0]
        return y

    if start is None:
        start = x.new_zeros(network.num_layers, x.shape[0], network.hidden_size)
    return model_by_model(of_one, x, start, *network.parameters())


def _scanned(
    network: nn.LSTM | nn.GRU, x: Float[Tensor, "b n d"], start: Float[Tensor, "1 b hidden"] | None
) -> Float[Tensor, "b n hidden"]:
    """Returns the states of an exported model, layer by layer."""
    zeros = x.new_zeros(x.shape[0], network.hidden_size)
    for layer in range(network.num_layers):
        weight_ih, weight_hh, bias_ih, bias_hh = network.all_weights[layer]
        h = zeros if start is None else start[layer]

        def step(
            states: Sequence[Tensor], inputs: Sequence[Tensor], of_state: Tensor = weight_hh, bias: Tensor = bias_hh
        ) -> tuple[list[Tensor], list[Tensor]]:
            h = states[0]
            products = F.linear(h, of_state, bias)
            if isinstance(network, nn.GRU):
                h = gated(inputs[0], products, h)
                return [h], [h]
            i, f, g, o = (inputs[0] + products).chunk(4, dim=-1)
            c = torch.sigmoid(f) * states[1] + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            return [h, c], [h]

        states = [h] if isinstance(network, nn.GRU) else [h, zeros]
        _, (y,) = scan_steps(step, states, [F.linear(x, weight_ih, bias_ih).transpose(0, 1)])
        x = y.transpose(0, 1)
    return x


class Reverse(Weightless):
    """y_i = x_{n-1-i} for a sample of n real positions"""

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        return reverse(x, mask_n)


class Lstm(nn.Module):
    """A long short-term memory that reads forward.

        i, f, o = σ(W_i x_t + U_i h_{t-1} + b_i), …;    g = tanh(W_g x_t + U_g h_{t-1} + b_g)
        c_t = f * c_{t-1} + i * g,    h_t = o * tanh(c_t)

    Hochreiter, Schmidhuber, "Long short-term memory", Neural Computation 1997, in torch's form: two biases per gate, no
    peepholes."""

    def __init__(self, *, hidden: int, layers: int, dropout: float, d: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n hidden"]:
        return states(self.lstm, x)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n hidden"]:
        y: Tensor
        state = (cache.tensors["h"], cache.tensors["c"]) if cache.start else None
        y, (cache.tensors["h"], cache.tensors["c"]) = self.lstm(x, state)
        return y


class _BiLstmLayers(nn.Module):
    """Layers of one LSTM in each direction; each layer reads both directions of the layer below."""

    def __init__(self, *, hidden: int, layers: int, dropout: float, d: int) -> None:
        super().__init__()
        widths = [d] + [hidden] * (layers - 1)
        self.forward_layers = nn.ModuleList(nn.LSTM(width, hidden // 2, batch_first=True) for width in widths)
        self.backward_layers = nn.ModuleList(nn.LSTM(width, hidden // 2, batch_first=True) for width in widths)
        self.dropout = dropout

    def _layers(self, x: Tensor, mask: Tensor | None) -> list[tuple[Tensor, Tensor]]:
        """Returns the states of both directions for each layer, in the order of positions."""
        results: list[tuple[Tensor, Tensor]] = []
        for ahead, back in zip(self.forward_layers, self.backward_layers, strict=True):
            if results:
                x = dropout(torch.cat(results[-1], dim=-1), self.dropout, self.training)
            assert isinstance(ahead, nn.LSTM)
            assert isinstance(back, nn.LSTM)
            results.append((states(ahead, x), reverse(states(back, reverse(x, mask)), mask)))
        return results


class BiLstm(_BiLstmLayers):
    """A forward and a backward LSTM: y_i = [forward_i; backward_i].

    Schuster, Paliwal, "Bidirectional recurrent neural networks", IEEE Transactions on Signal Processing 1997."""

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n hidden"]:
        return torch.cat(self._layers(x, mask_n)[-1], dim=-1)


class BiLstmFinal(_BiLstmLayers):
    """The final states of the two directions of a BiLstm: y = [forward_{n-1}; backward_0] of the last layer.

    With `reads = misread`, y = [backward_0 of layer L/2 - 1; backward_0 of layer L - 1], as in the baselines of NDR's
    program, which read the axes of layers and directions in the wrong order."""

    def __init__(self, *, hidden: int, layers: int, dropout: float, reads: str, d: int) -> None:
        super().__init__(hidden=hidden, layers=layers, dropout=dropout, d=d)
        self.misread = reads == "misread" and layers > 1
        self.first = First(d=hidden // 2)
        self.last = Last(d=hidden // 2)

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b hidden"]:
        layers = self._layers(x, mask_n)
        ahead, back = layers[-1]
        end = self.first(back, mask_n=mask_n)
        if self.misread:
            return torch.cat((self.first(layers[len(layers) // 2 - 1][1], mask_n=mask_n), end), dim=-1)
        return torch.cat((self.last(ahead, mask_n=mask_n), end), dim=-1)


class Gru(nn.Module):
    """A gated recurrent unit that reads forward.

        r, z = σ(W_r x_t + U_r h_{t-1} + b_r), …;    g = tanh(W_g x_t + b_g + r * (U_g h_{t-1} + c_g))
        h_t = (1 - z) * g + z * h_{t-1}

    Chung et al., "Empirical evaluation of gated recurrent neural networks on sequence modeling", 2014, in torch's form:
    the reset gate is applied after the matrix."""

    def __init__(self, *, hidden: int, d: int, s: int) -> None:
        super().__init__()
        self.gru = nn.GRU(d, hidden, batch_first=True)

    def forward(
        self, x: Float[Tensor, "b n d"], start: Float[Tensor, "b hidden"], **_: Mask
    ) -> Float[Tensor, "b n hidden"]:
        return states(self.gru, x, start[None].contiguous())

    def extend(
        self, cache: BlockCache, x: Float[Tensor, "b n d"], start: Float[Tensor, "b hidden"], **_: Mask
    ) -> Float[Tensor, "b n hidden"]:
        y: Tensor
        y, cache.tensors["h"] = self.gru(x, cache.tensors["h"] if cache.start else start[None].contiguous())
        return y


class GruFromZero(nn.Module):
    """A Gru that starts from a zero state."""

    def __init__(self, *, hidden: int, d: int) -> None:
        super().__init__()
        self.gru = nn.GRU(d, hidden, batch_first=True)

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n hidden"]:
        return states(self.gru, x)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n hidden"]:
        y: Tensor
        y, cache.tensors["h"] = self.gru(x, cache.tensors.get("h"))
        return y
