"""Progress is readable on a terminal and in a log."""

import io

import numpy as np
import pytest

from archlang.cli.progress import ProgressDisplay
from archlang.errors.terminal import Terminal
from archlang.tasks.kit.metrics import Tally
from archlang.train.score import Score


def display_on(terminal: bool) -> tuple[ProgressDisplay, io.StringIO]:
    file = io.StringIO()
    return ProgressDisplay(Terminal(file=file, width=120, force_terminal=terminal), "tiny"), file


def test_a_log_gets_the_last_step_and_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    display, log = display_on(terminal=False)
    score = Score("test", 0.5, {"accuracy": Tally(np.array([3]), np.array([4]))}, {}, 4)
    with display.running(100, 0):
        for step in range(1, 101):
            clock[0] += 0.3
            if display.due() or step % 10 == 0:
                display.step(step, 100, 0.25, 4.0, 1234.5, 1.5)
            if step in (50, 100):
                display.scored(step, score, since_best=step // 25)
    lines = log.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["34/100", "68/100", "100/100"]
    # The mean speed so far counts, not that of the last steps.
    assert [line.rpartition("  ")[2] for line in lines[:2]] == ["20 s left", "10 s left"]
    assert lines[-1] == (
        "step 100/100  loss 0.2500  test.accuracy 75.0% (4 since the best)  4.0 steps/s  1,234 tokens/s  depth 1.5  "
        "0 s left"
    )


def test_a_terminal_gets_a_bar() -> None:
    display, terminal = display_on(terminal=True)
    with display.running(10, 4):
        display.reached(0.3049)
        display.step(7, 10, 0.25, 4.0, 1234.5, None)
    for expected in ("7/10", "loss 0.2500", "1,234 tokens/s  30.5% of the peak"):
        assert expected in terminal.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_alone_shows_that_splits_are_evaluated(terminal: bool) -> None:
    display, shown = display_on(terminal)
    with display.working("evaluating every split"):
        pass
    assert ("evaluating every split" in shown.getvalue()) == terminal
