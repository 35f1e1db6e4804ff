"""Limits on what archlang reads from a run folder, so that a hostile or damaged file costs little time and memory.

A file that exceeds a limit is reported as damaged. Programs have limits of their own, in `archlang.syntax`."""

LARGEST_JSON = 64 << 20
"""Bytes of `run.json`, `data.json`, `versions.json`, `results.json` and `manifest.json`. JSON is at most 200 levels
deep, which is pydantic's limit."""
LARGEST_LINES = 1 << 30
"""Bytes of `metrics.jsonl` and `timings.jsonl`: some ten million logged steps."""
LARGEST_GRAPH = 16 << 20
"""Bytes of `graph.txt` and `graph_at_test.txt`: 20,000 operations, which is the limit of a model."""
DEEPEST_GRAPH = 64
"""Levels of loops and brackets in `graph.txt`: that of programs."""
LARGEST_INTEGER = (1 << 63) - 1
"""The largest step, count, seed and group value."""
