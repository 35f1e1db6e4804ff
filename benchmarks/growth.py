"""Growth of a training step of NDR and GUTLB with length, depth and batch size, against handwritten models."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks import dynamic_halt, ndr
from benchmarks.comparison import ModelPair, training_step
from benchmarks.measure import Case, Group, Setting

NDR = ndr.Size(vocab=21, classes=8, d=256, heads=1, ff=512, steps=8, batch=4, length=64)
GUTLB = replace(dynamic_halt.SIZES["GUTLB"], mean=5, d=256, ff=512, batch=4)
# Keys: the field of `Size`, and its name in the table.
Sweeps = Mapping[tuple[str, str], tuple[int, ...]]
NDR_SWEEPS: Sweeps = {
    ("length", "length"): (12, 64, 256, 1024),
    ("steps", "depth"): (2, 8, 32),
    ("batch", "batch"): (1, 4, 16, 64),
}
GUTLB_SWEEPS: Sweeps = {
    ("length", "length"): (20, 100, 400, 1600),
    ("depth", "depth"): (2, 5, 20),
    ("batch", "batch"): (1, 4, 16, 64),
}
_TINY = {"d": 16, "ff": 24, "batch": 2, "length": 7}


def _without_halting(size: dynamic_halt.Size, setting: Setting) -> ModelPair:
    """Returns a pair that never halts, so that depth is the number of steps."""
    return dynamic_halt.model_pair(replace(size, mean=size.depth), setting)


MODELS: tuple[tuple[str, Any, Sweeps, Callable[[Any, Setting], ModelPair]], ...] = (  # Any: a size of either kind
    ("NDR", NDR, NDR_SWEEPS, ndr.model_pair),
    ("GUTLB", GUTLB, GUTLB_SWEEPS, _without_halting),
)


def _cases(setting: Setting) -> Iterator[Case]:
    for model, base, sweeps, trial in MODELS:
        for (field, label), values in sweeps.items():
            smaller = _TINY if setting.tiny else {}
            for value in values[:1] if setting.tiny else values:
                size = replace(base, **{**smaller, field: value})
                build = partial(training_step, partial(trial, size), setting)
                yield Case(f"{model}, {label} {value}", "plain torch, by hand", build)


GROUP = Group(
    "growth",
    "Forward and backward. Sizes that a row does not name: NDR: batch 4, length 64, 8 steps, d 256, ff 512, 1 head; "
    "GUTLB: batch 4, length 100, 5 steps (no sample halts), d 256, ff 512, 8 heads, chunks of 20, 20 slots.",
    _cases,
)
