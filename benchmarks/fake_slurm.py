"""SLURM's commands on this machine, for tests: `install(folder)` writes `sbatch`, `srun`, `sacct`, `scancel` and
`scontrol` there. All nodes are this machine. A job of one node or several, or an array of them, runs at once; a
requeued job runs again."""

import os
import re
import signal
import subprocess
import sys
import time
from functools import reduce
from pathlib import Path

COMMANDS = ("sbatch", "srun", "sacct", "scancel", "scontrol")


def install(folder: Path) -> dict[str, str]:
    """Returns the environment with these commands."""
    folder.mkdir()
    for name in COMMANDS:
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {name} "$@"\n')
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "FAKE_SLURM": str(folder)}


def _state(job: str) -> Path:
    return Path(os.environ["FAKE_SLURM"]) / f"job-{job}"


def sbatch(script: str) -> None:
    """Starts a process for each job of an array."""
    number, text = str(os.getpid()), Path(script).read_text()
    array = re.search(r"--array=0-(\d+)", text)
    flags = {name: re.search(rf"--{name}=(\d+)", text) for name in ("nodes", "ntasks-per-node")}
    nodes, tasks = (int(flag[1]) if flag else 1 for flag in flags.values())
    for index in range(int(array[1]) + 1) if array else [None]:
        job = number if index is None else f"{number}_{index}"
        variables = {
            "SLURM_JOB_ID": job.replace("_", ""), "SLURM_JOB_NUM_NODES": str(nodes), "SLURM_NTASKS": str(nodes * tasks),
            "SLURM_JOB_NODELIST": "localhost", "SLURM_JOB_NAME": "archlang", "FAKE_JOB": job,
        }  # fmt: skip
        if index is not None:
            variables |= {"SLURM_ARRAY_JOB_ID": number, "SLURM_ARRAY_TASK_ID": str(index)}
        _state(job).write_text("RUNNING")
        subprocess.Popen(
            [sys.executable, __file__, "job", script], env=os.environ | variables, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    print(f"Submitted batch job {number}")


def job(script: str) -> None:
    state = _state(os.environ["FAKE_JOB"])
    while True:
        code = subprocess.call(["bash", script])
        if state.read_text() != "REQUEUED":
            break
        state.write_text("RUNNING")
    state.write_text("FAILED" if code else "COMPLETED")


def srun(*arguments: str) -> int:
    """Runs a command once for each task, until all have ended or the job is requeued or cancelled."""
    words = list(arguments[1:])  # after `--unbuffered`
    paths = []
    while words[0] in ("--output", "--error"):
        paths.append(words[1])
        words = words[2:]
    state, tasks = _state(os.environ["FAKE_JOB"]), int(os.environ["SLURM_NTASKS"])
    per_node = tasks // int(os.environ["SLURM_JOB_NUM_NODES"])
    signs = {"%j": "SLURM_JOB_ID", "%A": "SLURM_ARRAY_JOB_ID", "%a": "SLURM_ARRAY_TASK_ID", "%t": "SLURM_PROCID"}
    processes = []
    for rank in range(tasks):
        own = os.environ | {
            "SLURM_PROCID": str(rank), "SLURM_NODEID": str(rank // per_node), "SLURM_LOCALID": str(rank % per_node),
        }  # fmt: skip
        named = [reduce(lambda path, sign: path.replace(sign, own.get(signs[sign], "")), signs, path) for path in paths]
        output, errors = (open(path, "a") for path in named)  # noqa: SIM115 # until the process ends
        processes.append(subprocess.Popen(words, env=own, stdout=output, stderr=errors))
    state.with_name(f"{state.name}.tasks").write_text(" ".join(str(process.pid) for process in processes))
    while any(process.poll() is None for process in processes):
        if state.read_text() != "RUNNING":
            time.sleep(2)  # KillWait
            for process in processes:
                process.kill()
        time.sleep(0.1)
    return max(abs(process.wait()) for process in processes)


def sacct(*_: str) -> None:
    print("JobID|State|NodeList")
    for state in Path(os.environ["FAKE_SLURM"]).glob("job-*"):
        if not state.suffix:
            print(f"{state.name.removeprefix('job-')}|{state.read_text()}|localhost")


def scancel(number: str) -> None:
    for state in Path(os.environ["FAKE_SLURM"]).glob(f"job-{number}*.tasks"):
        for process in map(int, state.read_text().split()):
            os.kill(process, signal.SIGTERM)
        state.with_suffix("").write_text("CANCELLED")


def scontrol(_: str, number: str) -> None:
    _state(number).write_text("REQUEUED")


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]](*sys.argv[2:]))
