"""Every example in the README and in docs runs, and the pages agree with the code."""

import ast
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import archlang
from archlang.cli.main import main
from archlang.contracts.cases import feature_names
from archlang.plan.check import check, check_text
from archlang.plan.from_file import plan_recipe
from archlang.resolve.resolve import ProgramLoader
from archlang.syntax.tree import Definition
from tests.shipped_models import drawn_fields

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "archlang" / "llms.txt", *sorted((ROOT / "docs").glob("*.md"))]
# Lines that a test must not run: they change the environment, run the tests, or set an editor up. `.ci/run` runs those
# of the README.
ELSEWHERE = re.compile(
    r"pygmentize .+|mkdir -p ~/.+|ln -s .+|npm .+|code .+|"
    r"python3 -m venv .venv|\. .venv/bin/activate|pip install .+|ruff check|ruff format --check|mypy|pytest -n auto"
)


def fences(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def examples(language: str) -> list[tuple[str, str]]:
    return [(f"{page.stem}-{n}", text) for page in PAGES for n, text in enumerate(fences(page, language), 1)]


COMMANDS = {page.stem: [line for text in fences(page, "sh") for line in text.splitlines()] for page in PAGES}
# These commands take minutes: the test only plans their recipe or checks their table.
LONG = re.compile(r"archlang (train|table) (?!.*(--set train\.steps=|--steps|--dry-run|--no-run|--resume))")


# Runs of commands that several pages have.
TRAINED: dict[str, Path] = {}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples("arch")])
def test_a_program_on_a_page_has_no_mistake(text: str) -> None:
    assert check_text(text) == ()


SIZES = {"vocab": 32, "words": 7, "classes": 5}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples("arch")])
def test_each_block_and_model_on_a_page_runs(text: str, tmp_path: Path) -> None:
    path = tmp_path / "page.arch"
    path.write_text(text, encoding="utf-8")
    for name, declaration in ProgramLoader().load(path).own.items():
        if not isinstance(declaration.item, Definition):
            continue
        required = [static.name for static in declaration.item.signature.statics if static.default is None]
        statics: dict[str, Any] = {  # Any: statics of any kind
            **dict.fromkeys(feature_names(declaration), 16),
            **dict.fromkeys(required, 2),
            **SIZES,
        }
        module = archlang.load(path, name, **statics).eval()
        result = module(*drawn_fields(module))
        assert len(result) == 2
        assert result.isfinite().all()


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in examples("python")])
def test_python_on_a_page_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(text, "example", "exec"), {})


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize("page", COMMANDS)
def test_the_commands_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for path in (ROOT / "recipes", ROOT / "blocks", ROOT / "docs"):
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    for line in COMMANDS[page]:
        if not line.startswith("archlang "):
            assert ELSEWHERE.fullmatch(line), line
            continue
        command = shlex.split(line)
        if LONG.match(line):
            (check if command[1] == "table" else plan_recipe)(command[2])
            continue
        if line in TRAINED:
            shutil.copytree(TRAINED[line], command[-1])
            continue
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0, line
        assert capsys.readouterr().out, line
        if command[-2:] == ["--out", "runs/first"]:
            TRAINED[line] = tmp_path_factory.mktemp("trained") / "run"
            shutil.copytree(command[-1], TRAINED[line])


def test_the_first_commands_of_the_readme_train_and_the_second_test() -> None:
    first, second, *_ = (text.splitlines() for text in fences(ROOT / "README.md", "sh"))
    fresh = ["python3 -m venv .venv", ". .venv/bin/activate", "pip install torch==2.13.0"]
    assert first == [*fresh, "pip install -e .", "archlang train recipes/s3.arch"]
    assert second[:4] == [*fresh, "pip install -e '.[test]'"]
    assert second[-1] == "pytest -n auto"


def test_an_error_on_a_page_has_its_current_wording() -> None:
    messages = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "corpus" / "bad").glob("*.txt")]
    shown = [text for _, text in examples("text") if text.startswith("error[")]
    assert shown
    for text in shown:
        assert any(message.startswith(text) for message in messages), text


def test_the_public_names_are_those_on_their_page() -> None:
    listed = re.findall(r"^\| `archlang\.(\w+)`", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(archlang.__all__)


def axes() -> set[str]:
    """Returns the names of axes in the jaxtyping annotations of all blocks."""
    names = set()
    for file in (ROOT / "blocks").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Subscript(
                    value=ast.Name(id="Float" | "Int" | "Bool"),
                    slice=ast.Tuple(elts=[_, ast.Constant(value=str(text))]),
                ):
                    # `{self.reads}*d` is an expression, and a name that begins with `_` is no documented axis.
                    names |= set(re.findall(r"(?<![\w.{])[a-z]\w*(?![\w(.])", text))
    return names


def test_every_axis_of_a_block_is_on_the_page_of_shapes() -> None:
    page = (ROOT / "docs" / "shapes.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert axes() <= set(listed)
    # `classes` is an axis of the compiled model, not of a block.
    assert set(listed) - axes() <= {"classes"}


def test_the_first_page_leads_to_all_others() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [
        page.name for page in (ROOT / "docs").glob("*.md") if page.stem != "index" and f"({page.name})" not in text
    ] == []
