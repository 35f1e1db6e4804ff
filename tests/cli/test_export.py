"""`archlang export`: the files that it writes, and errors of the command line."""

import json
from pathlib import Path

import pytest

from archlang.api.saving import load, save
from archlang.backend.architecture import Architecture
from archlang.export.plain import file as plain_file
from tests.api.test_saving import rewrite
from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("model.arch", "-o", "model.txt"), 1, "no suffix of an export"),
        (("folder", "-o", "model.py", "--recipe", "r"), 2, "omit --model, --recipe and --set"),
        (("model.arch", "-o", "copy.py"), 1, "choose another name, such as copy_model.py"),
        (("model.arch", "-o", "torch.py", "--force"), 1, "choose another name, such as torch_model.py"),
        (("model.arch",), 2, "--out"),
        (("model.arch", "-o", "model.py", "--checkpoint", "last"), 2, "omit --checkpoint"),
        (("bad.arch", "-o", "model.py"), 1, "E02"),
        (("runs/mistyped", "-o", "model.py"), 1, "there is no run, saved model or program runs/mistyped"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_impossible_requests_are_errors(
    archlang: Command, folder: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (folder / "folder").mkdir()
    result = archlang("export", *arguments)
    assert (result.code, result.out) == (code, "")
    assert words in result.err


def test_a_program_becomes_a_python_file_and_its_weights(archlang: Command, folder: Path) -> None:
    result = archlang("export", "model.arch", "-o", "out/model.py", "--recipe", "wide")
    assert (result.code, result.out) == (0, "wrote out/model.py\nwrote out/model.pt\n")
    text = (folder / "out" / "model.py").read_text(encoding="utf-8")
    assert "Embed(d=16" in text
    assert "Its recipe is `wide` in model.arch." in text
    shown = archlang("show", "model.arch", "--torch", "--recipe", "wide")
    assert shown.out == (folder / "out" / "model.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["model.py", "model.pt"])
def test_an_existing_file_is_overwritten_only_if_forced(archlang: Command, folder: Path, name: str) -> None:
    (folder / name).write_text("mine")
    refused = archlang("export", "model.arch", "-o", "model.py")
    assert (refused.code, refused.out) == (1, "")
    assert f"{name} exists" in refused.err
    assert (folder / name).read_text() == "mine"
    assert archlang("export", "model.arch", "-o", "model.py", "--force").code == 0


def test_a_saved_model_is_exported_and_json_names_the_files(archlang: Command, folder: Path) -> None:
    save(load(folder / "model.arch", recipe="wide"), folder / "saved")
    result = archlang("export", "saved", "-o", "model.py", "--json")
    sizes = [{"path": name, "bytes": (folder / name).stat().st_size} for name in ("model.py", "model.pt")]
    assert (result.code, json.loads(result.out)) == (0, {"model": "m", "files": sizes})


@pytest.mark.parametrize(("source", "runs"), [("model.arch", 1), ("saved", 0)])
def test_only_the_code_of_a_program_is_run(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, runs: int
) -> None:
    texts: list[str] = []
    check_equal = plain_file._check_equal

    def recorded(module: Architecture, text: str) -> None:
        texts.append(text)
        check_equal(module, text)

    monkeypatch.setattr(plain_file, "_check_equal", recorded)
    save(load(folder / "model.arch", recipe="wide"), folder / "saved")
    assert archlang("export", source, "-o", "model.py").code == 0
    assert texts == [(folder / "model.py").read_text(encoding="utf-8")] * runs


def test_a_text_in_a_strangers_graph_is_not_run(archlang: Command, folder: Path) -> None:
    save(load(folder / "model.arch", recipe="wide"), folder / "saved")
    text = '\\"\\"\\"; __import__(\'pathlib\').Path(\'planted\').touch(); \\"\\"\\"'
    graph = (folder / "saved" / "graph_at_test.txt").read_text().replace("init = normal", f'init = "{text}"')
    rewrite(folder / "saved", "graph_at_test.txt", graph.encode())
    result = archlang("export", "saved", "-o", "model.py")
    assert (result.code, (folder / "planted").exists(), (folder / "model.py").exists()) == (1, False, False)
    assert "saved/graph_at_test.txt is damaged: @embed: `embed` has no static init" in result.err
