"""Runs measurements in fresh processes."""

import os
import subprocess
import sys
from pathlib import Path

import torch

_ROOT = Path(__file__).parent.parent


def run(*arguments: str, **environment: str) -> str:
    """Runs Python with these arguments and environment variables, and returns its standard output.

    The process imports this checkout and has as many threads as this one.

    Raises:
        SystemExit: the process failed."""
    threads = str(torch.get_num_threads())
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    variables = {
        **os.environ,
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        **environment,
    }
    done = subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
