"""`archlang predict`, as a user types it."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest

import archlang as package
from archlang.tasks.kit.image_files import labels_of
from tests.api.test_run import WRITER, trained
from tests.api.test_saving import rewrite
from tests.cli.conftest import Command
from tests.tasks.kit.test_image_files import mnist


@pytest.fixture
def folder(tmp_path: Path, finished_run: Path) -> Path:
    (tmp_path / "run").symlink_to(finished_run)
    return tmp_path


def test_inputs_are_answered_in_a_table(archlang: Command, folder: Path) -> None:
    result = archlang("predict", "run", "--input", "10 a b", "--input", "01 b", "--device", "cpu")
    assert (result.code, result.err) == (0, "")
    assert all(word in result.out for word in ("input", "answer", "probability", "steps", "[B] 10 a b [E]"))


def test_json_has_a_line_for_each_line_of_a_file(archlang: Command, folder: Path) -> None:
    (folder / "in.txt").write_text("10 a b\n01 b\n")
    result = archlang("predict", "run", "--file", "in.txt", "--batch", "1", "--json", "--device", "cpu")
    predictions = package.load_run("run").predict(["10 a b", "01 b"])
    assert [json.loads(line)["answer"] for line in result.out.splitlines()] == [
        prediction.answer for prediction in predictions
    ]


def test_output_to_a_file_needs_no_thread(archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    assert archlang("predict", "run", "--input", "10 a b", "--device", "cpu").code == 0
    assert archlang("train", "--resume", "run", "--device", "cpu").code == 0


def test_jsonl_holds_texts_ids_and_fields(archlang: Command, folder: Path) -> None:
    (folder / "in.jsonl").write_text('"10 a"\n[6, 2, 3, 5]\n{"x": "10 a"}\n')
    lines = archlang("predict", "run", "--file", "in.jsonl", "--json", "--device", "cpu").out.splitlines()
    assert lines[0] == lines[1] == lines[2]


def test_files_of_images_are_answered_image_by_image(archlang: Command, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    path = mnist(tmp_path / "m", 12)
    model = "model m(x: seq[n, 1]) -> logits[classes] { return linear[classes](mean(relu(linear[4](x / 255)))) }"
    trained(tmp_path / "m", model, f'file_images["{path}", columns = 3, valid_share = 0.4]')
    Path(labels_of(str(path))).unlink()  # an image needs none
    result = archlang("predict", "m/run", "--file", str(path), "--json", "--device", "cpu")
    images = np.frombuffer(path.read_bytes()[16:], np.uint8).reshape(12, 4, 3, 1)
    expected = package.load_run("m/run").predict(list(images))
    assert [json.loads(line) for line in result.out.splitlines()] == [each.to_json() for each in expected]
    assert expected[0].fields == {"x": "12 rows of 1 number"}
    wider = mnist(tmp_path, 5, columns=4)
    result = archlang("predict", "m/run", "--file", str(wider), "--device", "cpu")
    assert (result.code, result.out) == (1, "")
    assert f"{wider}: its images have 4 columns, not 3" in " ".join(result.err.split())
    (tmp_path / "x.png").write_bytes(b"\x89PNG")
    assert "t10k-images-idx3-ubyte.gz" in archlang("predict", "m/run", "--file", "x.png", "--device", "cpu").err


def test_stdin_is_read_as_text_or_objects(archlang: Command, folder: Path) -> None:
    stdin = b'\xef\xbb\xbf10 a\n{"x": "10 a"}\n'
    lines = archlang("predict", "run", "--file", "-", "--json", "--device", "cpu", stdin=stdin).out.splitlines()
    assert len(lines) == 2
    assert lines[0] == lines[1]


def test_answers_without_an_end_need_a_length(archlang: Command, folder: Path) -> None:
    task = "copy[train = 1..3, test = [4], train_size = 8, valid_size = 4, test_size = 4]"
    trained(folder / "copy", WRITER, task)
    arguments = ["copy/run", "--input", "1 2 3", "--input", "1 2", "--device", "cpu"]
    result = archlang("predict", *arguments)
    assert (result.code, result.out) == (1, "")
    assert "--input 1: the answers of the model have no end" in result.err
    assert "`--length N`" in result.err
    result = archlang("predict", *arguments, "--length", "2", "--json")
    assert [len(json.loads(line)["parts"]) for line in result.out.splitlines()] == [2, 2]

    def drawn(*options: str) -> list[str]:
        settings = ("--length", "8", "--json", "--temperature", "2", "--seed", "1", *options)
        return [json.loads(line)["answer"] for line in archlang("predict", *arguments, *settings).out.splitlines()]

    answers = drawn("--samples", "3")
    assert len(set(answers)) == 6
    assert answers == drawn("--samples", "3", "--batch", "1")
    assert answers[::3] == drawn()
    assert drawn("--stop", "3") == [answer.partition("3")[0] for answer in answers[::3]]
    sampling = package.Sampling(temperature=2.0, seed=1)
    predictions = package.load_run("copy/run").predict(["1 2 3", "1 2"], length=8, sampling=sampling, samples=3)
    assert [prediction.answer for prediction in predictions] == answers
    refused = archlang("predict", "run", "--input", "10 a", "--device", "cpu", "--top-k", "2")
    assert (refused.code, "nothing can be drawn" in refused.err, "--length" in refused.err) == (1, True, False)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "tagging"},
        {"written": 5, "begin": -3, "end": 99_999},
        {"fields": [{"name": "x", "words": ["10"], "first": 1e300}]},
        {"fields": [{"name": "x", "words": ["10"]}, {"name": "y", "words": ["10"], "first": 0.5}]},
        {"fields": [{"name": "x", "words": ["10"], "size": 3}]},
    ],
    ids=str,
)
def test_a_vocabulary_of_another_model_is_refused(change: dict[str, object], archlang: Command, folder: Path) -> None:
    package.save(package.load_run("run"), "saved")
    vocabulary = {**json.loads(Path("saved/vocabulary.json").read_text()), **change}
    rewrite(Path("saved"), "vocabulary.json", json.dumps(vocabulary).encode())
    Path("in.jsonl").write_text(json.dumps({field["name"]: "10" for field in vocabulary["fields"]}) + "\n")
    result = archlang("predict", "saved", "--file", "in.jsonl", "--device", "cpu")
    assert (result.code, "help: " in result.err) == (1, True), result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run"], 2, "give inputs by --input, --file or --prompt, and none are given"),
        (["run", "--input", "10", "--file", "-"], 2, "give inputs by --input, --file or --prompt, not by several"),
        (["run", "--prompt", "10", "--json"], 2, "--prompt prints one text"),
        (["run", "--prompt", "10"], 1, "the model predicts no next tokens of a text"),
        (["run", "--input", "10", "--batch", "0"], 2, "--batch"),
        (["run", "--input", "10", "--input", "q"], 1, "--input 2: `q` is not a token of the task"),
        (["run", "--file", "in.txt"], 1, "in.txt:2: `q` is not a token of the task"),
        (["run", "--file", "broken.jsonl"], 1, "broken.jsonl:1 is not JSON"),
        (["run", "--file", "blank.txt"], 1, "blank.txt:2: the input has no tokens"),
        (["run", "--file", "blank.jsonl"], 1, "blank.jsonl:2 is not JSON"),
        (["run", "--file", "latin.txt"], 1, "latin.txt:3 is not UTF-8"),
        (["run", "--file", "missing.txt"], 1, "missing.txt cannot be read"),
        (["run", "--input", "10", "--checkpoint", "7"], 1, "has no checkpoint of step 7"),
        (["nowhere", "--input", "10"], 1, "is not a run folder"),
    ],
)
def test_a_wrong_command_is_an_error(
    archlang: Command, folder: Path, arguments: list[str], code: int, message: str
) -> None:
    (folder / "in.txt").write_text("10 a\nq\n")
    (folder / "broken.jsonl").write_text("10 a\n")
    (folder / "latin.txt").write_bytes(b"10\n10 a\r\n10 \xe4\n10\n")
    (folder / "blank.txt").write_text("10 a\n\n10\n")
    (folder / "blank.jsonl").write_text('"10 a"\n\n"10"\n')
    result = archlang("predict", *arguments, "--device", "cpu")
    assert result.code == code
    assert message in " ".join(result.err.replace("│", " ").split())
