"""The models of docs/architectures.md have the results of `transformers`, on its weights."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import archlang
from tests.closeness import close
from tests.test_docs import fences

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
PAGE = Path(__file__).parent.parent / "docs" / "architectures.md"
COMMON: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-6, "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}  # fmt: skip
VOCAB, LENGTH = 50, 20


def drawn(theirs: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    for name, weight in theirs.named_parameters():
        nn.init.normal_(weight, 1.0 if "norm" in name.lower() or "ln_" in name else 0.0, 0.2)
    return theirs.double().eval()


def loaded(tmp_path: Path, name: str, weights: dict[str, Tensor], **statics: Any) -> Any:
    (text,) = (text for text in fences(PAGE, "arch") if re.search(rf"^(model|block) {name}\[", text, re.MULTILINE))
    path = tmp_path / "page.arch"
    path.write_text(text, encoding="utf-8")
    ours = archlang.load(path, name, **statics).double().eval()
    ours.load_state_dict(weights)
    return ours


def require_equal(tmp_path: Path, name: str, theirs: nn.Module, weights: dict[str, Tensor], **statics: Any) -> None:
    ours = loaded(tmp_path, name, weights, vocab=VOCAB, **statics)
    tokens = torch.randint(VOCAB, (2, LENGTH))
    with torch.no_grad():
        close(ours(tokens).float(), theirs(tokens).logits.float())  # their norms are computed in 32 bits
    written = tokens[:, :5]
    with torch.no_grad():
        for _ in range(9):
            written = torch.cat((written, theirs(written).logits[:, -1].argmax(-1, keepdim=True)), 1)
    assert torch.equal(ours.decode(begin=tokens[:, :5], limit=9).tokens, written[:, 5:])


def llama_weights(theirs: nn.Module) -> dict[str, Tensor]:
    return {re.sub(r"^model\.", "", key).replace("layers.", "stack."): w for key, w in theirs.state_dict().items()}


@pytest.mark.parametrize("qk_norm", [False, True], ids=["Llama", "Qwen3"])
def test_llama_and_qwen3(tmp_path: Path, qk_norm: bool) -> None:
    config, model = (
        (transformers.Qwen3Config, transformers.Qwen3ForCausalLM)
        if qk_norm
        else (transformers.LlamaConfig, transformers.LlamaForCausalLM)
    )
    theirs = drawn(model(config(**COMMON, rope_parameters={"rope_type": "default", "rope_theta": 10_000.0})))
    require_equal(tmp_path, "llama", theirs, llama_weights(theirs), qk_norm=qk_norm)


def test_gemma_2(tmp_path: Path) -> None:
    config = transformers.Gemma2Config(
        **COMMON | {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
        query_pre_attn_scalar=16, attn_logit_softcapping=5.0, final_logit_softcapping=30.0, sliding_window=3,
        attn_implementation="eager",
    )  # fmt: skip
    theirs = drawn(transformers.Gemma2ForCausalLM(config))
    weights = {}
    for key, weight in llama_weights(theirs).items():
        name = key.replace("stack.0.", "stack.0.near.").replace("stack.1.", "stack.0.far.")
        weights[name] = weight + 1 if "norm" in key else weight
    weights["embed_tokens.weight"] = weights["embed_tokens.weight"] * 32**0.5
    require_equal(tmp_path, "gemma2", theirs, weights)


def test_gpt_2(tmp_path: Path) -> None:
    config = transformers.GPT2Config(
        vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=64, tie_word_embeddings=False
    )
    theirs = drawn(transformers.GPT2LMHeadModel(config))
    weights = {}
    for key, weight in theirs.state_dict().items():
        name = re.sub(r"^transformer\.", "", key).replace("h.", "stack.", 1).replace("mlp.", "")
        value = weight.T if re.search(r"c_\w+\.weight", name) else weight
        if ".attn.c_attn." in name:
            for part, own in zip(("query", "key", "value"), value.chunk(3), strict=True):
                weights[name.replace("c_attn", part)] = own
        else:
            weights[name.replace("attn.c_proj", "attn.output")] = value
    require_equal(tmp_path, "gpt2", theirs, weights)


@pytest.mark.parametrize("window", [0, 3])
def test_the_attention_of_gpt_oss(tmp_path: Path, window: int) -> None:
    config = transformers.GptOssConfig(
        **COMMON | {"num_hidden_layers": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}},
        num_local_experts=2, num_experts_per_tok=1, attn_implementation="eager",
    )  # fmt: skip
    model: Any = drawn(transformers.GptOssModel(config))
    theirs, x = model.layers[0].self_attn, torch.randn(2, LENGTH, 32).double()
    weights = {}
    for key, weight in theirs.state_dict().items():
        name = re.sub(r"(\w)_proj", lambda m: {"q": "query", "k": "key", "v": "value", "o": "output"}[m[1]], key)
        pairs = weight.unflatten(0, (-1, 2, 4)).transpose(1, 2).flatten(0, 2) if key[0] in "qk" else weight
        weights[f"self_attn.{name}"] = pairs
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
    hidden = (distance < 0) | (distance >= (window or LENGTH))
    mask = torch.zeros(1, 1, LENGTH, LENGTH).double().masked_fill(hidden, -torch.inf)
    with torch.no_grad():
        expected, _ = theirs(x, model.rotary_emb(x, torch.arange(LENGTH)[None]), mask)
        close(loaded(tmp_path, "gpt_oss_attention", weights, window=window)(x).float(), expected.float())


ENCODERS: dict[str, tuple[dict[str, int], dict[str, str]]] = {  # sizes, and how the page renames weights
    "bert": (
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
        {
            r"^bert\.encoder\.layer": "stack",
            r"^cls\.predictions\.bias": "unembed.bias",
            r"embeddings\.LayerNorm": "embeddings_norm",
            r"^bert\.embeddings\.|^bert\.|^cls\.predictions\.|\.self|\.dense": "",
            r"attention\.output\.LayerNorm": "attention_norm",
            r"\.LayerNorm": "_norm",
        },
    ),
    "t5_encoder": (
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        {
            r"0\.layer_norm": "0.x.attention_norm",
            r"1\.layer_norm": "1.x.dense_norm",
            r"^.*(?=relative)|^encoder\.(?=final)|layer\.\d\.\w+\.": "",
            r"^encoder\.block": "stack",
        },
    ),
}


@pytest.mark.parametrize(
    ("name", "config", "model"),
    [("bert", "BertConfig", "BertForMaskedLM"), ("t5_encoder", "T5Config", "T5EncoderModel")],
)
def test_an_encoder(tmp_path: Path, name: str, config: str, model: str) -> None:
    sizes, renamed = ENCODERS[name]
    theirs = drawn(getattr(transformers, model)(getattr(transformers, config)(vocab_size=VOCAB, **sizes)))
    weights: dict[str, Tensor] = {}
    for key, weight in theirs.named_parameters():
        for pattern, words in renamed.items():
            key = re.sub(pattern, words, key)
        weights[key] = weight
    tokens, lengths = torch.randint(VOCAB, (2, 150)), torch.tensor([150, LENGTH])
    real = torch.arange(150) < lengths[:, None]
    ours = loaded(tmp_path, name, weights, vocab=VOCAB)
    with torch.no_grad():
        expected = theirs(tokens, attention_mask=real.long())[0]
        close(ours(tokens, lengths=lengths)[real].float(), expected[real].float())


def test_the_mixer_of_mamba_2(tmp_path: Path) -> None:
    config = transformers.Mamba2Config(
        hidden_size=32, num_heads=4, head_dim=16, state_size=8, n_groups=1, num_hidden_layers=1, chunk_size=8
    )
    model: Any = drawn(transformers.Mamba2Model(config))
    theirs, x = model.layers[0].mixer, torch.randn(2, LENGTH, 32).double()
    weights = {}
    for key, weight in theirs.state_dict().items():
        if key in ("dt_bias", "A_log", "D"):  # learned vectors
            weights[f"{key}.weight"] = weight[None]
        else:
            weights[key] = weight
    with torch.no_grad():
        close(loaded(tmp_path, "mamba2_mixer", weights, d=32)(x).float(), theirs(x).float())
