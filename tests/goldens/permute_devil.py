"""Golden files of The Devil is in the Detail with permuted batches and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 3
WORDS = ("src", "tgt", "tf_labels")
ROWS = (*WORDS, "src_len", "tgt_len", "tf_logits", "greedy_logits", "greedy_tokens", "greedy_len")
ENCODED = ("enc_x", "enc_y")


def devil(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of a case with a permuted batch and more padding. Greedy outputs get no padding: their length
    is that of the longest target."""
    changed = dict(arrays)
    if case.startswith("rel_attention"):
        for name in ("enc_x", "enc_len", "enc_y", "enc_w", "dec_x", "dec_y", "dec_y_stepwise", "dec_w"):
            changed[name] = changed[name][::-1].copy()
        for name in ENCODED:
            changed[name] = longer(changed[name], (1,))
        changed["enc_w"] = longer(changed["enc_w"], (2, 3))
    elif case.startswith(("std", "uni")):
        order = np.roll(np.arange(len(changed["src"])), 1)
        changed |= {name: changed[name][order] for name in ROWS}
        # The rows for accuracy are another batch.
        for name in ("acc_tgt", "acc_tgt_len", "acc_pred", "acc_pred_len", "acc_ok"):
            changed[name] = changed[name][::-1].copy()
        for name in (*WORDS, "tf_logits", "acc_tgt", "acc_pred"):
            changed[name] = longer(changed[name], (1,))
    return changed


def longer(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Appends zeros along some axes."""
    return np.pad(array, [(0, MORE if axis in axes else 0) for axis in range(array.ndim)])
