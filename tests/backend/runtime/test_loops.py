"""Claims about the loops at run time; tests/semantics compares them with the interpreter's."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from archlang.backend import halting_loops
from archlang.backend.runtime.halting import HaltingState
from archlang.tasks.kit.split import Ragged, Split
from archlang.train.data import DeviceSplit
from archlang.train.loss import training_loss
from archlang.train.record.mistakes import RunError
from tests.conftest import Compiled
from tests.train.settings_of_a_run import settings_with

HALTING = """
model m(x: tokens[n]) -> logits[n, 2] {
    h = embed[2](x)
    y = repeat 4 halting h by BLOCK { h <- tanh(h) emit h }
    return y
}
"""


def test_a_halting_block_without_probabilities_of_halting_cannot_be_supervised(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = compiled(HALTING.replace("BLOCK", "act").replace("repeat 4", "repeat 1"))
    (loop,) = halting_loops(module)
    advance = loop.block.advance

    def without_probabilities(*inputs: Any) -> HaltingState:  # Any: as of `advance`
        halting = advance(*inputs)
        return HaltingState(
            **{part.name: getattr(halting, part.name) for part in fields(HaltingState)} | {"remaining": None}
        )

    monkeypatch.setattr(loop.block, "advance", without_probabilities)
    split = Split({"x": Ragged.of([[2, 1]])}, Ragged.of([[0, 0]]))
    settings = settings_with(supervise="every")
    with pytest.raises(RunError, match="`act` has no probabilities of halting"):
        training_loss(module, DeviceSplit(split, torch.device("cpu")).batch(np.array([0])), module, settings)


def test_a_halting_loop_stops_when_all_samples_have_halted(compiled: Compiled) -> None:
    module = compiled(HALTING.replace("BLOCK", "global_halt[0.5]"))
    (loop,) = halting_loops(module)
    output = loop.block.get_submodule("output")
    torch.nn.init.zeros_(output.get_parameter("weight"))
    torch.nn.init.constant_(output.get_parameter("bias"), -0.5)  # probability 0.38: the second step halts
    halting_states: list[HaltingState] = []
    loop.watch = halting_states.append
    module(torch.tensor([[2, 9], [1, 9]]))
    assert [halting.accepted.tolist() for halting in halting_states] == [[True, True], [False, False]]
