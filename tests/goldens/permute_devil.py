"""Golden files of The Devil is in the Detail with another order of the batch and more padding."""

from collections.abc import Mapping

import numpy as np

MORE = 3
WORDS = ("src", "tgt", "tf_labels")
ROWS = (*WORDS, "src_len", "tgt_len", "tf_logits", "greedy_logits", "greedy_tokens", "greedy_len")
ENCODED = ("enc_x", "enc_y")


def devil(case: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a case, changed where they have a batch or padding. What is run greedily has no padding: it is as
    long as the longest target asks for."""
    found = dict(arrays)
    if case.startswith("rel_attention"):
        for name in ("enc_x", "enc_len", "enc_y", "enc_w", "dec_x", "dec_y", "dec_y_stepwise", "dec_w"):
            found[name] = found[name][::-1].copy()
        for name in ENCODED:
            found[name] = longer(found[name], (1,))
        found["enc_w"] = longer(found["enc_w"], (2, 3))
    elif case.startswith(("std", "uni")):
        order = np.roll(np.arange(len(found["src"])), 1)
        found |= {name: found[name][order] for name in ROWS}
        # The accuracy of other rows than those: its batch is one of its own.
        for name in ("acc_tgt", "acc_tgt_len", "acc_pred", "acc_pred_len", "acc_ok"):
            found[name] = found[name][::-1].copy()
        for name in (*WORDS, "tf_logits", "acc_tgt", "acc_pred"):
            found[name] = longer(found[name], (1,))
    return found


def longer(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Zeros behind some axes."""
    return np.pad(array, [(0, MORE if axis in axes else 0) for axis in range(array.ndim)])
