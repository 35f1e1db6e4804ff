"""VS Code with the extension accepts corrections, renames, completes, draws and trains, as a person does."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from archlang.plan.check import check
from editors.code_server import PROGRAM, Window, served
from tests.cli.conftest import MODEL, TINY
from tests.corpus.test_edits import failing_program
from tests.editor.test_neovim import TEN
from tests.editor.test_server import MAIN, NAMED, USED

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECONDS = 60
Open = Callable[[dict[str, str]], Window]


@contextmanager
def started(extension: Path, folder: Path, is_trusted: bool) -> Iterator[str]:
    if shutil.which(PROGRAM) is None:
        pytest.skip("code-server is not installed")
    with served(extension, folder, is_trusted) as address:
        yield address


@pytest.fixture(scope="module")
def url(extension: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with started(extension, tmp_path_factory.mktemp("code_server"), is_trusted=True) as address:
        yield address


@pytest.fixture
def open_folder(browser: Any, url: str, tmp_path: Path) -> Iterator[Open]:
    """Opens a folder with some files."""
    with opened(browser, url, tmp_path) as open_:
        yield open_


@contextmanager
def opened(browser: Any, url: str, folder: Path) -> Iterator[Open]:
    windows: list[Window] = []

    def open_(files: dict[str, str]) -> Window:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        windows.append(Window(browser, url, folder))
        return windows[-1]

    yield open_
    for window in windows:
        window.view.close()


def until(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.1)


def is_correct(file: Path) -> bool:
    return not any(each.is_error for each in check(file))


def holds(file: Path, text: str) -> bool:
    return text in file.read_text(encoding="utf-8")


def test_ten_mistakes_are_mended_by_accepting_the_offered_edit(open_folder: Open) -> None:
    window = open_folder({f"{code}.arch": failing_program(code) for code in TEN})
    for code in TEN:
        file = window.folder / f"{code}.arch"
        window.open(file.name)
        window.view.wait_for_selector(".squiggly-error")
        mistake = next(each for each in check(file) if each.is_error)
        window.go_to(mistake.span.line, mistake.span.column)
        window.view.keyboard.press("Control+.")
        window.view.locator(".action-widget .monaco-list-row.action").first.wait_for()
        window.view.keyboard.press("Enter")
        until(f"the edit of {code}", partial(is_correct, file))
        window.view.wait_for_selector(".squiggly-error", state="detached")
        window.run("View: Close Editor")


def test_a_block_is_renamed_over_three_files(open_folder: Open) -> None:
    files = {"used.arch": USED, "main.arch": MAIN, "named.arch": NAMED}
    window = open_folder(files)
    window.open("used.arch")
    window.go_to(1, 8)
    window.until_inside("twice")
    window.view.keyboard.press("F2")
    window.view.locator(".rename-box input").fill("doubled")
    window.view.keyboard.press("Enter")
    for name, text in files.items():
        until(f"the rename in {name}", partial(holds, window.folder / name, text.replace("twice", "doubled")))


def test_words_have_colours_documentation_and_an_outline(open_folder: Open) -> None:
    window = open_folder({"model.arch": MODEL})
    window.open("model.arch")
    colours = [
        window.view.locator(f".view-line span:text-is('{word}')").first.evaluate("word => getComputedStyle(word).color")
        for word in ("model", "return", "embed")
    ]
    assert colours[0] == colours[1] != colours[2]
    window.go_to(2, 13)
    window.until_inside("m")
    window.view.keyboard.press("Control+K")
    window.view.keyboard.press("Control+I")
    window.view.locator(".monaco-hover", has_text="Maps each token to its row").wait_for()
    window.view.locator(".pane-header", has_text="Outline").click()
    window.view.locator(".outline-tree .monaco-list-row", has_text="wide").wait_for()


def test_snippets_and_completion_write_a_program(open_folder: Open) -> None:
    window = open_folder({"model.arch": MODEL, "new.arch": ""})
    file = window.folder / "new.arch"
    window.open("model.arch")
    window.go_to(2, 1)
    window.until_inside("m")
    window.open("new.arch")
    for prefix in ("model", "recipe"):
        accept(window, prefix[:3], prefix)
        until(f"the snippet {prefix}", partial(holds, file, f"{prefix} "))
        window.view.keyboard.press("Escape")
        window.view.keyboard.press("Control+End")
        window.view.keyboard.type("\n")
    assert check(file) == ()
    window.go_to(3, 16)
    accept(window, ", ini", "init")
    until("the completion", partial(holds, file, "embed[d, init"))


def accept(window: Window, text: str, suggestion: str) -> None:
    """Types a text and accepts the first suggestion."""
    window.view.keyboard.type(text, delay=50)
    window.view.locator(".suggest-widget.visible .monaco-list-row.focused", has_text=suggestion).wait_for()
    window.view.keyboard.press("Tab")


def test_a_graph_is_shown_beside_the_text_and_a_recipe_trains_in_the_terminal(open_folder: Open) -> None:
    window = open_folder({"tiny.arch": TINY + "}\n"})
    window.open("tiny.arch")
    window.go_to(TINY[: TINY.index("recipe")].count("\n") + 1, 3)
    window.run("archlang: Show graph")
    assert window.picture().evaluate("image => image.naturalWidth") > 100
    window.run("archlang: Train this recipe")
    until("a training", lambda: bool([*window.folder.glob("runs/*/*/results.json")]))
    window.view.locator(".terminal-tab, .single-terminal-tab", has_text="train tiny").wait_for()


def test_a_folder_that_is_not_trusted_is_checked_by_the_users_own_command_and_not_trained(
    browser: Any, extension: Path, tmp_path: Path
) -> None:
    own, folder = tmp_path / "own", tmp_path / "folder"
    own.mkdir()
    folder.mkdir()
    command = folder / "archlang"
    command.write_text("#!/bin/sh\ntouch started\n", encoding="utf-8")
    command.chmod(0o755)
    settings = json.dumps({"archlang.command": str(command)})
    files = {".vscode/settings.json": settings, "tiny.arch": TINY + "}\n", "wrong.arch": failing_program("E0202")}
    with started(extension, own, is_trusted=False) as address, opened(browser, address, folder) as open_:
        window = open_(files)
        window.view.locator(".statusbar-item", has_text="Restricted Mode").wait_for()
        window.open("wrong.arch")
        window.view.wait_for_selector(".squiggly-error")
        window.open("tiny.arch")
        window.go_to(TINY[: TINY.index("recipe")].count("\n") + 1, 3)
        window.run("archlang: Train this recipe")
        window.view.locator(".notification-toast", has_text="are not trained").wait_for()
    assert not (folder / "runs").exists()
    assert not [*folder.rglob("started")]
