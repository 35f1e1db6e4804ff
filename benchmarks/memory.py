"""Peak memory of each side in a fresh process, and the tensors that geometric attention saves for backward."""

import argparse
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from archlang.backend.kernels.nearest_match import nearest_match
from archlang.blocks.geometric_attention import GeometricAttention
from benchmarks import dynamic_halt, ndr, pages, panm, processes, seq2seq
from benchmarks.comparison import ModelPairs, training_step
from benchmarks.handwritten_ndr import GeometricAttention as ByHand
from benchmarks.handwritten_seq2seq import CrossAttention
from benchmarks.measure import MATRICES, MIB, Case, Group, Setting, Sides

MODELS: ModelPairs = {**ndr.MODEL_PAIRS, **dynamic_halt.MODEL_PAIRS, **seq2seq.MODEL_PAIRS, **panm.MODEL_PAIRS}
LENGTHS = (256, 512, 1024, 4096)
HEADS, WIDTH = 4, 16
# glibc: return freed memory to the system at once, so that the peak counts live tensors only.
_EAGER = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}
_PAGE = 2**-8  # MiB


def above(step: Callable[[], object]) -> float:
    """Returns the peak memory of a step in MiB, above the memory in use before it."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    _reset_peak()
    before_step = _peak()
    step()
    return max(_peak() - before_step, _PAGE)


def _reset_peak() -> None:
    """Resets the peak on Linux. Elsewhere the peak so far is the baseline."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak() -> float:
    """Returns the peak memory of this process in MiB; on Linux without the code of libraries that it has read."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        sizes = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
        peak, code = (int(sizes[name].split()[0]) for name in ("VmHWM", "RssFile"))
        return (peak - code) / 2**10
    except (OSError, KeyError):
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


class _Sorted(GeometricAttention):
    """Geometric attention by the form that sorts keys by distance."""

    def forward(self, q: Tensor, kv: Tensor, **_: Any) -> Tensor:  # Any: masks and products
        b, n, d = q.shape
        query, key, value = (
            projection(q).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        )
        left, right = self.direction(q).transpose(1, 2)[..., None].chunk(2, dim=1)
        place = torch.arange(n, device=q.device)
        ahead = place > place[:, None]
        logits = self.content_scale * ((query + self.query_bias[:, None]) @ key.transpose(-1, -2))
        logits = logits + self.direction_scale * torch.where(ahead, right, left) + self.score_bias
        weights = nearest_match(logits.masked_fill(place == place[:, None], -torch.inf))
        y: Tensor = self.output((weights @ value).transpose(1, 2).reshape(b, n, d))
        return y


BY_HAND, SORTED = "the form of NDR's program, by hand", "the form that sorts"
SOFTMAX = "softmax attention, written plainly"
FORMS = (BY_HAND, SORTED, SOFTMAX)


def _attentions(form: str, n: int, setting: Setting) -> Sides:
    """Returns forward passes of geometric attention: the block's, and another form's."""
    d = HEADS * WIDTH
    statics = {
        "heads": HEADS, "normalised": False, "key_dropout": 0.0, "output_dropout": 0.0, "head_dim": 0, "causal": False,
        "offset": 0, "d": d, "e": d,
    }  # fmt: skip
    ours = GeometricAttention(**statics).to(setting.device)  # type: ignore[arg-type]  # values of several kinds
    x = torch.randn(1, n, d, device=setting.device, requires_grad=True)
    if form == BY_HAND:
        hand = ByHand(d, HEADS).to(setting.device)
        return Sides(lambda: ours(x, x), lambda: hand(x, None))
    if form == SOFTMAX:
        softmax = CrossAttention(d, HEADS, 0.0).to(setting.device)
        return Sides(lambda: ours(x, x), lambda: softmax(x, x, None))
    by_sorting = _Sorted(**statics).to(setting.device)  # type: ignore[arg-type]  # as above
    return Sides(lambda: ours(x, x), lambda: by_sorting(x, x))


def _forward_run_backwardward(form: str, n: int, setting: Setting) -> Sides:
    forward = _attentions(form, 7 if setting.tiny else n, setting)
    return Sides(*(partial(_run_backward, side) for side in forward))


def _run_backward(forward: Callable[[], Tensor]) -> None:
    forward().sum().backward()  # type: ignore[no-untyped-call]


def matrix(n: int) -> float:
    """Returns the size in MiB of the score matrices of all heads for one sequence."""
    return 4 * HEADS * n**2 / 2**20


def saved_matrices(forward: Callable[[], Tensor], n: int) -> float:
    """Returns the memory that a forward pass saves for backward, in score matrices of all heads. Counts tensors that
    are at least as large as one head's matrix."""
    saved: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().nbytes() >= 4 * n**2:
            saved[tensor.untyped_storage().data_ptr()] = tensor  # a reference, so that the address stays unique
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = forward()
    total = sum(tensor.untyped_storage().nbytes() for tensor in saved.values())
    del result
    return total / 2**20 / matrix(n)


