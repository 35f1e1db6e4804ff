"""What each engine loses by each fault, the exit code, and the message; the table is in docs/scale.md."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from benchmarks.engine_faults import CELLS, FAULTS, PACKAGES, STEPS, Bench

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

RESUMES = "; rerun the command to resume from its last checkpoint"
# By fault, the exit codes and the messages that engines may end with; torchrun ends with 1 whatever the code of a rank.
STOPPED = (140, "stopped; rerun the command to resume")
TRAINED, BESIDE = (0, ""), (0, "running in another process: Tiny, Test, seed 1")
EXPECTED = {
    "time limit": {
        "local": STOPPED, "ray": STOPPED, "torchrun": (1, r"stopped at step \d+; resume with `--resume runs/run`"),
    },
    "dead worker": {
        "local": (71, rf"failed: Tiny, .*: its process died \(killed by SIGKILL\){RESUMES}"),
        "ray": (71, rf"failed: Tiny, .*: Ray lost it: .*{RESUMES}"),
        "submitit, local": (71, rf"failed: Tiny, .*: its job \d+ on this machine ended without results .*{RESUMES}"),
        "submitit, SLURM": (71, rf"failed: Tiny, .*: its job \d+ on localhost ended without results .*{RESUMES}"),
    },
    "dead rank": {"torchrun": (1, r"rank +: 1; exitcode +: -9 .*")},
    "viewer": {"torchrun": (0, ".*: running at step .*")},
    "second table": {"torchrun": (1, "error: another process is training in runs/run")},
}  # fmt: skip
OTHERS = {
    "time limit": TRAINED,  # a job of SLURM is saved and queued again
    "dead rank": (71, rf"failed: Tiny, .*: process 1 of 2 on \S+ died \(killed by SIGKILL\){RESUMES}"),
    "dead node": (
        71, rf"failed: Tiny, .*: the process of rank 0 .* lost the others: .*; process 1 of 2 .* died .*{RESUMES}"
    ),
    "long evaluation": TRAINED,
    "viewer": (0, "trial 0: train.lr = .*: running in another process"),
    "second table": BESIDE,
}  # fmt: skip


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("alone")


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "fault"), [pytest.param(*cell, id=", ".join(cell)) for cell in CELLS])
def test_a_fault_loses_at_most_what_no_checkpoint_has(engine: str, fault: str, tmp_path: Path, alone: Path) -> None:
    if importlib.util.find_spec(PACKAGES.get(engine, "os")) is None:
        pytest.skip(f"{PACKAGES[engine]} is not installed")
    bench = Bench(engine, tmp_path, alone)
    outcome = FAULTS[fault](bench)
    code, message = EXPECTED.get(fault, {}).get(engine) or OTHERS[fault]
    assert outcome.code == code
    assert re.fullmatch(message, outcome.message), outcome.message
    assert outcome.lost <= (STEPS[bench.processes] // 8 if fault.startswith("dead") else 0)
