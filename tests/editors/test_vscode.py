"""The extension of VS Code."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from archlang.editor.document import Document
from tests.editor.parsed_words import shipped_files, words

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
SNIPPETS = json.loads((FOLDER / "snippets" / "arch.json").read_text(encoding="utf-8"))


def snippet(prefix: str) -> str:
    """Returns the text of a snippet with its placeholders filled in."""
    (body,) = (each["body"] for each in SNIPPETS.values() if each["prefix"] == prefix)
    return re.sub(r"\$(?:\{\d+:([^}]*)\}|\d+)", lambda place: place[1] or "", "\n".join(body)) + "\n"


def test_the_files_that_the_package_names_exist() -> None:
    added = PACKAGE["contributes"]
    names = [each["path"] for each in (*added["grammars"], *added["snippets"])]
    assert all((FOLDER / name).is_file() for name in (*names, added["languages"][0]["configuration"]))


def test_the_commands_of_the_package_are_those_that_the_extension_registers() -> None:
    registered = re.findall(
        r'registerCommand\("([\w.]+)"', (FOLDER / "src" / "extension.js").read_text(encoding="utf-8")
    )
    assert registered == [each["command"] for each in PACKAGE["contributes"]["commands"]]


def test_a_folder_that_is_not_trusted_starts_no_command_of_its_own() -> None:
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    commands = [name for name, setting in settings.items() if name.endswith("command")]
    assert commands == ["archlang.command"]
    assert all(settings[name]["scope"] == "machine" for name in commands)
    restricted = PACKAGE["capabilities"]["untrustedWorkspaces"]
    assert (restricted["supported"], restricted["restrictedConfigurations"]) == ("limited", commands)


def test_a_program_of_the_snippets_is_correct() -> None:
    block = snippet("block")
    scan = "block s(h: seq[n, d], m0: vec[d]) -> seq[n, d] {\n    m = m0\n" + snippet("scan") + "    return y\n}\n"
    repeat = "block r[depth: int](h: seq[n, d]) -> seq[n, d] {\n" + snippet("repeat") + "    return h\n}\n"
    text = block + snippet("model") + scan + repeat + snippet("recipe")
    assert [each.message for each in Document("program.arch", text).diagnostics if each.is_error] == []


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    server = tmp_path / "archlang"
    server.write_text("#!/bin/sh\necho 'error: no pygls\n  help: install it' >&2\nexit 1\n")
    server.chmod(0o755)
    reasons = {
        str(server): f"The command `{server} lsp` failed: no pygls; install it",
        "/nowhere/archlang": "The command `/nowhere/archlang` does not start (ENOENT). "
        "Run `pip install 'archlang[lsp]'`, or set archlang.command to the path of archlang.",
        "true": None,
    }
    for command, reason in reasons.items():
        assert node("(await failureOf(text)) ?? null", command) == reason


def test_a_recipe_is_found_around_the_cursor() -> None:
    text = ["use a", "recipe first {", "    task ctl", "}", "", "recipe b from first {", "}"]
    recipes = [None, "first", "first", "first", None, "b", "b"]
    assert node("text.map((_, line) => recipeAt(text, line) ?? null)", text) == recipes


def test_the_page_of_a_picture_loads_nothing_and_runs_nothing() -> None:
    page = node("page(text)", "<svg onload='alert(1)'/>")
    assert "default-src 'none'" in str(page)
    assert "alert" not in str(page)


def node(expression: str, text: object) -> object:
    """Evaluates an expression of the extension's functions and of `text`."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    begin = "const { failureOf, page, recipeAt } = require('./src/parts'); const text = JSON.parse(process.argv[1]);"
    script = f"{begin} (async () => console.log(JSON.stringify({expression})))()"
    command = ["node", "-e", script, json.dumps(text)]
    answer: object = json.loads(subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=True).stdout)
    return answer


@pytest.mark.slow
def test_one_command_packs_the_extension_with_the_licences_of_its_packages(extension: Path) -> None:
    with zipfile.ZipFile(extension) as packed:
        licences = packed.read("extension/dist/licences.txt").decode()
        assert packed.getinfo("extension/dist/extension.js").file_size > 50_000
    assert "vscode-languageclient 11" in licences
    assert licences.count("Permission is hereby granted") >= 6


@pytest.mark.slow
def test_vs_code_reads_each_word_of_the_shipped_files_as_the_parser_does(extension: Path) -> None:
    for file in shipped_files():
        text = file.read_text(encoding="utf-8")
        (extension.parent / "tests" / f"{file.parent.name}_{file.name}").write_text(with_claims(text), encoding="utf-8")
    done = subprocess.run(["npm", "test"], cwd=extension.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def with_claims(text: str) -> str:
    """Returns a test of vscode-tmgrammar-test: under each line, which of its words are keywords."""
    claims: dict[int, list[str]] = {}
    for start, word, is_keyword in words(text):
        line, column = text.count("\n", 0, start), start - text.rfind("\n", 0, start) - 1
        scope = "keyword.control.arch" if is_keyword else "- keyword.control.arch"
        if word in ("true", "false"):
            scope = "constant.language.arch"
        place = f"<{'-' * len(word)}" if column == 0 else " " * (column - 1) + "^" * len(word)
        claims.setdefault(line, []).append(f"#{' ' if column == 0 else ''}{place} {scope}")
    lines = ['# SYNTAX TEST "source.arch" "keywords"']
    for number, content in enumerate(text.split("\n")):
        lines += [content, *claims.get(number, [])]
    return "\n".join(lines) + "\n"
