"""The library that fails system calls (shim.c), and what one process is to suffer from it."""

import ctypes
import errno
import mmap
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# The order is that of the enumerations in shim.c.
KINDS = (
    "open", "create", "read", "write", "sync", "rename", "mkdir", "unlink", "truncate", "lock", "list", "map",
    "allocate",
)  # fmt: skip
ACTIONS = ("fail", "fail always", "kill", "cut")
_SOURCE = Path(__file__).with_name("shim.c")


@dataclass(frozen=True)
class Orders:
    """What a process suffers.

    Attributes:
        kinds: The system calls that count.
        number: The call that is struck, counted from 1; 0 only counts.
        action: Fail it, fail it and all later ones, kill the process before it, or read or write half of its bytes.
        error: The errno with which it fails.
        smallest: Mappings and allocations count from this size on.
        spare_memory: The address space, in bytes, that the process may use beyond what it has at its start.
        clock: Seconds that the clock jumps, and the number of readings after which it does.
        in_cache: Files count if they are in the cache, not if they are beside the program."""

    kinds: tuple[str, ...] = ()
    number: int = 0
    action: str = "fail"
    error: int = errno.EIO
    smallest: int = 0
    spare_memory: int | None = None
    clock: tuple[float, int] | None = None
    in_cache: bool = False


class Report(ctypes.Structure):
    """Memory that a process shares with its parent: the calls that counted, those that were struck, and the calls that
    counted by kind."""

    _fields_ = (("counted", ctypes.c_long), ("hit", ctypes.c_long), ("by_kind", ctypes.c_long * len(KINDS)))


def why_not() -> str:
    """Returns why this machine cannot fail system calls; empty if it can."""
    if sys.platform != "linux":
        return "system calls are failed on Linux only"
    return "" if shutil.which("cc") else "there is no C compiler `cc`"


def compile_shim(folder: Path) -> Path:
    """Compiles the library into a folder and returns its path."""
    library = folder / "shim.so"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


def new_report() -> Report:
    """Returns a report whose memory forked processes share."""
    return Report.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))


def arm(folder: str, orders: Orders, report: Report) -> None:
    """Carries out the orders in this process from now on. Files count if they are below `folder`."""
    library = ctypes.CDLL(None)
    if orders.spare_memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + orders.spare_memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if orders.clock is not None:
        seconds, readings = orders.clock
        library.faults_shift_clock(ctypes.c_double(seconds), ctypes.c_long(readings))
    bits = sum(1 << KINDS.index(kind) for kind in orders.kinds)
    library.faults_arm(
        ctypes.byref(report), folder.encode(), ctypes.c_uint(bits), ctypes.c_long(orders.number),
        ACTIONS.index(orders.action), orders.error, ctypes.c_size_t(orders.smallest),
    )  # fmt: skip
