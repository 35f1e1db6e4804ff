"""Fixtures of all tests. The import hook checks shapes at every call of a block; the cache is a temporary folder."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import jaxtyping
import pytest

from archlang.graph import Graph
from archlang.graph.text import parse_graph, print_graph
from archlang.graph.verifier import verify
from archlang.plugins import Plugins
from tests import shape_checks

if TYPE_CHECKING:
    from archlang.backend import Architecture

Compiled = Callable[..., "Architecture"]
Becomes = Callable[[Callable[[Graph], Graph], str], None]

pytest_plugins = ["tests.browser", "tests.hub", "tests.tiny_run", "tests.unchecked_shapes"]

_CHECKED = ("architecture", "attach", "decode", "kernels", "lower", "runtime")
# The hook must be installed before these packages are imported. It decorates with `jaxtyping.jaxtyped`.
_hook = jaxtyping.install_import_hook(["archlang.blocks", *(f"archlang.backend.{name}" for name in _CHECKED)], None)
jaxtyping.jaxtyped = lambda **_: shape_checks.checked  # type: ignore[assignment] # takes the keyword of the hook only
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Write compiled files, even where the user wants none: the workers and the processes that tests start share them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A busy machine draws slowly.
hypothesis.settings.register_profile(
    "suite", max_examples=40, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")
# `nohup` ignores the first signal, a shell's background job the second, and processes inherit that.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """The tests of a file run in one process, and so make what they share once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


def pytest_collection_finish() -> None:
    """The garbage collector need not visit what exists for the whole session: torch and the tests themselves."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    shape_checks.begin_test()


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache for the tests' generated data, separate from the user's."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("ARCHLANG_CACHE")
    os.environ["ARCHLANG_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["ARCHLANG_CACHE"]
    else:
        os.environ["ARCHLANG_CACHE"] = before


@pytest.fixture(scope="session", autouse=True)
def unsynchronised() -> Iterator[None]:
    """Files need not survive a loss of power: a run waits for the disk some twenty times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # as `fsync`, it refuses a file that is closed
        yield


@pytest.fixture
def compiled(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    """Compiles the text of a program: `compiled(text, d=8)`. With `plugins=True`, its classes are in the test's file;
    else `plugins` are the files that it trusts."""

    def make(
        text: str, *, model: str | None = None, plugins: bool | list[Path] = False, **statics: object
    ) -> Architecture:
        from archlang.compile import load  # imports the backend, so after the import hook

        trusted: list[Path] = [] if isinstance(plugins, bool) else plugins
        if plugins is True:
            trusted = [Path(request.module.__file__)]
            (plugin,) = Plugins.read(trusted).files
            # The class objects of the program are those of the test.
            monkeypatch.setitem(sys.modules, plugin.module_name, request.module)
        path = tmp_path / "program.arch"
        path.write_text(text)
        sizes: dict[str, object] = {"vocab": 11, "classes": 5, **statics}
        known_sizes: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
        return load(path, model, None, plugins=trusted, **known_sizes)

    return make


@pytest.fixture
def becomes() -> Becomes:
    """Checks that a pass changes the text of a graph as written, that both graphs verify, and that a second run changes
    nothing. A line that the pass removes begins with `-`, and one that it adds with `+`."""

    def check(step: Callable[[Graph], Graph], change: str) -> None:
        before, after = (re.sub(rf"(?m)^ *\{gone} .*\n|^ *\{marked} ", "", change) for gone, marked in ("+-", "-+"))
        graph, expected = parse_graph(before), parse_graph(after)
        verify(graph)
        result = step(graph)
        verify(result)
        verify(expected)
        assert print_graph(_without_places(result)) == print_graph(_without_places(expected))
        assert result == expected
        assert step(result) == result

    return check


def _without_places(graph: Graph) -> Graph:
    text = "\n".join(line.partition("  # ")[0] for line in print_graph(graph).splitlines())
    return parse_graph(text)
