"""Start-up time: whole commands as processes, and the phases of the compiler, against importing torch."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from archlang.backend.lower.regions import lower
from archlang.compile import build
from archlang.errors import Source
from archlang.graph.passes import optimize
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe
from archlang.syntax.parser import parse
from benchmarks import processes
from benchmarks.measure import PHASE, PROCESS, Case, Group, Setting, Sides

RECIPES = Path(__file__).parent.parent / "recipes"
ALL = "archlang check, every shipped recipe"
_IMPORT = "import time; start = time.perf_counter(); import torch; print(1000 * (time.perf_counter() - start))"
# A run evaluates every split at its end; these settings keep them small.
_FEW = ("task.test_size=40", "task.valid_size=20")


def _commands(file: Path, folder: Path) -> dict[str, tuple[str, ...]]:
    """Returns the commands by the name of their case. `train` finds its data in the cache after the first call."""
    train = ("train", str(file), "--steps", "1", "--device", "cpu", "--out", str(folder / "run"))
    return {
        "archlang train --steps 1, few items": (*train, *(word for setting in _FEW for word in ("--set", setting))),
        "archlang train --steps 1": train,
        "archlang check": ("check", str(file)),
        ALL: ("check", str(RECIPES)),
        "archlang viz": ("viz", str(file), "--out", str(folder / "page.html")),
        "archlang --help": ("--help",),
    }


def _process(name: str, file: Path) -> Sides:
    return Sides(partial(_command, name, file), partial(processes.run, "-c", "import torch"))


def _command(name: str, file: Path) -> None:
    with TemporaryDirectory() as folder:
        processes.run("-m", "archlang", *_commands(file, Path(folder))[name])


def _phases(file: Path) -> dict[str, Callable[[], object]]:
    """Returns the phases; each gets the result of the phases before it. `build` includes passes and lowering."""
    source = Source(str(file), file.read_text(encoding="utf-8"))
    graph = plan_recipe(file).graph
    optimized = optimize(graph)
    return {
        "parse": lambda: parse(source),
        "check": lambda: check(file),
        "plan": lambda: plan_recipe(file),
        "passes": lambda: optimize(graph),
        "lowering": lambda: lower(optimized),
        "build": lambda: build(graph),
    }


def _phase(name: str, file: Path) -> Sides:
    return Sides(partial(_milliseconds, _phases(file)[name]), _import_torch)


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def _import_torch() -> float:
    """Returns the milliseconds of the import in a fresh process."""
    return float(processes.run("-c", _IMPORT))


PHASES = ("parse", "check", "plan", "passes", "lowering", "build")


def _cases(setting: Setting) -> Iterator[Case]:
    few = 1 if setting.tiny else None
    quick, large = RECIPES / "ndr.arch", RECIPES / "papers" / "dynamic_halt" / "listops.arch"
    for name in list(_commands(quick, Path()))[:few]:
        beside = "a process that imports torch"
        yield Case(name if name == ALL else f"{name}, ndr.arch", beside, partial(_process, name, quick), PROCESS)
    for file in (quick, large)[:few]:
        for name in PHASES[:few]:
            yield Case(f"{name}, {file.name}", "importing torch", partial(_phase, name, file), PHASE)


GROUP = Group(
    "start-up",
    "Whole processes; and phases in a warm process: ndr.arch is a quick recipe, listops.arch the "
    "page of Dynamic Halt's table of eight. `check` includes parsing, `plan` parsing and types, `build` passes and "
    "lowering.",
    _cases,
    devices=("cpu",),
)
