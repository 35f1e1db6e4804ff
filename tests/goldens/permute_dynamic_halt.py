"""Golden files of Dynamic Halt with permuted batches and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 2
LONGER = {
    "in.q": 0, "in.kv": 0, "in.q_mask": 0, "in.kv_mask": 0, "in.positions": 0, "in.x": 0, "in.mask": 0,
    "in.tokens1": 0, "in.tokens2": 0, "in.mask1": 0, "in.mask2": 0, "in.raw_tokens": 0, "in.model_tokens": 0,
    "in.loss_mask": 0, "out.sequence": 0, "out.mask": 0, "obj.r_seq": 0, "grad.in.x": 0,
}  # fmt: skip
"""arrays [b, n, ...], and their values at padding"""


def dynamic_halt(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of a case with a permuted batch and more padding. Cases whose chunk size depends on the
    length of the batch get no padding, because it would change the chunks. Expected results at added positions are
    NaN: they are unknown."""
    changed = dict(arrays)
    for name, array in arrays.items():
        if (name == "out" or name.startswith(("in.", "out.", "obj.", "grad.in."))) and array.ndim:
            changed[name] = np.flip(array, 1 if name == "out.cond_halt" else 0).copy()
    if case.startswith(("f_", "g_", "h_")):
        return changed
    for name, array in changed.items():
        if name in LONGER or (name == "in.labels" and case.startswith("heads_flipflop")):
            changed[name] = behind(array, 1, LONGER.get(name, 0))
        elif name == "out" and "memory_update" not in case:
            changed[name] = behind(array, 1, 0)
        elif name == "out.logits" and case.startswith("heads_flipflop"):
            changed[name] = behind(array, 1, np.nan)
        elif name == "out.accepted_layers" and array.ndim == 2:
            changed[name] = behind(array, 1, -1)
        elif name == "out.cond_halt" and array.ndim == 3:
            changed[name] = behind(array, 2, np.nan)
    return changed


def behind(array: np.ndarray, axis: int, value: float) -> np.ndarray:
    """Appends a value `MORE` times along an axis."""
    widths = [(0, MORE if index == axis else 0) for index in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)
