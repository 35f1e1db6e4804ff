"""A second set of golden files: the same cases with permuted batches and more padding, which must not change results.

As a program, this file writes the permuted set to a folder, on which the same tests run:

    python -m tests.goldens.permute ../shared/reference /tmp/permuted
    ARCHLANG_GOLDENS=/tmp/permuted pytest tests/goldens"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.goldens.permute_devil import devil
from tests.goldens.permute_dynamic_halt import dynamic_halt
from tests.goldens.permute_neural_data_router import neural_data_router
from tests.goldens.permute_pointer_memory import pointer_memory

Arrays = Mapping[str, np.ndarray]
PAPERS = {"devil": devil, "halt": dynamic_halt, "ndr": neural_data_router, "panm": pointer_memory}


def permuted(path: Path, arrays: Arrays) -> dict[str, np.ndarray]:
    """Returns the arrays of `<paper>/goldens/<case>.npz` with a permuted batch and more padding."""
    return PAPERS[path.parents[1].name](path.stem, arrays)


def main(source: str, target: str) -> None:
    for path in sorted(Path(source).glob("*/goldens/*")):
        destination = Path(target) / path.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                np.savez(destination, allow_pickle=False, **permuted(path, dict(arrays)))
        else:
            destination.write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
