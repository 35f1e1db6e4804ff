"""The first signal asks a run to stop, and the second raises KeyboardInterrupt."""

import os
import signal
import threading

import pytest

from archlang.train.stop import Stop, Terminated, terminating


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (signal.SIGINT, KeyboardInterrupt),
        (signal.SIGTERM, Terminated),
        (signal.SIGHUP, Terminated),
        (signal.SIGUSR2, Terminated),
    ],
)
def test_the_first_signal_asks_and_the_second_raises(
    number: signal.Signals, end: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([100.0, 102.0])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    with Stop().listening() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        with pytest.raises(end):
            os.kill(os.getpid(), number)
    assert stop.exit_code == 128 + number


def test_the_two_hangups_of_a_closing_terminal_ask_once() -> None:
    with Stop().listening() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.requested


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stop().listening() as stop, terminating():
            os.kill(os.getpid(), signal.SIGHUP)
        assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2])
def test_a_signal_outside_of_a_training_cleans_up(number: signal.Signals) -> None:
    with pytest.raises(Terminated) as end, terminating():
        os.kill(os.getpid(), number)
    assert end.value.code == 128 + number


def test_a_thread_gets_no_signals_but_can_be_asked() -> None:
    stop = Stop()

    def work() -> None:
        with stop.listening():
            stop.requested = True

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert stop.requested
