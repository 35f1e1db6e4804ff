"""A run in Python: what is loaded is what was trained, and every kind of task is answered, alone as in a batch."""

import io
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import archlang
from archlang.api.run import Run
from archlang.data import store
from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit.task import Kind, class_names
from archlang.train.record.mistakes import RunError, RunWarning
from archlang.train.runs import training
from archlang.train.runs.evaluation import evaluate_run
from archlang.train.runs.prediction import predict_inputs
from tests.tiny_run import Train

ENCODER = """
    h = embed[8](x)
    repeat 2 halting h by token_halt { h <- h + attention[2](norm(h)) }
"""
CLASSIFIER = f"model m(x: tokens[n]) -> logits[classes] {{ {ENCODER} return linear[classes](last(h)) }}"
TAGGER = f"model m(x: tokens[n]) -> logits[n, classes] {{ {ENCODER} return linear[classes](h) }}"
CAUSAL = """model m(x: tokens[n]) -> logits[n, vocab] {
    return embed[8](x) |> attention[2, causal = true] |> linear[vocab]
}"""
PAIRS = """model m(left: tokens[n], right: tokens[m]) -> logits[classes] {
    return linear[classes](mean(embed[8](left)) + mean(embed[8](right)))
}"""
WRITER = """model m(source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    return embed[8](target) |> attention[2](embed[8](source)) |> linear[vocab]
}"""
NUMBERS = """model m(source: tokens[n], priority: seq[n, 1], target: tokens[m]) -> logits[m, vocab] {
    memory = embed[8](source) + linear[8](priority)
    return embed[8](target) |> attention[2](memory) |> linear[vocab]
}"""
SPANS = "model m(x: tokens[n]) -> logits[n, 2] { return embed[8](x) |> attention[2] |> linear[2] }"
POINTER = """model m(x: tokens[n]) -> logits[n, n] {
    h = embed[8](x) |> attention[2]
    return scores(linear[8](h), linear[8](h))
}"""
REGRESSOR = """model m(x: seq[n, size]) -> seq[n, 1] {
    return linear[8](x) |> attention[2, causal = true] |> linear[1]
}"""
SIZES = "train_size = 8, valid_size = 4, test_size = 4"


def trained(folder: Path, model: str, task: str, select: str = "valid.accuracy", steps: int = 1) -> Run:
    folder.mkdir(exist_ok=True)
    (folder / "m.arch").write_text(
        f"{model}\nrecipe r {{\n task {task}\n model m\n"
        f" train adamw[steps = {steps}, batch = 4, select = {select}]\n}}\n"
    )
    training.train(plan_recipe(folder / "m.arch"), folder / "run", device="cpu")
    return archlang.load_run(folder / "run")


def agree_in_a_batch(run: Run, inputs: list[Any], length: int | None = None) -> None:
    together = run.predict(inputs, length=length)
    for item, prediction in zip(inputs, together, strict=True):
        (alone,) = run.predict([item], length=length)
        assert (alone.fields, alone.answer, alone.steps) == (prediction.fields, prediction.answer, prediction.steps)
        assert alone.probability == pytest.approx(prediction.probability, rel=1e-4)


# Loading


def test_a_run_has_its_settings_also_those_of_the_command_line(train: Train, tmp_path: Path) -> None:
    train(tmp_path / "run", model__d="16", model__steps="3")
    run = archlang.load_run(tmp_path / "run")
    assert (run.settings["model.d"], run.plan.recipe, run.task.kind) == (16, "tiny", Kind.CLASSIFICATION)
    assert run.module.state_dict()["embed.weight"].shape == (7, 16)
    assert not run.module.training
    assert run.vocabulary == run.task.vocabulary


def test_a_folder_is_loaded_like_its_run(finished_run: Path) -> None:
    tokens = torch.randint(0, 7, (2, 5))
    run = archlang.load_run(finished_run)
    assert torch.equal(archlang.load(finished_run)(tokens), run.module(tokens))


def test_checkpoints_are_chosen_by_word_or_step(finished_run: Path) -> None:
    last = archlang.load_run(finished_run, "last")
    assert last.step == 40
    assert archlang.load_run(finished_run, 40).step == 40
    for checkpoint, message in ((7, "has no checkpoint of step 7"), ("newest", "`newest` is not a checkpoint")):
        with pytest.raises(RunError, match=message):
            archlang.load_run(finished_run, checkpoint)


