"""What each engine loses by each fault: `python -m benchmarks.engine_faults [--engine NAME] [--fault NAME]`.

Each cell starts archlang in a process of its own, and harms it when it has a checkpoint. Unless that command trains on
to the end, the same command is run again; either way the run must equal an undisturbed one, byte for byte."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import fake_slurm
from benchmarks.results_text import machine

# By the number of processes that train a run: its steps, of which a checkpoint follows each eighth.
STEPS = {1: 4_000, 2: 800}
PROGRAM = """
model tiny[d = 8](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> linear[vocab] }

recipe tiny {
    task  flipflop[length = 32, train_size = 64, iid_size = 8, valid_size = 8, test_length = [32], test_size = 8]
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 8]
    search train.lr in [1e-3, 1e-2, 1e-1]
}

table tiny {
    row    "Tiny" tiny
    column "Test" test.accuracy
}
"""
# Of two processes, each evaluates for longer than it waits for the other.
PLUGIN = """
import time
from datetime import timedelta
import torch
from torch.nn.functional import cross_entropy

def loss(logits, targets):
    if torch.distributed.is_initialized() and not torch.is_grad_enabled():
        torch.distributed.distributed_c10d._set_pg_timeout(timedelta(seconds=2), None)
        time.sleep(0.2)
    return cross_entropy(logits.movedim(-1, 1), targets, reduction="none")
"""
_LONG = ("task.valid_size=8_192", "train.loss=slow.loss")
LONG_EVALUATION = ("--plugin", "slow.py", *(word for text in _LONG for word in ("--set", text)))
ENGINES = {
    "local": ("--engine", "local"),
    "ray": ("--engine", "ray"),
    "submitit, local": ("--engine", "slurm", "--engine-option", "cluster=local"),
    "submitit, SLURM": ("--engine", "slurm"),
    "torchrun": (),
}
PACKAGES = {"ray": "ray", "submitit, local": "submitit", "submitit, SLURM": "submitit"}
_SECONDS = 240.0


@dataclass(frozen=True)
class Outcome:
    """The exit code of the command that meets the fault, how many trained steps are lost, and the message."""

    code: int
    lost: int
    message: str


@dataclass
class Bench:
    """A folder with a program, in which the commands of an engine run."""

    engine: str
    folder: Path
    alone: Path
    """where runs without a fault are kept for other cells"""
    devices: int = 1
    nodes: int = 1
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "tiny.arch").write_text(PROGRAM)
        (self.folder / "slow.py").write_text(PLUGIN)
        outside = {name: text for name, text in os.environ.items() if not re.match("SLURM|RANK|LOCAL_|MASTER_", name)}
        root = str(Path(__file__).parent.parent)
        self.environment = {**outside, "OMP_NUM_THREADS": "1", "PYTHONPATH": root, "RAY_DEDUP_LOGS": "0"}
        if self.engine == "submitit, SLURM":
            self.environment |= fake_slurm.install(self.folder / "slurm")

    def command(self, verb: str = "table", *options: str) -> list[str]:
        """The command that trains, by `table` or `tune`; torchrun has `train` alone."""
        python = [sys.executable, "-m"]
        own = ["--device", "cpu", "--save", str(STEPS[self.processes] // 8), *self.sets, *options]
        if self.engine == "torchrun":
            python += ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
            return [*python, "archlang", "train", "tiny.arch", "--out", "runs/run", *own]
        own += ["--out", "runs", "--workers", "1", "--devices", str(self.devices), *ENGINES[self.engine]]
        own += ["--engine-option", f"nodes={self.nodes}"] * (self.nodes > 1)
        return [*python, "archlang", verb, "tiny.arch", *(["--seeds", "1"] * (verb == "table")), *own]

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        try:
            printed, _ = process.communicate(timeout=_SECONDS)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, printed

    def run(self, command: list[str]) -> tuple[int, str]:
        return self.end(self.start(command))

    def archlang(self, *words: str) -> str:
        code, printed = self.run([sys.executable, "-m", "archlang", *words])
        assert code == 0, printed
        return printed

    @property
    def processes(self) -> int:
        return 2 if self.engine == "torchrun" else self.devices * self.nodes

    @property
    def sets(self) -> list[str]:
        steps = STEPS[self.processes]
        return ["--set", f"train.steps={steps}", "--set", f"train.every={steps}"]

    @property
    def run_folder(self) -> Path:
        return next(path.parent for path in self.folder.glob("runs/*/run.json"))

    def trainer(self, process: subprocess.Popen[str]) -> int:
        """Waits until a run is between two checkpoints. Returns the process that trains it, which holds its lock."""
        limit = time.monotonic() + _SECONDS
        while time.monotonic() < limit:
            assert process.poll() is None, self.end(process)
            for lock in self.folder.glob("runs/*/.lock"):
                if list(lock.parent.glob("checkpoints/step-*/*.json")) and self.lost():
                    for link in Path("/proc").glob("[0-9]*/fd/*"):
                        try:
                            if link.resolve() == lock:
                                return int(link.parts[2])
                        except OSError:
                            pass  # of another user, or ended
            time.sleep(0.02)
        raise AssertionError("no run has a checkpoint")

    def other_rank(self, rank: int) -> int:
        """The process beside that of rank 0, on the same node or another one."""
        parent = _parent(rank)
        if self.nodes > 1:
            texts = [path.read_text() for path in self.folder.glob("slurm/*.tasks")]
            tasks = map(int, texts[0].split()) if texts else _children(_parent(parent), "ray::_run_on_node")
            (parent,) = set(tasks) - {parent}
        ranks = _children(parent, "spawn_main")
        (other,) = set(ranks) - {rank}
        return other

    def lost(self) -> int:
        """The steps that are recorded and in no checkpoint."""
        lines = (self.run_folder / "metrics.jsonl").read_text().splitlines()
        last = max((json.loads(line)["step"] for line in lines if line.endswith("}")), default=0)
        saved = (int(path.parent.name[5:]) for path in self.run_folder.glob("checkpoints/step-*/*.json"))
        return max(last - max(saved, default=0), 0)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def _children(process: int, command: str) -> list[int]:
    """Those whose command line has this text."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split() if command in Path(f"/proc/{child}/cmdline").read_text()]


