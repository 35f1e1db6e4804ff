"""Progress and results are readable on a terminal and in a log."""

import io

import numpy as np
import pytest

from archlang.errors.terminal import Terminal
from archlang.tasks.kit.metrics import Tally
from archlang.train.record.schemas import ClaimResult, Results, SplitResult
from archlang.train.runs.progress import ProgressDisplay, claim_table, result_notes, result_table, showing_evaluation
from archlang.train.score import Score


def console(terminal: bool) -> Terminal:
    return Terminal(file=io.StringIO(), width=120, force_terminal=terminal)


def output(console: Terminal) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def printed(renderable: object) -> str:
    shown = console(terminal=False)
    shown.print(renderable)
    return output(shown)


SPLIT = SplitResult(
    items=40, loss=0.5, metrics={"accuracy": 0.75, "last_accuracy": float("nan")},
    groups={"length": {3: {"accuracy": 1.0}, 5: {"accuracy": 0.5}}, "depth": {n: {"accuracy": 0.1} for n in range(99)}},
)  # fmt: skip


def results(names: dict[str, tuple[str, ...]] | None = None, **splits: SplitResult) -> Results:
    return Results(best_step=1, breakdown="length", splits=splits, group_names=names or {})


def test_a_log_gets_the_last_step_and_few_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    log = console(terminal=False)
    display = ProgressDisplay(log, "tiny")
    score = Score("test", 0.5, {"accuracy": Tally(np.array([3]), np.array([4]))}, {}, 4)
    with display.showing(100, 0):
        for step in range(1, 101):
            clock[0] += 0.3
            if display.due() or step % 10 == 0:
                display.step(step, 100, 0.25, 4.0, 1234.5, 1.5)
            if step in (50, 100):
                display.scored(step, score, since_best=step // 25)
    lines = output(log).splitlines()
    assert [line.split()[1] for line in lines] == ["34/100", "68/100", "100/100"]
    # The mean speed so far counts, not that of the last steps.
    assert [line.rpartition("  ")[2] for line in lines[:2]] == ["20 s left", "10 s left"]
    assert lines[-1] == (
        "step 100/100  loss 0.2500  test.accuracy 75.0% (4 since the best)  4.0 steps/s  1,234 tokens/s  depth 1.5  "
        "0 s left"
    )


def test_a_terminal_gets_a_bar() -> None:
    terminal = console(terminal=True)
    display = ProgressDisplay(terminal, "tiny")
    with display.showing(10, 4):
        display.reached(0.3049)
        display.step(7, 10, 0.25, 4.0, 1234.5, None)
    for expected in ("7/10", "loss 0.2500", "1,234 tokens/s  30.5% of the peak"):
        assert expected in output(terminal)


def test_results_mark_trained_values_and_omit_long_breakdowns() -> None:
    table = printed(result_table(results(test=SPLIT), {"length": [1, 2, 3]}).terminal())
    assert "length 3 (trained)" in table
    assert "length 5 " in table
    assert "75.0%" in table
    assert "depth" not in table
    assert "nan" not in table


def test_values_of_a_group_that_are_names_are_shown_as_they_are() -> None:
    split = SPLIT.model_copy(update={"groups": {"label": {0: {"accuracy": 1.0}, 1: {"accuracy": 0.5}}}})
    table = printed(result_table(results({"label": ("bad", "[bold]")}, test=split), {"label": [0, 1]}).terminal())
    assert "label bad " in table
    assert "label [bold] " in table


def test_claims_are_beside_their_measurements() -> None:
    claim = ClaimResult(
        metric="test.accuracy[5]", value=1.0, deviation=0.02, at={"task.order": "forward"}, origin="NDR, Table 1",
        measured=0.5, text="1.00 ± 0.02",
    )  # fmt: skip
    table = printed(claim_table([claim, claim.model_copy(update={"measured": None})]).terminal())
    assert "test.accuracy[5]" in table
    assert "1.00 ± 0.02 at task.order = forward" in table
    assert "0.500" in table
    assert "not run" in table
    assert "NDR, Table 1" in table


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_alone_shows_that_splits_are_evaluated(terminal: bool) -> None:
    shown = console(terminal)
    with showing_evaluation(shown), showing_evaluation(None):
        pass
    assert ("evaluating every split" in output(shown)) == terminal


def test_a_note_gives_the_number_of_generated_answers() -> None:
    sampled = SPLIT.model_copy(update={"written": 7})
    complete = SPLIT.model_copy(update={"written": 40})
    (note,) = result_notes(results(test=sampled, iid=complete))
    assert note.endswith("answers that the model generated: 7 of test")