MOODS = "text\tlabel\tsplit\n" + "c\tx\ttrain\nd\ty\ttrain\n" * 8 + "c c\tx\tvalid\nd zz\ty\tvalid\n"


@pytest.fixture
def moods(tmp_path: Path) -> Path:
    (tmp_path / "a.tsv").write_text(MOODS)
    return tmp_path


def test_a_run_has_the_vocabulary_that_it_was_trained_with(moods: Path) -> None:
    run = trained(moods, CLASSIFIER, 'file[path = "a.tsv", words = 4, labels = 3]', steps=20)
    inputs = ["c", "d", "dc", "[B]"]
    answers = run.predict(inputs)
    assert [answer.fields["x"] for answer in answers] == ["c", "d", "<unk>", "<unk>"]
    with (moods / "a.tsv").open("a") as stream:
        stream.write("b b b b b b b b b\tw\ttrain\n")
    run = archlang.load_run(moods / "run")
    assert (run.predict(inputs), run.vocabulary[:2]) == (answers, ("c", "d"))
    with pytest.warns(RunWarning, match="the train split cannot be compared .*line 20.*is none of those"):
        outcome = evaluate_run(moods / "run", device="cpu")
    assert list(outcome.splits) == ["valid"]
    (moods / "a.tsv").unlink()
    run = archlang.load_run(moods / "run")
    assert run.predict(inputs) == answers
    archlang.save(run, moods / "saved")
    assert archlang.load_run(moods / "saved").predict(inputs) == answers


def test_an_evaluation_says_which_split_of_a_file_has_changed(moods: Path) -> None:
    trained(moods, CLASSIFIER, 'file[path = "a.tsv", words = 4]')
    (moods / "a.tsv").write_text(MOODS.replace("c\tx", "c c\tx", 1))
    with pytest.warns(RunWarning) as warned:
        evaluate_run(moods / "run", device="cpu")
    assert [str(warning.message) for warning in warned] == [
        f"the train split is not the one that {moods / 'run'} was made with"
    ]


def test_rows_that_a_split_shares_with_train_are_named(moods: Path) -> None:
    with (moods / "a.tsv").open("a") as stream:
        stream.write("c\ty\ttest\nd d\ty\ttest\n")
    with pytest.warns(RunWarning, match="the model reads 1 of the 2 rows of test in train too"):
        trained(moods, CLASSIFIER, 'file[path = "a.tsv", words = 4]')


def test_a_run_without_validation_data_answers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("c,x\nd,y\n" * 4)
    run = trained(tmp_path, CLASSIFIER, 'file[path = "a.csv", header = false, words = 4]', "train.accuracy")
    (prediction,) = run.predict(["c"])
    assert prediction.answer in ("x", "y")
    assert run.inspect("c").fields["x"] == ("c",)


def test_a_saved_run_answers_without_its_data(finished_run: Path, tmp_path: Path) -> None:
    run = archlang.load_run(finished_run)
    archlang.save(run, tmp_path / "saved")
    saved = archlang.load_run(tmp_path / "saved")
    inputs = ["10 a b", "01 b"]
    assert saved.predict(inputs) == run.predict(inputs)
    assert (saved.settings, saved.step, saved.recipe, saved.vocabulary) == (
        run.settings, run.step, run.recipe, run.vocabulary,
    )  # fmt: skip
    assert saved.predict(saved.samples()) == run.predict(run.samples())
    assert saved.plan.graph.name == "tiny"
    assert saved.report().splits == run.report().splits
    assert archlang.load_run(tmp_path / "saved", "last").step == run.step


def test_a_saved_run_cannot_resume(finished_run: Path, tmp_path: Path) -> None:
    archlang.save(archlang.load_run(finished_run), tmp_path / "saved")
    with pytest.raises(RunError, match=r"it has no state\.pt"):
        training.train(archlang.load_run(tmp_path / "saved").plan, tmp_path / "saved", device="cpu")


# Each kind of task


