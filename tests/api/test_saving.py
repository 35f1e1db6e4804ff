"""Saved models: what is loaded equals what was saved, and a folder that someone else has changed is refused."""

import errno
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

import archlang
from archlang.api.mistakes import SavedModelError
from archlang.backend import BuildError
from archlang.backend.architecture import Architecture
from archlang.disk.folder import Folder
from archlang.errors.machine import is_caused_by_machine
from archlang.plugins import PluginError
from archlang.train.record.mistakes import RunError
from tests.sampling import one_in
from tests.shipped_models import SHIPPED, shipped_batch, shipped_model
from tests.train.record.test_run_folder import contents

PROGRAM = """use "layer.arch"
model m[d = 8, steps = 2](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat steps halting h by token_halt { h <- layer(h) }
    return linear[classes](last(h))
}
"""
LAYER = "block layer(h: seq[n, d]) -> seq[n, d] { return h + attention[2](norm(h)) }\n"
Edit = Callable[[str], str]
CHECKPOINT = "checkpoints/step-00000000"
WEIGHTS = f"{CHECKPOINT}/weights.safetensors"


@pytest.fixture
def module(tmp_path: Path) -> Architecture:
    (tmp_path / "m.arch").write_text(PROGRAM)
    (tmp_path / "layer.arch").write_text(LAYER)
    torch.manual_seed(0)
    return archlang.load(tmp_path / "m.arch", vocab=7, classes=3, d=16).eval()


@pytest.fixture
def folder(module: Architecture, tmp_path: Path) -> Path:
    archlang.save(module, tmp_path / "saved")
    return tmp_path / "saved"


def tokens() -> Tensor:
    return torch.randint(0, 7, (3, 9), generator=torch.Generator().manual_seed(1))


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """Changes a file, and the manifest with it, as an attacker would."""
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def refused(folder: Path, message: str) -> None:
    with pytest.raises(RunError) as error:
        archlang.load(folder)
    assert message in str(error.value)


def test_a_loaded_module_has_the_same_outputs_bit_for_bit(module: Architecture, folder: Path) -> None:
    loaded = archlang.load(folder)
    assert not loaded.training
    assert torch.equal(loaded(tokens()), module(tokens()))
    assert loaded.state_dict().keys() == module.state_dict().keys()


@pytest.mark.parametrize("name", one_in(3, SHIPPED))
def test_every_shipped_model_is_loaded_as_it_was_saved(name: str, tmp_path: Path) -> None:
    module = shipped_model(name)
    archlang.save(module, tmp_path / "saved")
    loaded = archlang.load(tmp_path / "saved")
    fields, lengths = shipped_batch(module, batch=2, length=7)
    results = []
    for model in (module, loaded):
        torch.manual_seed(0)  # some models draw random numbers in evaluation too
        results.append(model(*fields, lengths=lengths).detach())
    assert torch.equal(*results)


def test_weights_of_another_precision_stay_so(module: Architecture, tmp_path: Path) -> None:
    archlang.save(module.double(), tmp_path / "double")
    loaded = archlang.load(tmp_path / "double")
    assert loaded(tokens()).dtype == torch.float64
    assert torch.equal(loaded(tokens()), module(tokens()))


def test_a_module_without_passes_is_loaded_without_them(tmp_path: Path, module: Architecture) -> None:
    plain = archlang.load(tmp_path / "m.arch", vocab=7, classes=3, without_passes=["common", "invariants"]).eval()
    archlang.save(plain, tmp_path / "plain")
    assert torch.equal(archlang.load(tmp_path / "plain")(tokens()), plain(tokens()))
    assert json.loads((tmp_path / "plain" / "run.json").read_text())["without_passes"] == ["common", "invariants"]


def test_the_program_is_beside_its_model_with_the_files_that_it_uses(folder: Path) -> None:
    assert (folder / "recipe.arch").read_text() == PROGRAM
    assert (folder / "layer.arch").read_text() == LAYER
    assert archlang.check(folder / "recipe.arch") == ()
    settings = json.loads((folder / "run.json").read_text())["settings"]
    assert settings == {"model.vocab": 7, "model.classes": 3, "model.d": 16}


def test_no_file_names_a_folder_of_this_machine(folder: Path) -> None:
    assert not any(str(folder.parent).encode() in content for content in contents(folder).values())


def test_a_loaded_module_can_be_saved_again(folder: Path, tmp_path: Path) -> None:
    archlang.save(archlang.load(folder), tmp_path / "again")
    assert contents(folder) == contents(tmp_path / "again")


