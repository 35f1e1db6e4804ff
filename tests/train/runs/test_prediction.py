"""Predictions: whether an answer is right, and sizes that are refused."""

from pathlib import Path

import pytest
import torch

import archlang
from archlang.backend.architecture import Architecture
from archlang.backend.decode.sampling import Sampling
from archlang.tasks.kit.task import Kind
from archlang.tasks.text import Text
from archlang.train.record.mistakes import RunError
from archlang.train.runs.inputs import InputFormat
from archlang.train.runs.prediction import Answer, Prediction, likelihoods, predict_inputs, stream


def written(answer: str, target: str) -> Prediction:
    parts = tuple(Answer(str(place), word, 0.5, None) for place, word in enumerate(answer.split()))
    return Prediction({"source": "1 2"}, answer, 0.5, parts, None, target)


@pytest.mark.parametrize(
    ("answer", "target", "right"),
    [("", "1 2", False), ("1", "1 2", False), ("1 2 3", "1 2", False), ("1 2", "1 2", True), ("", "", True)],
)
def test_a_written_answer_is_right_if_it_is_the_whole_target(answer: str, target: str, right: bool) -> None:
    prediction = written(answer, target)
    assert prediction.right is right
    assert prediction.to_json()["right"] is right


def test_spans_of_equal_words_are_compared_by_their_places() -> None:
    parts = (Answer("begins at", "1", 0.5, "4"), Answer("ends at", "1", 0.5, "4"))
    assert Prediction({"x": "a b a b b"}, "b", 0.25, parts, None, "b").right is False


@pytest.fixture
def writer(tmp_path: Path) -> tuple[Architecture, InputFormat]:
    """A language model of characters that is not trained, and what it reads."""
    (tmp_path / "a.txt").write_text("so much depends upon a red wheel")
    (tmp_path / "page.arch").write_text(
        "model page(x: tokens[n]) -> logits[n, vocab] {\n"
        "    return linear[vocab](embed[8](x) + shift(embed[8](x)))\n}\n"
    )
    torch.manual_seed(0)
    module = archlang.load(tmp_path / "page.arch", "page", vocab=20)
    task = Text(path=str(tmp_path / "a.txt"), by="characters", words=17)
    return module, InputFormat.of(task, module, {"train": task.generate("train", 0)})


CPU = torch.device("cpu")


def test_an_answer_is_cut_before_a_text(writer: tuple[Architecture, InputFormat]) -> None:
    def written(stop: str = "") -> Prediction:
        (prediction,) = predict_inputs(*writer, ["so"], CPU, length=30, sampling=Sampling(seed=3), stop=stop)
        return prediction

    whole = written()
    assert whole.probability is not None
    for stop in (whole.answer[3:5], whole.answer[-1], whole.answer[0]):
        cut = written(stop)
        assert cut.answer == whole.answer.partition(stop)[0]
        assert cut.parts == whole.parts[: len(cut.parts)]
        assert stop in "".join(part.predicted for part in cut.parts)
        assert stop not in "".join(part.predicted for part in cut.parts[:-1])
    assert written("never written").answer == whole.answer


@pytest.mark.parametrize(("sampling", "stop"), [(None, ""), (Sampling(seed=3), ""), (Sampling(seed=3), "d")])
def test_a_streamed_text_is_the_predicted_one_in_pieces(
    writer: tuple[Architecture, InputFormat], sampling: Sampling | None, stop: str
) -> None:
    (whole,) = predict_inputs(*writer, ["so"], CPU, length=30, sampling=sampling, stop=stop)
    pieces = list(stream(*writer, "so", CPU, length=30, sampling=sampling, stop=stop))
    assert "".join(pieces) == whole.answer
    assert len(pieces) >= len(whole.parts) > 3
    with pytest.raises(RunError, match="length"):
        next(stream(*writer, "so", CPU, length=0))


def test_a_character_of_several_bytes_is_streamed_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ä" * 40, encoding="utf-8")
    (tmp_path / "page.arch").write_text(
        "model page(x: tokens[n]) -> logits[n, vocab] { return linear[vocab](embed[8](x)) }"
    )
    task = Text(path=str(tmp_path / "a.txt"))
    module = archlang.load(tmp_path / "page.arch", "page", vocab=256)
    input_format = InputFormat.of(task, module, {"train": task.generate("train", 0)})
    sampling = Sampling(seed=1)
    (whole,) = predict_inputs(module, input_format, [""], CPU, length=60, sampling=sampling)
    pieces = list(stream(module, input_format, "", CPU, length=60, sampling=sampling))
    assert "".join(pieces) == whole.answer
    assert "\ufffd" in whole.answer
    assert not any(piece.endswith("\ufffd") for piece in pieces[:-1])


def test_a_likelihood_is_the_product_of_the_probabilities_of_the_next_tokens(
    writer: tuple[Architecture, InputFormat],
) -> None:
    module, input_format = writer
    (greedy,) = predict_inputs(*writer, ["so"], CPU, length=3)
    texts = [("so", " much depends"), ("", "upon"), ("so", greedy.answer), ("a red wheel", "s")]
    results = likelihoods(*writer, texts, CPU, batch=2)
    for (prompt, continuation), result in zip(texts, results, strict=True):
        tokens = input_format.fields[0].encode(prompt + continuation).tolist()
        chances = module(torch.tensor([tokens[:-1]]))[0].log_softmax(-1).detach()
        own = [(float(row[token]), int(row.argmax()) == token) for row, token in zip(chances, tokens[1:], strict=True)]
        logarithms, likeliest = zip(*own[len(prompt) :], strict=True)
        assert result.logarithm == pytest.approx(sum(logarithms), rel=1e-5)
        assert result[1:] == (len(continuation), all(likeliest))
    assert results[2].is_likeliest
    with pytest.raises(RunError, match="text 1: the input has no tokens"):
        likelihoods(*writer, [("a", "b"), ("a", "")], CPU)
    with pytest.raises(RunError, match="predicts no next tokens"):
        likelihoods(module, input_format.model_copy(update={"kind": Kind.TAGGING}), texts, CPU)