def test_a_class_has_its_probability_and_the_steps_taken(finished_run: Path) -> None:
    run = archlang.load_run(finished_run)
    (prediction,) = run.predict(["10 a b"])
    with torch.no_grad():
        logits = run.module(torch.tensor([[6, 2, 3, 4, 5]]))
    assert prediction.fields == {"x": "[B] 10 a b [E]"}
    assert prediction.answer == class_names(run.task)[int(logits.argmax())]
    assert prediction.probability == pytest.approx(float(logits.softmax(-1).max()), rel=1e-5)
    assert prediction.steps == run.module.mean_depth
    agree_in_a_batch(run, ["10 a b", "01 b", "00 a a a a b", [6, 2, 5]])


def test_samples_are_compared_with_their_targets(finished_run: Path) -> None:
    run = archlang.load_run(finished_run)
    samples = run.samples("test")
    predictions = run.predict(samples, batch=7)
    assert [prediction.target for prediction in predictions] == [
        class_names(run.task)[target] for target in np.asarray(samples.targets)
    ]
    accuracy = archlang.load_run(finished_run).report().splits["test"].metrics["accuracy"]
    assert np.mean([prediction.right for prediction in predictions]) == pytest.approx(accuracy)


def test_tags_are_those_of_the_positions(tmp_path: Path) -> None:
    run = trained(tmp_path, TAGGER, f"bucket_sort[train = 1..4, test = 6..6, {SIZES}]")
    (prediction,) = run.predict(["1 2 3"])
    assert len(prediction.parts) == len(prediction.answer.split()) == 3
    agree_in_a_batch(run, ["1 2 3", "2", "1 1 1 1"])


def test_pictures_are_read_as_arrays_row_by_row(tmp_path: Path) -> None:
    model = "model m(x: tokens[n]) -> logits[classes] { return embed[8](x) |> mean |> linear[classes] }"
    run = trained(tmp_path, model, f"lra_pathfinder[{SIZES}]")
    picture = np.arange(1024).reshape(32, 32) % 256
    as_text = " ".join(str(shade) for shade in picture.reshape(-1))
    by_array, by_text = run.predict([picture, as_text])
    assert by_array == by_text


def test_pairs_need_both_fields(tmp_path: Path) -> None:
    run = trained(tmp_path, PAIRS, "logical_inference[draws = 500]")
    words = " ".join(run.vocabulary[:1])
    by_order, by_name = run.predict([[words, words], {"left": words, "right": words}])
    assert by_order == by_name
    with pytest.raises(RunError, match="input 1: the field `right` is missing"):
        run.predict([[words, words], {"left": words}])


def test_a_language_model_predicts_each_next_token_and_continues_a_text(tmp_path: Path) -> None:
    run = trained(
        tmp_path, CAUSAL,
        f"flipflop[length = 12, test_length = [16], test_ignore = [0.1], iid_size = 4, {SIZES}]",
    )  # fmt: skip
    inputs = ["w 1 i 0 r", "w 0 r", "w 1 r"]
    assert [len(prediction.parts) for prediction in run.predict(inputs)] == [5, 3, 3]
    agree_in_a_batch(run, inputs)
    with pytest.raises(RunError, match="nothing can be drawn: .*, or give .* `length=N`"):
        run.predict(inputs, sampling=archlang.Sampling())
    continued = run.predict(inputs, length=4)
    assert [len(prediction.parts) for prediction in continued] == [4, 4, 4]
    agree_in_a_batch(run, inputs, length=4)
    samples = run.predict(run.samples("valid"))
    assert all(part.target is not None for prediction in samples for part in prediction.parts)


def test_a_model_writes_its_answer_until_its_end(tmp_path: Path) -> None:
    run = trained(tmp_path, WRITER, f"copy[train = 1..3, test = [4], eos = true, {SIZES}]")
    inputs: list[Any] = ["3 1 2", "1", {"source": "2 2"}, ["1 1"]]
    agree_in_a_batch(run, inputs)
    (prediction,) = run.predict(["3 1 2"], length=2)
    assert len(prediction.parts) <= 2
    (teacher_forced,) = run.predict([["3 1 2", "3 1 2"]])
    assert list(teacher_forced.fields) == ["source", "target"]
    samples = run.samples("test")
    assert [prediction.target for prediction in run.predict(samples)] == [
        " ".join(run.vocabulary[token] for token in samples.targets[index][:-1]) for index in range(len(samples))
    ]


