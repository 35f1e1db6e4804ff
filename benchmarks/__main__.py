"""Runs the benchmarks: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from benchmarks import GROUPS
from benchmarks.measure import Case, Group, Result, Setting, measure
from benchmarks.results_text import Results, as_json, machine, markdown


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no CUDA device here: leave --device out")
    torch.set_num_threads(given.threads)
    chosen = list(_chosen(Setting(torch.device(given.device), given.tiny), given.filters))
    if not chosen:
        sys.exit(f"no case on {given.device} has such a name: --list has them all")
    if given.list:
        for group, case in chosen:
            print(f"{group.name}: {case.name}, beside {case.beside} ({case.unit.name})")
        return
    print(machine())
    results: dict[Group, list[Result]] = {}
    for group, case in chosen:
        result = measure(case, given.seconds, given.rounds)
        results.setdefault(group, []).append(result)
        _write(results, given.markdown, given.json)  # after each case: what was measured stays, whatever comes
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
        description="archlang beside the same by hand, beside torch's own, or beside what it cannot do without",
        epilog="groups: " + ", ".join(group.name for group in GROUPS),
    )
    parser.add_argument("filters", nargs="*", help="only groups and cases whose names hold one of these")
    parser.add_argument("--list", action="store_true", help="print the names, and measure nothing")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each case (5)")
    parser.add_argument("--rounds", type=int, default=5, help="at least so many for each case (5)")
    parser.add_argument("--threads", type=int, default=2, help="of torch (2)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tiny", action="store_true", help="sizes that say nothing, to see that all runs")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--markdown", type=Path, help="write the tables there")
    return parser


def _chosen(setting: Setting, filters: Sequence[str]) -> Iterator[tuple[Group, Case]]:
    for group in GROUPS:
        if setting.device.type not in group.devices:
            continue
        for case in group.cases(setting):
            name = f"{group.name}: {case.name}".lower()
            if not filters or any(one.lower() in name for one in filters):
                yield group, case


if __name__ == "__main__":
    main()
