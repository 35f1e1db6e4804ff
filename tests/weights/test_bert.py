"""A published BERT is imported, has the states of `transformers` on two segments, and is fine-tuned on SQuAD."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import archlang
from archlang.backend import Architecture
from archlang.compile import load_named
from archlang.plan.from_file import plan_first_point
from archlang.train.runs import training
from archlang.weights.huggingface import import_folder
from tests.closeness import close
from tests.recipes.papers import PAPERS, loaded
from tests.recipes.published_samples import use_samples, word_pieces
from tests.weights.models import BERT, written

PAGE = PAPERS / "panm" / "squad.arch"
SEPARATOR = 3
SETS = {"d": "32", "heads": "4", "ff": "64", "layers": "2", "drop": "0.0", "separator": str(SEPARATOR)}


def imported(folder: Path, **sizes: int) -> tuple[Architecture, Any]:
    """Returns a model with the heads and the names of a published BERT after its import, and that of `transformers`."""
    theirs = written(
        folder / "theirs", "Bert", BERT | {"max_position_embeddings": 512} | sizes, "AutoModelForPreTraining"
    )
    config = folder / "theirs" / "config.json"
    config.write_text(config.read_text().replace("BertForPreTraining", "BertForMaskedLM"))
    file = folder / "theirs" / "model.safetensors"
    first = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    weights = load_file(file)
    for name in list(weights):
        for modern, early in first.items():
            if modern in name:
                weights[name.replace(modern, early)] = weights.pop(name)
    assert any("gamma" in name for name in weights)
    save_file(weights, file, {"format": "pt"})
    return import_folder(folder / "theirs", folder / "bert"), theirs


def test_a_published_bert_has_the_states_and_the_gradients_of_transformers(tmp_path: Path) -> None:
    ours, theirs = imported(tmp_path)
    sets = {f"model.{name}": value for name, value in SETS.items()} | {"model.vocab": "50"}
    spans = load_named(PAGE, "bert_spans", None, sets).double()
    new = spans.load_state_dict(ours.state_dict(), strict=False)
    assert set(new.missing_keys) == {"head.weight", "head.bias"}
    x = torch.tensor([[2, 4, 5, 3, 6, 7, 3], [2, 8, 3, 9, 3, 0, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 0, 0]])
    real = torch.arange(7) < torch.tensor([[7], [5]])
    h = theirs.bert(input_ids=x, token_type_ids=segments, attention_mask=real.long()).last_hidden_state
    expected = F.linear(h, spans.get_parameter("head.weight").detach(), spans.get_parameter("head.bias").detach())[real]
    actual = spans(x, lengths=[7, 5])[real]
    close(actual, expected)
    actual.sin().sum().backward()
    expected.sin().sum().backward()  # type: ignore[no-untyped-call]
    names = {"bert.embeddings.": "", "bert.encoder.layer.": "stack.", ".intermediate.dense.": ".intermediate."}
    for name, weight in theirs.named_parameters():
        if name.startswith(("bert.embeddings", "bert.encoder")):
            for there, here in names.items():
                name = name.replace(there, here)
            close(spans.get_parameter(name).grad, weight.grad)


@pytest.mark.filterwarnings("ignore:the model reads")
def test_a_published_bert_is_fine_tuned_on_squad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    use_samples(monkeypatch, tmp_path)
    imported(tmp_path, vocab_size=256)
    sets = {f"model.{name}": value for name, value in SETS.items()} | {
        "task.tokenizer": f'"{word_pieces(tmp_path)}"', "task.word_limit": "256", "task.longest": "60",
        "train.batch": "2", "train.epochs": "0", "train.steps": "2", "train.weights": f'"{tmp_path / "bert"}"',
    }  # fmt: skip
    outcome = training.train(plan_first_point(loaded(PAGE), "bert", sets), tmp_path / "run", device="cpu")
    assert set(outcome.splits) == {"test"}
    start = json.loads((tmp_path / "run" / "start.json").read_text())
    assert start["new"] == ["head.weight", "head.bias"]
    assert all(name.startswith(("decoder.", "transform.")) for name in start["unused"])
    assert archlang.load_run(tmp_path / "run").module.get_parameter("head.weight").isfinite().all()
