"""Runs the benchmarks: `python -m benchmarks [FILTER …] [--seconds 5] [--threads 2] [--json FILE] [--markdown FILE]`"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

from benchmarks import CASES
from benchmarks.measure import machine, markdown, measure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="archlang beside the same by hand")
    parser.add_argument("filters", nargs="*", help="only cases whose names hold one of these")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each case")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(machine())
    results = []
    for group in CASES:
        for case in group():
            if given.filters and not any(one.lower() in case.name.lower() for one in given.filters):
                continue
            result = measure(case, given.seconds)
            results.append(result)
            print(f"{case.name}: {result.ratio:.3f} of {case.beside}", flush=True)
    if not results:
        sys.exit("no case has such a name")
    table = markdown(results)
    print(f"\n{table}", end="")
    if given.markdown:
        given.markdown.write_text(f"{machine()}\n\n{table}", encoding="utf-8")
    if given.json:
        told = {"machine": machine(), "results": [result.described() for result in results]}
        given.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
