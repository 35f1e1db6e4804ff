"""PonderNet against the arrays of the program of labml.ai."""

from math import log
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

import archlang
from tests.goldens.golden import Golden, close, gradients_close

TOLERANCE = 2e-5
WEIGHTS = {
    "gru_step.linear": "gru.{}_ih",
    "gru_step.linear_2": "gru.{}_hh",
    "linear": "lambda.{}",
    "linear_2": "out.{}",
}


@pytest.mark.goldens("modern", "pondernet")
@pytest.mark.parametrize("divergence", ["code", "equation"])
def test_pondernet(golden: Golden, folder: Path, divergence: str) -> None:
    steps, prior = golden.number("cfg.max_steps"), float(golden.arrays["cfg.lambda_p"])
    width = golden["p.out.w"].shape[1]
    x, targets = golden["in.x"], golden["in.y"]
    path = folder / "program.arch"
    path.write_text(
        f"use archlang.models.pondernet\nmodel m(x: seq[n, {x.shape[-1]}]) -> logits[1] {{\n"
        f"    return pondering[1, {width}, {steps}, {prior!r}, {divergence}](first(x))\n}}\n",
        encoding="utf-8",
    )
    leaves = {name: golden[f"p.{name}"].requires_grad_() for name in golden.names("p.")}
    weights: dict[str, Tensor] = {}
    for name, source in WEIGHTS.items():
        weights |= {f"pondering.{name}.weight": leaves[source.format("w")]}
        weights |= {f"pondering.{name}.bias": leaves[source.format("b")]}
    module = archlang.load(path).to(golden.dtype).train()
    assert {name: value.shape for name, value in weights.items()} == {
        name: value.shape for name, value in module.named_parameters()
    }
    with module.keeping_steps() as step_results:
        functional_call(module, weights, (x[:, None],))
    predictions, p = torch.stack(step_results.values)[..., 0], torch.stack(step_results.weights)
    close(golden, predictions, "out.y_hat", TOLERANCE)
    close(golden, p, "out.p", TOLERANCE)
    losses = F.binary_cross_entropy_with_logits(predictions, targets.expand_as(predictions), reduction="none")
    reconstruction = (p * losses).sum(0).mean()
    close(golden, reconstruction, "out.rec", TOLERANCE)
    kl = module.losses["halting"]
    if divergence == "equation":
        close(golden, kl, "out.kl_paper", TOLERANCE)
        close(golden, kl + log(1 - (1 - prior) ** steps), "out.kl_paper_normalised", TOLERANCE)
        return
    close(golden, kl, "out.reg", TOLERANCE)
    loss = reconstruction + float(golden.arrays["cfg.beta"]) * kl
    close(golden, loss, "obj.value", TOLERANCE)
    gradients_close(golden, loss, leaves)
