"""What a run cannot be computed with is refused by name, from its plan alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.train import refusals
from archlang.train.refusals import describe_steps, is_compiled, refusal, uses_every_weight, why_eager
from archlang.types.statics import Symbol
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model

PROGRAM = """
model small(x: tokens[n]) -> logits[n, vocab] {
    e = embed[4](x)
    h = e
    BODY
    return linear[vocab](h)
}
recipe small {
    task  flipflop[length = 8, train_size = 8, iid_size = 4, valid_size = 4, test_length = [8], test_size = 4]
    model small
    train OPTIMIZER[batch = 4, steps = 1]
}
"""
SHARDED = {"count": 2, "shard": True}
LOOP = "repeat 2 { h <- h + linear[4](h) }"


def refused(
    folder: Path,
    options: dict[str, Any],  # Any: those of `refusal`
    optimizer: str = "adamw",
    body: str = LOOP,
    **statics: Any,  # Any: of any kind
) -> str:
    error = refusal(changed(folder, optimizer, body, **statics), **options)
    return "" if error is None else error.message


def changed(folder: Path, optimizer: str = "adamw", body: str = LOOP, **statics: Any) -> Plan:  # Any: of any kind
    file = folder / "small.arch"
    file.write_text(PROGRAM.replace("BODY", body).replace("OPTIMIZER", optimizer))
    plan = plan_recipe(file)
    return replace(plan, train=replace(plan.train, statics={**plan.train.statics, **statics}))


@pytest.mark.parametrize(
    ("options", "change", "reason"),
    [
        ({"precision": "64"}, {}, "no precision `64`"),
        ({"device": "cpu", "precision": "16"}, {}, "the device `cpu` does not compute in precision 16"),
        ({"count": 5}, {}, "a batch of 4 cannot be shared by 5 processes"),
        ({"count": 2}, {"supervise": Symbol("deep")}, "`supervise = deep` keeps the states of a whole batch"),
        ({"remat": True}, {"body": ""}, "`small` has no `stack` or `repeat`"),
        ({"shard": True}, {}, "a single process holds all of them"),
        ({**SHARDED, "precision": "16"}, {}, "in precision 16 gradients are scaled as a whole"),
        (SHARDED, {"optimizer": "muon"}, "`muon` may need each weight as a whole"),
        (SHARDED, {"sign_sgd": (Symbol("e"),)}, "`sign_sgd` moves the rows of a table"),
    ],
)
def test_what_cannot_go_together_is_refused(
    options: dict[str, Any],
    change: dict[str, Any],
    reason: str,
    tmp_path: Path,  # Any: as above
) -> None:
    assert reason in refused(tmp_path, options, **change)


@pytest.mark.parametrize(
    ("options", "statics", "reason"),
    [
        ({}, {"steps": 0, "epochs": 2}, "nobody knows how many samples a stream has"),
        ({}, {"supervise": Symbol("deep")}, "those of a stream are read once"),
        ({}, {"select": Symbol("train.loss")}, "weights cannot be selected on `train`"),
        (SHARDED, {}, ""),
    ],
)
def test_what_a_stream_cannot_do_is_refused(
    options: dict[str, Any],
    statics: dict[str, Any],
    reason: str,
    tmp_path: Path,  # Any: as above
) -> None:
    task = "flipflop" + PROGRAM.partition("flipflop")[2].partition("]\n")[0] + "]"
    program = PROGRAM.replace(task, 'text[path = "a.jsonl", valid = "b.jsonl", stream = 9]')
    file = tmp_path / "small.arch"
    file.write_text(program.replace("BODY", LOOP).replace("OPTIMIZER", "adamw"))
    plan = plan_recipe(file)
    assert not why_eager(plan, "cuda")
    train = replace(plan.train, statics={**plan.train.statics, **statics})
    error = refusal(replace(plan, train=train), **options)
    assert reason in ("" if error is None else error.message)
    assert bool(reason) == (error is not None)


@pytest.mark.parametrize(
    "options",
    [
        {"device": "auto", "precision": "16"}, {"device": "cpu", "precision": "bf16", "count": 4},
        {**SHARDED, "remat": True},
    ],
)  # fmt: skip
def test_what_can_go_together_is_not(options: dict[str, Any], tmp_path: Path) -> None:  # Any: as above
    assert not refused(tmp_path, options)


@pytest.mark.parametrize(
    ("options", "statics", "reason"),
    [
        ({"device": "mps"}, {}, "`mps` has no CUDA graphs"),
        ({"eager": True}, {}, "as `--eager` says"),
        ({"precision": "16"}, {}, "in precision 16 the host looks for overflows"),
        ({"count": 2}, {}, "several devices share each batch"),
        ({"remat": True}, {}, "with `--remat` the host saves"),
        ({}, {"sign_sgd": (Symbol("e"),)}, "`sign_sgd` moves the rows"),
        ({}, {"loss": Symbol("mine.focal")}, "a CUDA graph freezes what Python decides, and the loss is your own"),
        ({}, {"micro": 2}, "batches pass through the model in parts"),
    ],
)
def test_steps_on_a_gpu_are_eager_for_a_reason(
    options: dict[str, Any],
    statics: dict[str, Any],
    reason: str,
    tmp_path: Path,  # Any: as above
) -> None:
    why = why_eager(changed(tmp_path, **statics), **{"device": "cuda:0", **options})
    assert why.startswith(reason)
    assert describe_steps("cuda", why) == f"one operation at a time: {why}"


def test_experts_make_steps_eager(tmp_path: Path) -> None:
    experts = "y = experts v in h by top_k[1](sigmoid(linear[2](h))) { emit linear[4](v) }\n    z = h + y"
    assert why_eager(changed(tmp_path, body=experts), "cuda") == (
        "the host reads which positions choose each of the experts"
    )


def test_python_of_the_users_own_in_a_model_makes_steps_eager(tmp_path: Path) -> None:
    plan = changed(tmp_path)
    own = {path: replace(instance, python="mine:Linear") for path, instance in plan.graph.instances.items()}
    why = why_eager(replace(plan, graph=replace(plan.graph, instances=own)), "cuda")
    assert why == "a CUDA graph freezes what Python decides, and `embed` is your own"


@pytest.mark.parametrize("precision", ["32", "bf16"])
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "rmsprop", "sgd", "lion", "muon", "schedule_free"])
@pytest.mark.parametrize("body", [LOOP, LOOP.replace("2", "2 halting h by token_halt")])
def test_steps_on_a_gpu_are_cuda_graphs_otherwise(body: str, optimizer: str, precision: str, tmp_path: Path) -> None:
    assert not why_eager(changed(tmp_path, optimizer, body), "cuda", precision)
    assert describe_steps("cuda", "") == "as CUDA graphs"
    assert not describe_steps("cpu", "`cpu` has no CUDA graphs")


@pytest.mark.parametrize(
    ("change", "device", "steps", "repays"),
    [
        ({}, "cuda", 2 * 10**13, True),
        ({}, "cuda", 10**12, False),
        ({}, "cpu", 2 * 10**13, False),
        ({"body": LOOP.replace("2", "2 halting h by token_halt")}, "cuda", 2 * 10**13, False),
        ({"body": "s = first(e)\n    y = scan v in h carry s { s <- s + v\n emit s }"}, "cuda", 2 * 10**13, False),
        ({"body": "z = h + weigh(softmax_keys(scores(h, h)), h)"}, "cuda", 2 * 10**13, False),
        ({"loss": Symbol("mine.focal")}, "cuda", 2 * 10**13, False),
        ({"supervise": Symbol("every")}, "cuda", 2 * 10**13, False),
        ({"batch": 32, "batch_of": Symbol("tokens")}, "cuda", 2 * 10**13, True),
    ],
)
def test_torch_compiles_long_runs_of_models_whose_steps_are_all_alike(
    change: dict[str, Any],  # Any: as above
    device: str,
    steps: int,
    repays: bool,
    tmp_path: Path,
) -> None:
    assert is_compiled(changed(tmp_path, **change), device, steps, 8) == repays
    assert describe_steps("cuda", "", repays).endswith("; torch compiles the model") == repays


def test_an_older_torch_does_not_divide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "version", lambda _: "2.12.1+cpu")
    assert refused(tmp_path, SHARDED) == "this run cannot divide its weights: torch 2.12.1+cpu cannot divide a model"


HALTING = {
    "adaptive", "adaptive_geometric", "adaptive_relative", "gated_universal_latent_bottleneck",
    "gated_universal_transformer", "universal_transformer",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_model_that_uses_every_weight_has_all_gradients_at_every_length(name: str) -> None:
    module = shipped_model(name).train()
    assert uses_every_weight(module.program.graph) == (name not in HALTING)
    for length in (1, 2, 7) if name not in HALTING else ():
        fields, lengths = shipped_batch(module, 3, length)
        module.zero_grad()
        module(*fields, lengths=lengths).square().mean().backward()
        assert all(weight.grad is not None for weight in module.parameters())


@pytest.mark.parametrize("change", [("h = e", "h = detach(e)"), ("h = e", "h = top_k[1](e)")])
def test_a_model_whose_gradients_stop_may_leave_weights_out(change: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "small.arch"
    text = PROGRAM.replace("BODY", LOOP).replace("OPTIMIZER", "adamw")
    file.write_text(text)
    assert uses_every_weight(plan_recipe(file).graph)
    file.write_text(text.replace(*change))
    assert not uses_every_weight(plan_recipe(file).graph)
