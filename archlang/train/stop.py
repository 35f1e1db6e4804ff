"""A request to stop a run: by Ctrl-C, or by a cluster that needs the machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Whether a run is asked to stop."""

    asked: bool = False

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Inside, SIGINT or SIGTERM asks the run to stop after the current step, and the second signal raises
        KeyboardInterrupt. In a thread other than the main one it does nothing, as only that one receives signals."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True

        previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in previous.items():
                # None is a handler that was not set by Python, and cannot be restored.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