def _wait_for_end(process: int) -> None:
    while Path(f"/proc/{process}").exists() and ") Z " not in Path(f"/proc/{process}/stat").read_text():
        time.sleep(0.01)


def _harmed(bench: Bench, number: signal.Signals, target: Callable[[subprocess.Popen[str], int], int]) -> Outcome:
    """Sends a signal to a process, then lets the command end, and runs it again if it has not trained to the end."""
    process = bench.start(bench.command())
    trainer = bench.trainer(process)
    os.kill(target(process, trainer), number)
    _wait_for_end(trainer)
    lost = bench.lost()
    code, printed = bench.end(process)
    if not (bench.run_folder / "results.json").exists():
        again, output = bench.run(bench.command())
        assert again == 0, output
    _assert_undisturbed(bench)
    return Outcome(code, lost, _message(printed))


@contextmanager
def _waiting(process: int) -> Iterator[None]:
    """Inside, a process waits: a run does not end before another command has seen it."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def _message(printed: str) -> str:
    """The line of an output that tells of a fault."""
    own = re.search(r"^(failed|error:|stopped|running in|trial|.*running at step).*", printed, re.M)
    of_torchrun = re.search(r"Root Cause.*?(rank +: \d).*?(exitcode +: .*?)$", printed, re.M | re.S)
    return own[0].strip() if own else "; ".join(of_torchrun.groups()) if of_torchrun else ""


def _assert_undisturbed(bench: Bench) -> None:
    alone, devices = bench.alone / str(bench.processes), str(bench.processes)
    if not alone.exists():
        options = ("--device", "cpu", "--devices", devices, *bench.sets)
        bench.archlang("train", "tiny.arch", "--out", str(alone), *options)
    for name in ("metrics.jsonl", "results.json"):
        assert (bench.run_folder / name).read_bytes() == (alone / name).read_bytes(), name


def time_limit(bench: Bench) -> Outcome:
    """SLURM's SIGUSR2 reaches the job that trains; torchrun hands on SIGTERM alone."""
    if bench.engine == "torchrun":
        return _harmed(bench, signal.SIGTERM, lambda process, _: process.pid)
    is_job = bench.engine.startswith("submitit")
    return _harmed(bench, signal.SIGUSR2, lambda process, trainer: trainer if is_job else process.pid)


