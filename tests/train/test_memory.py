"""The planned bytes of a device are those of the weights, gradients and moments, and of the batch."""

import json
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

import archlang
from archlang.backend.attach import rematerialize_bodies
from archlang.backend.measured_costs import LiveBytes
from archlang.compile import build
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.resolve import library
from archlang.train.memory import MOMENTS, Remat, memory_by_devices, steps_together, training_memory
from archlang.train.optimizers import make_optimizer

PROGRAM = """
model page[d = 16, depth = 3](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    stack depth { h <- norm(h + feedforward[4 * d](h) + attention[2, causal = true](h)) }
    return linear[vocab](h)
}
recipe page {
    task  flipflop[length = 8, train_size = 8, iid_size = 4, valid_size = 4, test_length = [8], test_size = 4]
    model page
    train adamw[batch = 8, steps = 1]
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "page.arch").write_text(PROGRAM)
    return tmp_path / "page.arch"


def planned(program: Path, **sets: object) -> Plan:
    return plan_recipe(program, sets={name.replace("__", "."): str(value) for name, value in sets.items()})


def test_the_moments_of_every_optimizer_are_known() -> None:
    assert set(MOMENTS) == set(library.optimizers())


@pytest.mark.parametrize("train", [{}, {"train__ema": 0.9}])
def test_weights_gradients_and_moments_are_those_that_torch_holds(program: Path, train: dict[str, object]) -> None:
    plan = planned(program, **train)
    memory = training_memory(plan, 8)
    module = build(plan.graph)
    optimizer = make_optimizer(plan.train, module)
    for weight in module.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    weights = sum(weight.nbytes for weight in module.parameters())
    moments = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
    assert (memory.weights, memory.gradients) == (weights, weights)
    average = weights if train else 0
    assert memory.state == sum(moment.nbytes for moment in moments if moment.dim()) + average
    assert training_memory(plan, None).activations == 0


def test_frozen_weights_have_neither_gradients_nor_moments(program: Path, tmp_path: Path) -> None:
    plan = planned(program, train__frozen='[embed, "stack.1"]')
    module = build(plan.graph)
    trained = sum(w.nbytes for name, w in module.named_parameters() if not name.startswith(("embed.", "stack.1.")))
    memory = training_memory(plan, 8)
    assert (memory.gradients, memory.state) == (trained, 2 * trained)
    archlang.save(archlang.load(program, depth=2), tmp_path / "saved")
    source = json.dumps(str(tmp_path / "saved"))
    memory = training_memory(planned(program, train__frozen="[loaded]", train__weights=source), 8)
    trained = sum(weight.nbytes for name, weight in module.named_parameters() if name.startswith("stack.2."))
    assert (memory.gradients, memory.state) == (trained, 2 * trained)


def test_a_page_of_more_than_a_billion_weights_fits_more_devices(program: Path) -> None:
    plan = planned(program, model__d=2048, model__depth=24)
    one, eight, sharded = memory_by_devices(plan, 8, 8).values()
    weights = one.weights
    assert weights > 4 * 1.2e9
    assert one.total > 16 * 1.2e9
    # Without `--shard`, more devices need more memory each: the buckets of gradients.
    assert eight.total - eight.activations > one.total - one.activations
    share = -(-weights // 8)
    assert (sharded.weights, sharded.state) == (share, 2 * share)
    # A step of the stack, the next one, and gradients.
    assert sharded.gathered < weights / 4
    assert sharded.total < 5 * share + weights / 4 + sharded.activations


def test_only_models_that_write_answers_gather_all_weights(program: Path) -> None:
    assert [*memory_by_devices(planned(program), 8, 8).values()][-1].evaluation == 0
    text = re.sub(r"task .*", "task copy[train_size = 8]", program.read_text()).replace(
        "(x: tokens[n])", "(y: tokens[m], x: tokens[n])"
    )
    program.write_text(text.replace("    h =", "    c = mean(embed[d](y))\n    h = c +"))
    sharded = [*memory_by_devices(planned(program), 8, 8).values()][-1]
    assert sharded.evaluation == pytest.approx(8 * sharded.weights, abs=8)


def test_an_optimizer_of_whole_weights_has_no_line_with_shard(program: Path) -> None:
    program.write_text(program.read_text().replace("adamw[", "muon["))
    assert list(memory_by_devices(planned(program), 8, 2)) == ["1 device", "2 devices"]


def test_activations_are_those_of_the_samples_at_a_time(program: Path) -> None:
    def activations(devices: int = 1, **sets: object) -> int:
        return training_memory(planned(program, **sets), 8, devices).activations

    batch = activations()
    assert activations(train__micro=2) == activations(4) == batch / 4
    assert activations(train__batch=16, train__batch_of="tokens") == batch / 4


# Small insides with large states, and large insides.
WIDE = "repeat 36 { h <- tanh(h + e) }"
DEEP = "stack 6 { h <- h + feedforward[512](h) }"


@pytest.mark.parametrize(("body", "best", "worst"), [(WIDE, 6, 1), (DEEP, 1, 6)])
def test_the_steps_that_auto_computes_again_together_keep_the_fewest_bytes(
    program: Path, body: str, best: int, worst: int
) -> None:
    text = re.sub(r"stack depth .*", body, program.read_text())
    program.write_text(text.replace("h = embed[d](x)", "e = embed[d](x)\n    h = 1 * e"))
    plan, x = planned(program, train__batch=16), torch.zeros(16, 64, dtype=torch.int64)
    measured, counted = dict[Remat, int](), dict[Remat, int]()
    for remat in (0, best, worst, "auto"):
        module = build(plan.graph)
        if remat:
            rematerialize_bodies(module, module.program.code, steps_together(plan, remat, 64))
        with LiveBytes() as live:
            module(x).sum().backward()
        measured[remat] = live.most
        counted[remat] = training_memory(plan, 64, remat=remat).activations
    for bytes_by_remat in (measured, counted):
        assert bytes_by_remat["auto"] < 1.1 * bytes_by_remat[best] < 0.6 * bytes_by_remat[worst]
        assert bytes_by_remat[best] < 0.6 * bytes_by_remat[0]
