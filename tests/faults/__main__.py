"""Runs the suite of faults and writes docs/reliability.md: python -m tests.faults --jobs 2 --write-page."""

import argparse
import platform
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from tests.faults.judging import FAULT, NOT_RUN, Trial
from tests.faults.page import PAGE, page
from tests.faults.shim import why_not
from tests.faults.suite import PARTS, append_result, count_outcomes, read_results, run_suite


def main() -> None:
    """Prints each fault as it is found and the number of cases of each class, and writes the page if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="the number of cases at a time")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=[*PARTS], help="the parts to run")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no more cases after this time")
    parser.add_argument("--results", type=Path, help="a file of results: only what is not in it runs, and is added")
    parser.add_argument("--faults-again", action="store_true", help="run also the cases that are faults in the file")
    parser.add_argument("--only", default="", help="run only classes whose names contain this")
    parser.add_argument("--write-page", action="store_true", help=f"write {PAGE.name} from all results")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, highlight=False)
    if reason := why_not():
        parser.error(reason)
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.results or Path(folder, "results.jsonl")
        judged = {
            result.key
            for result in read_results(file)
            if result.outcome != NOT_RUN and not (arguments.faults_again and result.outcome == FAULT)
        }  # fmt: skip

        def is_wanted(part: str, trial: Trial) -> bool:
            return (part, trial.group, trial.name) not in judged and arguments.only in trial.group

        for result in run_suite(arguments.part, arguments.jobs, arguments.minutes, is_wanted=is_wanted):
            append_result(file, result)
            if result.outcome == FAULT:
                console.print(f"{result.group}: {result.name}: {result.reason}", markup=False)
        results = read_results(file)
    for (_, group), outcomes in count_outcomes(results).items():
        console.print(f"{group}: {dict(outcomes)}", markup=False)
    if arguments.write_page:
        PAGE.write_text(page(results, _facts()), encoding="utf-8")


def _facts() -> str:
    """Returns the date and the machine."""
    return f"Written on {datetime.now(UTC).date().isoformat()}, on {platform.system()}, {platform.machine()}."


if __name__ == "__main__":
    main()
