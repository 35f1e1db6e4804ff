"""BERT equals a slow form, has the weights of its folder, and is fine-tuned on SQuAD in word pieces."""

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file as read_weights
from safetensors.torch import save
from torch import Tensor, nn

import archlang
from archlang.blocks.bert import Bert, BertError
from archlang.compile import load
from archlang.data import store
from archlang.errors import MachineError
from archlang.plan.from_file import plan_first_point
from archlang.resolve.resolve import load_file
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import spell
from archlang.tasks.squad import Squad
from archlang.train.runs import training
from tests.blocks.conftest import agree
from tests.closeness import close

transformers = pytest.importorskip("transformers", reason="the extra `bert` is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="the extra `bert` is not installed")

SMALL = {"d": 8, "heads": 2, "ff": 12, "layers": 2}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "how", "many", "cats", "?", "the", ",", "sl", "##ept", "all", "308", "."]
SEPARATOR = 3
TABLE = "embeddings.word_embeddings.weight"
OTHERS: dict[str, Any] = {"folder": "", "positions": 64, "separator": SEPARATOR, "dropout": 0.0, "epsilon": 1e-12}
RECIPE = """\
model spans[folder: file = "weights"](x: tokens[n]) -> logits[n, 2] {
    return bert[d = 8, heads = 2, ff = 12, layers = 2, folder = folder, positions = 64, separator = 3](x) |> linear[2]
}
recipe bert {
    task  squad[split = published, tokenizer = "weights/tokenizer.json", word_limit = 15, longest = 40]
    model spans
    train adam[lr = 1e-3, batch = 2, steps = 2, every = 2, select = test.f1]
}
"""


