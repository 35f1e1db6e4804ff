"""Answers the playground: a request and its answer are JSON objects, and each request has the program's text.

The same code runs behind the server on this machine, and within the page in the browser. Offsets count units of UTF-16
from the start of the text, as the browser does. A program is data: it reads no file but those of the package."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archlang.disk import package
from archlang.editor.completion import completions
from archlang.editor.corrections import CodeAction, all_corrected, corrections_of
from archlang.editor.document import Document
from archlang.editor.graphs import SIZES, GraphItem, graph_of, parts
from archlang.editor.highlighting import rules
from archlang.editor.hover import hover
from archlang.editor.outline import folds
from archlang.editor.positions import characters, units
from archlang.errors import Diagnostic, Span, codes
from archlang.graph.card import card
from archlang.graph.graph import Graph
from archlang.graph.summary import summarize
from archlang.play import mistakes
from archlang.play.training import Json, PlaygroundTrainer
from archlang.reports.pictures.changes import describe_changes, side_by_side
from archlang.reports.pictures.formats import print_svg
from archlang.reports.pictures.picture import draw
from archlang.resolve import library
from archlang.resolve.library import items, program_text, recipe_files, summary

Facts = dict[str, Json]

# What a page may ask for: the methods of `Service` of these names.
_METHODS = ("start", "program", "check", "draw", "hover", "complete", "format", "correct", "explain")
# The largest text of a program, in characters; the compiler's own limit is in bytes.
LONGEST_TEXT = 1_000_000
MOST_STEPS_OF_TRAINING = 10_000
_MOST_BOXES = 2_000
_MOST_LENGTHS = 12
_LARGEST_LENGTH = 1_000_000
_FLOAT_BYTES = 4
_MODELS = "models/"
_ROWS_OF_CARD = ("state for the next", "reads", "recurrences")
_NAME = re.compile(r"[A-Za-z_]\w*")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Request:
    """The fields of a request, each of which a method takes by its type."""

    fields: Mapping[str, object]

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a field that is text.

        Raises:
            RequestError: it is missing, it is no text, or it is too large."""
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise mistakes.is_missing("text", name)
        if len(value) > LONGEST_TEXT:
            raise mistakes.is_too_large(len(value), LONGEST_TEXT)
        # The browser may send halves of a character, which cannot be encoded.
        return _SURROGATE.sub("\ufffd", value)

    def number(self, name: str) -> int:
        """Returns a field that is an integer, at least 0.

        Raises:
            RequestError: it is missing, or it is no such number."""
        value = self.fields.get(name)
        if type(value) is not int or value < 0:
            raise mistakes.is_missing("number", name)
        return value

    def numbers(self, name: str, most: int, largest: int) -> tuple[int, ...]:
        """Returns a field that is a list of at most `most` integers from 1 to `largest`.

        Raises:
            RequestError: it is missing, or it is no such list."""
        value = self.fields.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise mistakes.is_missing("list of numbers", name)
        if not all(type(each) is int and 1 <= each <= largest for each in value):
            raise mistakes.is_missing("list of numbers", name)
        return tuple(value)


class BrowserDocument:
    """A program of the page: its document, with offsets as the browser counts them."""

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.document = Document(path, text)

    def into(self, offset: int) -> int:
        """Returns an offset of the browser as an offset of the text, at most its end; within a character, its end."""
        return characters(self.text, offset)

    def place(self, span: Span) -> Facts:
        return {"from": units(self.text[: span.start]), "to": units(self.text[: span.end])}

    def owns(self, span: Span) -> bool:
        return span.source.path == self.document.path


