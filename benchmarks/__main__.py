"""Runs the benchmarks: `python -m benchmarks --help`."""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from benchmarks import GROUPS
from benchmarks import measure as measurement
from benchmarks.measure import Case, Group, Result, Setting, measure
from benchmarks.results_text import Results, as_json, machine, markdown


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device is available: omit --device")
    torch.set_num_threads(options.threads)
    if options.process_time:
        measurement.clock = time.process_time
    cases = list(_matching_cases(Setting(torch.device(options.device), options.tiny), options.filters))
    if not cases:
        sys.exit(f"no case on {options.device} matches: --list prints all names")
    if options.list:
        for group, case in cases:
            print(f"{group.name}: {case.name}, beside {case.beside} ({case.unit.name})")
        return
    print(machine())
    results: dict[Group, list[Result]] = {}
    for group, case in cases:
        result = measure(case, options.seconds, options.rounds, graphs=options.graphs)
        results.setdefault(group, []).append(result)
        _write(results, options.markdown, options.json)  # after each case, so that an interrupted run keeps its results
        print(f"{case.name}: {result.left_out or f'{result.ratio:.3f} of {case.beside}'}", flush=True)
    print(f"\n{markdown(results)}", end="")


def _write(results: Results, markdown_file: Path | None, json_file: Path | None) -> None:
    if markdown_file:
        markdown_file.write_text(f"{machine()}\n\n{markdown(results)}", encoding="utf-8")
    if json_file:
        json_file.write_text(json.dumps(as_json(results), indent=2) + "\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure archlang against handwritten torch, torch's own operators, or importing torch.",
        epilog="groups: " + ", ".join(group.name for group in GROUPS),
    )
    parser.add_argument("filters", nargs="*", help="run only groups and cases whose names contain one of these words")
    parser.add_argument("--list", action="store_true", help="print the names of all cases and exit")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds for each case (5)")
    parser.add_argument("--rounds", type=int, default=5, help="minimum number of rounds for each case (5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch (2)")
    parser.add_argument("--process-time", action="store_true", help="the time of this process, beside other work")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--graphs", action="store_true", help="on a GPU, run our side of each case as a CUDA graph")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, to test that every case runs")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    return parser


def _matching_cases(setting: Setting, filters: Sequence[str]) -> Iterator[tuple[Group, Case]]:
    for group in GROUPS:
        if setting.device.type not in group.devices:
            continue
        for case in group.cases(setting):
            name = f"{group.name}: {case.name}".lower()
            if not filters or any(word.lower() in name for word in filters):
                yield group, case


if __name__ == "__main__":
    main()
