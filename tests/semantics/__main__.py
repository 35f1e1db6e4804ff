"""Searches for programs that lack a property: python -m tests.semantics --programs 2000 --seed 7 --jobs 2."""

import argparse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

import torch
from rich.console import Console
from rich.progress import track

from tests.semantics.failures import Failure, failures, is_refused
from tests.semantics.kinds import KINDS
from tests.semantics.properties import PROPERTIES
from tests.semantics.shrinker import shrink

_CHUNK = 10


@dataclass
class SearchResult:
    """How many programs were checked and rejected, and the failures of the others with their seeds and texts."""

    programs: int = 0
    refused: int = 0
    failures: list[tuple[int, str, Failure]] = field(default_factory=list)


def search(first: int, count: int, names: tuple[str, ...], kind: str) -> SearchResult:
    """Checks the programs of `count` seeds from `first` on."""
    torch.set_num_threads(1)
    result = SearchResult()
    for seed in range(first, first + count):
        text = KINDS[kind](seed)
        result.programs += 1
        failed = failures(text, seed, names)
        result.failures += [(seed, text, failure) for failure in failed]
        if not failed and is_refused(text):
            result.refused += 1
    return result


def searches(arguments: argparse.Namespace) -> Iterator[SearchResult]:
    """Yields the results of all chunks of seeds, in order of completion."""
    names = tuple(arguments.property or PROPERTIES)
    starts = range(arguments.seed, arguments.seed + arguments.programs, _CHUNK)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        jobs = [pool.submit(search, start, _CHUNK, names, arguments.kind) for start in starts]
        for job in as_completed(jobs):
            yield job.result()


def main() -> None:
    """Counts failures by property, and prints the smallest program of each kind of failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.semantics", description=__doc__)
    parser.add_argument(
        "--programs", type=int, default=300, help="the number of programs, rounded up to a multiple of 10"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="the number of processes")
    parser.add_argument("--property", nargs="+", choices=PROPERTIES, help="the properties to check")
    parser.add_argument("--kind", choices=KINDS, default="typed", help="the kind of programs")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    total, kinds = SearchResult(), dict[tuple[str, str, str], tuple[int, str, Failure]]()
    counts: Counter[tuple[str, str, str]] = Counter()
    for result in track(searches(arguments), "programs", total=-(-arguments.programs // _CHUNK)):
        total.programs += result.programs
        total.refused += result.refused
        for seed, text, failure in result.failures:
            counts[failure.signature] += 1
            kinds.setdefault(failure.signature, (seed, text, failure))
    console.print(f"{total.programs} programs, {total.refused} refused")
    for name in ("check", *(arguments.property or PROPERTIES)):
        console.print(f"{name:<12} {sum(count for key, count in counts.items() if key[0] == name)} failures")
    torch.set_num_threads(1)
    for signature, (seed, text, failure) in kinds.items():
        console.print(f"\n{counts[signature]} times, first with seed {seed}: {failure}", markup=False)
        console.print(shrink(text, seed, failure), markup=False)


if __name__ == "__main__":
    main()
