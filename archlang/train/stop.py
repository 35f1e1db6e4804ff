"""How a run is asked to stop: by Ctrl-C, or by a cluster that needs the machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Whether someone asked the run to stop; a second time it is not asked politely any more."""

    asked: bool = False

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Turns SIGINT and SIGTERM into a stop after the step at hand, and a second one into KeyboardInterrupt."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                # None: whoever set it was not Python, and it cannot be set back from here.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
