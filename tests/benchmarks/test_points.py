"""The overhead of an engine is the workers' time outside training."""

from pathlib import Path

import pytest

from benchmarks.points import Cost, cost


def test_overhead_is_the_time_of_the_workers_outside_training() -> None:
    assert Cost(points=10, workers=2, elapsed=6.0, training=11.0).overhead == pytest.approx(0.1)


@pytest.mark.slow
def test_every_point_is_run(tmp_path: Path) -> None:
    result = cost(3, 1, tmp_path)
    assert result.points == 3
    assert 0 < result.training <= result.elapsed
    assert len(list((tmp_path / "runs").glob("*/results.json"))) == 3
