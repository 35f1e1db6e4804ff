"""The first signal asks a run to stop, and the second raises KeyboardInterrupt."""

import os
import signal
import threading

import pytest

from archlang.train.stop import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_raises(number: signal.Signals) -> None:
    with Stop().listening() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_the_previous_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Stop().listening():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_thread_gets_no_signals_but_can_be_asked() -> None:
    stop = Stop()

    def work() -> None:
        with stop.listening():
            stop.asked = True

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert stop.asked
