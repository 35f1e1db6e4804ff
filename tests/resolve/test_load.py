"""A program reads files of its own folder, of the library and of allowed folders, and shows nothing of others."""

import os
from pathlib import Path

import pytest

import archlang
from archlang.errors import ProgramError
from archlang.errors.render import plain
from archlang.plan.check import check, check_text
from archlang.plan.from_file import plan_recipe
from archlang.resolve import library
from archlang.resolve.resolve import load_file

LAYER = "block layer(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
# Not a program, so an error would show this line.
SECRET = "root:secret\n"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """A folder `program` with a program, beside a folder `outside` with a secret, a block and a pipe."""
    for folder in ("program", "outside"):
        (tmp_path / folder).mkdir()
    (tmp_path / "outside" / "secret.arch").write_text(SECRET)
    (tmp_path / "outside" / "layer.arch").write_text(LAYER)
    return tmp_path


def program(folders: Path, used: str) -> Path:
    file = folders / "program" / "program.arch"
    file.write_text(f'use "{used}"\nblock b(h: seq[n, d]) -> seq[n, d] {{ return layer(h) }}\n')
    return file


OUTSIDE = [
    "../outside/secret.arch", "sub/../../outside/secret.arch", "/etc/shadow", "/proc/self/environ", "/dev/zero", "..",
]  # fmt: skip


@pytest.mark.parametrize("used", [*OUTSIDE, "link.arch", "folder/secret.arch", "broken.arch", "chain.arch"])
def test_a_used_file_outside_is_refused_without_a_byte_of_it(folders: Path, used: str) -> None:
    file = program(folders, used)
    (folders / "program" / "link.arch").symlink_to(folders / "outside" / "secret.arch")
    (folders / "program" / "chain.arch").symlink_to("link.arch")
    (folders / "program" / "folder").symlink_to(folders / "outside")
    (folders / "program" / "broken.arch").symlink_to(folders / "outside" / "missing.arch")
    diagnostics = check(file)
    assert "E0233" in {diagnostic.code for diagnostic in diagnostics}
    assert "secret\n" not in plain(diagnostics)
    with pytest.raises(ProgramError):
        load_file(file)


def test_the_message_is_the_same_whether_the_file_exists_or_not(folders: Path) -> None:
    present, missing = (check(program(folders, f"../outside/{name}.arch"))[0] for name in ("secret", "nothin"))
    assert present.message.replace("secret", "nothin") == missing.message
    assert (present.code, present.label, present.remedy) == (missing.code, missing.label, missing.remedy)


@pytest.mark.parametrize("used", ["../outside/layer.arch", "folder/layer.arch"])
def test_an_allowed_folder_may_be_used(folders: Path, used: str) -> None:
    file = program(folders, used)
    (folders / "program" / "folder").symlink_to(folders / "outside")
    assert [diagnostic.code for diagnostic in check(file)][:1] == ["E0233"]
    assert check(file, allow=[folders / "outside"]) == ()
    assert "layer" in load_file(file, [folders / "outside"]).used


def test_a_used_file_may_use_files_of_the_folder_of_the_program(folders: Path) -> None:
    (folders / "program" / "below").mkdir()
    (folders / "program" / "layer.arch").write_text(LAYER)
    (folders / "program" / "below" / "more.arch").write_text('use "../layer.arch"\n' + LAYER)
    assert check(program(folders, "below/more.arch")) == ()


def test_a_used_file_leads_no_further_out_than_the_program(folders: Path) -> None:
    (folders / "program" / "more.arch").write_text('use "../outside/secret.arch"\n' + LAYER)
    (diagnostic,) = check(program(folders, "./more.arch"))
    assert (diagnostic.code, diagnostic.span.source.path) == ("E0233", str(folders / "program" / "more.arch"))


def test_files_of_the_library_may_be_used_by_their_paths() -> None:
    path = library.BLOCKS / "models" / "data_router.arch"
    assert check_text(f'use "{path}"  # readout\n{LAYER}') == ()


