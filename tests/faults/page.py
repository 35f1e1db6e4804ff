"""The page docs/reliability.md: what became of each class of faults."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.faults.judging import FAULT, NOT_RUN, OUTCOMES
from tests.faults.suite import PARTS, Result, count_outcomes

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_INTRODUCTION = {
    "System calls": """\
A training of six steps with three checkpoints makes a few hundred system calls on the files of its run.
The suite counts them, and repeats the training once for each: that call fails, or the process is killed before it.
Resumed trainings are of a run that was killed after its first checkpoint.
Allocations are too many for that: sixty of a training fail, spread evenly.""",
    "Kills, neighbours and clocks": """\
Processes get SIGKILL at random moments, share a folder or a download with another process, or read a clock that jumps.
The seeds of the moments are fixed.""",
    "Memory": """\
The address space of a command is limited to what it has at its start, and 0 to 256 MiB more.""",
    "Folders from strangers, and damage": """\
In a finished run, a link or a FIFO takes the place of one file or folder, or one file is damaged.
Then one command runs: `train`, `eval`, `report`, `inspect`, `runs list`, `runs show`, `runs compare`, `table --no-run`,
`show` or `viz`.""",
}  # fmt: skip


def page(results: Sequence[Result], facts: str) -> str:
    """Returns the text of the page.

    Args:
        facts: One line on the date and the machine."""
    total = Counter(result.outcome for result in results)
    texts = [
        "# Reliability",
        "What archlang does when the disk is full, a call fails, a process is killed, or a run folder is hostile.\n"
        "This page is written by the tests: `python -m tests.faults --write-page` runs them, and `pytest -m faults`\n"
        "runs them as tests.",
        "| outcome | meaning |\n| --- | --- |\n"
        "| equal | the command succeeded, and the run equals an undisturbed one byte for byte |\n"
        "| equal after a rerun | the command named an error or left a file over; the same command then succeeded, and "
        "the run is equal |\n"
        "| killed, equal after a rerun | the process died; the same command then succeeded, and the run is equal |\n"
        "| refused | a command on a finished run named an error |\n"
        "| fault | anything else |\n"
        "| not run | the time was over; the order of the cases is random |",
        "Equal are the curves, the results, the weights and all other files, except times and the machine.\n"
        "A case is a fault if it hangs, leaves a temporary file or a process, or touches a file outside.\n"
        "A command that only reads counts as equal if it succeeds.",
        f"{_commits(results)}\n{facts}",
        "| cases | number |\n| --- | --- |\n"
        + "\n".join(f"| {outcome} | {total[outcome]} |" for outcome in OUTCOMES if total[outcome]),
    ]
    counts = count_outcomes(results)
    for part in PARTS:
        rows = [(group, outcomes) for (owner, group), outcomes in counts.items() if owner == part]
        if rows:
            texts += [f"## {part}", _INTRODUCTION[part], _table(rows)]
    faults = [result for result in results if result.outcome == FAULT]
    if faults:
        texts += [
            "## Faults",
            "\n".join(f"- {fault.group}: {fault.name}: {_general(fault.reason)}" for fault in faults),
        ]
    return "\n\n".join(texts) + "\n"


def _commits(results: Sequence[Result]) -> str:
    """Returns how many cases ran at which commit: cases that were faults run again after a repair."""
    commits = Counter(result.commit for result in results if result.outcome != NOT_RUN)
    return f"{', '.join(f'{number} cases ran at commit {commit}' for commit, number in commits.most_common())}."


def _general(reason: str) -> str:
    """Returns a reason without the folder of its case."""
    return re.sub(r"\S*/archlang-faults-\w+/[\w-]+/inside/", "", reason)


def _table(rows: Sequence[tuple[str, Counter[str]]]) -> str:
    lines = ["| class | " + " | ".join(OUTCOMES) + " |", "| --- " * (len(OUTCOMES) + 1) + "|"]
    for group, outcomes in rows:
        numbers = [str(outcomes[outcome] or "") for outcome in OUTCOMES]
        lines.append(f"| {group} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)
