"""Golden files of Neural Data Router with permuted batches and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 2
# Arrays [..., b, n, d], optionally with an axis of steps before them.
PLACES = ("x", "out", "attn_out", "merged", "update", "gate", "states", "layer_in")
UNUSED = ("probe", "grad_x")
"""zero at added positions, which no loss uses"""


def neural_data_router(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of a case with a permuted batch and more padding. Expected results at added positions are NaN:
    they are unknown."""
    changed = dict(arrays)
    if case.startswith("a_"):
        return {name: _core(name, array) for name, array in arrays.items()}
    if case.startswith("h"):
        return {name: _adaptive(name, array, arrays["pad_mask"].shape[1]) for name, array in arrays.items()}
    for name, array in arrays.items():
        if name == "tokens":
            changed[name] = behind(array[::-1], (1,), 0)
        elif name in ("lens", "logits"):
            changed[name] = array[::-1].copy()
        elif name == "pad_mask":
            changed[name] = behind(array[::-1], (1,), 1)
        elif name in PLACES or name in UNUSED:
            fill = 0 if name in UNUSED or name == "x" else np.nan
            changed[name] = behind(np.flip(array, -3), (-2,), fill)
        elif name == "pos_table":
            changed[name] = behind(array, (0,), np.nan)
        elif name == "weights":
            changed[name] = behind(behind(np.flip(array, -4), (-1,), 0), (-2,), np.nan)
    return changed


def _core(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim == 1:
        return array[::-1].copy()
    keys = behind(array[::-1], (2,), 0)
    return behind(keys, (1,), np.nan if "_weights" in name else 0)


def _adaptive(name: str, array: np.ndarray, n: int) -> np.ndarray:
    """Padding has halted before the first step. The regulariser is a mean over positions including padding, so its
    weight grows with the length to keep its value."""
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
    """Appends a value `MORE` times along some axes."""
    axes = tuple(axis % array.ndim for axis in axes)
    widths = [(0, MORE if axis in axes else 0) for axis in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)
