"""All that a GPU should show, in one command: `python -m benchmarks.gpu --minutes 9 --out DIR`.

Checks come first, then what no run has measured, then the other speeds, then paper-sized trainings for what is left of
the time. Each stage is a process of its own that ends in time, and its result is written when it ends: a stage that
fails does not stop the next ones. Called again with the same folder, the command repeats what has not succeeded, and
trainings go on.

`--device cpu --minutes 1` rehearses every stage with small sizes."""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from benchmarks import steps
from benchmarks.results_text import machine

_ROOT = Path(__file__).parent.parent
_TABLE, _LISTOPS = (_ROOT / "recipes" / "papers" / "ndr" / f"{name}.arch" for name in ("table1", "listops"))
_KERNELS = ("tests/backend/kernels/test_dropout.py", "tests/backend/kernels/test_nearest_match.py")
_GPU_TESTS = (
    "tests/blocks/test_geometric_attention.py",
    "tests/backend/runtime/test_inputs.py",
    "tests/train",
    "tests/backend/kernels",
    "tests/backend/lower/test_row_blocks.py",
    "tests/backend/lower/test_lstm.py",
)
# The parts of the time after which no check, and no measurement of speed, begins.
_CHECKS, _SPEED = 0.3, 0.7
# A stage is asked to end so many seconds before it is killed, so that it can write a checkpoint.
_GRACE = 15.0
_STAGES = "stages.json"
_TAIL = 4_000  # characters of a stage's output that are kept

State = Literal["passed", "failed", "out of time", "not begun"]


@dataclass(frozen=True)
class Stage:
    """One process. It takes at most `longest` seconds, and begins only in the first `part` of the time."""

    name: str
    command: tuple[str, ...]
    longest: float
    part: float


@dataclass(frozen=True)
class Ended:
    """How a stage ended, with the end of what it printed."""

    name: str
    state: State
    seconds: float
    command: str
    output: str


def stages(device: str, out: Path) -> Iterator[Stage]:
    """Yields the stages for a device. On a CPU they are small, and take as long as they need."""
    for stage in _stages(device, out):
        yield stage if device == "cuda" else replace(stage, longest=float("inf"), part=1.0)


def _stages(device: str, out: Path) -> Iterator[Stage]:
    is_rehearsal = device == "cpu"
    tiny = ["--tiny"] if is_rehearsal else []
    on_device = ["--device", device, *tiny]
    yield _checks("kernels", *_KERNELS)
    yield _checks("tests of the GPU", *_GPU_TESTS, "-m", "gpu")
    # A shape is captured when it occurs for the third time: not while steps are timed.
    few = ["--warm", "1", "--steps", "2", "--rounds", "1"] if is_rehearsal else ["--warm", "60", "--rounds", "2"]
    for name, arguments in _CASES.items():
        written = ["--json", str(out / f"{_slug(name)}.json"), "--markdown", str(out / f"{_slug(name)}.md")]
        rounds = ["--seconds", "0", "--rounds", "1"] if is_rehearsal else ["--seconds", "1", "--rounds", "3"]
        if is_rehearsal and name == "peak memory":
            arguments = ["memory: ndr, table"]  # each case is two processes
        yield _speed(name, "benchmarks", *arguments, *on_device, *rounds, *written, longest=_LONGEST.get(name, 90.0))
        if name == _LAST_UNMEASURED:
            for model in steps.MODELS:
                # A first run generates the data of its task.
                yield _speed(f"steps of {model}", "benchmarks.steps", model, *on_device, *few, longest=180.0)
            small = [text for pair in _SMALL.items() for text in ("--set", "=".join(pair))] if is_rehearsal else []
            together = ["--device", device, *small, *few]
            yield _speed("five seeds together", "benchmarks.together", *together, longest=180.0)
    for seed in (1, 2, 3):
        for order in ("forward", "backward"):
            sets = ["--set", f"task.order={order}"]
            yield _training(f"NDR on table lookup, {order}, seed {seed}", _TABLE, seed, device, out, sets)
    yield _training("NDR on ListOps, seed 1", _LISTOPS, 1, device, out, [])


# Cases of `python -m benchmarks` by the name of their stage: first what the run of 26 November 2026 left unmeasured.
_LAST_UNMEASURED = "linear recurrences beside flash-linear-attention"
_WRITTEN = [f"written: {form}, N" for form in ("soft_cap", "window", "forgetting")]
_CASES = {
    "peak memory": ["memory: "],
    "halting as CUDA graphs": ["halting: ", "--graphs"],
    "evaluations as CUDA graphs": ["evaluation: "],
    "SCAN, training and decoding, as CUDA graphs": ["seq2seq: ", "--graphs"],
    "GPT-2 beside compiled torch": ["language: "],
    _LAST_UNMEASURED: ["linear recurrences: "],
    "UT, GUT, TLB, GUTLB as CUDA graphs": ["dynamic halt: ", "--graphs"],
    "linear mixers as CUDA graphs": ["mixers: ", "--graphs"],
    "geometric attention as CUDA graphs": ["operators: geometric", "--graphs"],
    "halting": ["halting: "],
    "SCAN": ["seq2seq: "],
    "UT, GUT, TLB, GUTLB": ["dynamic halt: "],
    "linear mixers": ["mixers: "],
    "geometric attention": ["operators: geometric"],
    "attention that pages write, as CUDA graphs": [*_WRITTEN, "--graphs"],
    "attention that pages write": _WRITTEN,
    "LSTM and GRU as pages": ["written: LSTM as a page", "written: GRU as a page"],
    "PANM": ["panm: "],
    "NDR": ["ndr: "],
}
# Stages with many cases, or in which a compiler of torch, or of another package, compiles and tunes kernels.
_LONGEST = {
    "peak memory": 150.0, "GPT-2 beside compiled torch": 300.0, _LAST_UNMEASURED: 180.0,
    "linear mixers as CUDA graphs": 180.0, "linear mixers": 180.0,
    "UT, GUT, TLB, GUTLB as CUDA graphs": 150.0, "UT, GUT, TLB, GUTLB": 150.0,
}  # fmt: skip


