"""Training steps of NDR as `archlang train` takes them, on a GPU eager and as CUDA graphs, against a plain loop over a
handwritten module: `python -m benchmarks.steps [--device cuda]`.

Both sides take the same batches. Times steps only, not evaluations, checkpoints or data. Rounds of all forms
alternate, and dropout is off."""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.tasks.kit import cache
from archlang.tasks.kit.make_task import make_task
from archlang.train.data import Batch, DeviceSplit, Sampler
from archlang.train.settings import Settings
from benchmarks import ndr
from benchmarks.handwritten_ndr import Ndr
from benchmarks.results_text import machine
from benchmarks.together import NEVER, alone

_PAPERS = Path(__file__).parent.parent / "recipes" / "papers" / "ndr"


@dataclass(frozen=True)
class Model:
    """A recipe, and the sizes of its model written by hand."""

    file: Path
    recipe: str
    size: ndr.Size
    sets: Mapping[str, str] = field(default_factory=dict)


MODELS: Mapping[str, Model] = {
    "NDR, table lookup": Model(_PAPERS / "table1.arch", "ndr", ndr.CTL),
    # Sixteen batches, whose shapes are those of each epoch: more shapes would be captured while steps are timed.
    "NDR, ListOps": Model(_PAPERS / "listops.arch", "ndr", ndr.LISTOPS, {"task.train_size": "8192"}),
}
# The handwritten module has none.
_NO_DROPOUT = {"model.dropout": "0.0", "model.key_dropout": "0.0", "model.column_dropout": "0.0"}
_TINY = {"model.d": "16", "model.heads": "2", "model.ff": "24", "model.steps": "2", "train.batch": "8"}


def _plan(model: Model, tiny: bool) -> Plan:
    return plan_recipe(
        model.file, model.recipe, sets={**NEVER, **_NO_DROPOUT, **model.sets, "seed": "1", **(_TINY if tiny else {})}
    )


def by_hand(plan: Plan, device: str, precision: str, warm: int, timed: int) -> float:
    """Returns the seconds per step of a plain loop: forward, loss, backward, clipping and AdamW."""
    place, settings = torch.device(device), Settings(plan.train.statics)
    batches = _batches(plan, settings, place, warm + timed)
    sizes = {name: int(str(plan.settings[f"model.{name}"])) for name in ("d", "heads", "ff", "steps")}
    torch.manual_seed(plan.seed)
    module = Ndr(plan.gives["vocab"], plan.gives["classes"], **sizes).to(place).train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=settings.lr)
    start = 0.0
    for step, batch in enumerate(batches):
        if step == warm:
            start = _now(place)
        _take_step(module, optimizer, batch, settings.clip, precision)
    return (_now(place) - start) / timed


def _batches(plan: Plan, settings: Settings, device: torch.device, count: int) -> Sequence[Batch]:
    task = make_task(plan.task.name, plan.task.python, plan.task.statics)
    data = DeviceSplit(cache.load(plan.task.name, plan.task.statics, task, "train", 0), device)
    sampler = Sampler(np.asarray(data.lengths), settings.batch, plan.seed, drop_last=True)
    return [data.batch(sampler.next()) for _ in range(count)]


def _take_step(module: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch, clip: float, precision: str) -> None:
    lengths = next(iter(batch.lengths.values()))
    with torch.autocast(lengths.device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        loss = F.cross_entropy(module(*batch.fields.values(), lengths=lengths), batch.targets)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
    optimizer.step()


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=__doc__)
    parser.add_argument("filters", nargs="*", help="run only models whose names contain one of these words")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("32", "bf16"), default="32")
    parser.add_argument("--warm", type=int, default=20, help="steps before timing (20)")
    parser.add_argument("--steps", type=int, default=50, help="steps to time (50)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to test that every form runs")
    options = parser.parse_args(arguments)
    print(machine())
    settings = options.device, options.precision, options.warm, options.steps
    forms: dict[str, Callable[..., float]] = {"eager": partial(alone, eager=True)}
    if options.device == "cuda":
        forms["as CUDA graphs"] = alone
    for name, model in MODELS.items():
        if options.filters and not any(word.lower() in name.lower() for word in options.filters):
            continue
        plan = _plan(model, options.tiny)
        ratios: dict[str, list[float]] = {form: [] for form in forms}
        for _ in range(options.rounds):
            hand = by_hand(plan, *settings)
            for form, measure in forms.items():
                step = measure(plan, *settings)
                ratios[form].append(step / hand)
                print(f"{name}, {form}: {1e3 * step:.2f} ms a step, by hand {1e3 * hand:.2f} ms", flush=True)
        for form, values in ratios.items():
            print(f"{name}, {form}: {statistics.median(values):.3f} of a plain loop by hand", flush=True)


if __name__ == "__main__":
    main()
