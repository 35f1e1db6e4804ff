"""A model that is exported for `transformers` has its results there."""

import json
from pathlib import Path

import pytest
import torch

import archlang
from archlang.train.record.mistakes import RunWarning
from archlang.weights import mistakes
from archlang.weights.huggingface import export_folder, import_folder
from tests.closeness import close
from tests.weights.models import CAUSAL, transformers, written
from tests.weights.test_journey import run as command


@pytest.mark.parametrize("name", CAUSAL)
def test_a_family_goes_back_to_its_own_format(tmp_path: Path, name: str) -> None:
    theirs = written(tmp_path / "theirs", *CAUSAL[name])
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    export_folder(archlang.load(tmp_path / "ours"), tmp_path / "back")
    load = transformers.AutoModelForCausalLM.from_pretrained
    again = load(tmp_path / "back", dtype=torch.float64, experts_implementation="eager")
    again.set_attn_implementation("eager")
    assert type(again) is type(theirs)
    before, after = theirs.state_dict(), again.state_dict()
    assert list(after) == list(before)
    # The gains of Gemma are 1 less than those of the page, which rounds.
    assert all(torch.equal(after[key], before[key]) or "gemma" in name for key in before)
    tokens = torch.randint(50, (2, 20))
    with torch.no_grad():
        close(again(tokens).logits.float(), theirs(tokens).logits.float())


PAGE = """
model looped[d = 16, steps = 3](x: tokens[n]) -> logits[n, vocab] {
    let mix = attention[heads = 2, position = rotary, causal = true]
    h = embed[d](x)
    repeat steps { h <- norm(h + mix(h)) }
    return linear[vocab](h)
}
"""


def test_any_other_page_brings_its_code(tmp_path: Path) -> None:
    (tmp_path / "page.arch").write_text(PAGE)
    ours = archlang.load(tmp_path / "page.arch", vocab=50).eval()
    export_folder(ours, tmp_path / "out")
    load = transformers.AutoModelForCausalLM.from_pretrained
    theirs = load(tmp_path / "out", trust_remote_code=True)
    theirs.save_pretrained(tmp_path / "again")
    tokens = torch.randint(50, (3, 9))
    left = torch.tensor([[0] * 4 + [1] * 5, [1] * 9, [0] * 8 + [1]])
    for module in (theirs, load(tmp_path / "again", trust_remote_code=True)):
        with torch.no_grad():
            close(module(tokens).logits, ours(tokens))
            padded = module(tokens, attention_mask=left).logits
            for row, mask in enumerate(left.bool()):
                close(padded[row, mask], ours(tokens[row : row + 1, mask])[0])
        prompt = tokens[:, :4]
        written_tokens = module.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=6, do_sample=False, pad_token_id=0
        )
        assert torch.equal(written_tokens[:, 4:], ours.decode(begin=prompt, limit=6).tokens)


def test_any_other_page_comes_back(tmp_path: Path) -> None:
    (tmp_path / "page.arch").write_text(PAGE)
    ours = archlang.load(tmp_path / "page.arch", vocab=50, steps=4).eval()
    export_folder(ours, tmp_path / "out")
    import_folder(tmp_path / "out", tmp_path / "back")
    back, tokens = archlang.load(tmp_path / "back"), torch.randint(50, (3, 9))
    assert torch.equal(back(tokens), ours(tokens))
    assert (tmp_path / "back" / "recipe.arch").read_text() == PAGE
    (tmp_path / "out" / "recipe.arch").write_text(PAGE.replace("norm(", "nrm("))
    with pytest.raises(archlang.ProgramError, match="nrm"):
        import_folder(tmp_path / "out", tmp_path / "other")
    (tmp_path / "out" / "run.json").write_text("{}")
    with pytest.raises(mistakes.WeightsError, match="is damaged"):
        import_folder(tmp_path / "out", tmp_path / "other")


@pytest.mark.parametrize("cut", ["by = bytes", "by = characters", "by = words", "by = bpe, words = 270"])
def test_the_tokenizer_of_a_run_begins_and_ends_texts_as_the_run_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"text": "so much depends upon a red wheel"}) + "\n"] * 6
    (tmp_path / "texts.jsonl").write_text("".join(rows))
    (tmp_path / "valid.jsonl").write_text(json.dumps({"text": "much depends"}) + "\n")
    task = f'task text[path = "texts.jsonl", valid = "valid.jsonl", {cut}]'
    train = "train adamw[lr = 3e-2, batch = 6, steps = 40]"
    (tmp_path / "page.arch").write_text(f"{PAGE}recipe r {{\n{task}\nmodel looped\n{train}\n}}\n")
    command("archlang train page.arch --out run --device cpu", monkeypatch)
    run = archlang.load_run("run", device="cpu")
    export_folder(run.module, tmp_path / "out", tmp_path / "run")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", trust_remote_code=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=True)
    for text in ("so much", "red wheel", "", "é 車\n zz"):
        prompt = tokenizer(text, return_tensors="pt")
        assert prompt.input_ids[0].tolist() == run.input_format.fields[0].encode(text).tolist()
        most = 12 if text else 50
        tokens = model.generate(**prompt, max_new_tokens=most, do_sample=False)[0, prompt.input_ids.shape[1] :]
        answer = "".join(run.stream(text, length=most))
        assert tokenizer.decode(tokens, skip_special_tokens=True) == answer
        assert (
            text
            or "bytes" in cut
            or (answer == "so much depends upon a red wheel" and tokens[-1] == model.config.eos_token_id)
        )
    record = json.loads(Path("run/vocabulary.json").read_text())
    record["fields"][0] |= {"cut": "", "tokenizer": ""}
    Path("run/vocabulary.json").write_text(json.dumps(record))
    with pytest.warns(RunWarning, match="no tokenizer, because its task cuts no texts"):
        export_folder(run.module, tmp_path / "bare", tmp_path / "run")
    assert "It reads token ids: there is no tokenizer" in Path("bare/README.md").read_text()
    assert not Path("bare/tokenizer.json").exists()


def test_a_folder_is_replaced_only_if_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "page.arch").write_text(PAGE)
    ours = archlang.load(tmp_path / "page.arch", vocab=50).eval()
    export_folder(ours, tmp_path / "out")
    with pytest.raises(mistakes.WeightsError, match="out exists"):
        export_folder(ours, tmp_path / "out")
    export_folder(ours, tmp_path / "out", overwrite=True)
    assert json.loads((tmp_path / "out" / "config.json").read_text())["vocab_size"] == 50


def test_a_model_without_a_next_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mistakes.WeightsError, match="`ndr` does not predict the next token"):
        export_folder(archlang.load("recipes/ndr.arch", d=16, ff=16, steps=2), tmp_path / "out")
