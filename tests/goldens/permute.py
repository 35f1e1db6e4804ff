"""A second set of golden files: the same cases with permuted batches and more padding, which must not change results.

Expected results at added positions are NaN: they are unknown."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

Arrays = Mapping[str, np.ndarray]


def permuted(path: Path, arrays: Arrays) -> dict[str, np.ndarray]:
    """Returns the arrays of `<paper>/goldens/<case>.npz` with a permuted batch and more padding."""
    return PAPERS[path.parents[1].name](path.stem, arrays)


def behind(array: np.ndarray, axes: tuple[int, ...], value: float = 0.0, more: int = 2) -> np.ndarray:
    """Appends a value `more` times along some axes."""
    axes = tuple(axis % array.ndim for axis in axes)
    widths = [(0, more if axis in axes else 0) for axis in range(array.ndim)]
    return np.pad(array, widths, constant_values=value)


# The Devil is in the Detail

WORDS = ("src", "tgt", "tf_labels")
ROWS = (*WORDS, "src_len", "tgt_len", "tf_logits", "greedy_logits", "greedy_tokens", "greedy_len")
ENCODED = ("enc_x", "enc_y")


def devil(case: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Returns the arrays of a case with a permuted batch and more padding. Greedy outputs get no padding: their length
    is that of the longest target."""
    changed = dict(arrays)
    if case.startswith("rel_attention"):
        for name in ("enc_x", "enc_len", "enc_y", "enc_w", "dec_x", "dec_y", "dec_y_stepwise", "dec_w"):
            changed[name] = changed[name][::-1].copy()
        for name in ENCODED:
            changed[name] = behind(changed[name], (1,), more=3)
        changed["enc_w"] = behind(changed["enc_w"], (2, 3), more=3)
    elif case.startswith(("std", "uni")):
        order = np.roll(np.arange(len(changed["src"])), 1)
        changed |= {name: changed[name][order] for name in ROWS}
        # The rows for accuracy are another batch.
        for name in ("acc_tgt", "acc_tgt_len", "acc_pred", "acc_pred_len", "acc_ok"):
            changed[name] = changed[name][::-1].copy()
        for name in (*WORDS, "tf_logits", "acc_tgt", "acc_pred"):
            changed[name] = behind(changed[name], (1,), more=3)
    return changed


# Dynamic Halt

LONGER = {
    "in.q": 0, "in.kv": 0, "in.q_mask": 0, "in.kv_mask": 0, "in.positions": 0, "in.x": 0, "in.mask": 0,
    "in.tokens1": 0, "in.tokens2": 0, "in.mask1": 0, "in.mask2": 0, "in.raw_tokens": 0, "in.model_tokens": 0,
    "in.loss_mask": 0, "out.sequence": 0, "out.mask": 0, "obj.r_seq": 0, "grad.in.x": 0,
}  # fmt: skip
"""arrays [b, n, ...], and their values at padding"""


def dynamic_halt(case: str, arrays: Arrays) -> dict[str, np.ndarray]:
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
            changed[name] = behind(array, (1,), LONGER.get(name, 0))
        elif name == "out" and "memory_update" not in case:
            changed[name] = behind(array, (1,), 0)
        elif name == "out.logits" and case.startswith("heads_flipflop"):
            changed[name] = behind(array, (1,), np.nan)
        elif name == "out.accepted_layers" and array.ndim == 2:
            changed[name] = behind(array, (1,), -1)
        elif name == "out.cond_halt" and array.ndim == 3:
            changed[name] = behind(array, (2,), np.nan)
    return changed


# Neural Data Router

# Arrays [..., b, n, d], optionally with an axis of steps before them.
PLACES = ("x", "out", "attn_out", "merged", "update", "gate", "states", "layer_in")
UNUSED = ("probe", "grad_x")
"""zero at added positions, which no loss uses"""


def neural_data_router(case: str, arrays: Arrays) -> dict[str, np.ndarray]:
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
        return np.asarray(array * ((n + 2) / n), array.dtype)
    return array[::-1].copy() if name == "lens" else array


# Pointer-Augmented Neural Memory


def pointer_memory(case: str, arrays: Arrays) -> dict[str, np.ndarray]:
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
        changed[name] = np.pad(changed[name], [(0, 0), (0, 4), (0, 0)])
    return changed


PAPERS = {"devil": devil, "halt": dynamic_halt, "ndr": neural_data_router, "panm": pointer_memory}