def constructed(**statics: Any) -> Bert:  # Any: statics of several kinds
    return Bert(**{**SMALL, **OTHERS, "vocab": len(WORDS), **statics})


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the hub has them, of a small BERT with random weights."""
    folder = tmp_path_factory.mktemp("published") / "weights"
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(WORDS), hidden_size=8, num_attention_heads=2, intermediate_size=12, num_hidden_layers=2,
        max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    pieces = {word: token for token, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """A copy of the published folder."""
    copied = tmp_path / "weights"
    copied.mkdir()
    for file in published.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    return copied


def slow(block: Bert, x: Tensor, mask_n: Tensor | None = None) -> Tensor:
    """BERT for one position after the other, from the names of its weights."""
    weights = dict(block.network.named_parameters())

    def linear(name: str, h: Tensor) -> Tensor:
        return weights[f"{name}.weight"] @ h + weights[f"{name}.bias"]

    def norm(name: str, h: Tensor) -> Tensor:
        centred = h - h.mean()
        scaled = centred / (centred.square().mean() + 1e-12).sqrt()
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    rows = []
    for row, tokens in enumerate(x):
        length = len(tokens) if mask_n is None else int(mask_n[row].sum())
        h, segment = [], 0
        for place, token in enumerate(tokens[:length].tolist()):
            parts = (("word", token), ("position", place), ("token_type", segment))
            total = sum(
                (weights[f"embeddings.{name}_embeddings.weight"][index] for name, index in parts), torch.zeros(8)
            )
            h.append(norm("embeddings.LayerNorm", total))
            segment = 1 if token == SEPARATOR else segment
        for layer in range(2):
            path = f"encoder.layer.{layer}"
            q, k, v = (
                [linear(f"{path}.attention.self.{name}", one) for one in h] for name in ("query", "key", "value")
            )
            after = []
            for place in range(length):
                heads = []
                for part in (slice(0, 4), slice(4, 8)):
                    scores = torch.stack([q[place][part] @ k[other][part] / 2 for other in range(length)]).softmax(0)
                    heads.append(sum((scores[other] * v[other][part] for other in range(length)), torch.zeros(4)))
                a = linear(f"{path}.attention.output.dense", torch.cat(heads))
                a = norm(f"{path}.attention.output.LayerNorm", h[place] + a)
                wide = linear(f"{path}.intermediate.dense", a)
                wide = wide * (1 + torch.erf(wide / 2**0.5)) / 2
                after.append(norm(f"{path}.output.LayerNorm", a + linear(f"{path}.output.dense", wide)))
            h = after
        rows.append(F.pad(torch.stack(h), (0, 0, 0, len(tokens) - length)))
    return torch.stack(rows)


class Real(nn.Module):
    """The results of a block at real positions."""

    def __init__(self, block: Bert) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, mask_n: Tensor | None = None) -> Tensor:
        h: Tensor = self.block(x, mask_n=mask_n)
        return h if mask_n is None else h.where(mask_n[..., None], 0.0)


@pytest.mark.parametrize("padded", [False, True])
def test_bert_equals_its_slow_form(padded: bool) -> None:
    block = constructed()
    x = torch.tensor([[2, 4, 5, 3, 6, 7, 3], [2, 8, 3, 9, 3, 0, 0]])
    mask = torch.arange(7) < torch.tensor([[7], [5]]) if padded else None
    agree(Real(block), lambda x, mask_n=None: slow(block, x, mask_n), x, mask_n=mask)


def test_the_weights_are_those_of_the_folder(published: Path) -> None:
    theirs = transformers.BertModel.from_pretrained(published, local_files_only=True).eval()
    x = torch.tensor([[2, 4, 5, 3, 6, 7, 3]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1]])
    with torch.no_grad():
        h = constructed(folder=str(published)).eval()(x)
        expected = theirs(input_ids=x, token_type_ids=segments).last_hidden_state
    close(h, expected)


def test_weights_may_have_the_names_of_the_first_programs(folder: Path) -> None:
    file = folder / "model.safetensors"
    renamed = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for name, weight in read_weights(file).items()
    }
    expected = constructed(folder=str(folder)).state_dict()
    file.write_bytes(save({**renamed, "cls.predictions.bias": torch.zeros(15)}))
    actual = constructed(folder=str(folder)).state_dict()
    assert all(torch.equal(actual[name], expected[name]) for name in expected)


def weigh(change: Callable[[Path], object]) -> Callable[[Path], object]:
    """Applies a change to the file of the weights."""
    return lambda folder: change(folder / "model.safetensors")


def link(file: Path) -> None:
    file.rename(file.parents[1] / "private.safetensors")
    file.symlink_to(file.parents[1] / "private.safetensors")


def replaced(name: str, weight: Tensor, *, alone: bool) -> Callable[[Path], object]:
    def change(file: Path) -> None:
        others = {} if alone else read_weights(file)
        file.write_bytes(save({**others, name: weight}))

    return change


def configure(**values: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (weigh(Path.unlink), r"model\.safetensors is missing: .*hf download google-bert/bert-base-uncased"),
        (weigh(link), r"model\.safetensors is a symbolic link|model\.safetensors is a link"),
        (weigh(lambda file: file.write_bytes(b"\xff" * 40)), r"model\.safetensors is damaged"),
        (weigh(replaced("x", torch.zeros(1), alone=True)), r"lacks the weights embeddings\.word_embeddings\.weight"),
        (weigh(replaced(TABLE, torch.zeros(3, 8), alone=False)), r"has the shape \[3, 8\], and not \[15, 8\]"),
        (configure(model_type="llama"), "does not describe a BERT"),
        (configure(hidden_size=32), r"hidden_size = 32, and the model has 8: write `bert\[d = 32, …\]`"),
        (configure(vocab_size=99), "let the task have a vocabulary of 99 tokens"),
        (configure(hidden_act="relu"), "use a folder of Google's BERT"),
        (lambda folder: (folder / "config.json").write_text("["), "does not describe a BERT"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(folder: Path, change: Callable[[Path], object], message: str) -> None:
    change(folder)
    with pytest.raises(BertError, match=message):
        constructed(folder=str(folder))


def test_a_missing_folder_is_named_with_the_command_that_downloads_one(tmp_path: Path) -> None:
    with pytest.raises(BertError, match=r"nowhere/config\.json is missing: download a BERT, `hf download"):
        constructed(folder=str(tmp_path / "nowhere"))


def test_a_sample_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(BertError, match="65 tokens, and this BERT has 64 positions: cut the samples"):
        constructed()(torch.zeros(1, 65, dtype=torch.long))


def test_a_sample_without_tokens_has_finite_gradients() -> None:
    block = constructed()
    x = torch.tensor([[2, 4, 3], [0, 0, 0]])
    block(x, mask_n=torch.tensor([[True] * 3, [False] * 3]))[0].sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in block.parameters())
    assert block(x[:, :0]).shape == (2, 0, 8)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("archlang.blocks.bert.importlib.import_module", missing)
    with pytest.raises(MachineError, match=r"run `pip install 'archlang\[bert\]'`"):
        constructed()


# On SQuAD

PARAGRAPH, QUESTION = "All 308 cats slept. The cats slept.", "How many cats?"


def document(*answers: tuple[str, int]) -> bytes:
    paragraphs = [
        {"context": PARAGRAPH, "qas": [
            {"id": "x", "question": QUESTION, "answers": [{"text": text, "answer_start": start}]}]}
        for text, start in answers
    ]  # fmt: skip
    return json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}).encode()


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    files: Mapping[str, bytes] = {
        "train-v1.1.json": document(("308", 4), ("slept", 29)), "dev-v1.1.json": document(("308", 4), ("slept", 29)),
    }  # fmt: skip
    monkeypatch.setattr(store, "open_binary", lambda dataset, member: io.BytesIO(files[member]))


def squad(folder: Path, **statics: Any) -> Squad:
    settings = {"split": "published", "tokenizer": str(folder / "tokenizer.json"), "word_limit": 17, **statics}
    return Squad(**settings)


@pytest.mark.usefixtures("questions")
def test_an_item_has_the_word_pieces_of_bert(published: Path) -> None:
    task = squad(published)
    items = task.generate("train", 0)
    text = "[CLS] how many cats ? [SEP] all 308 cats sl ##ept . the cats sl ##ept . [SEP]"
    assert spell(task, items.inputs["x"][0]) == text
    assert items.inputs["x"][0][0] == WORDS.index("[CLS]")
    assert np.asarray(items.targets).tolist() == [[7, 7], [14, 15]]
    assert task.vocabulary == (*WORDS, "<unused>0", "<unused>1")
    assert task.judge(items, np.asarray(items.targets))["exact_match"].tolist() == [1, 1]


@pytest.mark.usefixtures("questions")
def test_a_cut_paragraph_trains_on_no_answer_that_it_lacks(published: Path) -> None:
    task = squad(published, longest=14)
    train, test = task.generate("train", 0), task.generate("test", 0)
    assert spell(task, test.inputs["x"][1]) == "[CLS] how many cats ? [SEP] all 308 cats sl ##ept . the [SEP]"
    assert (len(train), len(test)) == (1, 2)
    assert task.judge(test, np.asarray(test.targets))["exact_match"].tolist() == [1, 0]


@pytest.mark.usefixtures("questions")
@pytest.mark.parametrize(
    ("content", "limit", "message"),
    [
        (None, 15, "is missing, or is not a regular file"),
        ("{}", 15, "tokenizers cannot read it: name the `tokenizer.json` of a model"),
        ("published", 14, "word_limit = 14 is too small for squad, whose files have 15 different words"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(folder: Path, content: str | None, limit: int, message: str) -> None:
    file = folder / "tokenizer.json"
    if content is None:
        file.unlink()
    elif content != "published":
        file.write_text(content)
    with pytest.raises(TaskError, match=message):
        squad(folder, word_limit=limit).generate("train", 0)


@pytest.mark.usefixtures("questions")
@pytest.mark.filterwarnings("ignore:the model reads")
def test_bert_is_fine_tuned_and_its_run_and_saved_model_need_no_folder(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "bert.arch"
    page.write_text("use archlang.models.bert\n" + RECIPE, encoding="utf-8")
    outcome = training.train(plan_first_point(load_file(page), "bert", None), tmp_path / "run", device="cpu")
    assert set(outcome.splits) == {"test"}
    started = constructed(folder=str(folder)).state_dict()
    for name in ("config.json", "model.safetensors"):  # the task still needs the tokenizer
        (folder / name).unlink()
    run = archlang.load_run(tmp_path / "run")
    trained = {name: weight.clone() for name, weight in run.module.state_dict().items()}
    assert not any(
        torch.equal(trained[f"bert.{name}"], weight) for name, weight in started.items() if "position" not in name
    )
    archlang.save(run, tmp_path / "saved")
    saved = archlang.load(tmp_path / "saved")
    assert all(torch.equal(saved.state_dict()[name], weight) for name, weight in trained.items())


def test_a_program_names_no_folder_outside_of_its_own(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "program" / "bert.arch"
    page.parent.mkdir()
    page.write_text("use archlang.models.bert\n" + RECIPE.replace('"weights"', '"../weights"'), encoding="utf-8")
    with pytest.raises(archlang.ProgramError, match="E0316"):
        load(page, "spans", vocab=15)
    module = load(page, "spans", vocab=15, allow=[folder.parent])
    assert torch.equal(
        module.get_parameter("bert.network.embeddings.LayerNorm.weight"),
        constructed(folder=str(folder)).network.get_parameter("embeddings.LayerNorm.weight"),
    )
