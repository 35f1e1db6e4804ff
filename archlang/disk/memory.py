"""How much memory this process may still use, and how much it has used."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")
_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _GroupFiles:
    """The files of a control group, and the names in `memory.stat` of what the group can give back."""

    limit: str
    used: str
    caches: tuple[str, ...]


_VERSION_1 = _GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
_VERSION_2 = _GroupFiles("memory.max", "memory.current", ("active_file", "inactive_file"))


def available_memory() -> int | None:
    """Returns the bytes that this process can still allocate: the least of what the system, the control groups of a
    container or cluster (version 1 or 2), and `ulimit -v` leave. None where the system does not say."""
    return min(
        (
            bytes_
            for bytes_ in (_free_memory_and_swap(), _free_in_groups(), _below_address_limit())
            if bytes_ is not None
        ),
        default=None,
    )


def reset_peak_memory() -> None:
    """Lets `peak_memory` count from now on, on Linux. Elsewhere it counts from the start of the process."""
    with suppress(OSError):
        _CLEAR_REFS.write_text("5")


def peak_memory() -> int | None:
    """Returns the largest number of bytes that this process has had in memory; None where the system does not say."""
    with suppress(OSError, StopIteration, ValueError, IndexError):
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    # macOS counts bytes, other systems KiB.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _free_memory_and_swap() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines() if ":" in line)
        return sum(int(lines[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _free_in_groups() -> int | None:
    """Returns what the control groups and those around them leave; caches of files count as free."""
    try:
        lines = [line.split(":", 2) for line in _OWN_GROUP.read_text().splitlines()]
    except OSError:
        return None
    left: list[int | None] = []
    for _, controllers, name in (line for line in lines if len(line) == 3):
        if not controllers:
            left += _free_in_tree(_GROUPS, name, _VERSION_2)
        elif "memory" in controllers.split(","):
            left += _free_in_tree(_GROUPS / "memory", name, _VERSION_1)
    return min((bytes_ for bytes_ in left if bytes_ is not None), default=None)


def _free_in_tree(root: Path, name: str, files: _GroupFiles) -> list[int | None]:
    """Returns what a group and each group around it leave. In a container, the group itself may be the root."""
    group = root / name.strip("/")
    return [_free_in_group(folder, files) for folder in (group, *group.parents) if folder.is_relative_to(root)]


def _free_in_group(folder: Path, files: _GroupFiles) -> int | None:
    try:
        limit, used = (int((folder / name).read_text()) for name in (files.limit, files.used))
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return limit - used + sum(int(statistics[name]) for name in files.caches)
    except (OSError, KeyError, ValueError):  # ValueError: "max", which is no limit
        return None


def _below_address_limit() -> int | None:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        return limit - int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, IndexError):
        return None
