"""Golden files of Neural Data Router with another order of the batch and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 2
# What is a row for each sample, by its last axes; a step axis may stand before them.
PLACES = ("x", "out", "attn_out", "merged", "update", "gate", "states", "layer_in")
NOTHING = ("probe", "grad_x")
"""zero behind: what no loss asks for gets no gradient"""


def neural_data_router(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a case, changed where they have a batch or padding. What comes of positions that the program never
    had is not a number: nobody knows it."""
    found = dict(arrays)
    if case.startswith("a_"):
        return {name: _core(name, array) for name, array in arrays.items()}
    if case.startswith("h"):
        return {name: _adaptive(name, array, arrays["pad_mask"].shape[1]) for name, array in arrays.items()}
    for name, array in arrays.items():
        if name == "tokens":
            found[name] = behind(array[::-1], (1,), 0)
        elif name in ("lens", "logits"):
            found[name] = array[::-1].copy()
        elif name == "pad_mask":
            found[name] = behind(array[::-1], (1,), 1)
        elif name in PLACES or name in NOTHING:
            known = 0 if name in NOTHING or name == "x" else np.nan
            found[name] = behind(np.flip(array, -3), (-2,), known)
        elif name == "pos_table":
            found[name] = behind(array, (0,), np.nan)
        elif name == "weights":
            found[name] = behind(behind(np.flip(array, -4), (-1,), 0), (-2,), np.nan)
    return found


def _core(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim == 1:
        return array[::-1].copy()
    keys = behind(array[::-1], (2,), 0)
    return behind(keys, (1,), np.nan if "_weights" in name else 0)


def _adaptive(name: str, array: np.ndarray, n: int) -> np.ndarray:
    """Padding has halted before it begins. The regulariser is a mean over positions, padding among them: so as to stay
    what it is, it counts for more."""
    if name in ("x", "probe", "states") or name.endswith(("_out", "_grad_x")):
        return behind(np.flip(array, -3), (-2,), 0)
    if name == "pad_mask" or name.endswith("_p_cum"):
        return behind(array[::-1], (1,), 1)
    if name.endswith(("_n_updates", "_remainder")):
        return behind(array[::-1], (1,), 0)
    if name == "loss_weight":
        return np.asarray(array * ((n + MORE) / n), array.dtype)
    return array[::-1].copy() if name == "lens" else array


def behind(array: np.ndarray, axes: tuple[int, ...], value: float) -> np.ndarray:
    """Some more of a value behind some axes."""
    axes = tuple(axis % array.ndim for axis in axes)
    widths = [(0, MORE if axis in axes else 0) for axis in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)
