"""An inspection as a page."""

from collections.abc import Sequence

from archlang.pages.html import render
from archlang.pages.inspection.heatmap import Heatmap, format_number
from archlang.pages.inspection.inspection import Inspection

# Browsers are slow with more numbers. A larger page shows only the first choice of each panel.
_MOST_NUMBERS = 24_000_000
_CORRECTNESS = {True: "✓ right", False: "✗ wrong", None: ""}
_ROW_CLASSES = {True: "right", False: "wrong", None: ""}


def inspection_page(inspection: Inspection) -> str:
    """Returns the HTML file with the input, the predictions and all panels."""
    panels, heads_omitted = _fitting(inspection.panels)
    answers = inspection.answers
    has_targets = any(answer.target is not None for answer in answers)
    has_places = any(answer.place for answer in answers)
    rows = [
        [
            *([answer.place] if has_places else []), answer.predicted, format_number(answer.probability),
            *([answer.target or "", _CORRECTNESS[answer.right]] if has_targets else []),
        ]
        for answer in answers
    ]  # fmt: skip
    right = sum(answer.right is True for answer in answers)
    return render(
        "inspection.html",
        title=f"{inspection.model}: {inspection.title}",
        fields=inspection.fields,
        mean_depth=inspection.mean_depth,
        summary=f"{right} of {len(answers)} right" if has_targets else f"{len(answers)} answers",
        headers=[*(["position"] * has_places), "predicted", "probability", *(["target", ""] if has_targets else [])],
        answers=rows,
        marks=[_ROW_CLASSES[answer.right] for answer in answers],
        heads_omitted=heads_omitted,
        panels=panels,
        data=[panel.to_json() for panel in panels],
        format_number=format_number,
    )


def _fitting(panels: Sequence[Heatmap]) -> tuple[Sequence[Heatmap], bool]:
    """Returns the panels to show, and whether choices are omitted."""
    if sum(panel.numbers for panel in panels) <= _MOST_NUMBERS:
        return panels, False
    return [panel.first_choice() for panel in panels], True
