"""Claims about `supervise`: the loss scores the steps of the loop whose emission the model returns."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor

from archlang.tasks.kit.task import Task
from archlang.train.data import Data
from archlang.train.loss import mean_loss, training_loss
from archlang.train.setup import Workload
from tests.conftest import Compiled
from tests.train.settings_of_a_run import SETTINGS
from tests.train.test_score import CPU, POSITIONS

MODEL = """
model m[d = 4, steps = 3](x: tokens[n]) -> logits[n, vocab] {
    let head = linear[vocab]
    h = embed[d](x)
    y = LOOP {
        h <- tanh(h + linear[d](h))
        emit head(h)
    }
    return y
}
"""


@pytest.mark.parametrize(("loop", "first"), [("repeat steps", 1), ("stack steps", 1), ("repeat steps truncated 2", 2)])
@pytest.mark.parametrize("supervise", ["last", "mean", "every"])
def test_the_loss_scores_the_steps_that_have_gradients(
    compiled: Compiled, loop: str, first: int, supervise: str
) -> None:
    batch = Data(POSITIONS, CPU).batch(np.array([0, 1]))
    text = MODEL.replace("LOOP", loop)
    module = compiled(text, vocab=3).double()
    workload = Workload(replace(SETTINGS, supervise=supervise), cast(Task, None), {}, CPU)
    results: list[Tensor] = []
    for steps in range(first, 4):
        shorter = compiled(text.replace("truncated 2", ""), vocab=3, steps=steps).double()
        shorter.load_state_dict(module.state_dict(), strict=False)
        results.append(shorter(*batch.fields, lengths=next(iter(batch.lengths.values()))))
    expected = {
        "last": lambda: mean_loss(results[-1], batch),
        "mean": lambda: mean_loss(torch.stack(results).mean(0), batch),
        "every": lambda: torch.stack([mean_loss(result, batch) for result in results]).mean(),
    }
    loss = training_loss(module, batch, workload, module)
    torch.testing.assert_close(loss, expected[supervise]())
    assert not module.step_results
