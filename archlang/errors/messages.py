"""Messages as rows of text: a phase has a file `messages.txt` of those that compute nothing.

A row is the code and the name of a message with its facts, then the message, the label at each place, and what to do:

    E0205 bound_twice(span, name, first)
        `{name}` is bound twice
        at span: bound again
        at first: bound here
        help: choose another name, or update the state of a loop with `{name} <- …`

The first place is that of the mistake; a place that is None has no label. A fact that is a list is written
`{names:listed}` or `{names:path}`, and a count `{count:plural value}`. `{first:?bound‖new}` is `bound` if there is a
`first`, and `{kind:=vec?one‖many}` is `one` if the kind is `vec`. `{names:ticked}` keeps the order of a list, and
`{text:line}` is a text on one line. `near: name possible` suggests the possible names that a misspelt name can mean,
and `edit: without_item span` is the edit that makes the correction; `safe edit:` is one that nobody need be asked
about. There is none if one of its facts is None.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Formatter

from archlang.errors.diagnostic import Diagnostic, Edit, Label
from archlang.errors.edits import insertion, last_line, without, without_item, without_lines, without_setting
from archlang.errors.names import is_short, listed, misspelt, plural
from archlang.errors.source import Span

_HEAD = re.compile(r"(?P<code>[EW]\d{4}) (?P<name>\w+)\((?P<facts>[\w, ]*)\)")
_CHOICE = re.compile(r"(?:=(?P<value>\w+))?\?(?P<then>.*)‖(?P<otherwise>.*)", re.DOTALL)
_EDITS: Mapping[str, Callable[[Span, str], Edit | None]] = {
    "without": lambda span, _: without(span),
    "without_item": lambda span, _: without_item(span),
    "without_lines": lambda span, _: without_lines(span),
    "without_setting": without_setting,
    "write": Edit,
    "before": lambda span, text: insertion(span.source, span.start, text),
    "last_line": last_line,
}

_LONGEST = 40  # of a text that is written `{text:short}`


class _Text(Formatter):
    """Formats the facts of a message."""

    def format_field(self, value: object, spec: str) -> str:
        if choice := _CHOICE.fullmatch(spec):
            holds = bool(value) if choice["value"] is None else str(value) == choice["value"]
            return choice["then"] if holds else choice["otherwise"]
        if spec == "listed" and isinstance(value, Iterable):
            return listed(value)
        if spec == "path" and isinstance(value, Iterable):
            return " -> ".join(value)
        if spec == "ticked" and isinstance(value, Iterable):
            return ", ".join(f"`{item}`" for item in value)
        if spec == "line":
            return " ".join(str(value).split())
        if spec == "short":
            text = str(value)
            return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        if spec.startswith("plural ") and isinstance(value, int):
            return plural(value, spec.removeprefix("plural "))
        return str(super().format_field(value, spec))


@dataclass(frozen=True)
class Message:
    """A row. A call with its facts, in order or by name, returns the diagnostic."""

    code: str
    facts: tuple[str, ...]
    lines: tuple[str, ...]

    def __call__(self, *values: object, **named: object) -> Diagnostic:
        facts = {**dict(zip(self.facts, values, strict=False)), **named}
        assert facts.keys() == {*self.facts}, f"{self.code} has the facts {self.facts}"
        facts = {name: _repeatable(fact) for name, fact in facts.items()}
        lines = {key: text for key, _, text in (line.partition(": ") for line in self.lines[1:])}
        texts = {key: _Text().vformat(text, (), facts) for key, text in lines.items()}
        first, *others = (key.removeprefix("at ") for key in texts if key.startswith("at "))
        span, message = facts[first], _Text().vformat(self.lines[0], (), facts)
        assert isinstance(span, Span), "the first place is that of the mistake"
        places = [(place, texts[f"at {name}"]) for name in others if isinstance(place := facts[name], Span)]
        labels = tuple(Label(place, text) for place, text in places)
        diagnostic = Diagnostic(self.code, message, span, texts[f"at {first}"], labels, texts.get("help", ""))
        for key in ("edit", "safe edit"):
            if key in texts:
                kind, place, *written = texts[key].split(" ", 2)
                edited, text = facts[place], "".join(written).strip('"')
                is_missing = any(facts[name] is None for name in re.findall(r"{(\w+)", lines[key]))
                edit = _EDITS[kind](edited, text) if isinstance(edited, Span) and not is_missing else None
                diagnostic = diagnostic.with_edits(edit, is_safe=key == "safe edit")
        return diagnostic if "near" not in texts else _suggested(diagnostic, texts["near"].split(), facts)


def _repeatable(fact: object) -> object:
    return tuple(fact) if isinstance(fact, Iterable) and not isinstance(fact, str | Sequence) else fact


def _suggested(diagnostic: Diagnostic, near: Sequence[str], facts: Mapping[str, object]) -> Diagnostic:
    name, possible = facts[near[0]], facts[near[1]]
    assert isinstance(name, str) and isinstance(possible, Iterable)  # noqa: PT018  # for mypy
    return misspelt(diagnostic, name, possible, is_guess="guess" in near and is_short(name), is_local="local" in near)


class Messages:
    """The messages of a package by name, read at the first access."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Message:
        try:
            return read_messages(self._package)[name]
        except KeyError:
            raise AttributeError(f"{self._package} has no message {name}") from None


@cache
def read_messages(package: str) -> Mapping[str, Message]:
    """Returns the rows of a package's `messages.txt` by name."""
    rows: dict[str, Message] = {}
    text = (resources.files(package) / "messages.txt").read_text(encoding="utf-8")
    for row in re.split(r"\n(?=[EW]\d{4} )", text.strip()):
        head, *lines = row.splitlines()
        match = _HEAD.fullmatch(head)
        assert match is not None, f"{package}: {head}"
        facts = tuple(filter(None, match["facts"].split(", ")))
        rows[match["name"]] = Message(match["code"], facts, tuple(line.strip() for line in lines if line.strip()))
    return rows
