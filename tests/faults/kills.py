"""Trials of processes that are killed at random moments, share a folder or a download, or whose clock jumps."""

import functools
import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

from tests.faults.judging import EQUAL, FAULT, KILLED, Bench, Trial, Verdict
from tests.faults.shim import Orders
from tests.faults.workshop import Case, contents

# A training of the bench takes less than a second.
_LONGEST = 0.8
_KILLS, _PAIRS, _DOWNLOADS = 30, 12, 8
_HOUR, _YEAR = 3600.0, 365 * 86400.0
_ENGINES = {"local": (), "ray": (), "slurm": ("--engine-option", "cluster=local")}
_PACKAGES = {"ray": "ray", "slurm": "submitit"}
_CONTENT = bytes(range(256)) * 2_000
_SECONDS_OF_A_TABLE = 180.0


def trials(bench: Bench) -> Iterator[Trial]:
    """Yields the trials; those of an engine that is not installed are left out."""
    for seed in range(_KILLS):
        yield Trial("killed at a random moment, twice", f"seed {seed}", partial(_killed_twice, seed))
    for seed in range(_PAIRS):
        yield Trial("two processes train in one folder", f"seed {seed}", partial(_two_on_one_folder, seed))
    for seed in range(_DOWNLOADS):
        yield Trial("two processes fetch one file, one is killed", f"seed {seed}", partial(_two_on_one_download, seed))
    for jump in (-_YEAR, -_HOUR, _YEAR):
        for readings in (0, 10, 40):
            name = f"by {jump:+.0f} seconds after {readings} readings"
            yield Trial("the clock jumps", name, partial(_clock_jumps, jump, readings))
    for engine in _ENGINES:
        if find_spec(_PACKAGES.get(engine, "os")):
            yield Trial("a table's worker is killed", engine, partial(_table_is_killed, engine, "worker"))
            yield Trial("a table is killed, twice", engine, partial(_table_is_killed, engine, "table"))


def sample() -> Iterator[Trial]:
    """Yields a trial."""
    yield Trial("sample", "seed 0", partial(_killed_twice, 0))


def _killed_twice(seed: int, bench: Bench) -> Verdict:
    generator = random.Random(seed)
    with bench.shop.case(bench.fresh) as case:
        for _ in range(2):
            process = bench.shop.start(case, *case.train())
            time.sleep(generator.uniform(0.0, _LONGEST))
            os.kill(process, signal.SIGKILL)
            end = bench.shop.wait(case, process)
        return bench.judge_training(case, end, may_die=True)


def _two_on_one_folder(seed: int, bench: Bench) -> Verdict:
    generator = random.Random(seed)
    with bench.shop.case(bench.fresh) as case:
        second = Case(case.folder, case.outside, case.log.with_name("second"))
        processes = [(case, bench.shop.start(case, *case.train()))]
        time.sleep(generator.uniform(0.0, _LONGEST / 2))
        processes.append((second, bench.shop.start(second, *case.train())))
        ends = [bench.shop.wait(*process) for process in processes]
        verdicts = [bench.judge_training(case, end) for end in ends]
        if faults := [verdict for verdict in verdicts if verdict.outcome == FAULT]:
            return faults[0]
        if all(end.code for end in ends):
            return Verdict(FAULT, "neither process trained")
        return Verdict(EQUAL)


def _clock_jumps(seconds: float, readings: int, bench: Bench) -> Verdict:
    with bench.shop.case(bench.begun) as case:
        end = bench.shop.run(case, *case.train(), orders=Orders(clock=(seconds, readings)))
        return bench.judge_training(case, end)


def _two_on_one_download(seed: int, bench: Bench) -> Verdict:
    generator = random.Random(seed)
    with bench.shop.case(bench.fresh) as case, _slow_server() as url:
        second = Case(case.folder, case.outside, case.log.with_name("second"))
        digest = hashlib.sha256(_CONTENT).hexdigest()
        command = ("!fetch", f"{url}/text", f"sha256:{digest}")
        first = bench.shop.start(case, *command)
        time.sleep(generator.uniform(0.0, 0.1))
        waiting = bench.shop.start(second, *command)
        time.sleep(generator.uniform(0.0, 0.2))
        os.kill(first, signal.SIGKILL)
        bench.shop.wait(case, first)
        end = bench.shop.wait(second, waiting)
        folder = case.cache / "data" / "faults"
        files = {name: content for name, content in contents(folder).items() if not name.endswith(".lock")}
    if end.code or end.left or files != {"text": _CONTENT}:
        return Verdict(FAULT, f"the second process ends with {end.code} and {sorted(files)}: {end.text[-200:]}")
    return Verdict(EQUAL)


