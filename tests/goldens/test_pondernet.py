"""PonderNet against the arrays of the program of labml.ai."""

from math import log

import pytest
import torch
import torch.nn.functional as F

from tests.goldens.golden import Golden, Program, cell, close, gradients_close, pair


@pytest.mark.goldens("modern", "pondernet")
@pytest.mark.parametrize("divergence", ["code", "equation"])
def test_pondernet(golden: Golden, divergence: str) -> None:
    steps, prior = golden.number("cfg.max_steps"), float(golden.arrays["cfg.lambda_p"])
    width = golden["p.out.w"].shape[1]
    x, targets = golden["in.x"], golden["in.y"]
    text = (
        f"use archlang.models.pondernet\nmodel m(x: seq[n, {x.shape[-1]}]) -> logits[1] {{\n"
        f"    return pondering[1, {width}, {steps}, {prior!r}, {divergence}](first(x))\n}}\n"
    )
    weights = cell("pondering.gru_step", "p.gru.{}")
    weights |= pair("pondering.linear", "p.lambda.{}") | pair("pondering.linear_2", "p.out.{}")
    program = Program(text, golden, weights)
    module = program.module.train()
    with module.keeping_steps() as step_results:
        program(x[:, None])
    predictions, p = torch.stack(step_results.values)[..., 0], torch.stack(step_results.weights)
    close(golden, predictions, "out.y_hat")
    close(golden, p, "out.p")
    losses = F.binary_cross_entropy_with_logits(predictions, targets.expand_as(predictions), reduction="none")
    reconstruction = (p * losses).sum(0).mean()
    close(golden, reconstruction, "out.rec")
    kl = module.losses["halting"]
    if divergence == "equation":
        close(golden, kl, "out.kl_paper")
        close(golden, kl + log(1 - (1 - prior) ** steps), "out.kl_paper_normalised")
        return
    close(golden, kl, "out.reg")
    loss = reconstruction + float(golden.arrays["cfg.beta"]) * kl
    close(golden, loss, "obj.value")
    gradients_close(golden, loss)