# The steps that a fresh process can run, by name.
STEPS: Mapping[str, Callable[[Setting], Sides]] = {
    **{name: partial(training_step, build) for name, build in MODELS.items()},
    **pages.steps(),
    **{f"{form}, {n}": partial(_forward_run_backwardward, form, n) for form in FORMS for n in LENGTHS},
}


def peak_of_step(name: str, side: str, setting: Setting) -> float:
    """Returns the peak memory of a step of a side in MiB, above what the process uses before it."""
    # The first step sets up torch's own buffers, which are not counted.
    getattr(STEPS[name](replace(setting, tiny=True)), side)()
    return above(getattr(STEPS[name](setting), side))


def _in_process(name: str, side: str, setting: Setting) -> float:
    if setting.device.type == "cuda":  # torch counts its memory there, whatever the process has had before
        return peak_of_step(name, side, setting)
    tiny = ["--tiny"] if setting.tiny else []
    output = processes.run("-m", "benchmarks.memory", name, side, "--device", setting.device.type, *tiny, **_EAGER)
    return float(output)


def _peaks(name: str, setting: Setting, unit: float = 1.0) -> Sides:
    ours, theirs = (partial(_in_process, name, side, setting) for side in ("ours", "theirs"))
    return Sides(lambda: ours() / unit, lambda: theirs() / unit)


def _counts(form: str, n: int, setting: Setting) -> Sides:
    forward = _attentions(form, n, setting)
    return Sides(*(partial(saved_matrices, side, n) for side in forward))


def _cases(setting: Setting) -> Iterator[Case]:
    few = 1 if setting.tiny else None
    for name in list(MODELS)[:few]:
        yield Case(f"{name}, peak of a training step", "plain torch, by hand", partial(_peaks, name, setting), MIB)
    for name in pages.steps() if pages.is_measured() else ():
        yield Case(f"{name}, peak of a training step", pages.BESIDE, partial(_peaks, name, setting), MIB)
    for n in LENGTHS[:few]:
        for form in FORMS[:few]:
            start = f"geometric attention, N = {n}"
            yield Case(f"{start}, saved for backward", form, partial(_counts, form, n, setting), MATRICES)
            build = partial(_peaks, f"{form}, {n}", setting, matrix(n))
            yield Case(f"{start}, peak of forward and backward", form, build, MATRICES)


GROUP = Group(
    "memory",
    "Peaks above the memory that a process uses before the step, a fresh one on a CPU. A score matrix is that of all "
    "heads: one sequence, 4 heads of width 16.",
    _cases,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("name", choices=STEPS)
    parser.add_argument("side", choices=("ours", "theirs"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    print(peak_of_step(options.name, options.side, Setting(torch.device(options.device), options.tiny)))


if __name__ == "__main__":
    main()
