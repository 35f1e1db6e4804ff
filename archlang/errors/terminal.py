"""The only way to the terminal: a console of rich that prints every text as it is.

Texts come from programs, data, run folders, file names and libraries, so none is interpreted as markup, and characters
that control the terminal are replaced by U+FFFD. Styles come from `Text` and `style=` alone."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import IO, TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from archlang.errors.visible import json_text, visible_lines

if TYPE_CHECKING:
    # Imported late, because their import takes time.
    from rich.progress import TextColumn


class Terminal(Console):
    """Prints to `file`, by default to standard output, or to standard error with `stderr`."""

    def __init__(
        self,
        *,
        stderr: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
        force_terminal: bool | None = None,
    ) -> None:
        super().__init__(
            stderr=stderr, file=file, width=width, force_terminal=force_terminal,
            markup=False, emoji=False, highlight=False, soft_wrap=True,
        )  # fmt: skip

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders as a console of rich, with the texts made visible. Rich's own control codes are not texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible_lines(segment.text), segment.style)

    def write(self, text: str) -> None:
        """Prints a text without wrapping or style, as for a file, and ends its last line."""
        self.file.write(visible_lines(text if text.endswith("\n") else f"{text}\n"))

    def write_json(self, value: object) -> None:
        """Prints a value as JSON, which is exact: characters that would control the terminal are escaped."""
        self.file.write(f"{json_text(value)}\n")

    def write_json_line(self, value: object) -> None:
        """Prints a value as JSON on one line, as `write_json` does."""
        self.file.write(f"{json_text(value, indent=None)}\n")

    def write_program(self, text: str) -> None:
        """Prints a text for another program: exactly, unless a person sees it on a terminal."""
        self.file.write(visible_lines(text) if self.is_terminal else text)

    def working(self, message: str) -> AbstractContextManager[object]:
        """Shows a message while something takes time; `with` ends it. Shows nothing if the output is no terminal."""
        # Rich would start a thread in any case, and would wait forever for one that does not get its memory.
        return self.status(Text(message)) if self.is_terminal else nullcontext()


def text_column(text: str, style: str = "none") -> TextColumn:
    """Returns a column of a progress bar whose text is not markup."""
    from rich.progress import TextColumn

    return TextColumn(text, style=style, markup=False)
