"""How fast archlang is, beside the same written by hand: `python -m benchmarks`."""

from benchmarks import attention, ndr

CASES = (ndr.cases, attention.cases)
