"""An inspection of one input: its answers and panels, as JSON and as a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archlang.errors.names import plural
from archlang.reports.html import notebook_frame, render
from archlang.reports.inspection.heatmap import Heatmap, format_number
from archlang.train.runs.prediction import Answer

# Browsers are slow with more numbers. A larger page shows only the first choice of each panel.
_MOST_NUMBERS = 24_000_000
_CORRECTNESS = {True: "✓ right", False: "✗ wrong", None: ""}
_ROW_CLASSES = {True: "right", False: "wrong", None: ""}


# The longest text of the answers of a step.
_MOST_CHARACTERS = 80


@dataclass(frozen=True)
class StepAnswers:
    """What a model answers after a step of the loop whose emission it returns.

    Args:
        loss: The mean cross entropy, or that of the task's form of answers; None without targets.
        halting: The probability of halting at the step, on average over positions; None if the loop does not halt."""

    answers: tuple[Answer, ...]
    loss: float | None
    halting: float | None

    @property
    def text(self) -> str:
        """The predictions in one line."""
        text = " ".join(answer.predicted for answer in self.answers)
        return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"

    @property
    def right(self) -> str:
        """How many answers are right, as `3 of 4`; empty without targets."""
        judged = [answer.right for answer in self.answers if answer.right is not None]
        return f"{sum(judged)} of {len(judged)}" if judged else ""

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Returns the step as JSON."""
        answers = [{**vars(answer), "right": answer.right} for answer in self.answers]
        return {"answers": answers, "loss": self.loss, "halting": self.halting}


@dataclass(frozen=True, eq=False)
class Inspection:
    """One input with its answers and panels.

    Args:
        fields: The text of each position of each input field.
        mean_depth: The mean number of steps of halting loops; None if the model has none.
        steps: The answers after each step of the loop whose emission the model returns; empty if there is none."""

    title: str
    model: str
    fields: Mapping[str, tuple[str, ...]]
    answers: tuple[Answer, ...]
    panels: tuple[Heatmap, ...]
    mean_depth: float | None
    steps: tuple[StepAnswers, ...] = ()

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "title": self.title,
            "model": self.model,
            "fields": {name: list(texts) for name, texts in self.fields.items()},
            "answers": [{**vars(answer), "right": answer.right} for answer in self.answers],
            "mean_depth": self.mean_depth,
            "steps": [step.to_json() for step in self.steps],
            "panels": [panel.to_json() for panel in self.panels],
        }

    def html(self) -> str:
        """Returns the inspection as an HTML file with the input, the predictions and all panels."""
        answers, panels = self.answers, self.panels
        is_judged = any(answer.right is not None for answer in answers)
        headers, rows = _columns(
            ("position", "predicted", "probability", "target", ""),
            [
                (answer.place, answer.predicted, _number(answer.probability), answer.target or "",
                 _CORRECTNESS[answer.right])
                for answer in answers
            ],
        )  # fmt: skip
        step_headers, steps = _columns(
            ("step", "predicted", "right", "loss", "halts here"),
            [
                (str(number), step.text, step.right, _number(step.loss), _number(step.halting))
                for number, step in enumerate(self.steps, start=1)
            ],
        )
        heads_omitted = sum(panel.numbers for panel in panels) > _MOST_NUMBERS
        if heads_omitted:
            panels = tuple(panel.first_choice() for panel in panels)
        right = sum(answer.right is True for answer in answers)
        return render(
            "inspection.html",
            title=f"{self.model}: {self.title}",
            fields=self.fields,
            mean_depth=self.mean_depth,
            summary=f"{right} of {len(answers)} right" if is_judged else plural(len(answers), "answer"),
            headers=headers,
            answers=rows,
            step_headers=step_headers,
            steps=steps,
            marks=[_ROW_CLASSES[answer.right] for answer in answers],
            heads_omitted=heads_omitted,
            panels=panels,
            data=[panel.to_json() for panel in panels],
            format_number=format_number,
        )

    def _repr_html_(self) -> str:
        return notebook_frame(self.html())


def _columns(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The headers and the rows of the predictions and of the columns that are not empty."""
    shown = [index for index, name in enumerate(headers) if name == "predicted" or any(row[index] for row in rows)]
    return [headers[index] for index in shown], [[row[index] for index in shown] for row in rows]


def _number(value: float | None) -> str:
    return "" if value is None else format_number(value)
