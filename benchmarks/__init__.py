"""Benchmarks of archlang against handwritten torch: `python -m benchmarks`."""

from benchmarks import (
    adversarial,
    attention,
    dynamic_halt,
    growth,
    halting,
    loading,
    memory,
    mixers,
    ndr,
    operators,
    panm,
    passes,
    seq2seq,
    startup,
    written,
)

GROUPS = (
    ndr.GROUP,
    dynamic_halt.GROUP,
    seq2seq.GROUP,
    panm.GROUP,
    operators.GROUP,
    attention.GROUP,
    mixers.GROUP,
    halting.GROUP,
    passes.GROUP,
    memory.GROUP,
    loading.GROUP,
    startup.GROUP,
    growth.GROUP,
    written.GROUP,
    adversarial.GROUP,
)
