"""The first signal is a wish, the second one is an order."""

import os
import signal
import threading

import pytest

from weft.core.errors import Interrupted
from weft.training.signals import Signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_noted_and_left_with_its_code(number, code):
    before = signal.getsignal(number)
    with Signals() as signals:
        os.kill(os.getpid(), number)
        assert signals.received == number
        with pytest.raises(Interrupted, match="saved all") as left:
            signals.leave("saved all")
    assert left.value.exit_code == code
    assert signal.getsignal(number) is before


def test_a_second_signal_has_its_ordinary_effect():
    with Signals():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_without_a_signal_nothing_is_raised():
    with Signals() as signals:
        signals.leave("")


def test_another_thread_trains_without_signals():
    seen = []

    def work():
        with Signals() as signals:
            seen.append(signals.received)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
