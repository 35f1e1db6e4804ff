"""A run whose process ends in any way resumes exactly: real processes, real signals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sampling import one_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are made by fork")

# Imports torch once, and then forks an `archlang` process for each line of its input.
FORK_SERVER = """
import json, os, sys
import archlang.cli.app, archlang.train.runs.training, archlang.train.runs.progress, lightning_fabric, networkx
import torch._dynamo, torch.utils.tensorboard
from archlang.cli.main import main

print("ready", flush=True)
for line in sys.stdin:
    arguments, log = json.loads(line)
    child = os.fork()
    if child == 0:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.argv = ["archlang", *arguments]
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Archlang:
    """A command line, one command at a time."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._server = subprocess.Popen(
            [sys.executable, "-c", FORK_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def _read(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def start(self, *arguments: str) -> int:
        """Starts a command and returns the id of its process."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([arguments, str(self.log)]) + "\n")
        self._server.stdin.flush()
        return int(self._read())

    def end(self) -> int:
        """Waits for the command's exit code."""
        return int(self._read())

    def run(self, *arguments: str) -> int:
        self.start(*arguments)
        return self.end()

    def close(self) -> None:
        self._server.communicate(timeout=60)


@pytest.fixture(scope="module")
def archlang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archlang]:
    commands = Archlang(tmp_path_factory.mktemp("log") / "log")
    yield commands
    commands.close()


def command(program: Path, folder: Path, *more: str) -> list[str]:
    return ["train", str(program), "--device", "cpu", "--out", str(folder), *more]


def wait_for(file: Path, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not (file.exists() and file.stat().st_size):
        assert time.monotonic() < end, f"{file} does not appear"
        time.sleep(0.005)


def record(folder: Path) -> dict[str, bytes]:
    files = ["metrics.jsonl", "results.json"]
    weights = [str(path.relative_to(folder)) for path in (folder / "checkpoints").glob("step-*/weights.safetensors")]
    return {name: (folder / name).read_bytes() for name in files + weights}


LONG = ("--steps", "120", "--set", "train.every=12")


@pytest.fixture(scope="module")
def uninterrupted(archlang: Archlang, tmp_path_factory: pytest.TempPathFactory, tiny: str) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "tiny.arch").write_text(tiny)
    assert archlang.run(*command(folder / "tiny.arch", folder / "run", *LONG)) == 0
    return record(folder / "run")


@pytest.mark.parametrize("number", one_in(3, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_exits_with_its_code_and_a_checkpoint(
    number: signal.Signals, archlang: Archlang, uninterrupted: dict[str, bytes], program: Path, tmp_path: Path
) -> None:
    process = archlang.start(*command(program, tmp_path / "run", *LONG))
    wait_for(tmp_path / "run" / "metrics.jsonl")
    os.kill(process, number)
    assert archlang.end() == 128 + number
    assert "stopped at step" in archlang.log.read_text()
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))
    assert archlang.run(*command(program, tmp_path / "run", *LONG)) == 0
    assert record(tmp_path / "run") == uninterrupted
