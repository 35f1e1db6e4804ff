"""Trials that fail, cut short or kill at each system call of a training, one by one."""

import errno
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from tests.faults.judging import Bench, Trial, Verdict
from tests.faults.shim import Orders
from tests.faults.workshop import Case

# Every call that changes the disk.
_CHANGES = ("create", "write", "sync", "rename", "mkdir", "unlink", "truncate")
# Every call on a file.
_FILES = ("open", "read", "lock", "list", *_CHANGES)
# Allocations count from this size on, in bytes.
_SMALLEST = 4096
_KILL = Orders(kinds=_CHANGES, action="kill")
_FULL = Orders(kinds=_CHANGES, action="fail always", error=errno.ENOSPC)
_CLASSES = {
    "one open fails (EMFILE)": Orders(kinds=("open",), error=errno.EMFILE),
    "one creation of a file fails (ENOSPC)": Orders(kinds=("create",), error=errno.ENOSPC),
    "one read fails (EIO)": Orders(kinds=("read",), error=errno.EIO),
    "one write fails (ENOSPC)": Orders(kinds=("write",), error=errno.ENOSPC),
    "one write writes half": Orders(kinds=("write",), action="cut"),
    "one fsync fails (EIO)": Orders(kinds=("sync",), error=errno.EIO),
    "one rename fails (EIO)": Orders(kinds=("rename",), error=errno.EIO),
    "one mkdir fails (ENOSPC)": Orders(kinds=("mkdir",), error=errno.ENOSPC),
    "one removal fails (EIO)": Orders(kinds=("unlink",), error=errno.EIO),
    "one truncation fails (EIO)": Orders(kinds=("truncate",), error=errno.EIO),
    "the lock fails (ENOLCK)": Orders(kinds=("lock",), error=errno.ENOLCK),
    "one listing of a folder fails (EMFILE)": Orders(kinds=("list",), error=errno.EMFILE),
    "one mapping of memory fails (ENOMEM)": Orders(kinds=("map",), error=errno.ENOMEM),
    "one allocation of 4 KiB or more fails (ENOMEM)": Orders(
        kinds=("allocate",), error=errno.ENOMEM, smallest=_SMALLEST
    ),
    "the disk is full from a call on (ENOSPC)": _FULL,
    "no file can be opened from a call on (EMFILE)": Orders(
        kinds=("open", "create", "list"), action="fail always", error=errno.EMFILE
    ),
    "killed before a call that changes the disk": _KILL,
}  # fmt: skip
# Allocations are too many to fail each: these are spread evenly.
_ALLOCATIONS = 60


def trials(bench: Bench) -> Iterator[Trial]:
    """Yields a trial for each call of a new training, of a resumed one, and of one that generates its data."""
    for start in ("new", "resumed"):
        counts = _count(bench, start)
        for group, orders in _CLASSES.items():
            yield from _each(group, start, orders, counts)
    counts = _count(bench, "generating")
    for group, orders in (("the disk of the cache is full (ENOSPC)", _FULL), ("killed while writing the cache", _KILL)):
        yield from _each(group, "generating", replace(orders, in_cache=True), counts)


def sample(bench: Bench) -> Iterator[Trial]:
    """Yields two trials of a new training."""
    counts = _count(bench, "new")
    for orders in (_FULL, _KILL):
        trials = list(_each("sample", "new", orders, counts))
        yield trials[len(trials) // 2]


def _count(bench: Bench, start: str) -> Mapping[str, int]:
    """Returns the number of calls of each kind that an undisturbed training makes."""
    counts: dict[str, int] = {}
    for kinds, smallest in ((_FILES, 0), (("map",), 0), (("allocate",), _SMALLEST)):
        with _begin(bench, start) as case:
            orders = Orders(kinds=kinds, smallest=smallest, in_cache=start == "generating")
            end = bench.shop.run(case, *case.train(), orders=orders)
            counts |= {kind: end.counted[kind] for kind in kinds}
    return counts


def _each(group: str, start: str, orders: Orders, counts: Mapping[str, int]) -> Iterator[Trial]:
    counted = sum(counts[kind] for kind in orders.kinds)
    stride = max(counted // _ALLOCATIONS, 1) if "allocate" in orders.kinds else 1
    for number in range(1, counted + 1, stride):
        name = f"{start} training, call {number} of {counted}"
        yield Trial(group, name, partial(_judge, start, replace(orders, number=number)))


def _judge(start: str, orders: Orders, bench: Bench) -> Verdict:
    # Libraries in C++ end the process if they get no memory.
    may_die = orders.action == "kill" or orders.error == errno.ENOMEM
    with _begin(bench, start) as case:
        end = bench.shop.run(case, *case.train(), orders=orders)
        return bench.judge_training(case, end, may_die=may_die)


@contextmanager
def _begin(bench: Bench, start: str) -> Iterator[Case]:
    with bench.shop.case(bench.begun if start == "resumed" else bench.fresh) as case:
        if start == "generating":
            shutil.rmtree(case.cache)
        yield case
