"""How fast archlang is, beside the same written by hand: `python -m benchmarks`."""

from benchmarks import attention, halting, ndr, panm

GROUPS = (ndr.GROUP, attention.GROUP, halting.GROUP, panm.GROUP)
