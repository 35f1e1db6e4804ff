"""Formats results and the machine as text, Markdown and JSON."""

import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

import archlang
from benchmarks.measure import Group, Result

Results = Mapping[Group, Sequence[Result]]
_HEAD = "| case | beside | unit | archlang | beside | ratio | middle half | rounds |"


def facts() -> dict[str, str | int]:
    """Returns versions, threads and processor, without the host name."""
    return {
        "archlang": archlang.__version__,
        "commit": _commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "processor": _processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
    }


def machine() -> str:
    """Returns the facts about the machine on one line."""
    return ", ".join(f"{name} {value}" for name, value in facts().items())


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        described = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return described.stdout.strip() or "unknown"


def _processor() -> str:
    """Returns the architecture, and on Linux vendor and model."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    names = [next((value for name, value in pairs if name == key), "") for key in ("vendor_id", "model name")]
    return " ".join([platform.machine(), *filter(None, names)])


def markdown(results: Results) -> str:
    """Returns a table for each group: medians, and the ratio with its quartiles."""
    return "\n".join(_table(group, group_results) for group, group_results in results.items())


def _table(group: Group, results: Sequence[Result]) -> str:
    rows = "\n".join(map(_row, results))
    return f"### {group.name}\n\n{group.says}\n\n{_HEAD}\n|{' --- |' * 8}\n{rows}\n"


def _row(result: Result) -> str:
    case = result.case
    start = f"| {case.name} | {case.beside} | {case.unit.name} |"
    if result.left_out:
        return f"{start} left out: {result.left_out} | | | | |"
    low, high = result.spread
    return (
        f"{start} {_number(statistics.median(result.ours))} | {_number(statistics.median(result.theirs))} "
        f"| {result.ratio:.3f} | {low:.3f} to {high:.3f} | {len(result.ours)} |"
    )


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def as_json(results: Results) -> dict[str, object]:
    """Returns the machine and the results as JSON-serializable values."""
    return {
        "machine": facts(),
        "groups": [
            {"name": group.name, "says": group.says, "results": [_described(result) for result in group_results]}
            for group, group_results in results.items()
        ],
    }


def _described(result: Result) -> dict[str, object]:
    case = result.case
    facts: dict[str, object] = {"case": case.name, "beside": case.beside, "unit": case.unit.name}
    if result.left_out:
        return {**facts, "left_out": result.left_out}
    return {
        **facts,
        "rounds": len(result.ours),
        "ours": statistics.median(result.ours),
        "theirs": statistics.median(result.theirs),
        "ratio": result.ratio,
        "spread": list(result.spread),
    }
