"""What agents ask by the Model Context Protocol: to check, correct, explain, count, compare and train programs of one
folder.

Every answer is JSON. A tool names files of the folder alone, and never runs Python of a user's own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archlang.disk import package
from archlang.disk.readable import read_named
from archlang.errors import ArchlangError, ProgramError, Source
from archlang.errors.exchange import to_json
from archlang.errors.machine import needs_extra
from archlang.errors.names import suggest
from archlang.play.mistakes import RequestError
from archlang.syntax.reading import LARGEST

if TYPE_CHECKING:
    from mcp.server import MCPServer

_MOST_RUNS = 100
Settings = dict[str, str | int | float | bool]  # a float alone would make 32 to 32.0
_INSTRUCTIONS = (
    "archlang is a language in which a neural architecture is a page of text. Read the resource archlang://language "
    "first: it is the whole language. Write a program, `check` it, `fix` what has one likely correction, and `explain` "
    "codes that you do not know; `card` counts costs and says what such models cannot compute; `train` runs it."
)


def make_agent_server(folder: Path, minutes: float) -> MCPServer:
    """Returns the server of a folder, whose trainings take at most so many minutes.

    Raises:
        MachineError: the package `mcp` is not installed."""
    with needs_extra("mcp"):
        from mcp.server import MCPServer
        from mcp.server.mcpserver.resources import TextResource
    server: MCPServer = MCPServer("archlang", instructions=_INSTRUCTIONS, version=package.VERSION, log_level="ERROR")
    tools = AgentTools(folder.resolve(), minutes)
    for tool in (
        tools.check,
        tools.fix,
        tools.explain,
        tools.blocks,
        tools.card,
        tools.diff,
        tools.train,
        tools.results,
    ):
        server.add_tool(_answering(tool), structured_output=False)
    language = read_named(package.FOLDER / "llms.txt", LARGEST).decode()
    server.add_resource(TextResource(uri="archlang://language", name="language", text=language))
    return server


def _answering(tool: Callable[..., object]) -> Callable[..., str]:
    """Wraps a tool: it answers in JSON, also with what is wrong."""

    @wraps(tool)
    def answer(**arguments: Any) -> str:  # Any: as of each tool
        try:
            facts = tool(**arguments)
        except ProgramError as error:
            facts = {"diagnostics": json.loads(to_json(error.diagnostics))}
        except ArchlangError as error:
            facts = {"error": getattr(error, "message", str(error)), "remedy": getattr(error, "remedy", "")}
        return json.dumps(facts, ensure_ascii=False, indent=1)

    answer.__annotations__ = {**tool.__annotations__, "return": str}
    return answer


@dataclass(frozen=True)
class AgentTools:
    """The tools of a folder, an absolute path without links, which is the current folder: errors name its files."""

    folder: Path
    minutes: float

    def check(self, file: str, text: str | None = None) -> object:
        """All mistakes of a program, with code, place, message, remedy and edits; an empty list if there are none. With
        `text`, of this text as if the file had it."""
        from archlang.plan.check import check, check_text

        path = self._place(file)
        return json.loads(to_json(check(path) if text is None else check_text(text, str(path))))

    def fix(self, file: str, text: str | None = None) -> object:
        """Make the edits of a program that have one likely correction: in the file, or in `text`. Returns the text,
        what was corrected, and the diagnostics that are left."""
        from archlang.disk.folder import write_atomically
        from archlang.plan.check import correct
        from archlang.syntax.reading import read

        path = self._place(file)
        made = correct(read(path).text if text is None else text, str(path))
        if text is None and made.corrected:
            write_atomically(path, made.text)
        corrected, left = (json.loads(to_json(each)) for each in (made.corrected, made.left))
        return {"text": made.text, "corrected": corrected, "left": left}

    def explain(self, code: str) -> object:
        """The page about a code such as E0501, with a failing and a corrected program."""
        from archlang.errors import codes

        titles = codes.titles()
        if code.upper() not in titles:
            raise RequestError(f"there is no code {code}", suggest(code.upper(), titles, f"codes are {[*titles]}"))
        return codes.explain(code.upper())

    def blocks(self, name: str | None = None) -> object:
        """The names of all blocks, tasks and optimizers, each with a sentence; or the signature and the documentation
        of the one called `name`."""
        from archlang.resolve import library
        from archlang.syntax.printer import signature_text
        from archlang.syntax.tree import first_sentence

        kinds = {"blocks": library.blocks(), "tasks": library.tasks(), "optimizers": library.optimizers()}
        if name is None:
            return {
                kind: {key: first_sentence(item.documentation) for key, item in items.items()}
                for kind, items in kinds.items()
            }
        known = {key: item for items in kinds.values() for key, item in items.items()}
        found = [item for key, item in known.items() if name in (key, key.rpartition(".")[2])]
        if not found:
            raise RequestError(f"there is no `{name}`", suggest(name, known, "ask without a name for all names"))
        return [{"signature": signature_text(item), "documentation": "\n".join(item.documentation)} for item in found]

    def card(
        self, file: str, text: str | None = None, model: str | None = None, recipe: str | None = None,
        sets: Settings | None = None,
    ) -> object:  # fmt: skip
        """The costs of a model as polynomials in the length, its state, and theorems about models like it. `sets` are
        settings such as {"model.d": "64"}, or without a recipe {"vocab": "32"}."""
        from archlang.compile import compile_named
        from archlang.graph.card import card

        path = self._place(file)
        program = path if text is None else Source(str(path), text)
        return card(compile_named(program, model, recipe, _without_texts(sets))).facts()

    def diff(self, before: str, after: str, recipe: str | None = None) -> object:
        """What changed between the models of two programs; `recipe` is one of the second."""
        from archlang.compile import compile_named
        from archlang.reports.pictures.changes import describe_changes

        old = compile_named(self._place(before), None, None, {})
        new = compile_named(self._place(after), None, recipe, {})
        return describe_changes(old, new) or ["nothing changed"]

    def train(self, file: str, recipe: str | None = None, minutes: float = 1.0, sets: Settings | None = None) -> object:
        """Train a recipe for at most some minutes of time, and evaluate it. `sets` are settings such as {"train.steps":
        "200"}. Returns the results and the run folder, or what failed. A training that its time has stopped resumes
        with the same arguments."""
        from archlang.plan.from_file import plan_recipe
        from archlang.syntax.reading import read

        if not minutes > 0:
            raise RequestError(f"a training cannot take {minutes} minutes", "name a number above 0")
        path, overrides = self._place(file), _without_texts(sets)
        plan = plan_recipe(path, recipe, overrides)
        key = json.dumps([read(path).text, overrides], sort_keys=True)
        out = f"runs/{plan.recipe}-seed{plan.seed}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
        self._place(out)
        settings = [word for item in overrides.items() for word in ("--set", "=".join(item))]
        seconds = 60 * min(minutes, self.minutes)
        words = ["train", f"./{path}", plan.recipe, "--out", out, "--for", f"{seconds:.0f}s", "--json", *settings]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "archlang", *words], cwd=self.folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
        if done.returncode or not done.stdout.strip():
            return {"error": done.stderr.strip(), "remedy": "correct the program, or name other settings"}
        return json.loads(done.stdout) | {"folder": out}

    def results(self, run: str | None = None) -> object:
        """The run folders below the folder, and which of them are done; or the results of one."""
        from archlang.train.record.reading import read_results
        from archlang.train.record.schemas import json_value

        if run is None:
            records = sorted(self.folder.rglob("run.json"))[:_MOST_RUNS]
            folders = [record.parent for record in records]
            return {str(each.relative_to(self.folder)): (each / "results.json").is_file() for each in folders}
        if not (self.folder / self._place(run) / "run.json").is_file():
            raise RequestError(f"`{run}` is no run", "ask without `run` for the folders of all runs")
        results = read_results(self._place(run))
        if results is None:
            raise RequestError(f"`{run}` has no results", "its training has not ended: train again to resume it")
        return json_value(results)

    def _place(self, name: str) -> Path:
        if "\0" in name:
            raise RequestError("a name of a file has no NUL", "name a file of the folder by its relative path")
        path = Path(os.path.realpath(self.folder / name))
        if not path.is_relative_to(self.folder):
            raise RequestError(f"`{name}` is outside of the folder", "name a file of the folder by its relative path")
        return path.relative_to(self.folder)


def _without_texts(sets: Settings | None) -> dict[str, str]:
    """Settings as those of a command line, which may name any file of the user's, and so hold no texts here."""
    overrides = {path: value if isinstance(value, str) else json.dumps(value) for path, value in (sets or {}).items()}
    for path, value in overrides.items():
        if '"' in path + value:
            raise RequestError(f"`sets` sets {path} to a text", "write texts, such as paths of data, in the program")
    return overrides
