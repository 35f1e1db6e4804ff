"""docs/weights.md on a small GPT-2: imported, changed, trained with the rest frozen, exported, generated from."""

import json
import shlex
import sys
from pathlib import Path

import pytest
import torch

import archlang
from archlang.cli.main import main
from tests.closeness import close
from tests.test_docs import fences
from tests.weights.models import transformers, write_tokenizer, written

PAGE = Path(__file__).parents[2] / "docs" / "weights.md"
SIZES = {"vocab_size": 300, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the page needs, as the working folder."""
    written(tmp_path / "gpt2-hf", "GPT2", SIZES | {"bos_token_id": 0, "eos_token_id": 0})
    for place in (tmp_path / "gpt2-hf", tmp_path):
        write_tokenizer(place)
    (tmp_path / "corpus.txt").write_text("".join(f"so much depends upon {n}\n" for n in range(60)))
    (tmp_path / "gated.arch").write_text(fences(PAGE, "arch")[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0, command


def test_the_whole_journey(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    commands, rates, python = fences(PAGE, "text")
    for command in commands.splitlines():
        run(command, monkeypatch)
    assert "begins with 28 weights of" in capsys.readouterr().out
    before, ours = archlang.load("gpt2"), archlang.load("runs/gated")
    own = ours.state_dict()
    assert all(torch.equal(own[name], value.float()) for name, value in before.state_dict().items())
    assert len(json.loads(Path("runs/gated/start.json").read_text())["new"]) == 4
    run(f"{rates.strip()} --out runs/slow", monkeypatch)
    slow = archlang.load("runs/slow").state_dict()
    assert not any(torch.equal(slow[name], own[name]) for name in own if name.endswith("weight"))
    exec(compile(python, "page", "exec"), {})
    theirs = transformers.AutoModelForCausalLM.from_pretrained("gated-hf", trust_remote_code=True)
    prompt = torch.randint(300, (2, 5))
    tokens = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False, eos_token_id=None
    )
    assert torch.equal(tokens[:, 5:], ours.decode(begin=prompt, limit=8).tokens)
    assert "recipe gated {" in Path("gated-hf/README.md").read_text()


def test_the_recipe_of_an_imported_model_begins_with_its_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("archlang import gpt2-hf -o gpt2", monkeypatch)
    assert archlang.load_run("gpt2").input_format.limit == 2 * 64
    run("archlang eval gpt2 --set 'task.path=\"corpus.txt\"' --split valid --json", monkeypatch)
    command = "archlang train gpt2/recipe.arch --set 'task.path=\"corpus.txt\"' --steps 2 --device cpu --out run"
    run(command, monkeypatch)
    assert json.loads(Path("run/start.json").read_text())["new"] == []
    run("archlang export run -o back --to huggingface", monkeypatch)
    theirs = transformers.AutoModelForCausalLM.from_pretrained("back")
    assert (theirs.config.model_type, theirs.config.eos_token_id) == ("gpt2", 0)
    tokenizer = transformers.AutoTokenizer.from_pretrained("back")
    assert tokenizer.decode([0]) == "<|end|>"
    prompt = tokenizer("so much", return_tensors="pt")
    answer = theirs.generate(**prompt, max_new_tokens=9, do_sample=False)[0, prompt.input_ids.shape[1] :]
    ours = archlang.load_run("run", device="cpu")
    assert tokenizer.decode(answer, skip_special_tokens=True) == "".join(ours.stream("so much", length=9))
    assert (prompt.input_ids[0, 0], prompt.input_ids.shape) == (0, (1, len(ours.input_format.answer.encode("so much"))))
    tokens = torch.randint(300, (2, 9))
    with torch.no_grad():
        close(archlang.load("run")(tokens), theirs(tokens).logits)


def test_an_adapter_begins_as_the_model_that_it_adapts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("archlang import gpt2-hf -o gpt2", monkeypatch)
    program = Path("gpt2/recipe.arch").read_text().replace("gpt2_attention[heads]\n", "adapted_attention[heads]\n")
    Path("adapted.arch").write_text(program.replace('weights = "."', 'weights = "gpt2", frozen = [loaded]'))
    with Path("adapted.arch").open("a") as file:
        file.write(fences(PAGE, "arch")[1])
    before = archlang.load("gpt2")
    adapted = archlang.load("adapted.arch").double().eval()
    adapted.load_state_dict({**adapted.state_dict(), **before.state_dict()})
    tokens = torch.randint(300, (2, 9))
    assert torch.equal(adapted(tokens), before(tokens))
    run("archlang train adapted.arch --steps 2 --device cpu --out run", monkeypatch)
    new = json.loads(Path("run/start.json").read_text())["new"]
    assert {name.split(".")[-2] for name in new} == {"lora_a", "lora_b", "gain"}
    assert not torch.equal(archlang.load("run")(tokens).double(), before(tokens))
