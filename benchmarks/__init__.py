"""How fast archlang is, beside the same written by hand: `python -m benchmarks`."""

from benchmarks import attention, halting, ndr, panm

CASES = (ndr.cases, attention.cases, halting.cases, panm.cases)
