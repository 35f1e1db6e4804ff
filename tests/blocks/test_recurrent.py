"""Recurrent networks against their equations, gate by gate and position by position."""

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.recurrent import BiLstm, BiLstmFinal, Gru, GruFromZero, Lstm, Reverse
from tests.blocks.conftest import agree, gru_step
from tests.closeness import close, same_gradients

LENGTHS = [5, 3, 1]
RAGGED = torch.arange(5) < torch.tensor(LENGTHS)[:, None]


def slow_lstm(cell: nn.Module, layer: int, xs: list[Tensor]) -> list[Tensor]:
    weights = [cell.get_parameter(f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    h = c = torch.zeros(weights[1].shape[1], dtype=torch.float64)
    hs = []
    for x in xs:
        i, f, g, o = (weights[0] @ x + weights[2] + weights[1] @ h + weights[3]).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        hs.append(h)
    return hs


def slow_gru(cell: nn.Module, xs: list[Tensor], h: Tensor) -> list[Tensor]:
    hs = []
    for x in xs:
        h = gru_step(cell, x, h, "_l0")
        hs.append(h)
    return hs


@pytest.mark.parametrize("layers", [1, 2])
def test_an_lstm_follows_its_equations(layers: int) -> None:
    block = Lstm(hidden=6, layers=layers, dropout=0.0, d=4)

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        samples = []
        for row in x:
            hs = list(row)
            for layer in range(layers):
                hs = slow_lstm(block.lstm, layer, hs)
            samples.append(torch.stack(hs))
        return torch.stack(samples)

    agree(block, slow, torch.randn(3, 5, 4, dtype=torch.float64), mask_n=None)


def slow_layers(block: BiLstm | BiLstmFinal, row: Tensor) -> list[tuple[list[Tensor], list[Tensor]]]:
    xs, results = list(row), []
    for ahead, back in zip(block.forward_layers, block.backward_layers, strict=True):
        ahead_states, back_states = slow_lstm(ahead, 0, xs), slow_lstm(back, 0, xs[::-1])[::-1]
        results.append((ahead_states, back_states))
        xs = [torch.cat(pair) for pair in zip(ahead_states, back_states, strict=True)]
    return results


@pytest.mark.parametrize("layers", [1, 3])
def test_a_bilstm_reads_each_sample_in_both_directions(layers: int) -> None:
    block = BiLstm(hidden=6, layers=layers, dropout=0.0, d=4).double()
    x = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    expected = []
    for row, length in zip(x, LENGTHS, strict=True):
        ahead, back = slow_layers(block, row[:length])[-1]
        expected += [torch.cat(pair) for pair in zip(ahead, back, strict=True)]
    same_gradients(block(x, mask_n=RAGGED)[RAGGED], torch.stack(expected), [x, *block.parameters()])


@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("reads", ["last_layer", "misread"])
def test_final_states_are_those_of_both_directions(layers: int, reads: str) -> None:
    block = BiLstmFinal(hidden=6, layers=layers, dropout=0.0, reads=reads, d=4).double()
    x = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    expected = []
    for row, length in zip(x, LENGTHS, strict=True):
        results = slow_layers(block, row[:length])
        first = results[-1][0][-1] if reads == "last_layer" or layers == 1 else results[layers // 2 - 1][1][0]
        expected.append(torch.cat((first, results[-1][1][0])))
    same_gradients(block(x, mask_n=RAGGED), torch.stack(expected), [x, *block.parameters()])


def test_misreading_is_the_wrong_order_of_layers_and_directions() -> None:
    """torch orders final states (layer 0 forward, layer 0 backward, layer 1 forward, …)."""
    block = BiLstmFinal(hidden=6, layers=4, dropout=0.0, reads="misread", d=4).double()
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    layers = block._layers(x, None)
    states = torch.stack([state for ahead, back in layers for state in (ahead[:, -1], back[:, 0])])
    wrong = states.reshape(2, 4, 2, 3)[:, -1]
    close(block(x), torch.cat((wrong[0], wrong[1]), dim=-1))


@pytest.mark.parametrize("block", [Gru(hidden=6, d=4, s=6), GruFromZero(hidden=6, d=4)])
def test_a_gru_starts_from_its_argument_or_from_zero(block: Gru | GruFromZero) -> None:
    def slow(x: Tensor, *start: Tensor, mask_n: Tensor | None) -> Tensor:
        starts = start[0] if start else x.new_zeros(len(x), 6)
        return torch.stack([torch.stack(slow_gru(block.gru, list(row), h)) for row, h in zip(x, starts, strict=True)])

    start = [torch.randn(3, 6, dtype=torch.float64)] if isinstance(block, Gru) else []
    agree(block, slow, torch.randn(3, 5, 4, dtype=torch.float64), *start, mask_n=None)


def test_reverse_leaves_padding_at_the_end() -> None:
    x = torch.arange(15.0).reshape(3, 5, 1)
    assert Reverse(d=1)(x, mask_n=RAGGED)[..., 0].tolist() == [[4, 3, 2, 1, 0], [7, 6, 5, 8, 9], [10, 11, 12, 13, 14]]
    assert Reverse(d=1)(x).equal(x.flip(1))
    twice = Reverse(d=1)(Reverse(d=1)(x, mask_n=RAGGED), mask_n=RAGGED)
    assert twice.equal(x)


def test_dropout_is_between_layers_only() -> None:
    x = torch.randn(2, 5, 4)
    for single in (Lstm(hidden=6, layers=1, dropout=0.5, d=4), BiLstm(hidden=6, layers=1, dropout=0.5, d=4)):
        assert single(x).equal(single(x))
    for double in (Lstm(hidden=6, layers=2, dropout=0.5, d=4), BiLstm(hidden=6, layers=2, dropout=0.5, d=4)):
        assert double(x).ne(double(x)).any()
        assert double.eval()(x).equal(double(x))
