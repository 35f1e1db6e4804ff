"""How fast archlang is, beside the same written by hand: `python -m benchmarks`."""

from benchmarks import ndr

CASES = (ndr.cases,)