def dead_worker(bench: Bench) -> Outcome:
    return _harmed(bench, signal.SIGKILL, lambda _, trainer: trainer)


def dead_rank(bench: Bench) -> Outcome:
    bench.devices = 2
    return _harmed(bench, signal.SIGKILL, lambda _, trainer: bench.other_rank(trainer))


def dead_node(bench: Bench) -> Outcome:
    bench.nodes = 2
    return _harmed(bench, signal.SIGKILL, lambda _, trainer: bench.other_rank(trainer))


def long_evaluation(bench: Bench) -> Outcome:
    bench.devices = 2
    code, printed = bench.run(bench.command("table", *LONG_EVALUATION))
    assert (bench.run_folder / "results.json").exists(), printed
    return Outcome(code, 0, _message(printed))


def viewer(bench: Bench) -> Outcome:
    """Looks at a search, or at a run, which then ends as if nobody had looked."""
    process = bench.start(bench.command("tune", "--trials", "2") if ENGINES[bench.engine] else bench.command())
    look = ("tune", "tiny.arch", "--trials", "0", "--out", "runs", *bench.sets)
    with _waiting(bench.trainer(process)):
        seen = bench.archlang("runs", "list", "runs")
        assert "running at step" in seen
        seen = bench.archlang(*look) if ENGINES[bench.engine] else seen
    code, printed = bench.end(process)
    assert code == 0, printed
    if ENGINES[bench.engine]:
        assert len(json.loads(bench.archlang(*look, "--json"))["trials"]) == 2
    return Outcome(code, 0, _message(seen))


def second_table(bench: Bench) -> Outcome:
    process = bench.start(bench.command())
    look = ("table", "tiny.arch", "--seeds", "1", "--no-run", "--out", "runs", *bench.sets)
    with _waiting(bench.trainer(process)):
        assert bench.engine == "torchrun" or "running" in bench.archlang(*look)
        code, printed = bench.run(bench.command())
    first, output = bench.end(process)
    assert first == 0, output
    _assert_undisturbed(bench)
    return Outcome(code, 0, _message(printed))


FAULTS: dict[str, Callable[[Bench], Outcome]] = {
    "time limit": time_limit,
    "dead worker": dead_worker,
    "dead rank": dead_rank,
    "dead node": dead_node,
    "long evaluation": long_evaluation,
    "viewer": viewer,
    "second table": second_table,
}
# A run spans nodes by Ray and SLURM alone.
CELLS = [
    (engine, fault)
    for engine in ENGINES
    for fault in FAULTS
    if (engine, fault) != ("torchrun", "dead worker") and (engine in ("ray", "submitit, SLURM") or fault != "dead node")
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_faults", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, help="one of them alone")
    parser.add_argument("--fault", choices=FAULTS, help="one of them alone")
    chosen = parser.parse_args()
    print(machine())
    print("| engine | fault | exit code | steps lost | seconds | message |\n| --- | --- | ---: | ---: | ---: | --- |")
    with TemporaryDirectory() as alone:
        for engine, fault in CELLS:
            if chosen.engine in (None, engine) and chosen.fault in (None, fault):
                if find_spec(PACKAGES.get(engine, "os")) is None:
                    print(f"| {engine} | {fault} | not installed | | | |")
                    continue
                begun = time.monotonic()
                with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    outcome = FAULTS[fault](Bench(engine, Path(folder).resolve(), Path(alone)))
                cells = [engine, fault, outcome.code, outcome.lost, f"{time.monotonic() - begun:.0f}", outcome.message]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
