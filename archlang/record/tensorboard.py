"""The TensorBoard curves of a run."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archlang.files.folder import Folder


class CurvesWarning(UserWarning):
    """The curves cannot be written; the run continues."""


class Curves:
    """A folder of TensorBoard events. `metrics.jsonl` has the same points, so an error here does not end the run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # TensorBoard discards points of an earlier process from this step on.
        self.purge_step: int | None = None
        self._writer: Any = None  # Any: TensorBoard's writer, imported with the first point, which takes a second
        self._failed = False

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a point to the curve of each name. Warns once if the folder cannot be written."""
        if self._failed:
            return
        try:
            if self._writer is None:
                from torch.utils.tensorboard import SummaryWriter

                # TensorBoard would write through a link.
                with Folder.open(self.folder.parent) as parent:
                    parent.folder(self.folder.name, create=True).close()
                self._writer = SummaryWriter(str(self.folder), purge_step=self.purge_step)
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Flushes the points to disk."""
        if self._writer is not None and not self._failed:
            try:
                self._writer.close()
            except OSError as error:
                self._fail(error)
        self._writer = None

    def _fail(self, error: OSError) -> None:
        self._failed = True
        warnings.warn(f"{self.folder} gets no further curves: {error.strerror}", CurvesWarning, stacklevel=3)
