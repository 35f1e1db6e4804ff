"""Trains what waits in recipes/results/queue.md with the cores that other work leaves over, one thread at the lowest
priority: `python -m benchmarks.background --minutes 60`.

A row of the queue is a table of a paper, or a part of it. Its runs are in recipes/results/papers/runs: one that is not
done is kept as it is and resumes, also on another machine; of one that is done settings, results and versions remain,
and a section with its table and picture is added to the page of results, for someone to write what it says.
Ctrl-C and the end of the time stop after a step, with a checkpoint."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from benchmarks.results_text import machine

_ROOT = Path(__file__).parent.parent
_RESULTS = _ROOT / "recipes" / "results"
_KEPT = {"run.json", "results.json", "versions.json"}
_NOT_RESUMED = {"tensorboard", ".lock"}
_MOST_BYTES = 50_000_000  # of all that is kept for resumption
_GRACE = 120  # seconds in which a run that is asked to stop writes its checkpoint


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.background", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="when it stops (60)")
    parser.add_argument("--queue", type=Path, default=_RESULTS / "queue.md", help="the file of the queue")
    parser.add_argument("--runs", type=Path, default=_RESULTS / "papers" / "runs", help="the folder of the runs")
    parser.add_argument("--page", type=Path, default=_RESULTS / "papers.md", help="the page of results")
    options = parser.parse_args(arguments)
    end = time.monotonic() + 60 * options.minutes
    for line in _waiting(options.queue):
        left = end - time.monotonic()
        if left < 60:  # too little to begin a run
            return
        command = line.split("|")[1].strip().strip("`")
        print(command, flush=True)
        start = time.time()
        code = _train(command, options.runs, left)
        changed = [run for run in options.runs.iterdir() if _changed(run) >= start]
        state = _state(changed) if code == 0 else f"stopped with code {code}"
        _write_state(options.queue, line, state)
        print(state, flush=True)
        if state == "done":
            _add_section(command, options.runs, options.page)  # with the cost, of which `_trim` removes the times
        _trim(options.runs)
        if code != 0:
            sys.exit(code)


def _waiting(queue: Path) -> Iterator[str]:
    for line in queue.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `") and line.split("|")[-2].strip() != "done":
            yield line


def _train(command: str, runs: Path, seconds: float) -> int:
    words = [sys.executable, "-m", "archlang", "table", *shlex.split(command), "--device", "cpu", "--workers", "1"]
    words += ["--yes", "--out", str(runs), "--for", f"{int(seconds)}s"]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(["nice", "-n", "19", *words], cwd=_ROOT, env={**os.environ, **threads})
    try:
        return process.wait()
    except KeyboardInterrupt:  # the process has it, too
        return process.wait(_GRACE)


def _add_section(command: str, runs: Path, page: Path) -> None:
    """Adds the table of a row, its command, its picture and the machine to the page of results."""
    picture = page.with_suffix("") / ("_".join(re.findall(r"\w+", command)[2:]) + ".svg")
    picture.parent.mkdir(exist_ok=True)
    shown = ["table", *shlex.split(command), "--no-run", "--out", str(runs)]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.md"
        for file in (table, picture):
            subprocess.run([sys.executable, "-m", "archlang", *shown, "--write", str(file)], cwd=_ROOT, check=True)
        parts = (
            f"## {command}",
            f"```sh\narchlang table {command} --no-run --out {_from_root(runs)}\n```",
            table.read_text(encoding="utf-8").strip(),
            f"![The same as a picture]({picture.relative_to(page.parent)})",
            f"Ended on {date.today()}, one thread: {machine()}.",
        )
    with page.open("a", encoding="utf-8") as text:
        text.write("".join(f"\n{part}\n" for part in parts))


def _from_root(path: Path) -> Path:
    return path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path


def _changed(run: Path) -> float:
    return max((file.stat().st_mtime for file in run.iterdir()), default=0.0) if run.is_dir() else 0.0


def _is_open(run: Path) -> bool:
    return run.is_dir() and not (run / "results.json").exists()


def _state(runs: Sequence[Path]) -> str:
    """Returns `done`, or the steps that the runs that are not done have reached."""
    steps = []
    for run in filter(_is_open, runs):
        rows = (
            (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            if run.joinpath("metrics.jsonl").exists()
            else []
        )
        steps.append(max((json.loads(row).get("step", 0) for row in rows), default=0))
    return ", ".join(f"step {step:,}" for step in steps) or "done"


def _write_state(queue: Path, line: str, state: str) -> None:
    cells = line.split("|")
    cells[-2] = f" {state} "
    queue.write_text(queue.read_text(encoding="utf-8").replace(line, "|".join(cells)), encoding="utf-8")


def _trim(runs: Path) -> None:
    """Removes what no resumption needs, and the place of this checkout from graphs, which name the lines of blocks."""
    for graph in runs.glob("*/graph*.txt"):
        graph.write_text(graph.read_text(encoding="utf-8").replace(f"{_ROOT}/", ""), encoding="utf-8")
    kept = 0
    for run in runs.iterdir():
        for part in run.iterdir() if run.is_dir() else ():
            if _is_open(run) and part.name not in _NOT_RESUMED:
                kept += sum(file.stat().st_size for file in [part, *part.rglob("*")] if file.is_file())
            elif part.name not in _KEPT:
                shutil.rmtree(part) if part.is_dir() else part.unlink()
    if kept > _MOST_BYTES:
        print(f"{kept / 1e6:.0f} MB are kept for runs that are not done: let some end before others begin")


if __name__ == "__main__":
    main()
