"""`archlang train` against a bare loop over the same steps: `python -m benchmarks.training [--set train.steps=300]`.

`train` generates data, evaluates, writes records and checkpoints, and measures every split at the end. The bare loop
has its batches ready and runs the step only: forward, loss, backward, clipping and AdamW."""

import argparse
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F

from archlang.compile import build
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.tasks.kit.make_task import make_task
from archlang.train.data import DeviceSplit, Sampler
from archlang.train.runs import training
from archlang.train.settings import Settings
from benchmarks.results_text import machine

RECIPE = Path(__file__).parent.parent / "recipes" / "ndr.arch"
_CPU = torch.device("cpu")


def full(plan: Plan) -> float:
    """Returns the seconds of `train`, from a plan to a measured run."""
    with TemporaryDirectory() as folder:
        start = time.perf_counter()
        training.train(plan, Path(folder) / "run", device="cpu")
        return time.perf_counter() - start


def bare(plan: Plan) -> float:
    """Returns the seconds of a bare loop over the batches of `train`."""
    settings = Settings(plan.train.statics)
    task = make_task(plan.task.name, plan.task.python, plan.task.statics)
    split = task.generate("train", seed=0)
    data = DeviceSplit(split, _CPU)
    sampler = Sampler(np.asarray(data.lengths), settings.batch, plan.seed, drop_last=True)
    batches = []
    for _ in range(settings.total_steps(len(sampler))):
        batch = data.batch(sampler.next())
        batches.append((*batch.fields.values(), next(iter(batch.lengths.values())), batch.targets))
    torch.manual_seed(plan.seed)
    module = build(plan.graph).train()
    weight_decay = plan.train.statics["weight_decay"]
    assert isinstance(weight_decay, float)
    optimizer = torch.optim.AdamW(module.parameters(), lr=settings.lr, weight_decay=weight_decay)
    start = time.perf_counter()
    for step, (tokens, lengths, targets) in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate(step, len(batches))
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(module(tokens, lengths=lengths), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(module.parameters(), settings.clip)
        optimizer.step()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training")
    parser.add_argument("file", nargs="?", type=Path, default=RECIPE)
    parser.add_argument("--set", action="append", default=[], help="a static of the recipe; may be repeated")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    plan = plan_recipe(options.file, sets=dict(setting.split("=", 1) for setting in options.set))
    print(machine())
    ratios = []
    for turn in range(options.rounds):
        first, second = (full, bare) if turn % 2 == 0 else (bare, full)
        times = {first: first(plan), second: second(plan)}
        ratios.append(times[full] / times[bare])
        print(f"train {times[full]:.1f} s, bare loop {times[bare]:.1f} s, ratio {ratios[-1]:.3f}", flush=True)
    print(f"{plan.recipe}: {statistics.median(ratios):.3f} of a bare loop")


if __name__ == "__main__":
    main()
