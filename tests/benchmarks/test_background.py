"""The queue of papers' runs goes on where it stopped, and keeps what it needs for that."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.background import main

TABLE = """
recipe trial {
    task  copy[train = 1..3, train_size = 40, valid_size = 4, test_size = 4]
    model m
    train adamw[lr = 1e-3, batch = 4, steps = 20, every = 5]
}

table t { row "m" trial column "a" test.accuracy }
"""
MODEL = """
model m[d = 8](source: tokens[m], target: tokens[n]) -> logits[n, vocab] {
    return linear[vocab](embed[d](target) + attention[1](embed[d](target), embed[d](source)))
}
"""


@pytest.mark.slow
def test_a_row_of_the_queue_is_trained_and_its_state_written(tmp_path: Path) -> None:
    (tmp_path / "t.arch").write_text(MODEL + TABLE, encoding="utf-8")
    queue, runs = tmp_path / "queue.md", tmp_path / "runs"
    row = f"| `{tmp_path}/t.arch --seeds 1..2` | why | 1 | waits |"
    queue.write_text(f"| runs | why | core-hours | state |\n| --- | --- | ---: | --- |\n{row}\n", encoding="utf-8")
    (runs / "of another row").mkdir(parents=True)
    (runs / "of another row" / "metrics.jsonl").write_text('{"step": 7}\n', encoding="utf-8")
    page = tmp_path / "results.md"
    main(["--minutes", "2", "--queue", str(queue), "--runs", str(runs), "--page", str(page)])
    assert queue.read_text(encoding="utf-8").splitlines()[-1].split("|")[-2].strip() == "done"
    section = page.read_text(encoding="utf-8")
    assert f"archlang table {tmp_path}/t.arch --seeds 1..2 --no-run --out {runs}" in section
    assert "| m |" in section
    (picture,) = (tmp_path / "results").iterdir()
    assert f"(results/{picture.name})" in section
    shutil.rmtree(runs / "of another row")
    kept = {folder.name: sorted(file.name for file in folder.iterdir()) for folder in runs.iterdir() if folder.is_dir()}
    assert list(kept.values()) == [["results.json", "run.json", "versions.json"]] * 2
    assert {json.loads((runs / name / "run.json").read_text("utf-8"))["seed"] for name in kept} == {1, 2}
