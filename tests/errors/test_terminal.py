"""The terminal shows texts as they are."""

import io
import json

import pytest
from rich.table import Table
from rich.text import Text

from archlang.errors.terminal import Terminal, text_column
from archlang.errors.visible import json_text, visible, visible_lines

CONTROLS = ["\x1b[2J", "\x9b31m", "\x07", "\x08", "\r", "\u202e", "\u2066", "\u2028", "\x7f", "\0"]


def printed(*objects: object, colours: bool = False) -> str:
    terminal = Terminal(file=io.StringIO(), width=80, force_terminal=colours)
    terminal.print(*objects)
    assert isinstance(terminal.file, io.StringIO)
    return terminal.file.getvalue()


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[/bold]", "[red", ":smile:", "[link=http://x]y[/link]", "\\[x]"])
def test_a_text_is_not_markup(text: str) -> None:
    table = Table(text, title=text, caption=text)
    table.add_row(text)
    assert printed(text) == f"{text}\n"
    assert printed(text, colours=True) == f"{text}\n"
    assert printed(table).count(text) == 4


@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_character_never_arrives(control: str) -> None:
    table = Table(control, title=f"a{control}b")
    table.add_row(f"a{control}b", style="bold")
    for shown in (printed(f"a{control}b"), printed(table), printed(Text(f"a{control}b"))):
        assert all(sign.isprintable() or sign == "\n" for sign in shown)


def test_styles_still_colour_a_text() -> None:
    assert printed(Text("x", "bold red"), colours=True) == "\x1b[1;31mx\x1b[0m\n"


def test_progress_and_status_show_names_as_they_are() -> None:
    from rich.progress import Progress

    terminal = Terminal(file=io.StringIO(), width=80, force_terminal=True)
    with Progress(text_column("{task.description}", "bold"), console=terminal) as bar:
        bar.add_task("[/x]\x1b]0;y\x07", total=1)
    with terminal.working("[/z]\x1b[2J"):
        pass
    assert isinstance(terminal.file, io.StringIO)
    shown = terminal.file.getvalue()
    assert "[/x]\ufffd]0;" in shown
    assert "\x07" not in shown
    assert "[2J" not in shown.replace("\ufffd[2J", "")


def test_written_text_keeps_its_lines_and_ends_with_one_line_feed() -> None:
    terminal = Terminal(file=io.StringIO(), width=10)
    terminal.write("a " * 20 + "\n[/b]\x1b")
    terminal.write("c\n")
    assert isinstance(terminal.file, io.StringIO)
    assert terminal.file.getvalue() == "a " * 20 + "\n[/b]\ufffd\nc\n"


def test_a_program_is_exact_in_a_pipe_and_visible_on_a_terminal() -> None:
    shown = {}
    for is_terminal in (False, True):
        terminal = Terminal(file=io.StringIO(), force_terminal=is_terminal)
        terminal.write_program("x\t\x1b")
        assert isinstance(terminal.file, io.StringIO)
        shown[is_terminal] = terminal.file.getvalue()
    assert shown == {False: "x\t\x1b", True: "x    \ufffd"}


@pytest.mark.parametrize("value", ["\x1b[2J\x9b\u202e\U000e0041\u00a0é漢\n\t", {"\x9b": [1, None, "\u2028"]}])
def test_json_is_exact_and_has_no_control_characters(value: object) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert "é" in text or isinstance(value, dict)


def test_json_of_a_file_name_that_is_not_utf8_is_valid() -> None:
    assert json.loads(json_text("a\udcff").encode()) == "a\ufffd"


def test_words_of_every_language_stay_as_they_are() -> None:
    text = "Ünïcödé 漢字\u3000かな 100\u00a0% עברית"
    assert visible(text) == text
    assert visible_lines(f"{text}\n{text}") == f"{text}\n{text}"
