"""One signal asks, two insist."""

import os
import signal
import threading

import pytest

from archlang.train.stop import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_and_a_second_one_insists(number: signal.Signals) -> None:
    with Stop().listening() as stop:
        assert not stop.asked
        os.kill(os.getpid(), number)
        assert stop.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_who_listened_before_listens_again() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Stop().listening():
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_thread_cannot_listen_but_can_be_asked() -> None:
    stop = Stop()

    def work() -> None:
        with stop.listening():
            stop.asked = True

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert stop.asked
