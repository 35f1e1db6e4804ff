"""CPU seconds of `archlang train` until its first line, and until its first step begins and ends:
`python -m benchmarks.first_step [FILE RECIPE]`.

Once with an empty cache, in which the data of the task and the tables of the parser are made, then with that cache.
Each command is a process of its own, which ends after its first step."""

import argparse
import json
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import processes

NDR = Path("recipes/papers/ndr/table1.arch")
MOMENTS = ("first line", "first step begins", "first step ends")
_COMMAND = """
import json, os, sys, time
from archlang.cli import console, train
from archlang.cli.main import main

seconds, ask_for = [], train.ask_for

def note_line(*arguments):
    ask_for(*arguments)
    show = console.out.print

    def shown(*arguments, **options):
        show(*arguments, **options)
        seconds.append(time.process_time())
        console.out.print = show
        note_step()

    console.out.print = shown

def note_step():
    from archlang.train import trainer
    advance = trainer._advance

    def advanced(trainers, step, number):
        seconds.append(time.process_time())
        advance(trainers, step, number)
        seconds.append(time.process_time())
        print(json.dumps(seconds), flush=True)
        os._exit(0)

    trainer._advance = advanced

train.ask_for = note_line
sys.argv[0] = "archlang"
main()
"""


def measure(file: Path, recipe: str, cache: Path) -> list[float]:
    """Returns the CPU seconds until each of `MOMENTS`."""
    with TemporaryDirectory() as folder:
        command = ("train", str(file), recipe, "--device", "cpu", "--out", f"{folder}/run")
        printed = processes.run("-c", _COMMAND, *command, ARCHLANG_CACHE=str(cache))
    return [float(number) for number in json.loads(printed.splitlines()[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_step", description="Measure the first step.")
    parser.add_argument("file", nargs="?", type=Path, default=NDR, help=f"a program ({NDR})")
    parser.add_argument("recipe", nargs="?", default="ndr", help="its recipe (ndr)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of processes (5)")
    options = parser.parse_args()
    rows: dict[str, list[list[float]]] = {"empty": [], "filled": []}
    for _ in range(options.rounds):
        with TemporaryDirectory() as cache:
            for name in rows:
                rows[name].append(measure(options.file, options.recipe, Path(cache)))
    print(f"| cache | {' | '.join(MOMENTS)} |\n| --- |{' ---: |' * len(MOMENTS)}")
    for name, rounds in rows.items():
        cells = [f"{statistics.median(moment):.2f}" for moment in zip(*rounds, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
