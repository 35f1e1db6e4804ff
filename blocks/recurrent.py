"""Networks that read a sequence position by position, also with a memory or a stack."""

from collections.abc import Sequence
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.kernels.lstm import lstm_step
from archlang.backend.runtime.block import Mask, MaskN, Weightless, real_only
from archlang.backend.runtime.graph_loops import is_exporting, scan_steps
from archlang.backend.runtime.stacking import is_stacked, model_by_model
from archlang.blocks.pointer_unit import gated, over_slots
from archlang.blocks.sequences import First, Last


def reverse(x: Float[Tensor, "b n d"], mask: MaskN) -> Float[Tensor, "b n d"]:
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
            h, c = lstm_step(inputs[0] + products, states[1])
            return [h, c], [h]

        states = [h] if isinstance(network, nn.GRU) else [h, zeros]
        _, (y,) = scan_steps(step, states, [F.linear(x, weight_ih, bias_ih).transpose(0, 1)])
        x = y.transpose(0, 1)
    return x


class Reverse(Weightless):
    """y_i = x_{n-1-i} for a sample of n real positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b n d"]:
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

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b n hidden"]:
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

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b hidden"]:
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


class AttentiveGru(nn.Module):
    """A GRU that attends to a memory before each step.

        e_n = v · relu(W [h_{t-1}; m_n] + b),    c_t = Σ_n softmax_n(e_n) m_n
        h_t = GRU([x_t; c_t], h_{t-1}),          y_t = O [h_t; c_t] + o

    The controller of the program of Le et al., "Enhancing Length Extrapolation in Sequential Models with
    Pointer-Augmented Neural Memory", 2024; the controller of the paper (Eq. 7) is a GRU that reads mode 2 instead."""

    def __init__(self, *, hidden: int, e: int, d: int, s: int) -> None:
        super().__init__()
        self.attention = nn.Linear(hidden + d, hidden)
        self.score = nn.Parameter(torch.empty(hidden).uniform_(-1 / sqrt(hidden), 1 / sqrt(hidden)))
        self.cell = nn.GRUCell(e + d, hidden)
        self.output = nn.Linear(hidden + d, hidden)

    def forward(
        self,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        start: Float[Tensor, "b hidden"],
        *,
        mask_n: MaskN = None,
        **_: Mask,
    ) -> Float[Tensor, "b t hidden"]:
        memory = real_only(memory, mask_n)
        return self._results(*self.states(x, memory, start, mask_n), memory)

    def extend(
        self,
        cache: BlockCache,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        start: Float[Tensor, "b hidden"],
        *,
        mask_n: MaskN = None,
        **_: Mask,
    ) -> Float[Tensor, "b t hidden"]:
        memory = real_only(memory, mask_n)
        states, weights = self.states(x, memory, cache.tensors.get("h", start), mask_n)
        if states.shape[1]:
            cache.tensors["h"] = states[:, -1]
        return self._results(states, weights, memory)

    def states(
        self,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        h: Float[Tensor, "b hidden"],
        mask_n: MaskN = None,
    ) -> tuple[Float[Tensor, "b t hidden"], Float[Tensor, "b t n"]]:
        """Returns h_t and softmax_n(e_n) of the steps after the state h.

        W [h; m] is W_h h + W_m m, and the gates are sums too: the terms of x and of the memory are computed for all
        steps at once, before the recurrence."""
        widths = [x.shape[-1], h.shape[-1], memory.shape[-1]]
        of_state, of_memory = torch.split(self.attention.weight, widths[1:], dim=1)
        slots = F.linear(memory, of_memory, self.attention.bias)
        of_input, of_context = torch.split(self.cell.weight_ih, widths[::2], dim=1)
        input_gates = F.linear(x, of_input, self.cell.bias_ih)
        weight = torch.cat((of_state, self.cell.weight_hh))
        bias = torch.cat((torch.zeros_like(self.attention.bias), self.cell.bias_hh))

        def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            """Returns the next state, and the weights of the memory."""
            (h,), (gates,) = states, inputs
            products = F.linear(h, weight, bias)
            query, state_gates = products[:, : len(of_state)], products[:, len(of_state) :]
            weights = over_slots(F.relu(query[:, None] + slots) @ self.score, mask_n)
            h = gated(torch.addmm(gates, (weights[:, None] @ memory)[:, 0], of_context.T), state_gates, h)
            return [h], [h, weights]

        _, (states, weights) = scan_steps(step, [h], [input_gates.transpose(0, 1)])
        return states.transpose(0, 1), weights.transpose(0, 1)

    def _results(
        self, states: Float[Tensor, "b t hidden"], weights: Float[Tensor, "b t n"], memory: Float[Tensor, "b n d"]
    ) -> Float[Tensor, "b t hidden"]:
        y: Tensor = self.output(torch.cat((states, weights @ memory), dim=-1))
        return y


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
        def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            h, stack = states
            h = self.cell(inputs[0], h + self.top(stack[:, 0]))
            push, pop = self.action(h).softmax(-1)[..., None, None].unbind(1)
            element = torch.sigmoid(self.element(h))[:, None]
            pushed = torch.cat((element, stack[:, :-1]), dim=1)
            popped = F.pad(stack[:, 1:], (0, 0, 0, 1))
            return [h, push * pushed + pop * popped], [h]

        (h, stack), (y,) = scan_steps(step, [h, stack], [x.transpose(0, 1)])
        return y.transpose(0, 1), h, stack


