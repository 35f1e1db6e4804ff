"""Overhead of an engine per point of a table: `python -m benchmarks.points [--points 1000]`."""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from archlang.plan.from_file import plan_table
from archlang.train.runs.engines import make_engine
from archlang.train.runs.points import PointResult
from archlang.train.runs.table import TableRuns
from benchmarks.results_text import machine

PROGRAM = """
model tiny[d = 8](x: tokens[n]) -> logits[classes] {{
    return embed[d](x) |> mean |> linear[classes]
}}

recipe tiny {{
    task  ctl[
        symbols = 3, functions = 2, new_functions = 0, reserved = 0, balanced = true,
        train = 1..3, valid = 4..4, test = 5..6, train_size = 30, iid_size = 3, valid_size = 20, test_size = 40]
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 4]
    vary  seed in 1..{points}
}}

table tiny {{
    row    "Tiny" tiny
    column "Longer" test.accuracy
}}
"""


@dataclass(frozen=True)
class Cost:
    """Times of all points together, in seconds."""

    points: int
    workers: int
    elapsed: float
    """wall-clock time from the first point to the last"""
    training: float
    """time inside the runs: training, evaluation and writing their folders"""

    @property
    def overhead(self) -> float:
        """The workers' time per point outside of runs, including their own start, in seconds."""
        return (self.elapsed * self.workers - self.training) / self.points


def cost(points: int, workers: int, folder: Path, engine: str = "local") -> Cost:
    """Runs `points` points of a tiny recipe and returns their times."""
    file = folder / "tiny.arch"
    file.write_text(PROGRAM.format(points=points), encoding="utf-8")
    runs = TableRuns(plan_table(file), folder / "runs", device="cpu")
    start = time.perf_counter()
    done: list[PointResult] = list(make_engine(engine, workers).run(runs.points(), lambda: False))
    elapsed = time.perf_counter() - start
    failed = [point.error for point in done if point.error]
    if failed:
        raise SystemExit(failed[0])
    return Cost(len(done), workers, elapsed, sum(point.seconds for point in done))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.points", description=__doc__)
    parser.add_argument("--points", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engine", default="local")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        total = cost(options.points, options.workers, Path(folder), options.engine)
    print(machine())
    print(
        f"{total.points} points, {total.workers} workers ({options.engine}): {total.elapsed:.1f} s, "
        f"{total.training:.1f} s inside the runs, {1000 * total.overhead:.1f} ms overhead each"
    )


if __name__ == "__main__":
    main()