def test_answers_without_an_end_need_a_length(tmp_path: Path) -> None:
    run = trained(tmp_path, WRITER, f"copy[train = 1..3, test = [4], {SIZES}]")
    for item in ("3 1 2", {"source": "3 1 2"}):
        with pytest.raises(RunError, match="the answers of the model have no end: give .*`length=N`.*`--length N`"):
            run.predict([item])
    with pytest.raises(RunError, match="give one value for each of `source`, `target`"):
        run.inspect("3 1 2")
    (prediction,) = run.predict(["3 1 2"], length=3)
    assert len(prediction.parts) == 3
    assert [len(prediction.parts) for prediction in run.predict(run.samples("test"))] == [4] * 4


def test_questions_of_mathematics_keep_their_spaces(tmp_path: Path) -> None:
    run = trained(tmp_path, WRITER, "mathematics[draws = 500, test_size = 4]", "iid.accuracy")
    (prediction,) = run.predict(["What is 1 + 2?"])
    assert prediction.fields["source"] == "[B]What is 1 + 2?[E]"


def test_sets_are_answered_at_each_position(tmp_path: Path) -> None:
    run = trained(tmp_path, CAUSAL, f"dyck[train = 2..8, test = [10..12], {SIZES}]")
    (prediction,) = run.predict([" ".join((run.vocabulary[0], run.vocabulary[0]))])
    assert len(prediction.parts) == 2
    assert prediction.answer.startswith("{")


def test_numbers_are_answered_without_a_probability_and_are_neither_right_nor_wrong(tmp_path: Path) -> None:
    task = f"in_context_regression[inputs = 3, points = 3, test = [2], {SIZES}]"
    run = trained(tmp_path, REGRESSOR, task, "valid.squared_error")
    rows = [[0.1, 0.2, 0.3], [1.5, 0.0, 0.0], [0.4, 0.5, 0.6]]
    (prediction,) = run.predict([rows])
    results = run.module(torch.tensor([rows]))
    assert [float(part.predicted) for part in prediction.parts] == pytest.approx(results.flatten().tolist(), rel=1e-3)
    assert (prediction.probability, prediction.target, prediction.right) == (None, None, None)
    assert prediction.answer == " ".join(part.predicted for part in prediction.parts)
    samples = run.samples("test")
    answers = run.inspect(samples).answers
    assert [answer.target for answer in answers] == [f"{y:.4g}" for y in samples.targets[0][::2, 0]]
    assert {answer.right for answer in answers} == {None}
    page = run.inspect(samples).html()
    assert "target" in page
    assert "probability" not in page


def test_a_field_of_numbers_takes_rows(tmp_path: Path) -> None:
    run = trained(tmp_path, NUMBERS, f"priority_sort[train = 2..3, test = [4], {SIZES}]")
    item = {"source": run.vocabulary[0] + " " + run.vocabulary[1], "priority": [[0.1], [0.7]]}
    (prediction,) = run.predict([item], length=2)
    assert len(prediction.parts) <= 2
    assert run.predict([{**item, "priority": "[0.1, 0.7]"}], length=2) == [prediction]
    with pytest.raises(RunError, match="`priority` is a field of numbers, with 1 number for each position"):
        run.predict([{**item, "priority": "0.1 0.7"}], length=2)


def test_labels_and_unknown_words_of_a_file_are_read(tmp_path: Path) -> None:
    rows = ["text\tlabel", "a fine day\tgood", "what a mess\tbad", "fine\tgood", "mess\tbad"]
    (tmp_path / "moods.tsv").write_text("\n".join(rows))
    (tmp_path / "valid.tsv").write_text("text\tlabel\na fine mess\tgood\na fine mess\tbad\n")
    run = trained(
        tmp_path, CLASSIFIER, f'file["{tmp_path}/moods.tsv", valid = "{tmp_path}/valid.tsv", words = 9]'
    )  # fmt: skip
    (prediction,) = run.predict(["a terrible mess"])
    assert prediction.fields["x"] == "a <unk> mess"
    assert prediction.answer in ("good", "bad")