@contextmanager
def _slow_server() -> Iterator[str]:
    """Yields the address of a server that sends a file in pieces, with pauses."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])
            self.send_response(206 if first else 200)
            self.send_header("Content-Length", str(len(_CONTENT) - first))
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(_CONTENT) - 1}/{len(_CONTENT)}")
            self.end_headers()
            with suppress(OSError):  # the process was killed
                for place in range(first, len(_CONTENT), 1 << 15):
                    self.wfile.write(_CONTENT[place : place + (1 << 15)])
                    time.sleep(0.01)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _table_is_killed(engine: str, victim: str, bench: Bench) -> Verdict:
    """Trains a table of two seeds, kills a worker or twice the table, and reruns it."""
    with bench.shop.case(bench.fresh) as case:
        out = case.folder / "table"
        _kill_when(case, engine, out, "run.json", victim)
        if victim == "table":
            _kill_when(case, engine, out, "checkpoints/*/manifest.json", victim)
        again = _table(case, "local", out)
        text, _ = again.communicate(timeout=_SECONDS_OF_A_TABLE)
        if again.returncode:
            return Verdict(FAULT, f"the rerun ends with {again.returncode}: {text[-300:]}")
        for folder, expected in _undisturbed_table(bench).items():
            record = contents_of_run(out / folder)
            if record != expected:
                names = [name for name in {*record, *expected} if record.get(name) != expected.get(name)]
                return Verdict(FAULT, f"{folder}: {', '.join(sorted(names))} differ")
        left = [path for path in out.rglob(".*") if path.name not in (".lock", ".jobs") and ".jobs" not in path.parts]
        return Verdict(FAULT, f"{left[0].name} is left over") if left else Verdict(KILLED)


@functools.cache
def _undisturbed_table(bench: Bench) -> dict[str, dict[str, bytes]]:
    """Returns the records of the runs of a table that nothing disturbs, by their folders."""
    with bench.shop.case(bench.fresh) as case:
        process = _table(case, "local", case.folder / "table")
        text, _ = process.communicate(timeout=_SECONDS_OF_A_TABLE)
        assert process.returncode == 0, text
        out = case.folder / "table"
        return {folder.parent.name: contents_of_run(folder.parent) for folder in out.glob("*/run.json")}


def contents_of_run(folder: Path) -> dict[str, bytes]:
    """Returns what is the same in each run of a table: the curves, the results and the weights."""
    names = ("metrics.jsonl", "results.json", "weights.safetensors")
    return {name: content for name, content in contents(folder).items() if name.endswith(names)}


def _table(case: Case, engine: str, out: Path) -> "subprocess.Popen[str]":
    sets = ("--set", "train.steps=200", "--set", "train.every=10", "--seeds", "2", "--workers", "2", "--device", "cpu")
    command = [sys.executable, "-m", "archlang", "table", case.program, *sets, "--out", out]
    engine_options = ("--engine", engine, *_ENGINES[engine])
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | {
        **case.environment, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    # Ray's sockets need a short path.
    environment |= {"TMPDIR": "/tmp"} if engine == "ray" else {}
    return subprocess.Popen(
        [*map(str, command), *engine_options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=environment, start_new_session=True,
    )  # fmt: skip


def _kill_when(case: Case, engine: str, out: Path, pattern: str, victim: str) -> None:
    """Starts the table, and kills it or one process below it when a run has a file."""
    process = _table(case, engine, out)
    limit = time.monotonic() + _SECONDS_OF_A_TABLE
    while not list(out.glob(f"*/{pattern}")) and process.poll() is None:
        assert time.monotonic() < limit, "the table does not begin"
        time.sleep(0.02)
    trainers = _trainers(process.pid, out)
    if victim == "worker" and trainers:
        with suppress(ProcessLookupError):
            os.kill(trainers[0], signal.SIGKILL)
    elif victim == "table":
        for each in (process.pid, *trainers):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
    process.communicate(timeout=_SECONDS_OF_A_TABLE)


def _trainers(table: int, out: Path) -> list[int]:
    """Returns the processes that hold the lock of a run below a folder, except the table itself."""
    trainers = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != table:
            with suppress(OSError):
                files = [os.readlink(link) for link in (folder / "fd").iterdir()]
                if any(file.startswith(f"{out}/") and file.endswith("/.lock") for file in files):
                    trainers.append(int(folder.name))
    return trainers