class Service:
    """Answers requests. `folder` is where programs are said to be: it has no files that a program may read. Without a
    `trainer`, recipes are not trained."""

    def __init__(self, folder: str, trainer: PlaygroundTrainer | None = None) -> None:
        self._folder = folder
        self._trainer = trainer
        self._programs: dict[tuple[str, str], BrowserDocument] = {}
        self.methods = _METHODS if trainer is None else (*_METHODS, "train", "progress", "stop")

    def answer(self, fields: Mapping[str, object]) -> Facts:
        """Returns the answer to a request: `{"result": …}`, or `{"error": {"message": …, "remedy": …}}`."""
        request = Request(fields)
        try:
            name = request.text("method")
            if name not in self.methods:
                raise mistakes.unknown_method(name, self.methods)
            result: Facts = getattr(self, name)(request)
            return {"result": result}
        except mistakes.RequestError as error:
            return {"error": {"message": error.message, "remedy": error.remedy}}

    def start(self, request: Request) -> Facts:
        """The version, the rules by which programs are coloured, and the shipped programs to begin with."""
        return {
            "version": package.VERSION,
            "trains": self._trainer is not None,
            # By an earlier page of this server, which may have been closed.
            "is_started": self._trainer is not None and self._trainer.is_started,
            "highlighting": [{"pattern": rule.pattern, "kinds": rule.kinds} for rule in rules()],
            "programs": [
                {"name": name, "summary": summary(text), "items": items(text)}
                for name, text in ((name, program_text(file)) for name, file in _shipped_programs().items())
            ],
        }

    def program(self, request: Request) -> Facts:
        """The text of a shipped program. `beside` is its name if it uses files beside it."""
        name = request.text("name")
        text = program_text(_shipped(name))
        return {"text": text, "beside": name if 'use "./' in text else ""}

    def check(self, request: Request) -> Facts:
        """The mistakes of a program with their remedies, and the first and last lines of its parts that fold."""
        program = self._program(request)
        return {
            "diagnostics": [_diagnostic(program, each) for each in program.document.diagnostics],
            "folds": [[first, last] for first, last in folds(program.document)],
        }

    def draw(self, request: Request) -> Facts:
        """The picture of a model, its costs by length, and its changes since the text `before`, if there is one."""
        program = self._program(request)
        lengths = request.numbers("lengths", _MOST_LENGTHS, _LARGEST_LENGTH)
        before_text, name = request.text("before", ""), request.text("shown", "")
        together = request.fields.get("together") is True
        shown = [*parts(program.document)]
        if not shown:
            return {"choices": [], "reason": "The program has no model and no block yet."}
        chosen = next((each for each in shown if each.name == name), None) or _first_with_graph(program.document, shown)
        facts: Facts = {"choices": [each.name for each in shown], "shown": chosen.name}
        graph = graph_of(program.document, chosen)
        if isinstance(graph, str):
            return facts | {"reason": graph}
        path = program.document.path
        picture = draw(graph, path)
        facts["costs"] = _costs(program.document, chosen, graph, lengths)
        before = self._earlier_graph(before_text, request, chosen) if before_text else None
        if before is not None:
            changes = describe_changes(before, graph)
            facts["changes"] = [*changes]
            if together and changes:
                picture = side_by_side(draw(before, path), picture, changes)
        boxes = sum(1 for _ in picture.walk())
        if boxes > _MOST_BOXES:
            return facts | {"reason": f"The picture would have {boxes:,} boxes; {_MOST_BOXES:,} are drawn at most."}
        return facts | {"svg": str(print_svg(picture, foldable=True))}

    def hover(self, request: Request) -> Facts:
        """What is known about the name at an offset, in Markdown."""
        program = self._program(request)
        answer = hover(program.document, program.into(request.number("offset")))
        if answer is None:
            return {}
        path = Path(program.document.path)  # in a temporary folder, unknown to the user
        return {**program.place(answer.span), "text": answer.text.replace(str(path), path.name)}

    def complete(self, request: Request) -> Facts:
        """What can be written at an offset."""
        program = self._program(request)
        options = completions(program.document, program.into(request.number("offset")))
        return {"options": [{"word": each.word, "kind": each.kind, "detail": each.detail} for each in options]}

    def format(self, request: Request) -> Facts:
        """The formatted text; null if it has syntax errors."""
        return {"text": self._program(request).document.formatted}

    def correct(self, request: Request) -> Facts:
        """The text after all corrections that are sure; null if there are none."""
        return {"text": all_corrected(self._program(request).document)}

    def explain(self, request: Request) -> Facts:
        """The page about the code of a mistake, in Markdown."""
        code = request.text("code")
        return {"text": codes.explain(code) if code in codes.titles() else ""}

    def train(self, request: Request) -> Facts:
        """Begins to train a recipe."""
        assert self._trainer is not None
        text, recipe = request.text("text"), request.text("recipe")
        if request.text("beside", ""):
            raise mistakes.trains_elsewhere(request.text("beside"))
        if not _NAME.fullmatch(recipe):
            raise mistakes.is_missing("name", "recipe")
        steps = request.fields.get("steps")
        if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS_OF_TRAINING:
            raise mistakes.no_number_of_steps(MOST_STEPS_OF_TRAINING)
        self._trainer.start(text, recipe, steps)
        return {}

    def progress(self, request: Request) -> Facts:
        """How far the training is: its state, its curve from a step on, its evaluations, and its newest inspection."""
        assert self._trainer is not None
        return dict(self._trainer.progress(request.number("after")))

    def stop(self, request: Request) -> Facts:
        """Stops the training."""
        assert self._trainer is not None
        self._trainer.stop()
        return {}

    def _program(self, request: Request) -> BrowserDocument:
        """Returns the program of a request, checked only once for all requests about the same text.

        Raises:
            RequestError: it has no text, or is beside no shipped program."""
        return self._program_of(request.text("text"), request.text("beside", ""))

    def _program_of(self, text: str, beside: str) -> BrowserDocument:
        path = str(_shipped(beside)) if beside else f"{self._folder}/program.arch"
        if (text, path) not in self._programs:
            while len(self._programs) > 1:  # the text now, and the text before
                del self._programs[next(iter(self._programs))]
            self._programs[text, path] = BrowserDocument(text, path)
        return self._programs[text, path]

    def _earlier_graph(self, text: str, request: Request, chosen: GraphItem) -> Graph | None:
        """Returns the graph of what was shown before, or of the first model of a text that has nothing of that name."""
        document = self._program_of(text, request.text("beside", "")).document
        shown = [*parts(document)]
        if not shown:
            return None
        graph = graph_of(document, next((each for each in shown if each == chosen), shown[0]))
        return None if isinstance(graph, str) else graph