def test_saving_replaces_a_saved_model_but_no_other_folder(module: Architecture, folder: Path, tmp_path: Path) -> None:
    archlang.save(module, folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(SavedModelError, match="holds other files"):
        archlang.save(module, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_what_is_no_model_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(SavedModelError, match="a Linear is not a model of archlang"):
        archlang.save(nn.Linear(2, 2), tmp_path / "saved")  # type: ignore[arg-type]


# Folders of strangers


def flip(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + bytes([file.read_bytes()[-1] ^ 1]))


def link(path: Path) -> None:
    elsewhere = path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (
            lambda file: file.write_text(file.read_text() + "#\n"),
            "graph_at_test.txt",
            "is not the file that manifest.json describes",
        ),
        (flip, WEIGHTS, "is not the file that manifest.json describes"),
        *((Path.unlink, name, f"has no {name}") for name in ("graph_at_test.txt", WEIGHTS, "layer.arch")),
        *((link, name, "is a link") for name in ("run.json", "layer.arch")),
        *((link, name, name) for name in ("manifest.json", "checkpoints")),
    ],
)
def test_a_changed_missing_or_linked_file_is_refused(
    folder: Path, change: Callable[[Path], object], name: str, message: str
) -> None:
    change(folder / name)
    refused(folder, message)


@pytest.mark.parametrize("name", ["../out.arch", "a/../../out.arch", "/etc/passwd", "run.py", f"{CHECKPOINT}/state.pt"])
def test_a_manifest_that_names_another_file_is_refused(folder: Path, name: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {"size": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    refused(folder, "a saved model has no file")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"format": 1}',
        *(f'{{"format": {n}, "archlang": "9", "files": {{}}}}' for n in (1, 9)),
        "[" * 9999,
    ],
)
def test_a_manifest_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    refused(folder, "manifest.json is damaged" if "files" not in text else "and this archlang reads 2")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda text: "graph\n", "graph_at_test.txt is damaged"),
        (lambda text: text.replace("limit = 2", "limit = 2000000"), "take more than 1,000,000 steps"),
        (lambda text: text.replace("vocab = 7", "vocab = 7000000000000"), "the size 7000000000000"),
        (lambda text: text.replace("d = 16, init", "d = 32, init"), "do not fit"),
        (lambda text: text.replace("return %", "return %9"), "graph_at_test.txt is damaged"),
        (lambda text: text.replace("blocks.embed:Embed", "blocks.embed:Tensor"), "Tensor"),
    ],
)  # fmt: skip
def test_a_graph_of_another_model_is_refused(folder: Path, edit: Edit, message: str) -> None:
    text = (folder / "graph_at_test.txt").read_text()
    assert edit(text) != text
    rewrite(folder, "graph_at_test.txt", edit(text).encode())
    with pytest.raises((RunError, BuildError), match=message):
        archlang.load(folder)


def rewrite_weights(folder: Path, content: bytes) -> None:
    rewrite(folder, WEIGHTS, content)
    digest = {"weights.safetensors": hashlib.sha256(content).hexdigest()}
    rewrite(folder, f"{CHECKPOINT}/manifest.json", json.dumps(digest).encode())


def test_weights_of_another_model_are_refused(folder: Path) -> None:
    rewrite_weights(folder, safetensors.torch.save({"x": torch.zeros(1 << 20)}))
    refused(folder, "do not fit its model")


def test_weights_that_are_no_safetensors_are_refused(folder: Path) -> None:
    rewrite_weights(folder, (folder / WEIGHTS).read_bytes()[:-4] + b"\0" * 8)
    refused(folder, "weights.safetensors is damaged")


def test_python_outside_of_the_library_is_refused_until_it_is_allowed(folder: Path) -> None:
    text = (folder / "graph_at_test.txt").read_text()
    rewrite(folder, "graph_at_test.txt", text.replace("archlang.blocks.embed:Embed", "mine:Embed").encode())
    with pytest.raises(PluginError, match="add `--plugin .*mine.py`"):
        archlang.load(folder)
    (folder.parent / "mine.py").write_text("")
    with pytest.raises(PluginError, match="mine.py does not define it"):
        archlang.load(folder, plugins=[folder.parent / "mine.py"])


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), MemoryError()], ids=repr)
def test_a_fault_of_the_machine_is_not_called_damage(
    folder: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Folder, "read", fail)
    with pytest.raises((RunError, MemoryError)) as raised:
        archlang.load(folder)
    assert is_caused_by_machine(raised.value)
    assert "manifest.json is damaged" not in str(raised.value)


def test_settings_for_a_folder_are_refused(folder: Path) -> None:
    with pytest.raises(SavedModelError, match="settings are fixed: d"):
        archlang.load(folder, d=32)


def test_another_folder_is_neither_a_saved_model_nor_a_run(tmp_path: Path) -> None:
    with pytest.raises(SavedModelError, match="neither a saved model nor a run folder"):
        archlang.load(tmp_path)