def _training(name: str, file: Path, seed: int, device: str, out: Path, sets: Sequence[str]) -> Stage:
    changed = _SMALL_NDR | (_SMALL_LISTOPS if file == _LISTOPS else {}) if device == "cpu" else {}
    small = [text for pair in changed.items() for text in ("--set", "=".join(pair))]
    command = ["train", str(file), "ndr", "--seed", str(seed), *sets, "--device", device, *small]
    return Stage(name, _python("archlang", *command, "--out", str(out / _slug(name))), float("inf"), 1.0)


# Settings of rehearsals.
_SMALL = {"model.d": "16", "model.ff": "16", "model.steps": "2", "train.batch": "8"}
_SMALL_LISTOPS = {"task.train_size": "64", "task.iid_size": "8", "task.valid_size": "8"}
_SMALL_NDR = {
    "model.d": "16", "model.heads": "2", "model.ff": "16", "model.steps": "2", "train.batch": "8", "train.steps": "4",
    "train.every": "2", "task.test_size": "8",
}  # fmt: skip


def _checks(name: str, *arguments: str) -> Stage:
    return Stage(name, _python("pytest", "-q", "-p", "no:cacheprovider", "-n", "4", *arguments), 240.0, _CHECKS)


def _speed(name: str, module: str, *arguments: str, longest: float = 90.0) -> Stage:
    return Stage(name, _python(module, *arguments), longest, _SPEED)


def _python(module: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *arguments)


def _slug(name: str) -> str:
    return "-".join("".join(character if character.isalnum() else " " for character in name).lower().split())


def run(stage: Stage, seconds: float) -> Ended:
    """Runs a stage for at most so many seconds: then it is interrupted, and killed if that does not end it."""
    start = time.perf_counter()
    process = subprocess.Popen(
        stage.command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    state: State
    try:
        output, _ = process.communicate(timeout=seconds)
        state = "passed" if process.returncode == 0 else "failed"
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        try:
            output, _ = process.communicate(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        state = "out of time"
    spent = time.perf_counter() - start
    return Ended(stage.name, state, round(spent, 1), " ".join(stage.command[1:]), output[-_TAIL:])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("names", nargs="*", help="run only stages whose names contain one of these words")
    parser.add_argument("--minutes", type=float, default=9.0, help="when all stages end (9)")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the results")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device is available: --device cpu rehearses every stage")
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    begin, total = time.perf_counter(), 60 * options.minutes
    results = _read(out)
    print(machine(), device_facts(options.device), sep="\n", flush=True)
    for stage in stages(options.device, out):
        if options.names and not any(name.lower() in stage.name.lower() for name in options.names):
            continue
        before = results.get(stage.name)
        if before is not None and before.state == "passed":
            print(f"{stage.name}: passed before", flush=True)
            continue
        left = total - (time.perf_counter() - begin)
        if left < _GRACE or left < (1 - stage.part) * total:
            results[stage.name] = before or Ended(stage.name, "not begun", 0.0, " ".join(stage.command[1:]), "")
        else:
            results[stage.name] = run(stage, min(stage.longest, left - _GRACE))
        ended = results[stage.name]
        print(f"{stage.name}: {ended.state}, {ended.seconds:.0f} s", flush=True)
        _write(out, results.values(), options.device)


def _read(out: Path) -> dict[str, Ended]:
    """Returns how the stages of an earlier call with this folder ended."""
    try:
        stored = json.loads((out / _STAGES).read_text(encoding="utf-8"))
        return {values["name"]: Ended(**values) for values in stored["stages"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        sys.exit(f"{out / _STAGES} cannot be read ({error}): choose another folder")


def _write(out: Path, results: Iterable[Ended], device: str) -> None:
    """Writes how the stages ended, for a next call and for people."""
    described = {"machine": machine(), "device": device_facts(device), "stages": [asdict(ended) for ended in results]}
    (out / _STAGES).write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    lines = ["# A GPU in one command", "", machine(), "", device_facts(device), ""]
    for ended in results:
        lines += [f"## {ended.name}: {ended.state}", "", f"`python {ended.command}`, {ended.seconds:.0f} s", ""]
        lines += ["```", ended.output.rstrip(), "```", ""] if ended.output.strip() else []
    (out / "README.md").write_text("\n".join(lines), encoding="utf-8")


def device_facts(device: str) -> str:
    """Returns the name of the device, and of a GPU its clocks, power and driver."""
    if device == "cpu":
        return "a rehearsal on the CPU: its numbers mean nothing"
    query = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,memory.total"
    try:
        answer = subprocess.run(
            ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return torch.cuda.get_device_name()
    return answer.stdout.strip().replace("\n", "; ")


if __name__ == "__main__":
    main()
