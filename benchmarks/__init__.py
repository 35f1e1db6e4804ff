"""How fast archlang is, beside the same written by hand: `python -m benchmarks`."""

from benchmarks import attention, dynamic_halt, halting, ndr, panm

GROUPS = (ndr.GROUP, dynamic_halt.GROUP, panm.GROUP, attention.GROUP, halting.GROUP)
