"""Golden files of Dynamic Halt with another order of the batch and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 2
LONGER = {
    "in.q": 0, "in.kv": 0, "in.q_mask": 0, "in.kv_mask": 0, "in.positions": 0, "in.x": 0, "in.mask": 0,
    "in.tokens1": 0, "in.tokens2": 0, "in.mask1": 0, "in.mask2": 0, "in.raw_tokens": 0, "in.model_tokens": 0,
    "in.loss_mask": 0, "out.sequence": 0, "out.mask": 0, "obj.r_seq": 0, "grad.in.x": 0,
}  # fmt: skip
"""what has a place for each position behind the batch, and what stands at a place that is padding"""


def dynamic_halt(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a case, changed where they have a batch or padding. Where chunks are as long as a share of the
    whole batch asks for, more padding makes other chunks: there it stays as it is. What comes of positions that the
    program never had is not a number: nobody knows it."""
    found = dict(arrays)
    for name, array in arrays.items():
        if (name == "out" or name.startswith(("in.", "out.", "obj.", "grad.in."))) and array.ndim:
            found[name] = np.flip(array, 1 if name == "out.cond_halt" else 0).copy()
    if case.startswith(("f_", "g_", "h_")):
        return found
    for name, array in found.items():
        if name in LONGER or (name == "in.labels" and case.startswith("heads_flipflop")):
            found[name] = behind(array, 1, LONGER.get(name, 0))
        elif name == "out" and "memory_update" not in case:
            found[name] = behind(array, 1, 0)
        elif name == "out.logits" and case.startswith("heads_flipflop"):
            found[name] = behind(array, 1, np.nan)
        elif name == "out.accepted_layers" and array.ndim == 2:
            found[name] = behind(array, 1, -1)
        elif name == "out.cond_halt" and array.ndim == 3:
            found[name] = behind(array, 2, np.nan)
    return found


def behind(array: np.ndarray, axis: int, value: float) -> np.ndarray:
    """Some more of a value behind an axis."""
    widths = [(0, MORE if one == axis else 0) for one in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)
