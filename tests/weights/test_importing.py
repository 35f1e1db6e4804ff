"""Models of `transformers` that are imported have their results."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import archlang
from archlang.weights.families import families
from archlang.weights.huggingface import export_folder, import_folder
from archlang.weights.mistakes import WeightsError
from tests.closeness import close
from tests.weights.models import CAUSAL, MASKED, T5, YARN, transformers, write_tokenizer, written


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_has_the_same_logits_and_continues_alike(tmp_path: Path, name: str) -> None:
    theirs = written(tmp_path / "theirs", *CAUSAL[name])
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    ours = archlang.load(tmp_path / "ours")
    tokens, lengths = torch.randint(50, (3, 20)), [20, 7, 1]
    with torch.no_grad():
        padded = ours(tokens, lengths=lengths)
        for row, length in enumerate(lengths):
            # They compute RMS norms and angles in 32 bits.
            kind = torch.float64 if name.startswith("gpt2") else torch.float32
            close(padded[row, :length].to(kind), theirs(tokens[row : row + 1, :length]).logits[0].to(kind))
        prompt = tokens[:, :5]
        continued = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=9, do_sample=False, eos_token_id=None
        )
    assert torch.equal(ours.decode(begin=prompt, limit=9).tokens, continued[:, 5:])


@pytest.mark.parametrize("name", MASKED)
def test_an_encoder_has_the_same_scores_of_masked_tokens_and_goes_back(tmp_path: Path, name: str) -> None:
    theirs = written(tmp_path / "theirs", *MASKED[name], "AutoModelForMaskedLM")
    ours = import_folder(tmp_path / "theirs", tmp_path / "ours").eval()
    kind = torch.float64 if name == "bert" else torch.float32  # angles
    tokens, lengths = torch.randint(50, (2, 20)), [20, 7]
    with torch.no_grad():
        padded = ours(tokens, lengths=lengths)
        for row, length in enumerate(lengths):
            close(padded[row, :length].to(kind), theirs(tokens[row : row + 1, :length]).logits[0].to(kind))
    export_folder(archlang.load(tmp_path / "ours"), tmp_path / "back")
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "back", dtype=torch.float64)
    assert all(torch.equal(*pair) for pair in zip(again.parameters(), theirs.parameters(), strict=True))


PUBLISHED = json.loads((Path(__file__).parent / "published_configs.json").read_text())
GATED = {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 1}


@pytest.mark.parametrize("others", [{}, GATED, GATED | {"tie_word_embeddings": False}])
def test_t5_has_the_same_logits_continues_alike_and_goes_back(tmp_path: Path, others: dict[str, Any]) -> None:
    sizes = T5 | others
    theirs = written(tmp_path / "theirs", "T5", sizes, "AutoModelForSeq2SeqLM")
    file = tmp_path / "theirs" / "model.safetensors"
    unread = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(8, 4)}
    save_file(load_file(file) | unread, file, {"format": "pt"})  # as the published files have it
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    ours = archlang.load(tmp_path / "ours")
    source, target, lengths, answers = torch.randint(50, (2, 20)), torch.randint(50, (2, 15)), [20, 7], [9, 15]
    with torch.no_grad():
        padded = ours(source, target, lengths={"source": lengths, "target": answers})
        for row, (n, m) in enumerate(zip(lengths, answers, strict=True)):
            each = theirs(source[row : row + 1, :n], decoder_input_ids=target[row : row + 1, :m])
            close(padded[row, :m].float(), each.logits[0].float())
    continued = theirs.generate(source, max_new_tokens=9, do_sample=False, eos_token_id=None)
    assert torch.equal(ours.decode(source, begin=0, limit=9).tokens, continued[:, 1:])
    export_folder(ours, tmp_path / "back")
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back", dtype=torch.float64)
    assert torch.equal(again.generate(source, max_new_tokens=9, do_sample=False, eos_token_id=None), continued)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_config_of_a_published_model_has_a_page(name: str) -> None:
    config = PUBLISHED[name]
    family = families()[config["model_type"]]
    assert family.all_statics(family.statics_of(config), config["vocab_size"])


def folder_of(tmp_path: Path) -> Path:
    written(tmp_path / "hf", *CAUSAL["llama"])
    return tmp_path / "hf"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"hidden_act": "gelu"}, 'says `hidden_act = "gelu"`, and the page `llama` has only "silu"'),
        ({"mixture_of_depths": 3}, "says `mixture_of_depths = 3`"),
        ({"rope_parameters": {"rope_type": "longrope", "long_factor": [1.0]}}, "rope_scaling.long_factor"),
        ({"num_hidden_layers": "2"}, 'says `num_hidden_layers = "2"`'),
        ({"num_hidden_layers": True}, "says `num_hidden_layers = true`"),
        ({"rope_parameters": {"rope_type": "x](y: seq[n, d]"}}, "rope_scaling.rope_type"),
        ({"model_type": "mamba"}, "there is no page for models of the type `mamba`"),
        ({"model_type": ["llama"]}, "there is no page for models of the type"),
        ({"auto_map": {"AutoModel": "code.Model"}}, "brings Python of its own"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "has the weights of a `LlamaForSequence"),
        ({"vocab_size": None}, "`vocab_size` is no number"),
        ({"vocab_size": 60}, r"`embed_tokens.weight` is \[50, 32\], not \[60, 32\]"),
        ({"num_hidden_layers": 3}, "`stack.2.input_layernorm.weight` is missing"),
        ({"num_hidden_layers": 1}, "`stack.1.input_layernorm.weight` is left over"),
        ({"attention_bias": True}, "`stack.0.self_attn.k_proj.bias` is missing"),
        ({"tie_word_embeddings": True}, "`lm_head.weight` is left over"),
        ({"rope_parameters": YARN | {"attention_factor": 0.5}}, "says `rope_scaling.attention_factor = 0.5`"),
        ({"model_type": "qwen2", "architectures": None, "layer_types": ["sliding_attention"]}, "says `layer_types ="),
    ],
)  # fmt: skip
def test_what_the_page_cannot_have_is_refused_by_name(tmp_path: Path, config: dict[str, Any], reason: str) -> None:
    path = folder_of(tmp_path) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    with pytest.raises(WeightsError, match=reason if "\\" in reason else re.escape(reason)):
        import_folder(tmp_path / "hf", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(
    ("model_type", "key", "value", "has"),
    [
        ("t5", "feed_forward_proj", "gated-silu", 'the page `t5` has only "relu", "gated-gelu"'),
        ("t5", "relative_attention_num_buckets", 6, "the page `t5` has only 32, 4, 8"),
        ("gemma3_text", "attn_logit_softcapping", 5.0, "the page `gemma` has nothing of the kind"),
    ],
)
def test_a_number_or_a_word_that_the_page_cannot_have_is_refused(
    tmp_path: Path, model_type: str, key: str, value: object, has: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "vocab_size": 50, key: value}))
    with pytest.raises(WeightsError, match=re.escape(f"says `{key} = {json.dumps(value)}`, and {has}")):
        import_folder(tmp_path, tmp_path / "ours")


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def shard_outside(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../model.safetensors"}}')


def link_outside(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere")
    (folder / "model.safetensors").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / "config.json").unlink(), "it has no config.json"),
        (lambda folder: (folder / "config.json").write_text("[" * 100_000), r"config\.json is damaged"),
        (lambda folder: (folder / "config.json").write_bytes(b"\xff\xfe"), r"config\.json is damaged"),
        (lambda folder: (folder / "config.json").write_text("[]"), "it is no JSON object"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"it has no model\.safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\0" * 99), r"model\.safetensors is damaged"),
        (lambda folder: os.truncate(folder / "model.safetensors", 5_000), r"model\.safetensors is damaged"),
        (pickled, "is a pickle"),
        (shard_outside, "does not name files of safetensors"),
        (link_outside, "is a link that leads out of its folder"),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_refused(tmp_path: Path, damage: Callable[[Path], object], reason: str) -> None:
    damage(folder_of(tmp_path))
    with pytest.raises(WeightsError, match=reason):
        import_folder(tmp_path / "hf", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_shards_half_precision_and_the_links_of_a_cache_are_read(tmp_path: Path) -> None:
    theirs = written(tmp_path / "whole", *CAUSAL["llama"]).bfloat16()
    cached, blobs = tmp_path / "models--a" / "snapshots" / "1", tmp_path / "models--a" / "blobs"
    theirs.save_pretrained(cached, max_shard_size="10KB")
    blobs.mkdir()
    shards = sorted(cached.glob("*.safetensors"))
    assert len(shards) > 1
    for number, shard in enumerate(shards):
        shard.rename(blobs / str(number))
        shard.symlink_to(f"../../blobs/{number}")
    import_folder(cached, tmp_path / "ours")
    state = archlang.load(tmp_path / "ours").state_dict()
    assert torch.equal(state["embed_tokens.weight"], theirs.state_dict()["model.embed_tokens.weight"].float())


@pytest.mark.parametrize(
    ("family", "sizes", "kind"),
    [("ModernBert", MASKED["modernbert"][1], "AutoModelForMaskedLM"), ("T5", T5, "AutoModelForSeq2SeqLM")],
)
def test_a_tokenizer_stays_with_a_model_of_no_task(
    tmp_path: Path, family: str, sizes: dict[str, Any], kind: str
) -> None:
    written(tmp_path / "theirs", family, sizes, kind)
    write_tokenizer(tmp_path / "theirs")
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    export_folder(archlang.load(tmp_path / "ours"), tmp_path / "back", tmp_path / "ours")
    texts = [(tmp_path / folder / "tokenizer.json").read_text() for folder in ("theirs", "ours", "back")]
    assert texts[0] == texts[1] == texts[2]
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "back")("much").input_ids
