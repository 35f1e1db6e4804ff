"""A Gated Universal Transformer that removes halted samples from the batch, against one that masks them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import archlang
from archlang.backend import Architecture, halting_loops
from benchmarks.measure import CallOfModule, Case, Group, Setting, Sides

_FILE = Path(archlang.__file__).parent / "blocks" / "models" / "dynamic_halt.arch"
LIMIT, MEAN = 20, 8.0
BATCH, LENGTH = 32, 100
# Scales the halting logits of an untrained model, so that samples halt at different depths.
_CONTRAST = 60.0
_PRECISE = 1e-2


def gut(
    mean: float, d: int = 128, ff: int = 512, batch: int = BATCH, length: int = LENGTH
) -> tuple[Architecture, Tensor]:
    """Returns the ListOps model and a batch whose samples halt after `mean` steps on average. With `mean` at the limit,
    no sample halts."""
    torch.manual_seed(0)
    module = archlang.load(
        _FILE, "gated_universal_transformer", vocab=17, classes=10, d=d, heads=8, ff=ff, depth=LIMIT, dropout=0.0
    ).eval()
    tokens = torch.randint(0, 17, (batch, length))
    spread_depths(module, mean, LIMIT, lambda: module(tokens))
    return module, tokens


def spread_depths(module: Architecture, mean: float, limit: int, run: Callable[[], object]) -> None:
    """Sets the bias of the halting map by bisection, so that the samples of the batch that `run` evaluates halt after
    `mean` steps on average. With `mean` at the limit, no sample halts."""
    (loop,) = halting_loops(module)
    output = loop.block.get_submodule("output")
    weight, bias = output.get_parameter("weight"), output.get_parameter("bias")
    low, high = -80.0, 40.0
    with torch.no_grad():
        if mean >= limit:
            bias.fill_(-1e4)
            return
        weight.mul_(_CONTRAST)
        while high - low > _PRECISE:
            bias.fill_((low + high) / 2)
            run()
            assert module.mean_depth is not None
            low, high = (float(bias), high) if float(module.mean_depth) > mean else (low, float(bias))


def _sides(mean: float, step: Callable[[Architecture, Tensor, bool], None], setting: Setting) -> Sides:
    size = {"d": 16, "ff": 16, "batch": 3, "length": 5} if setting.tiny else {}
    module, tokens = gut(mean, **size)
    module, tokens = module.to(setting.device), tokens.to(setting.device)
    compact, masked = (partial(step, module, tokens, compact) for compact in (True, False))
    return Sides(CallOfModule(compact, module), masked)


def _cases(setting: Setting) -> Iterator[Case]:
    for mean, description in ((MEAN, f"mean depth {MEAN:g} of {LIMIT}"), (float(LIMIT), "no sample halts")):
        for name, step in (("forward and backward", _train), ("forward", _evaluate)):
            build = partial(_sides, mean, step, setting)
            yield Case(f"GUT, {description}, {name}", "the whole batch, masked", build)


def _train(module: Architecture, tokens: Tensor, compact: bool) -> None:
    module.zero_grad(set_to_none=True)
    answers = torch.zeros(len(tokens), dtype=torch.int64, device=tokens.device)
    loss = F.cross_entropy(_run(module, tokens, compact), answers)
    (loss + 0.1 * module.ponder).backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def _evaluate(module: Architecture, tokens: Tensor, compact: bool) -> None:
    _run(module, tokens, compact)


def _run(module: Architecture, tokens: Tensor, compact: bool) -> Tensor:
    for loop in halting_loops(module):
        loop.compact = compact
    result: Tensor = module(tokens)
    return result


GROUP = Group(
    "halting",
    f"Halted samples leave the batch. Batch {BATCH}, length {LENGTH}, d 128, 8 heads, at most {LIMIT} steps; "
    f"the bias of the halting map is set so that samples halt after {MEAN:g} steps on average, or never.",
    _cases,
)
