"""Claims about stacked models: each has the results and gradients that it has alone."""

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from archlang.backend import Architecture, halting_loops
from archlang.backend.runtime.stacking import in_any_model, in_one_batch, stacked_models
from tests.backend.runtime.test_compaction import rows_of_steps
from tests.closeness import close
from tests.conftest import Compiled

HEAD = "model m[d = 8](x: tokens[n]) -> logits[n, classes] {\n h = embed[d](x)\n"
BODY = "h <- h + attention[heads = 2](norm(h)) + linear[d](h)"
MODELS = {
    "attention": "y = h + attention[heads = 2, position = xpos](norm(h))",
    "attention that looks back": "y = h + attention[heads = 2, causal = true](norm(h))",
    "relative": "y = h + relative_attention[heads = 2](norm(h))",
    "geometric": "repeat 3 { h <- norm(h + geometric_attention[heads = 2](h)) }",
    "lstm": "y = lstm[6, layers = 2, dropout = 0.0](h)",
    "bilstm": "y = bilstm[6, layers = 2, dropout = 0.0](h)",
    "gru": "y = gru[6](h, linear[6](mean(h)))",
    "gru from zero": "y = gru_from_zero[6](h)",
    "a stack": "stack 3 { h <- norm(h + feedforward[8](h)) }",
    "global halting": f"repeat 9 halting h by global_halt[0.9, transition = true] {{ {BODY} }}",
    "token halting": "repeat 9 halting h as s by token_halt[0.9] { h <- h + attention[heads = 2](h, s) }",
    "adaptive": f"repeat 9 halting h by act[variant = graves, ponder = equation] {{ {BODY} }}",
    "a loop in a scan": "m = learned[slots = 2, d]()\n y = scan c in chunks[size = 3](h) carry m {"
    " repeat 6 halting c by global_halt[0.9] { c <- c + attention[heads = 2](norm(c), m) }\n"
    " m <- norm(m + attention[heads = 1](m, c))\n emit c }",
    "growing states": "m = constant[0, d]()\n s = h\n y = scan c in chunks[size = 3](h) carry m growing, s growing {"
    " a = c + attention[heads = 2](c, m) + attention[heads = 2](c, s)\n m <- append(m, expand(mean(a)))\n"
    " s <- append(s, a)\n emit a }",
}  # fmt: skip


def run_stacked(
    models: list[Architecture], tokens: Tensor, lengths: Tensor, randomness: str = "error"
) -> tuple[Tensor, dict[str, Tensor]]:
    """The results of all models, and the gradients of their weights."""
    names = [name for name, _ in models[0].named_parameters()]
    weights = {name: torch.stack([model.get_parameter(name).detach() for model in models]) for name in names}
    for weight in weights.values():
        weight.requires_grad_()

    def call_model(own: dict[str, Tensor], x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        result: Tensor = functional_call(models[0], own, (x,), {"lengths": real})
        return result, models[0].ponder * torch.ones_like(result.mean())

    with stacked_models():
        results, ponder = vmap(call_model, randomness=randomness)(weights, tokens, lengths)
    gradients = torch.autograd.grad((results.square().sum() + ponder.sum()), list(weights.values()))
    return results, dict(zip(names, gradients, strict=True))


def seeds_of(body: str, compiled: Compiled) -> list[Architecture]:
    text = f"{HEAD} {body}\n return linear[classes]({'y' if 'y = ' in body else 'h'})\n}}"
    models = []
    for seed in range(3):
        torch.manual_seed(seed)
        model = compiled(text, vocab=5, classes=3).double()
        for loop in halting_loops(model):
            for weight in loop.block.parameters():  # so that samples halt at different steps
                nn.init.normal_(weight, std=2.0)
        models.append(model)
    return models


# To the nearest match there is a form for few keys, and one for many.
@pytest.mark.parametrize(("name", "width"), [*((name, 7) for name in MODELS), ("geometric", 66)])
def test_stacked_models_have_their_solo_results_and_gradients(name: str, width: int, compiled: Compiled) -> None:
    models = seeds_of(MODELS[name], compiled)
    tokens = torch.randint(5, (3, 4, width), generator=torch.Generator().manual_seed(1))
    lengths = torch.tensor([[width, 1, 3, 2], [2, 4, 5, 1], [width, width, width, width]])
    results, gradients = run_stacked(models, tokens, lengths)
    for index, model in enumerate(models):
        alone = model(tokens[index], lengths=lengths[index])
        torch.testing.assert_close(results[index], alone, rtol=1e-10, atol=1e-12)
        (alone.square().sum() + model.ponder).backward()
        for path, weight in model.named_parameters():
            torch.testing.assert_close(gradients[path][index], weight.grad, rtol=1e-10, atol=1e-10, msg=path)


def test_a_loop_ends_when_the_samples_of_all_models_have_halted(compiled: Compiled) -> None:
    text = f"{HEAD} repeat 9 halting h by global_halt[0.9] {{ {BODY} }}\n return linear[classes](h)\n}}"
    models = [compiled(text, vocab=5, classes=3).double() for _ in range(2)]
    tokens, lengths = torch.zeros(2, 1, 4, dtype=torch.int64), torch.full((2, 1), 4)
    for model, bias in zip(models, (-2.0, 0.0), strict=True):
        for loop in halting_loops(model):
            output = loop.block.get_submodule("output")
            output.get_parameter("weight").data.zero_()
            output.get_parameter("bias").data.fill_(bias)
    rows = [rows_of_steps(loop) for model in models for loop in halting_loops(model)]
    for model in models:
        model(tokens[0], lengths=lengths[0])
    steps = [len(own_rows) for own_rows in rows]
    rows[0].clear()
    run_stacked(models, tokens, lengths)
    assert steps[0] > steps[1]
    assert len(rows[0]) == max(steps)


def test_a_mark_in_any_model_is_read_by_all() -> None:
    marks = torch.tensor([[True, False, False], [False, False, True]])
    with stacked_models():
        values = vmap(lambda mark: mark.long() + 2 * in_any_model(mark).long())(marks)
    assert values.tolist() == [[3, 0, 2], [2, 0, 3]]
    assert in_any_model(marks) is marks


def test_a_function_receives_the_concatenated_batches_of_all_models() -> None:
    seen = []

    def double(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        seen.append((x.shape, y.shape))
        return 2 * x, x + y

    x, y = torch.rand(4, 3, 2, requires_grad=True), torch.rand(3, 2)
    with stacked_models():
        doubled, summed = vmap(lambda rows: in_one_batch(double, rows, y), in_dims=1, out_dims=1)(x.movedim(0, 1))
    close((doubled, summed), (2 * x.movedim(0, 1), x.movedim(0, 1) + y[:, None]))
    assert seen == [((12, 2), (12, 2))]
    (doubled.sum() + summed.sum()).backward()
    close(x.grad, torch.full_like(x, 3.0))
