"""VS Code in a browser, by the npm package code-server, for tests and screenshots."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXTENSION = ROOT / "editors" / "vscode"
PROGRAM = "code-server"
_MILLISECONDS = 60_000  # the machine may be busy
_SETTINGS = {
    "chat.disableAIFeatures": True,
    "files.autoSave": "afterDelay",
    "files.autoSaveDelay": 100,
    "security.workspace.trust.startupPrompt": "never",
    "telemetry.telemetryLevel": "off",
    "workbench.colorTheme": "Default Light Modern",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}


def packed_extension(folder: Path) -> Path:
    """Packs a copy of the extension in a folder, by the commands of the documentation.

    Raises:
        subprocess.CalledProcessError: npm cannot fetch the packages of the extension."""
    copy = folder / "extension"
    shutil.copytree(EXTENSION, copy, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix"))
    for command in (["npm", "ci", "--no-audit", "--no-fund"], ["npm", "run", "package"]):
        subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True)
    return copy / "archlang.vsix"


@contextmanager
def served(extension: Path, folder: Path, is_trusted: bool = True) -> Iterator[str]:
    """Serves VS Code with the packed extension, and yields its address. The folder is for the files of VS Code. Without
    `is_trusted`, the folders that it opens are in restricted mode."""
    archlang = folder / "archlang"
    archlang.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m archlang "$@"\n'
    )
    archlang.chmod(0o755)
    for name, settings in (("User", _SETTINGS), ("Machine", {"archlang.command": str(archlang)})):
        file = folder / "data" / name / "settings.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    command: list[str | Path] = [PROGRAM, "--config", folder / "config.yaml", "--user-data-dir", folder / "data"]
    command += ["--extensions-dir", folder / "extensions"]
    subprocess.run([*command, "--install-extension", extension], check=True, capture_output=True)
    command += ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"]
    command += ["--disable-workspace-trust"] if is_trusted else []
    # A session of its own, so that the processes of VS Code end with it.
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert server.stdout is not None
    begin = "HTTP server listening on "
    try:
        line = next(each for each in server.stdout if begin in each)
        yield line.split(begin)[1].strip()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.stdout.close()
        server.wait()


class Window:
    """A window of VS Code, in which a folder is open."""

    def __init__(self, browser: Any, url: str, folder: Path, **options: object) -> None:  # Any: playwright's
        self.view = browser.new_page(**options)
        self.view.set_default_timeout(_MILLISECONDS)
        self.view.goto(f"{url}?folder={folder}")
        self.folder = folder

    def open(self, name: str) -> None:
        """Opens a file of the folder."""
        self.view.locator(".explorer-folders-view .monaco-list-row", has_text=name).dblclick()
        self.view.wait_for_selector(f'.tab.active[data-resource-name="{name}"]')
        self.view.locator(".editor-group-container.active .monaco-editor .view-lines").first.click()

    def run(self, command: str) -> None:
        """Runs a command of the palette."""
        self._quick_input("F1", f">{command}")
        self.view.locator(".quick-input-list .monaco-list-row", has_text=command).first.click()

    def go_to(self, line: int, column: int) -> None:
        """Moves the cursor; line and column count from 1."""
        self._quick_input("Control+G", f":{line}:{column}")
        self.view.keyboard.press("Enter")
        self.view.locator("#status\\.editor\\.selection", has_text=f"Ln {line}, Col {column}").wait_for()

    def until_inside(self, item: str) -> None:
        """Waits until the language server has named the item around the cursor."""
        self.view.locator(f".breadcrumbs-below-tabs :text-is('{item}')").first.wait_for()

    def picture(self) -> Any:
        """Returns the picture of "Show graph" once it is there."""
        image = self.view.frame_locator("iframe.webview").frame_locator("iframe").locator("img")
        image.wait_for()
        return image

    def _quick_input(self, key: str, text: str) -> None:
        self.view.keyboard.press(key)
        self.view.locator(".quick-input-widget input[type=text]").fill(text)