def test_a_program_given_as_text_belongs_to_the_current_folder(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders / "outside")
    assert check_text(f'use "./layer.arch" as other  # other.layer\n{LAYER}', "<stdin>") == ()
    monkeypatch.chdir(folders / "program")
    assert [d.code for d in check_text('use "../outside/layer.arch" as other\n' + LAYER)] == ["E0233"]


def test_load_allows_folders(folders: Path) -> None:
    file = folders / "program" / "model.arch"
    file.write_text(
        'use "../outside/layer.arch"\nmodel m[d = 4](x: tokens[n]) -> logits[classes] {\n'
        "    return embed[d](x) |> layer |> last |> linear[classes]\n}\n"
    )
    with pytest.raises(ProgramError, match="E0233"):
        archlang.load(file, vocab=3, classes=2)
    archlang.load(file, vocab=3, classes=2, allow=[folders / "outside"])


DATA = """
model small[d = 4](x: tokens[n]) -> logits[classes] { return embed[d](x) |> last |> linear[classes] }
recipe r { task file[path = "PATH"] model small train adamw[steps = 1] }
"""


def test_one_option_allows_used_files_and_data(folders: Path) -> None:
    file = folders / "program" / "recipe.arch"
    for path in ("../outside/words.tsv", str(folders / "outside" / "words.tsv")):
        file.write_text(DATA.replace("PATH", path))
        assert [diagnostic.code for diagnostic in check(file)] == ["E0316"]
        plan = plan_recipe(file, allow=[folders / "outside"])
        assert plan.settings["task.path"] == str(folders / "outside" / "words.tsv")


def test_a_file_called_like_an_option_is_not_the_command_line(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders / "program")
    Path("--set x.arch").write_text(DATA.replace("PATH", "../outside/words.tsv"))
    assert [diagnostic.code for diagnostic in check("--set x.arch")] == ["E0316"]


def test_a_link_put_in_place_after_the_check_is_not_followed(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = program(folders, "below/layer.arch")
    below = folders / "program" / "below"
    below.mkdir()
    (below / "layer.arch").write_text(LAYER)
    is_file = os.path.isfile

    def swapped(path: str | Path) -> bool:
        present = is_file(path)
        if Path(path).name == "layer.arch" and not below.is_symlink():
            (below / "layer.arch").unlink()
            below.rmdir()
            below.symlink_to(folders / "outside")
        return present

    monkeypatch.setattr("os.path.isfile", swapped)
    assert "E0108" in {diagnostic.code for diagnostic in check(file)}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this platform")
def test_a_pipe_put_in_place_after_the_check_does_not_wait(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = program(folders, "./pipe.arch")
    os.mkfifo(folders / "program" / "pipe.arch")
    assert "E0208" in {diagnostic.code for diagnostic in check(file)}
    monkeypatch.setattr("os.path.isfile", lambda path: True)
    assert "E0108" in {diagnostic.code for diagnostic in check(file)}


def test_an_unreadable_used_file_is_reported_at_every_use(folders: Path) -> None:
    (folders / "program" / "broken.arch").write_bytes(b"\xff")
    file = folders / "program" / "twice.arch"
    file.write_text('use "./broken.arch"\nuse "./broken.arch" as again\n' + LAYER)
    assert {diagnostic.code for diagnostic in check(file)} == {"E0109"}


def test_a_mistake_in_a_used_file_shows_the_use_lines_that_lead_to_it(folders: Path) -> None:
    (folders / "program" / "broken.arch").write_text("block layer(h: seq[n, d]) -> seq[n, d] { return norm(h }\n")
    (folders / "program" / "middle.arch").write_text('use "./broken.arch" as broken\n' + LAYER)
    file = program(folders, "./middle.arch")
    (diagnostic,) = check(file)
    assert diagnostic.span.source.path.endswith("broken.arch")
    assert [(label.span.source.path, label.text) for label in diagnostic.labels[-2:]] == [
        (str(folders / "program" / "middle.arch"), "used here"),
        (str(file), "used here"),
    ]
    with pytest.raises(ProgramError) as caught:
        load_file(file)
    assert caught.value.diagnostics[0].labels == diagnostic.labels