def test_a_model_of_bytes_answers_with_text_and_continues_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" ".join(f"läuft {number}" for number in range(60)))
    task = f'text["{tmp_path}/a.txt", length = 16, valid_share = 0.1]'
    run = trained(tmp_path, CAUSAL, task, "valid.perplexity")
    typed, empty = run.predict(["läuft", ""], length=3)
    assert (typed.fields["x"], empty.fields["x"]) == ("[B]läuft", "[B]")
    assert run.input_format.answer.join(["<0xC3>", "<0xA4>", "u", "<0xC3>", "[E]"]) == "äu\ufffd[E]"
    for prediction in (typed, empty, *run.predict(["läuft"])):
        assert prediction.answer == run.input_format.answer.join([part.predicted for part in prediction.parts])
        assert "<0x" not in prediction.answer


def test_a_train_split_without_texts_is_reported_with_its_shares(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    with pytest.raises(RunError, match=r"the split `train` of `text` has no items: give more data"):
        trained(tmp_path, CAUSAL, f'text["{tmp_path}/a.jsonl", valid_share = 0.4, test_share = 0.4]', "valid.loss")


@pytest.mark.parametrize(("task", "model"), [("file_seq2seq", WRITER), ("file_tagging", TAGGER)])
def test_answers_to_a_users_file_are_its_words(task: str, model: str, tmp_path: Path) -> None:
    rows = ["text\ttags\tsource\ttarget\tsplit", "go on\tV P\tgo on\tG O\ttrain", "go\tV\tgo\tG\tvalid"]
    (tmp_path / "mine.tsv").write_text("\n".join(rows))
    run = trained(tmp_path, model, f'{task}["{tmp_path}/mine.tsv", words = 9]')
    (prediction,) = run.predict(["go on"])
    assert "go on" in next(iter(prediction.fields.values()))
    assert set(prediction.answer.split()) <= {*run.vocabulary, "V", "P"}
    assert run.inspect(run.samples("valid")).answers[0].target in ("V", "G")


def test_spans_are_words_of_the_paragraph_and_right_at_their_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def document(context: str, question: str, answer: str) -> bytes:
        answers = [{"text": answer, "answer_start": context.index(answer)}]
        paragraph = {"context": context, "qas": [{"id": "x", "question": question, "answers": answers}]}
        return json.dumps({"data": [{"title": "t", "paragraphs": [paragraph]}]}).encode()

    files = {
        "train-v1.1.json": document("Dogs bark.", "What do dogs do?", "bark"),
        "dev-v1.1.json": document("Cats purr and sleep", "What do cats do?", "and"),
    }
    monkeypatch.setattr(store, "open_binary", lambda dataset, member: io.BytesIO(files[member]))
    run = trained(tmp_path, SPANS, "squad[split = published, word_limit = 20]", "test.f1")
    samples = run.samples("test")
    (prediction,) = run.predict(samples)
    assert prediction.fields["x"] == "[B] what do <unk> do ? [S] <unk> <unk> <unk> <unk> [E]"
    assert prediction.target == "<unk>"
    assert [part.place for part in prediction.parts] == ["begins at", "ends at"]
    begin, end = (int(part.predicted) for part in prediction.parts)
    assert 7 <= begin <= end < 11  # in the paragraph
    assert prediction.answer == " ".join(["<unk>"] * (end + 1 - begin))
    # Other unknown words are wrong.
    shift = 1 if end < 10 else -1
    (missed,) = run.predict(replace(samples, targets=np.asarray([[begin + shift, end + shift]])))
    assert (missed.answer, missed.right) == (missed.target, False)
    (hit,) = run.predict(replace(samples, targets=np.asarray([[begin, end]])))
    assert hit.right is True
    with pytest.raises(RunError, match="a typed text does not mark where the answer may be"):
        run.predict(["what do cats do ?"])


def test_a_pointer_names_the_position_and_the_word_that_it_points_at(tmp_path: Path) -> None:
    run = trained(tmp_path, POINTER, f"argsort[numbers = 9, train = 2..4, test = [6], {SIZES}]")
    (prediction,) = run.predict(["7 3 5"])
    with torch.no_grad():
        chosen = run.module(torch.tensor([[7, 3, 5]]))[0, :, :, 0].argmax(-1).tolist()
    words = [("7", "3", "5")[position] for position in chosen]
    assert [part.predicted for part in prediction.parts] == [
        f"{position} {word}" for position, word in zip(chosen, words, strict=True)
    ]
    assert prediction.answer == " ".join(words)
    agree_in_a_batch(run, ["7 3 5", "1 2", [8, 0, 1, 2, 4]])
    samples = run.samples("test")
    (sample,) = run.predict(samples.select([0]))
    assert sample.target == " ".join(sorted(sample.fields["x"].split()))
    assert run.inspect("7 3 5").answers[0].predicted == prediction.parts[0].predicted


# Mistakes


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["10 a", "10 q"], "input 1: `q` is not a token of the task"),
        ([[1], [99]], "input 1: 99 is not a token of `x`: its tokens are 0 to 6"),
        (["10 a", ""], "input 1: the input has no tokens"),
        (["10 a", ["10", "a"]], "input 1: the model reads 1 field, and 2 were given"),
        (["10 a", {"y": "10"}], "input 1: the model has no field `y`"),
        (["10 a", 1.5], "input 1: `x` is neither a text nor token ids"),
        (["10 a", None], "input 1: `x` is neither a text nor token ids"),
        (7, "the inputs are a int"),
    ],
)
def test_an_error_names_the_input_that_is_wrong(finished_run: Path, inputs: Any, message: str) -> None:
    with pytest.raises(RunError) as error:
        archlang.load_run(finished_run).predict(inputs)
    assert str(error.value).startswith(message)


