"""TensorBoard's curves of a run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class CurvesWarning(UserWarning):
    """There are no curves; the run itself goes on."""


class Curves:
    """Points in a folder of TensorBoard events. They stand in metrics.jsonl too, so a run does not end for want of
    them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Points from this step on that a killed run left are void.
        self.anew_from: int | None = None
        self._writer: Any = None  # Any: TensorBoard's writer, imported with the first point as that takes a second
        self._given_up = False

    def add(self, step: int, values: Mapping[str, float]) -> None:
        if self._given_up:
            return
        try:
            if self._writer is None:
                from torch.utils.tensorboard import SummaryWriter

                self._writer = SummaryWriter(str(self.folder), purge_step=self.anew_from)
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        if self._writer is not None and not self._given_up:
            try:
                self._writer.close()
            except OSError as error:
                self._give_up(error)
        self._writer = None

    def _give_up(self, error: OSError) -> None:
        self._given_up = True
        warnings.warn(f"{self.folder} gets no more curves: {error.strerror}", CurvesWarning, stacklevel=3)
