"""A case of the fault suite: a folder with a program and a run, the commands that run in it, and what files remain."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.faults.shim import Orders, compile_shim
from tests.tiny_run import TINY

_SECONDS = 120.0
# Measurements of time, the machine, and curves for TensorBoard, whose names hold the time.
_DIFFERS_EACH_TIME = ("timings.jsonl", "versions.json", ".lock")
# The state holds the length of the file of timings; the manifest holds the digest of the state.
_NEAR_EQUAL = ("state.pt", "manifest.json")
_UNDISTURBED = Orders()


@dataclass(frozen=True)
class End:
    """How a command ended: its exit code (negative for a signal), its output, whether it had to be killed after two
    minutes, processes that outlived it, and its system calls that counted, by kind."""

    code: int
    text: str
    hung: bool
    left: tuple[int, ...]
    counted: Mapping[str, int]


class Workshop:
    """Processes of `archlang` that suffer faults, made by one server that has imported torch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = os.environ | {
            "LD_PRELOAD": str(compile_shim(folder)), "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=environment, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        self._answer()
        self._cases = 0

    def _answer(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline()

    def _ask(self, **request: object) -> Any:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return json.loads(self._answer())

    def start(self, case: "Case", *arguments: str | Path, orders: Orders = _UNDISTURBED) -> int:
        """Starts a command and returns the id of its process."""
        answer = self._ask(
            arguments=[*map(str, arguments)], log=str(case.log), folder=str(case.folder),
            struck=str(case.cache if orders.in_cache else case.folder),
            environment=dict(case.environment), orders=asdict(orders),
        )  # fmt: skip
        return int(answer["process"])

    def wait(self, case: "Case", process: int, seconds: float = _SECONDS) -> End:
        """Returns how a command ended."""
        answer = self._ask(wait=process, seconds=seconds)
        text = case.log.read_text(encoding="utf-8", errors="replace")
        return End(answer["code"], text, answer["hung"], tuple(answer["left"]), answer["counted"])

    def run(self, case: "Case", *arguments: str | Path, orders: Orders = _UNDISTURBED) -> End:
        """Runs a command to its end."""
        return self.wait(case, self.start(case, *arguments, orders=orders))

    def make_case(self, name: str) -> "Case":
        """Returns a new case that stays, with a program and a file outside."""
        case = Case.in_folder(self.folder / name)
        for folder in (case.folder, case.outside, *map(Path, case.environment.values())):
            folder.mkdir(parents=True, exist_ok=True)
        case.program.write_text(TINY)
        (case.outside / "victim").write_text("precious\n")
        return case

    @contextmanager
    def case(self, copy_of: "Case") -> "Iterator[Case]":
        """Yields a case with the files of another one, which is removed at the end."""
        self._cases += 1
        folder = self.folder / f"case-{self._cases}"
        _copy(copy_of.folder.parent, folder)
        try:
            yield Case.in_folder(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Ends the server."""
        self._server.kill()
        self._server.communicate()


@dataclass(frozen=True)
class Case:
    """The folders of a case: the faults strike in `folder` or in the cache beside it; what is `outside` must not
    change."""

    folder: Path
    outside: Path
    log: Path

    @staticmethod
    def in_folder(folder: Path) -> "Case":
        return Case(folder / "inside", folder / "outside", folder / "log")

    @property
    def cache(self) -> Path:
        return self.folder.with_name("cache")

    def remove_run(self) -> None:
        """Leaves the program and the cache alone."""
        shutil.rmtree(self.run, ignore_errors=True)

    def has_checkpoint(self) -> bool:
        """Returns whether the run has a complete checkpoint."""
        return any(self.run.glob("checkpoints/step-*/manifest.json"))

    @property
    def program(self) -> Path:
        return self.folder / "tiny.arch"

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def environment(self) -> Mapping[str, str]:
        home, temporaries = self.folder / "home", self.folder / "tmp"
        return {"HOME": str(home), "TMPDIR": str(temporaries), "ARCHLANG_CACHE": str(self.cache)}

    def train(self, *more: str) -> tuple[str | Path, ...]:
        """Returns the arguments of a training of six steps with three checkpoints."""
        sets = ("--steps", "6", "--set", "train.every=2")
        return "train", self.program, *sets, "--device", "cpu", "--out", self.run, *more

    def record(self) -> dict[str, bytes]:
        """Returns the files of the run that are the same for each undisturbed run, by their paths."""
        return {
            name: b"" if name.endswith(_NEAR_EQUAL) else content
            for name, content in contents(self.run).items()
            if not name.startswith("tensorboard/") and name not in _DIFFERS_EACH_TIME
        }

    def temporaries(self) -> list[str]:
        """Returns the files that have the name of an unfinished one, and everything in the folder of temporaries."""
        names = [path.relative_to(self.folder) for path in self.folder.rglob("*")]
        return sorted(
            str(name)
            for name in names
            if (name.parts[0] == "tmp" and len(name.parts) > 1) or (name.name.startswith(".") and name.name != ".lock")
        )


def contents(folder: Path) -> dict[str, bytes]:
    """Returns every file below a folder by its relative path: its bytes, or the target of a link."""
    by_name = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            by_name[str(path.relative_to(folder))] = b"link to " + os.fsencode(path.readlink())
        elif path.is_file():
            by_name[str(path.relative_to(folder))] = path.read_bytes()
    return by_name


def _copy(source: Path, destination: Path) -> None:
    """Copies a case. Graphs and spans name the program's path, which becomes that of the copy."""
    shutil.copytree(source, destination, symlinks=True)
    for name in ("graph.txt", "graph_at_test.txt"):
        if (path := destination / "inside" / "run" / name).exists():
            path.write_text(path.read_text().replace(str(source), str(destination)))


@contextmanager
def workshop() -> Iterator[Workshop]:
    """Yields a workshop in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="archlang-faults-") as folder:
        shop = Workshop(Path(folder))
        try:
            yield shop
        finally:
            shop.close()
