"""The hub, replaced by a local folder at its boundary: what is uploaded is what is loaded elsewhere."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import archlang
from archlang.api.mistakes import SavedModelError
from archlang.train.record.mistakes import RunError

hub = pytest.importorskip("huggingface_hub", reason="the extra `hub` is not installed")


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of the hub, with a folder for each repository."""
    folder = tmp_path / "remote"

    def create_repo(_: object, name: str, **settings: object) -> None:
        (folder / name).mkdir(parents=True)

    def upload_folder(_: object, repo_id: str, folder_path: str, allow_patterns: list[str], **more: object) -> str:
        for file in allow_patterns:
            (folder / repo_id / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(folder_path) / file, folder / repo_id / file)
        return f"https://hub/{repo_id}"

    def snapshot_download(name: str, local_dir: str, **settings: object) -> str:
        if not (folder / name).is_dir():
            raise OSError(f"404: there is no {name}\nand a long explanation")
        return str(shutil.copytree(folder / name, local_dir, dirs_exist_ok=True))

    replaced: Any = hub  # Any: a package without types
    monkeypatch.setattr(replaced.HfApi, "create_repo", create_repo)
    monkeypatch.setattr(replaced.HfApi, "upload_folder", upload_folder)
    monkeypatch.setattr(replaced, "snapshot_download", snapshot_download)
    return folder


def test_a_run_that_is_pushed_answers_where_it_is_pulled(finished_run: Path, remote: Path, tmp_path: Path) -> None:
    run = archlang.load_run(finished_run)
    assert archlang.push(run, "me/tiny") == "https://hub/me/tiny"
    folder = archlang.pull("me/tiny", folder=tmp_path / "pulled")
    assert archlang.load_run(folder).predict(["10 a b"]) == run.predict(["10 a b"])
    tokens = torch.tensor([[6, 2, 5]])
    assert torch.equal(archlang.load(folder)(tokens), run.module(tokens))
    assert archlang.pull("me/tiny").parent.name == "hub"


def test_only_the_files_of_a_saved_model_are_uploaded(finished_run: Path, remote: Path, tmp_path: Path) -> None:
    archlang.save(archlang.load_run(finished_run), tmp_path / "saved")
    (tmp_path / "saved" / "notes.txt").write_text("private")
    for source in (tmp_path / "saved", finished_run):
        archlang.push(source, f"me/{source.name}")
        assert sorted(file.name for file in (remote / "me" / source.name).iterdir()) == [
            "checkpoints", "data.json", "graph.txt", "graph_at_test.txt", "manifest.json", "recipe.arch",
            "results.json", "run.json", "vocabulary.json",
        ]  # fmt: skip


def test_a_damaged_model_is_not_pushed(finished_run: Path, remote: Path, tmp_path: Path) -> None:
    archlang.save(archlang.load_run(finished_run), tmp_path / "saved")
    (tmp_path / "saved" / "graph.txt").write_text("graph\n")
    with pytest.raises(RunError, match="graph"):
        archlang.push(tmp_path / "saved", "me/tiny")
    assert not (remote / "me").exists()


def test_a_name_that_the_hub_does_not_know_is_an_error_of_one_line(remote: Path, tmp_path: Path) -> None:
    with pytest.raises(SavedModelError) as error:
        archlang.pull("me/nothing", folder=tmp_path / "pulled")
    assert error.value.message == "the hub does not exchange `me/nothing`: 404: there is no me/nothing"


def test_a_repository_without_a_saved_model_is_refused(remote: Path, tmp_path: Path) -> None:
    (remote / "me" / "other").mkdir(parents=True)
    with pytest.raises(SavedModelError, match="neither a saved model nor a run folder"):
        archlang.pull("me/other", folder=tmp_path / "pulled")