def test_an_input_that_the_model_refuses_is_named(tmp_path: Path, finished_run: Path) -> None:
    run = archlang.load_run(finished_run)
    (tmp_path / "fixed.arch").write_text(
        "model m(x: tokens[3]) -> logits[classes] { return embed[8](x) |> mean |> linear[classes] }"
    )
    module = archlang.load(tmp_path / "fixed.arch", vocab=7, classes=3)
    inputs = [[1, 2, 3], [1, 2, 3], [1, 2, 3, 4]]
    with pytest.raises(RunError, match="input 2: the model cannot read it"):
        predict_inputs(module, run.input_format, inputs, torch.device("cpu"))


def test_a_list_without_inputs_has_no_predictions(finished_run: Path) -> None:
    run = archlang.load_run(finished_run)
    assert run.predict([]) == []
    assert run.predict(run.samples("test").select([])) == []


@pytest.mark.parametrize("size", ["batch", "length"])
def test_a_size_below_one_is_refused(finished_run: Path, size: str) -> None:
    sizes: dict[str, Any] = {size: 0}
    with pytest.raises(RunError, match=f"`{size}` is 0"):
        archlang.load_run(finished_run).predict(["10 a"], **sizes)


# Notebooks


def test_a_module_shows_its_picture_and_a_run_its_report(finished_run: Path, tmp_path: Path) -> None:
    run = archlang.load_run(finished_run)
    assert run.module._repr_html_().startswith('<img alt="model tiny" src="data:image/svg+xml;base64,')
    assert archlang.picture(run) == archlang.picture(run.module)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "tiny: tiny on ctl" in (run._repr_html_() or "")
    archlang.save(run, tmp_path / "saved")
    assert (archlang.load_run(tmp_path / "saved")._repr_html_() or "").startswith('<img alt="model tiny"')


def test_an_inspection_has_the_panels_of_the_page(finished_run: Path) -> None:
    run = archlang.load_run(finished_run)
    inspection = archlang.inspect(run, "10 a b")
    assert "Halting: token_halt" in {panel.title for panel in inspection.panels}
    assert inspection.fields["x"] == ("[B]", "10", "a", "b", "[E]")
    assert inspection._repr_html_().startswith("<iframe srcdoc=")
    by_ids = archlang.inspect(run.module, [6, 2, 3, 4, 5])
    assert [panel.title for panel in by_ids.panels] == [panel.title for panel in inspection.panels]
    # Without its task, a module does not know the names of classes.
    assert [answer.probability for answer in by_ids.answers] == [answer.probability for answer in inspection.answers]
