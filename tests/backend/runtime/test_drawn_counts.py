"""Claims about loops whose number of steps is drawn in training."""

import numpy as np
import pytest
import torch

from archlang.backend.runtime.loops import counts_drawn, drawn_loops
from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close
from tests.conftest import Compiled
from tests.goldens.files import reference_file

MODEL = """
model m[d = 4, steps = 3](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    n0 = 0
    repeat steps drawn by uniform_steps[1, 6] {
        h <- tanh(h)
        n0 <- n0 + 1
    }
    return linear[vocab](h + n0)
}
"""
COUNTED = MODEL.replace(" drawn by uniform_steps[1, 6]", "")


def test_evaluation_takes_the_steps_of_the_program_and_training_draws_them(compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=5)
    x = torch.randint(5, (2, 4))
    results = {}
    for steps in range(1, 7):
        counted = compiled(COUNTED, vocab=5, steps=steps)
        counted.load_state_dict(module.state_dict())
        results[steps] = counted(x)
    close(module.eval()(x), results[3])
    module.train()
    drawn = []
    for _ in range(60):
        result = module(x)
        drawn += [steps for steps, expected in results.items() if torch.allclose(result, expected, atol=1e-5)]
    assert len(drawn) == 60
    assert set(drawn) == set(results)


def test_a_step_of_training_draws_by_its_seed_and_number_alone(compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=5).train()
    (loop,) = drawn_loops(module)

    def counts(seed: int) -> list[int | None]:
        counts = []
        for step in range(20):
            with counts_drawn(module, seed, step):
                counts.append(loop.drawn_count)
            torch.rand(1)
        assert loop.drawn_count is None
        return counts

    before = torch.get_rng_state()
    with counts_drawn(module, 1, 1):
        assert torch.equal(torch.get_rng_state(), before)
    assert counts(1) == counts(1)
    assert counts(1) != counts(2)


def test_an_exported_model_takes_the_steps_of_the_program(compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=5).eval()
    text = plain_text(module)
    assert "UniformSteps" not in text
    x = torch.randint(5, (2, 4))
    close(plain_module(module, text)(x), module(x))


def test_the_counts_of_huginn_have_the_distribution_of_its_program(compiled: Compiled) -> None:
    arrays = np.load(reference_file("modern", "huginn.npz"))
    mean, expected = int(arrays["cfg.mean_recurrence"]), arrays["sampler.pmf_total"]
    text = MODEL.replace("uniform_steps[1, 6]", f"log_normal_poisson[{mean}]")
    block = compiled(text, vocab=5).get_submodule("log_normal_poisson")
    drawn = block(100_000).flatten().int().clamp(max=len(expected) - 1)
    share = torch.bincount(drawn, minlength=len(expected)).numpy() / drawn.numel()
    assert np.abs(share - expected).max() == pytest.approx(0, abs=0.005)
