"""The mixers of flash-linear-attention, Mamba-2 and RWKV-7: their pages, and the kernel in chunks.

Arrays have the axes batch, head, position, feature (BHTD), or with `cfg.layout` BTHD batch, position, head, feature."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from archlang.backend.runtime import linear_recurrence as kernel
from archlang.backend.runtime.linear_recurrence import linear_recurrence
from tests.goldens.golden import Golden, close, gradients_close, loaded

SUM = 1e-4
"""the tolerance of a sum over all outputs, whose terms nearly cancel"""
PAGES = {
    "linear_attention": "q: seq[n, d], k: seq[n, d], v: seq[n, e], log_decay: seq[n, g]",
    "delta_rule": "q: seq[n, d], k: seq[n, d], v: seq[n, e], beta: seq[n, heads]",
    "gated_delta_rule": "q: seq[n, d], k: seq[n, d], v: seq[n, e], beta: seq[n, heads], log_decay: seq[n, heads]",
    "linear_recurrence": ("q: seq[n, d], k: seq[n, d], v: seq[n, e], log_decay: seq[n, d], a: seq[n, d], b: seq[n, d]"),
}
Result = tuple[Tensor, Tensor]
Compute = Callable[..., Result]


def by_position(block: str, *inputs: Tensor, state: Tensor) -> Result:
    """Runs a page. Inputs are [b h n _], the state is [b h k v]."""
    (_, heads, _, k), v = inputs[0].shape, inputs[2].shape[-1]
    types = PAGES[block].replace("seq[n, g]", f"seq[n, {heads * inputs[-1].shape[-1]}]")
    for name, size in (("d", heads * k), ("e", heads * v), ("heads", heads)):
        types = types.replace(f", {name}]", f", {size}]")
    fields, merged = types.replace(": ", " ").split(), [x.transpose(1, 2).flatten(2) for x in (*inputs, state)]
    names = ", ".join([*fields[::3], "state"])
    results = []
    for readout, result in (("outputs", f"seq[n, {heads * v}]"), ("state", f"seq[{k}, {heads * v}]")):
        module = loaded(
            "use archlang.models.linear_recurrences\n"
            f"model m({types}, state: seq[{k}, {heads * v}]) -> {result} {{\n"
            f"    return {block}_by_position[{heads}, readout = {readout}]({names})\n}}\n"
        ).to(merged[0].dtype)
        results.append(module(*merged).unflatten(-1, (heads, v)).transpose(1, 2))
    return results[0], results[1]


@pytest.fixture(params=["page", "chunks", "one chunk"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compute:
    """Computes a recurrence by its page, or by the kernel with chunks of three positions."""
    if request.param == "chunks":
        monkeypatch.setattr(kernel, "CHUNK", 3)
        monkeypatch.setattr(kernel, "LARGEST_EXPONENT", 0.5)

    def compute(block: str, *inputs: Tensor, state: Tensor) -> Result:
        if request.param == "page":
            return by_position(block, *inputs, state=state)
        q, k, v, *others = inputs
        if block == "delta_rule":
            return linear_recurrence(q, k, others[0] * v, None, k, -others[0], state=state)
        if block == "gated_delta_rule":
            beta, g = others
            return linear_recurrence(q, k, beta * v, g, k, -beta * g.exp(), state=state)
        return linear_recurrence(q, k, v, *others, state=state)

    return compute


def heads_first(golden: Golden, x: Tensor) -> Tensor:
    """Returns [b h n _]; a number for each head has one feature."""
    if str(golden.arrays["cfg.layout"]).startswith("BT"):
        x = x.transpose(1, 2)
    return x if x.dim() == 4 else x[..., None]


def compare(golden: Golden, results: dict[str, Tensor]) -> None:
    """Compares results with `out.*`, and the gradients of the objective with `grad.*`."""
    for name, result in results.items():
        close(golden, result, f"out.{name}")
    terms = [(golden[f"obj.r_{name}"] * result).sum() for name, result in results.items() if f"obj.r_{name}" in golden]
    objective = torch.stack(terms).sum()
    close(golden, objective, "obj.value", SUM)
    gradients_close(golden, objective)


MIXERS = {
    "mixer_delta_rule": ("delta_rule", "q k v beta"),
    "mixer_gated_delta_rule": ("gated_delta_rule", "q k v beta g"),
    "mixer_gla": ("linear_attention", "q k v gk"),
    "mixer_simple_gla": ("linear_attention", "q k v g"),
    "mixer_rwkv7_core": ("linear_recurrence", "r k v w a b"),
}


@pytest.mark.goldens("modern", *MIXERS)
def test_a_mixer_with_a_given_state(golden: Golden, run: Compute) -> None:
    block, names = MIXERS[golden.name]
    q, *others = (heads_first(golden, golden[f"in.{name}"]) for name in names.split())
    o, last = run(block, q * float(golden.arrays["cfg.scale"]), *others, state=golden["in.S0"])
    if str(golden.arrays["cfg.layout"]).startswith("BT"):
        o = o.transpose(1, 2)
    compare(golden, {"o": o, "S": last})


@pytest.mark.goldens("modern", "mixer_retention")
def test_retention(golden: Golden, run: Compute) -> None:
    q, k, v = (golden[f"in.{name}"] for name in "qkv")
    log_decay = golden["cfg.decay"].log()[:, None, None].expand(*q.shape[:3], 1)
    state = q.new_zeros(*q.shape[:2], k.shape[-1], v.shape[-1])
    o, last = run("linear_attention", q * float(golden.arrays["cfg.scale"]), k, v, log_decay, state=state)
    close(golden, last, "out.S_recurrent")
    compare(golden, {"o": o})


@pytest.mark.goldens("modern", "mixer_mamba2_ssd")
def test_mamba_2(golden: Golden, run: Compute) -> None:
    x, dt, a, b, c, state = (golden[f"in.{name}"] for name in ("x", "dt", "A", "B", "C", "S0"))
    q, k, v, log_decay = (heads_first(golden, value) for value in (c, b, dt[..., None] * x, dt * a))
    o, last = run("linear_attention", q, k, v, log_decay, state=state[:, 0].transpose(-1, -2))
    compare(golden, {"y": o.transpose(1, 2), "S": last.transpose(-1, -2)})
