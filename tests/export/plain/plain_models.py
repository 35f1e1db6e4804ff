"""Runs exported models in a Python that cannot import archlang, and returns how far their numbers are from the
modules': results, gradients, and second derivatives."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.export.plain.file import plain_text, plain_weights
from tests.shipped_models import shipped_batch

# (samples, positions, whether there are lengths)
CASES = ((1, 3, False), (3, 9, True), (2, 33, True))

PROGRAM = """
import importlib, json, sys, torch
from torch.nn.attention import SDPBackend, sdpa_kernel
for name in ("archlang", "jaxtyping", "numpy.typing"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
torch.set_num_threads(1)
differences = {}
for name in sys.argv[2:]:
    plain = importlib.import_module(f"plain_{name}")
    stored = torch.load(f"{sys.argv[1]}/plain_{name}_cases.pt", weights_only=True)
    model = plain.load()
    worst = {"first": 0.0, "second": 0.0}
    for fields, lengths, result, extras, gradients, second in stored:
        torch.manual_seed(0)
        with sdpa_kernel(SDPBackend.MATH):
            actual = model(*fields, lengths=lengths)
        pairs = [(actual, result)]
        pairs += [(getattr(model, extra).double(), value.double()) for extra, value in extras.items()]
        if gradients:
            names, weights = zip(*model.named_parameters())
            loss = actual.square().sum() + (model.ponder if "ponder" in extras else 0)
            own = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
            assert {key for key, value in zip(names, own) if value is not None} == gradients.keys()
            pairs += [(value, gradients[key]) for key, value in zip(names, own) if value is not None]
            penalty = sum(value.square().sum() for value in own if value is not None)
            twice = torch.autograd.grad(penalty, weights, materialize_grads=True)
            pairs += [(value, second[key]) for key, value in zip(names, twice)]
        for index, (left, right) in enumerate(pairs):
            assert left.shape == right.shape, (left.shape, right.shape)
            order = "second" if index >= len(pairs) - len(second) else "first"
            worst[order] = max(worst[order], float((left - right).abs().max() / right.abs().max().clamp(min=1)))
    differences[name] = worst
print(json.dumps(differences))
"""


def write(module: Architecture, name: str, folder: Path) -> None:
    """Writes the plain file of a module in double precision, its weights, and what it computes."""
    module = module.double().eval()
    (folder / f"plain_{name}.py").write_text(plain_text(module), encoding="utf-8")
    torch.save(plain_weights(module), folder / f"plain_{name}.pt")
    cases = [_case(module, *case, with_gradients=index == 1) for index, case in enumerate(CASES)]
    torch.save(cases, folder / f"plain_{name}_cases.pt")


def _case(
    module: Architecture, batch: int, length: int, has_lengths: bool, *, with_gradients: bool
) -> tuple[object, ...]:
    fields, by_name = shipped_batch(module, batch, length)
    first = module.program.inputs[0]
    for index, own in enumerate(module.program.inputs):
        if own.length == first.length:
            by_name[own.name] = by_name[first.name]
        if own.vocabulary is not None:
            fields[index] = fields[index] % own.vocabulary
        else:
            feature = own.type.feature
            assert feature is not None
            numbers = torch.arange(1, 1 + (feature.constant or 1)) * fields[index][..., None]
            fields[index] = numbers.double().sin()
    lengths: Tensor | Mapping[str, Tensor] | None = None
    if has_lengths:
        lengths = by_name if len(fields) > 1 else by_name[module.program.fields[0]]
    torch.manual_seed(0)
    result = module(*fields, lengths=lengths)
    gradients: dict[str, Tensor] = {}
    second: dict[str, Tensor] = {}
    extras: dict[str, Tensor] = {}
    if module.sample_depth is not None:
        extras = {"ponder": module.ponder.detach(), "sample_depth": module.sample_depth}
    if with_gradients:
        names, weights = zip(*module.named_parameters(), strict=True)
        loss = result.square().sum() + module.ponder
        first_order = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
        gradients = {key: value for key, value in zip(names, first_order, strict=True) if value is not None}
        penalty = torch.stack([value.square().sum() for value in gradients.values()]).sum()
        second_order = torch.autograd.grad(penalty, weights, materialize_grads=True)
        second = dict(zip(names, second_order, strict=True))
    detached = {key: value.detach() for key, value in gradients.items()}
    return fields, lengths, result.detach(), extras, detached, second


def differences(folder: Path, names: list[str]) -> dict[str, dict[str, float]]:
    """Returns the largest relative differences of each model, computed where archlang cannot be imported: `first` of
    its results and gradients, `second` of the gradients of a penalty on its gradients. The files attend by torch's
    plain form."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), *names], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    values: dict[str, dict[str, float]] = json.loads(done.stdout)
    return values


def lint(folder: Path) -> str:
    """Returns what ruff reports of the files of a folder; "" if it accepts them."""
    rules = "E4,E7,E9,F,E501,W,I"
    options = ["--isolated", "--quiet", "--line-length=120", "--target-version=py311", f"--select={rules}"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, str(folder)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr
