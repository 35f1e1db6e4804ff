"""The gradient that a model computes is that of its loss, and is differentiated again."""

from collections.abc import Mapping
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from archlang.backend.architecture import Architecture
from archlang.backend.attach import rematerialize_bodies
from archlang.backend.runtime.recording import recording
from archlang.export.formats import trace
from archlang.export.mistakes import ExportError
from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close, same_gradients
from tests.conftest import Compiled

# Attention in the loss, losses of samples and positions, and a memory that moves by its gradient.
PROGRAM = """
model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    let score = linear[d]
    let key = linear[d]
    h = embed[d](x)
    y = h
    repeat 3 {
        e = sum_features(tanh(score(y)) * attention[1, causal = true](y, h))
        y <- y - 0.5 * gradient(e, y)
    }
    w = 0.3 * learned[d, d, init = normal]()
    z = scan v in y carry w {
        u = tanh(sum(head_columns(key(v)) * w)) - v
        w <- w - gradient(sum_features(u * u), w)
        emit sum(head_columns(v) * w)
    }
    s = mean(sum_features(tanh(score(z)) * mean(z)))
    return linear[vocab](z + gradient(s, z))
}
"""
LENGTHS = torch.tensor([5, 2, 3])


@pytest.fixture
def model(compiled: Compiled) -> Architecture:
    torch.manual_seed(1)
    return compiled(PROGRAM, vocab=5).double()


def tokens() -> Tensor:
    return torch.randint(5, (3, 5), generator=torch.Generator().manual_seed(2))


def test_the_gradient_is_that_of_the_loss_of_each_sample(compiled: Compiled) -> None:
    module = compiled(
        "model m(h: seq[n, d]) -> seq[n, d] { let f = linear[3] return gradient(mean(sum_features(tanh(f(h)))), h) }",
        d=2,
    ).double()
    h = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)
    rows = []
    for sample, length in zip(h, (4, 3), strict=True):
        real = sample[:length]
        slopes = 1 - torch.tanh(real @ module.get_parameter("f.weight").T + module.get_parameter("f.bias")).square()
        zeros = torch.zeros(4 - length, 2, dtype=torch.float64)
        rows.append(torch.cat((slopes @ module.get_parameter("f.weight") / length, zeros)))
    expected = torch.stack(rows)
    same_gradients(module(h, lengths=torch.tensor([4, 3])), expected, [h, *module.parameters()])


def test_a_loss_of_positions_that_reads_others_adds_up_their_gradients(compiled: Compiled) -> None:
    module = compiled(
        "model m(h: seq[n, d]) -> seq[n, d] { return gradient(sum_features(h * cumulative_sum(h)), h) }", d=2
    ).double()
    h = torch.randn(2, 4, 2, dtype=torch.float64)
    result = module(h, lengths=torch.tensor([4, 2]))
    for sample, own, length in zip(h, result, (4, 2), strict=True):
        real = sample[:length]
        close(own[:length], real.cumsum(0) + real.flip(0).cumsum(0).flip(0))
        assert not own[length:].any()


def test_second_derivatives_are_those_of_differences(compiled: Compiled) -> None:
    torch.manual_seed(1)
    model = compiled(PROGRAM, d=2, vocab=5).double()
    weights = dict(model.named_parameters())

    def results(*values: Tensor) -> Tensor:
        result: Tensor = functional_call(model, dict(zip(weights, values, strict=True)), (tokens(),))
        return result

    assert torch.autograd.gradcheck(results, tuple(weights.values()))


def test_a_model_without_gradients_returns_the_same(model: Architecture) -> None:
    expected = model(tokens(), lengths=LENGTHS)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            result = model(tokens(), lengths=LENGTHS)
        assert not result.requires_grad
        close(result.clone(), expected)


def test_steps_that_are_computed_again_have_the_same_gradients(model: Architecture, compiled: Compiled) -> None:
    expected = model(tokens(), lengths=LENGTHS)
    again = compiled(PROGRAM, vocab=5).double()
    again.load_state_dict(model.state_dict())
    assert rematerialize_bodies(again, again.program.code)
    same_gradients(again(tokens(), lengths=LENGTHS), expected, again.parameters(), model.parameters())


def test_stacked_models_have_the_gradients_of_each(model: Architecture) -> None:
    x = tokens()

    def results(weights: Mapping[str, Tensor]) -> Tensor:
        result: Tensor = functional_call(model, dict(weights), (x,))
        return result

    factors = torch.tensor([1.0, 0.5], dtype=torch.float64)
    weights = dict(model.named_parameters())
    alone = [results({name: factor * weight for name, weight in weights.items()}) for factor in factors]
    stacked = {name: torch.stack([factor * weight for factor in factors]) for name, weight in weights.items()}
    same_gradients(vmap(results)(stacked), torch.stack(alone), weights.values())


def test_a_loss_that_stops_its_gradient_has_a_gradient_of_zero(compiled: Compiled) -> None:
    module = compiled("model m(h: seq[n, d]) -> seq[n, d] { return gradient(sum_features(detach(h)), h) }", d=2)
    assert not module(torch.randn(2, 3, 2)).any()


def test_dropout_in_attention_has_second_derivatives(compiled: Compiled) -> None:
    module = compiled(
        "model m(h: seq[n, d]) -> seq[n, d] { return gradient(sum_features(attention[1, dropout = 0.5](h)), h) }", d=4
    )
    module(torch.randn(2, 3, 4)).sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in module.parameters())


def test_a_scan_decodes_position_by_position(compiled: Compiled) -> None:
    program = PROGRAM[: PROGRAM.index("    s = mean")] + "    return linear[vocab](z)\n}"
    module = compiled(program, vocab=5).double().eval()
    prompt = torch.randint(1, 5, (2, 3))
    decoded = partial(module.decode, begin=prompt, limit=6)
    assert torch.equal(decoded().tokens, decoded(cache=False).tokens)


def test_a_plain_file_has_the_same_gradients(model: Architecture) -> None:
    plain: nn.Module = plain_module(model, plain_text(model))
    result = plain(tokens(), LENGTHS)
    same_gradients(result, model(tokens(), lengths=LENGTHS), plain.parameters(), model.parameters())


def test_what_a_model_with_gradients_computes_is_recorded(model: Architecture) -> None:
    with recording(model) as record:
        result = model(tokens())
    assert {moment.kind for moment in record.moments} == {"change", "memory"}
    close(result, model(tokens()))


def test_torch_export_is_refused_by_name(model: Architecture) -> None:
    with pytest.raises(ExportError, match="`gradient` cannot be exported"):
        trace(model)
