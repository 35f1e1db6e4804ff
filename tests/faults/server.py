"""Starts `archlang` processes: imports torch once under the shim, and forks a process for each line of its input."""

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from tests.faults.shim import KINDS, Orders, Report, arm, new_report

_SECONDS_BETWEEN_CHECKS = 0.005


def main() -> None:
    """Answers each line of the input, a request as JSON, with a line."""
    # Whatever libraries print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    _import_everything()
    reports: dict[int, Report] = {}
    print("ready", file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            process = request["wait"]
            answer = _wait(process, request["seconds"]) | _counts(reports.pop(process))
        else:
            report = new_report()
            process = os.fork()
            if not process:
                _become(request, report)
            reports[process] = report
            answer = {"process": process}
        print(json.dumps(answer), file=answers)


def _import_everything() -> None:
    import torch

    import archlang.cli.app
    import archlang.cli.main
    import archlang.reports
    import archlang.reports.inspection
    import archlang.reports.run_results
    import archlang.train.runs.table
    import archlang.train.runs.training  # noqa: F401

    torch.set_num_threads(1)

    from archlang.compile import build
    from archlang.graph.text import parse_graph, print_graph
    from archlang.plan.from_file import plan_recipe
    from tests.tiny_run import TINY

    # The grammars take seconds to build.
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "tiny.arch")
        program.write_text(TINY)
        graph = plan_recipe(program).graph
    build(parse_graph(print_graph(graph)))


def _become(request: Any, report: Report) -> None:
    """Runs the command line of a request, and ends this process."""
    code = 1
    try:
        os.setsid()  # so that processes that outlive this one are found by their session
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ |= request["environment"]
        os.chdir(request["folder"])
        orders = request["orders"] | {"kinds": tuple(request["orders"]["kinds"])}
        arm(request["struck"], Orders(**orders), report)
        _carry_out(request["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _carry_out(arguments: list[str]) -> None:
    """Runs a command line, or fetches a file: `!fetch URL DIGEST`."""
    if arguments[0] == "!fetch":
        from archlang.data.fetch import fetch
        from archlang.data.registry import Digest, OfficialFile

        _, url, digest = arguments
        fetch(OfficialFile("faults", "text", url, Digest.parse(digest), None, "none"))
    else:
        from archlang.cli.main import main as run_archlang

        sys.argv = ["archlang", *arguments]
        run_archlang()


def _wait(process: int, seconds: float) -> dict[str, object]:
    """Returns the exit code of a process, which is killed when the time is up, and the processes that outlive it."""
    limit = time.monotonic() + seconds
    hung = False
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > limit and not hung:
            hung = True
            os.kill(process, signal.SIGKILL)
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    return {"code": os.waitstatus_to_exitcode(status), "hung": hung, "left": _of_session(process)}


def _of_session(session: int) -> list[int]:
    """Returns the processes of a session that still run."""
    processes = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, _, _, owner, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            except (OSError, ValueError):
                continue  # it has ended
            if int(owner) == session and state not in "ZX":
                processes.append(int(folder.name))
    return processes


def _counts(report: Report) -> dict[str, object]:
    return {"counted": dict(zip(KINDS, report.by_kind, strict=True))}


if __name__ == "__main__":
    main()