def _first_with_graph(document: Document, shown: Sequence[GraphItem]) -> GraphItem:
    return next((each for each in shown if not isinstance(graph_of(document, each), str)), shown[0])


def _costs(document: Document, shown: GraphItem, graph: Graph, lengths: Sequence[int]) -> Facts:
    if not lengths:
        return {"lengths": []}
    note = ""
    if shown.word == "model" and summarize(graph, lengths[0]).unknown:
        sized = graph_of(document, shown, SIZES)
        if not isinstance(sized, str):
            graph, note = sized, f"With {' and '.join(f'{size} = {number}' for size, number in SIZES.items())}."
    first, *others = (summarize(graph, length) for length in lengths)
    made = card(graph)
    rows = [f"{name.capitalize()}: {value}." for name, value in made.rows() if name in _ROWS_OF_CARD]
    claims = [f"{made.model} {claim.sentence} ({claim.source})." for claim in made.claims]
    claims += ["`archlang card` has the conditions."] * bool(claims)
    return {
        "model": first.model,
        "parameters": first.unique,
        "executed": first.executed,
        "note": " ".join([note, *rows, *claims]).strip(),
        "unknown": [*first.unknown],
        "uncounted": [*first.uncounted],
        "lengths": [
            {"length": each.length, "flops": each.flops, "bytes": _FLOAT_BYTES * each.activations}
            for each in (first, *others)
        ],
    }


def _diagnostic(program: BrowserDocument, diagnostic: Diagnostic) -> Facts:
    own = program.owns(diagnostic.span)
    return {
        **(program.place(diagnostic.span) if own else {"from": 0, "to": 0}),
        "line": diagnostic.span.line if own else 0,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "label": diagnostic.label,
        "remedy": mistakes.REMEDIES.get(diagnostic.code, diagnostic.remedy),
        "labels": [
            {**program.place(label.span), "text": label.text} for label in diagnostic.labels if program.owns(label.span)
        ],
        # Each is a change that mends the mistake: its title, and the texts to write in place of others.
        "edits": [_edit(program, each) for each in corrections_of(program.document, diagnostic)],
    }


def _edit(program: BrowserDocument, correction: CodeAction) -> Facts:
    changes = [{**program.place(edit.span), "text": edit.text} for edit in correction.edits]
    return {"title": correction.title, "changes": changes}


@cache
def _shipped_programs() -> Mapping[str, Path]:
    models = sorted((library.BLOCKS / "models").glob("*.arch"))
    return {**recipe_files(), **{_MODELS + file.stem: file for file in models}}


def _shipped(name: str) -> Path:
    if name not in _shipped_programs():
        raise mistakes.unknown_program(name, _shipped_programs())
    return _shipped_programs()[name]