class NondeterministicStack(nn.Module):
    """All runs of a weighted pushdown automaton at once, whose stack holds a symbol and a vector in each place.

        γ_{i→t}    weight of the runs from (state, top) after i actions to those after t, in which the place that is
                   pushed by action i + 1 is on top at t; γ_{-1→t} is about the bottom place
        γ_{i→i+1} = push_{i+1}
        γ_{i→t}   = γ_{i→t-1} replace_t + Σ_{i<k<t-1} γ_{i→k} (γ_{k→t-1} pop_t)
        α_{i→t}   = Σ_j α_{j→i} γ_{i→t},    α_{-1→t} = γ_{-1→t}
        y_t       = Σ_i α_{i→t} v_{i+1} / Σ_i α_{i→t},    v_0 = σ(bottom),    v_{i+1} = exp(x_{i+1} Wvᵀ)

    DuSell and Chiang, "Stack attention", ICLR 2024, section 4.2. All weights of a time are divided by the same number,
    which changes no quotient and keeps them in the range of floats. As in the paper's program, pushed vectors are
    exponentials, not sigmoids."""

    def __init__(self, *, states: int, symbols: int, width: int, d: int) -> None:
        super().__init__()
        self.states = states
        self.symbols = symbols
        self.width = width
        tops = states * symbols
        self.actions = nn.Linear(d, tops * (2 * tops + states), bias=False)
        self.push = nn.Linear(d, width, bias=False)
        self.bottom = nn.Parameter(torch.randn(width))

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n _qsm"]:
        batch, length = x.shape[:2]
        tops = self.states * self.symbols
        logits = self.actions(x)
        weights = (logits - logits.detach().amax(-1, keepdim=True)).exp().unflatten(2, (tops, 2 * tops + self.states))
        push, replace, pop = weights.split([tops, tops, self.states], -1)
        vectors = torch.cat((self.bottom.sigmoid().expand(batch, 1, -1), self.push(x).exp()), 1)
        start = x.new_zeros(batch, tops)
        start[:, 0] = 1  # state 0 with symbol 0 on top
        reached = [start]  # after t actions, the weight of each (state, top) over all runs
        bottoms = [start]  # γ_{-1→t}
        spans: list[Tensor] = []  # γ_{0→t}, …, γ_{t-1→t} for t = 1, 2, …: [b t tops tops]
        readings = []
        for t in range(length):
            bottom = (bottoms[-1][:, None] @ replace[:, t])[:, 0]
            span = push[:, t, None]
            if t:
                popped = spans[-1] @ pop[:, t, None]
                before = torch.stack(bottoms[:-1], 1)[:, :, None]
                bottom = bottom + self._joined(before, popped).sum((1, 2))
                span = torch.cat((spans[-1] @ replace[:, t, None] + self._after_pops(spans[:-1], popped), span), 1)
            pushed = torch.einsum("bia,biac->bic", torch.stack(reached, 1), span)
            on_top = torch.cat((bottom[:, None], pushed), 1)  # α_{-1→t+1}, α_{0→t+1}, …
            scale = on_top.sum((1, 2)).detach()[:, None, None]
            spans.append(span / scale[..., None])
            bottoms.append(bottom / scale[..., 0])
            reached.append((on_top / scale).sum(1))
            reading = torch.einsum("bia,bim->bam", on_top, vectors[:, : t + 2])
            readings.append((reading / on_top.sum((1, 2))[:, None, None]).flatten(1))
        return torch.stack(readings, 1) if readings else x.new_zeros(batch, 0, tops * self.width)

    def _joined(
        self, before: Float[Tensor, "b k _f t"], popped: Float[Tensor, "b k t _q"]
    ) -> Float[Tensor, "b k _f t"]:
        """Runs to a place on top after k actions, then runs above it until a pop: its symbol stays, the state moves."""
        by_symbol = before.reshape(*before.shape[:3], self.states, self.symbols)
        returned = popped.reshape(*popped.shape[:2], self.states, self.symbols, self.states)
        return torch.einsum("bkfus,bkusr->bkfrs", by_symbol, returned).flatten(3)

    def _after_pops(self, spans: list[Tensor], popped: Float[Tensor, "b _i t _q"]) -> Float[Tensor, "b _i t t"]:
        """Σ_{i<k} γ_{i→k} popped_k for each i; `spans` has γ_{0→k}, …, γ_{k-1→k} for k = 1, 2, …"""
        batch, count, tops, _ = popped.shape
        total = popped.new_zeros(batch, count, tops, tops)
        for k, span in enumerate(spans, start=1):
            joined = self._joined(span, popped[:, k, None].expand(-1, k, -1, -1))
            total = total + nn.functional.pad(joined, (0, 0, 0, 0, 0, count - k))
        return total
