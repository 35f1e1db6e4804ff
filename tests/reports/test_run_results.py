"""Results are readable on a terminal and in a log."""

import io

from archlang.errors.terminal import Terminal
from archlang.reports.run_results import claim_table, result_notes, result_table
from archlang.train.record.schemas import ClaimResult, Results, SplitResult


def printed(renderable: object) -> str:
    file = io.StringIO()
    Terminal(file=file, width=120).print(renderable)
    return file.getvalue()


SPLIT = SplitResult(
    items=40, loss=0.5, metrics={"accuracy": 0.75, "last_accuracy": float("nan")},
    groups={"length": {3: {"accuracy": 1.0}, 5: {"accuracy": 0.5}}, "depth": {n: {"accuracy": 0.1} for n in range(99)}},
)  # fmt: skip


def results(names: dict[str, tuple[str, ...]] | None = None, **splits: SplitResult) -> Results:
    return Results(best_step=1, breakdown="length", splits=splits, group_names=names or {})


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


def test_a_note_gives_the_number_of_generated_answers() -> None:
    sampled = SPLIT.model_copy(update={"written": 7})
    complete = SPLIT.model_copy(update={"written": 40})
    (note,) = result_notes(results(test=sampled, iid=complete))
    assert note.endswith("answers that the model generated: 7 of test")
