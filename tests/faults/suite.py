"""The whole suite: its trials, judged by several benches at a time."""

import functools
import json
import math
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.faults import hostile_folders, kills, memory, system_calls
from tests.faults.judging import FAULT, NOT_RUN, Bench, Trial, Verdict
from tests.faults.workshop import workshop

PARTS: Mapping[str, Callable[[Bench], Iterator[Trial]]] = {
    "System calls": system_calls.trials,
    "Kills, neighbours and clocks": kills.trials,
    "Memory": memory.trials,
    "Folders from strangers, and damage": hostile_folders.trials,
}


@dataclass(frozen=True)
class Result:
    """A judged trial, and the commit of archlang."""

    part: str
    group: str
    name: str
    outcome: str
    reason: str
    commit: str

    @staticmethod
    def of(part: str, trial: Trial, verdict: Verdict) -> "Result":
        return Result(part, trial.group, trial.name, verdict.outcome, verdict.reason, _commit())

    @property
    def key(self) -> tuple[str, str, str]:
        return self.part, self.group, self.name


@functools.cache
def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent)
    return process.stdout.strip()


def judge(trial: Trial, bench: Bench) -> Verdict:
    """Judges a trial. An error of the suite itself counts as a fault."""
    try:
        return trial.judge(bench)
    except Exception as error:
        return Verdict(FAULT, f"the suite fails: {error!r}")


def run_suite(
    parts: Sequence[str],
    jobs: int,
    minutes: float = math.inf,
    *,
    is_wanted: Callable[[str, Trial], bool] = lambda part, trial: True,
) -> Iterator[Result]:
    """Yields the results of the trials of some parts, as they end.

    The order is random, with a fixed seed: what is judged when `minutes` are over is a sample of all trials."""
    limit = time.monotonic() + 60 * minutes
    local = threading.local()
    with ExitStack() as shops:
        benches = [Bench.of(shops.enter_context(workshop())) for _ in range(jobs)]
        free = list(benches)

        def take_bench() -> None:
            local.bench = free.pop()

        def result_of(part: str, trial: Trial) -> Result:
            return Result.of(part, trial, judge(trial, local.bench))

        pool = shops.enter_context(ThreadPoolExecutor(jobs, initializer=take_bench))
        # All of them first: the first bench counts calls for them, and takes one command at a time.
        wanted = [(part, trial) for part in parts for trial in PARTS[part](benches[0]) if is_wanted(part, trial)]
        random.Random(0).shuffle(wanted)
        waiting = {pool.submit(result_of, part, trial): (part, trial) for part, trial in wanted if minutes}
        if not minutes:
            yield from (Result.of(part, trial, Verdict(NOT_RUN)) for part, trial in wanted)
        for ended in as_completed(waiting):
            yield ended.result()
            if time.monotonic() > limit:
                pool.shutdown(wait=True, cancel_futures=True)
                break
        for future, (part, trial) in waiting.items():
            if future.cancelled():
                yield Result.of(part, trial, Verdict(NOT_RUN))


def read_results(file: Path) -> list[Result]:
    """Returns the results in a file of JSON lines; a later result of a trial replaces an earlier one."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    results = [Result(**json.loads(line)) for line in lines]
    return list({result.key: result for result in results}.values())


def append_result(file: Path, result: Result) -> None:
    """Appends a result to a file of JSON lines."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")


def count_outcomes(results: Iterable[Result]) -> dict[tuple[str, str], Counter[str]]:
    """Returns the number of results of each outcome, by part and class."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for result in results:
        counts.setdefault((result.part, result.group), Counter())[result.outcome] += 1
    return counts
