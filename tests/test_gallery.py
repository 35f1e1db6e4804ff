"""The gallery of the field shows what its commands draw."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archlang.cli.app import app
from archlang.resolve.library import blocks

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
PAGE = (GALLERY / "field.md").read_text(encoding="utf-8")
PICTURES = re.findall(r"^    archlang viz (\S+) -o (\S+)$", PAGE, re.MULTILINE)
EXAMPLES = sorted((ROOT / "docs" / "examples" / "field").glob("*.arch"))


@pytest.mark.parametrize(
    ("program", "picture"),
    [
        pytest.param(program, picture, id=Path(picture).stem, marks=[] if index == 0 else [pytest.mark.slow])
        for index, (program, picture) in enumerate(PICTURES)
    ],
)
def test_a_picture_is_what_its_command_draws(
    program: str, picture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # a picture names the lines of its program
    result = CliRunner().invoke(app, ["viz", program, "-o", str(tmp_path / "picture.svg")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8") == (ROOT / picture).read_text(encoding="utf-8")


def test_every_example_has_its_picture_and_its_curves() -> None:
    shown = {program for program, _ in PICTURES}
    assert {str(path.relative_to(ROOT)) for path in EXAMPLES} <= shown
    images = set(re.findall(r"\]\((field/[^)]+\.svg)\)", PAGE))
    assert images == {f"field/{path.name}" for path in (GALLERY / "field").iterdir()}
    assert {f"field/{path.stem}{part}.svg" for path in EXAMPLES for part in ("", "_charts")} <= images


def test_every_architecture_of_the_library_has_a_line() -> None:
    shown = re.findall(r"^\| `.*", (GALLERY / "blocks.md").read_text(encoding="utf-8"), re.MULTILINE)
    items = sorted(
        (name.partition(".")[2], "\n".join(item.documentation)) for name, item in blocks().items() if "." in name
    )
    assert shown == [line for name, says in items if (line := line_of(name, says)) is not None]


def line_of(name: str, documentation: str) -> str | None:
    """The line of a block that has a published source."""
    source = re.search(r"^Sources?: (.+?)(?:\n\n|\Z)", documentation, re.MULTILINE | re.DOTALL)
    if source is None or '"' not in source[1]:
        return None
    says, where = (" ".join(text.split()).replace("|", "\\|") for text in (documentation.split("\n\n")[0], source[1]))
    return f"| `{name}` | {says} | {where} |"
