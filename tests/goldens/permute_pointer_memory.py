"""Golden files of Pointer-Augmented Neural Memory with another order of the batch and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 4


def pointer_memory(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a case, changed where they have a batch or padding. The models know no padding."""
    found = dict(arrays)
    if case.startswith("task_samples"):
        return {name: np.flip(array, 1).copy() for name, array in arrays.items()}
    if case.startswith("dyck"):
        return dyck(found)
    if case.startswith("panm_paper"):
        return {name: array if name.startswith("p.") else array[::-1].copy() for name, array in found.items()}
    if case.startswith("panm"):
        return model(found)
    return found


def model(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Each case of a file takes the first rows of the batch, as many as it has bases: those that all cases take stay
    before those that fewer do."""
    counts = sorted({len(array) for name, array in arrays.items() if name.endswith(".bases")})
    parts = [np.arange(low, high)[::-1] for low, high in zip([0, *counts], counts, strict=False)]
    order = np.concatenate(parts)
    found = dict(arrays)
    for name, array in arrays.items():
        if name.endswith(".logits_official_batch") and len(array) > 1:
            # It comes from taking samples for one another, so in another order it is another.
            del found[name]
        elif name in ("x", "target"):
            found[name] = np.concatenate((array[order], array[len(order) :]))
        elif name.startswith("case") and array.ndim and not name.split(".")[1].startswith(("gnorm", "grad")):
            found[name] = array[order[order < len(array)]]
    return found


def dyck(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first strings, which the network with a stack has read, stay before the others."""
    found = dict(arrays)
    read, count = len(arrays["srnn.out"]), len(arrays["len"])
    order = np.concatenate((np.arange(read)[::-1], np.arange(read, count)[::-1]))
    for name in ("strings", "x", "y", "len"):
        found[name] = arrays[name][order]
    found["srnn.out"] = arrays["srnn.out"][::-1].copy()
    for name in ("x", "y", "srnn.out"):
        found[name] = np.pad(found[name], [(0, 0), (0, MORE), (0, 0)])
    return found
