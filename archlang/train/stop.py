"""A request to stop a run: by Ctrl-C, by a closed terminal, or by a cluster that needs the machine."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

# Windows has neither SIGHUP nor SIGUSR2.
_HANGUP = getattr(signal, "SIGHUP", None)
# submitit lets SLURM send it before the time limit of a job.
TIME_LIMIT = getattr(signal, "SIGUSR2", signal.SIGTERM)
SIGNALS = tuple(number for number in (signal.SIGINT, signal.SIGTERM, _HANGUP, TIME_LIMIT) if number is not None)
# A terminal that closes sends SIGHUP twice: the shell to its jobs, and the system to the terminal's processes.
_SECONDS_OF_ONE_HANGUP = 1.0


class Terminated(SystemExit):
    """SIGTERM, SIGHUP or SIGUSR2 ends this process; its files and child processes are cleaned up on the way."""

    def __init__(self, number: int) -> None:
        super().__init__(exit_code(number))


def exit_code(number: int) -> int:
    """Returns the exit code of a process that a signal has ended, as shells write it."""
    return 128 + number


@dataclass
class Stop:
    """Whether a run is asked to stop. `number` is the signal that asks; None if something else asks."""

    requested: bool = False
    number: int | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of a command that has stopped."""
        return exit_code(signal.SIGTERM if self.number is None else self.number)

    @contextmanager
    def at(self, deadline: float | None) -> Iterator[Stop]:
        """Inside, the run is asked to stop at the deadline, in seconds since 1970; None: it is not."""
        if deadline is None:
            yield self
            return
        timer = threading.Timer(max(deadline - time.time(), 0), lambda: setattr(self, "requested", True))
        timer.daemon = True
        timer.start()
        try:
            yield self
        finally:
            timer.cancel()

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Inside, SIGINT, SIGTERM, SIGHUP or SIGUSR2 asks the run to stop after the current step, and the second signal
        raises KeyboardInterrupt or Terminated. In a thread other than the main one it does nothing, as only that one
        receives signals. A signal that is ignored, as SIGHUP under `nohup`, stays ignored."""
        asked_at = 0.0

        def ask(number: int, frame: FrameType | None) -> None:
            nonlocal asked_at
            if self.number is None:
                self.requested, self.number = True, number
                asked_at = time.monotonic()
            elif number != _HANGUP or self.number != _HANGUP or time.monotonic() - asked_at > _SECONDS_OF_ONE_HANGUP:
                _end(number, frame)

        with _handling(SIGNALS, ask):
            yield self


@contextmanager
def terminating() -> Iterator[list[int]]:
    """Inside, SIGTERM, SIGHUP and SIGUSR2 raise Terminated instead of ending the process without cleaning up. Yields
    the signals so far: a library may swallow the exception, and fail later."""
    received: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        received.append(number)
        _end(number, frame)

    with _handling([number for number in SIGNALS if number != signal.SIGINT], end):
        yield received


@contextmanager
def keeping_handlers() -> Iterator[None]:
    """Restores how signals are handled at its end: a library that starts inside may set handlers of its own."""
    with _handling(SIGNALS, None):
        yield


def _end(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


@contextmanager
def _handling(numbers: Iterable[int], handle: Callable[[int, FrameType | None], None] | None) -> Iterator[None]:
    """Handles signals that are not ignored by calling `handle`, or as they are; in threads other than the main one,
    does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, handle) if handle else signal.getsignal(number) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None is a handler that was not set by Python, and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
