"""How much memory this process may still use."""

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_OWN_GROUP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Returns the bytes that this process can still allocate: the least of what the system, the control group of a
    container or cluster, and `ulimit -v` leave. None where the system does not say."""
    return min((bytes_ for bytes_ in (_of_system(), _of_groups(), _of_limit()) if bytes_ is not None), default=None)


def _of_system() -> int | None:
    """Returns what the system can give, including what it can swap out."""
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines() if ":" in line)
        return sum(int(lines[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _of_groups() -> int | None:
    """Returns what the control group (version 2) and those around it leave; caches of files count as free."""
    try:
        name = next(line[3:] for line in _OWN_GROUP.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    group = _GROUPS / name.strip("/")
    left = [_of_group(folder) for folder in (group, *group.parents) if folder.is_relative_to(_GROUPS)]
    return min((bytes_ for bytes_ in left if bytes_ is not None), default=None)


def _of_group(folder: Path) -> int | None:
    try:
        limit, used = (int((folder / name).read_text()) for name in ("memory.max", "memory.current"))
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return limit - used + int(statistics["active_file"]) + int(statistics["inactive_file"])
    except (OSError, KeyError, ValueError):  # ValueError: "max", which is no limit
        return None


def _of_limit() -> int | None:
    """Returns what `ulimit -v` leaves."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        return limit - int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError, IndexError):
        return None
