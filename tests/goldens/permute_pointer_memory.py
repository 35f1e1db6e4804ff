"""Golden files of Pointer-Augmented Neural Memory with permuted batches and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 4


def pointer_memory(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of a case with a permuted batch. Only Dyck strings are padded."""
    changed = dict(arrays)
    if case.startswith("task_samples"):
        return {name: np.flip(array, 1).copy() for name, array in arrays.items()}
    if case.startswith("dyck"):
        return dyck(changed)
    if case.startswith("panm_paper"):
        return {name: array if name.startswith("p.") else array[::-1].copy() for name, array in changed.items()}
    if case.startswith("panm"):
        return model(changed)
    return changed


def model(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Each case of a file uses the first rows of the batch, one for each of its bases. Rows are permuted within groups
    that the same cases use."""
    counts = sorted({len(array) for name, array in arrays.items() if name.endswith(".bases")})
    parts = [np.arange(low, high)[::-1] for low, high in zip([0, *counts], counts, strict=False)]
    order = np.concatenate(parts)
    changed = dict(arrays)
    for name, array in arrays.items():
        if name.endswith(".logits_official_batch") and len(array) > 1:
            # The scrambled batch mixes samples, so its result depends on their order.
            del changed[name]
        elif name in ("x", "target"):
            changed[name] = np.concatenate((array[order], array[len(order) :]))
        elif name.startswith("case") and array.ndim and not name.split(".")[1].startswith(("gnorm", "grad")):
            changed[name] = array[order[order < len(array)]]
    return changed


def dyck(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The strings that the stack network has read stay before the others."""
    changed = dict(arrays)
    read, count = len(arrays["srnn.out"]), len(arrays["len"])
    order = np.concatenate((np.arange(read)[::-1], np.arange(read, count)[::-1]))
    for name in ("strings", "x", "y", "len"):
        changed[name] = arrays[name][order]
    changed["srnn.out"] = arrays["srnn.out"][::-1].copy()
    for name in ("x", "y", "srnn.out"):
        changed[name] = np.pad(changed[name], [(0, 0), (0, MORE), (0, 0)])
    return changed
