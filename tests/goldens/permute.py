"""A second set of golden files: the same cases with their batches in another order and more padding behind them.

Both must change nothing. As a program it writes the whole set to another folder, on which the same tests then run:

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
    """The arrays of `<paper>/goldens/<case>.npz` with batch and padding changed, wherever the case has them."""
    return PAPERS[path.parents[1].name](path.stem, arrays)


def main(source: str, target: str) -> None:
    for path in sorted(Path(source).glob("*/goldens/*")):
        place = Path(target) / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                np.savez(place, allow_pickle=False, **permuted(path, dict(arrays)))
        else:
            place.write_bytes(path.read_bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
