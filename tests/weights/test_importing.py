"""Models of `transformers` that are imported have their results."""

from pathlib import Path
from typing import Any

import pytest
import torch

import archlang
from archlang.weights.importing import import_folder
from tests.closeness import close

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
SIZES: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2,
}  # fmt: skip
GPT2 = {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", GPT2),
    "gpt2_untied": ("GPT2", GPT2 | {"tie_word_embeddings": False, "n_inner": 48, "layer_norm_epsilon": 1e-3}),
    "llama": ("Llama", SIZES),
    "llama3": ("Llama", SIZES | {"rope_parameters": LLAMA3, "tie_word_embeddings": True, "head_dim": 16}),
    "llama_biases": ("Llama", SIZES | {"attention_bias": True, "mlp_bias": True, "rms_norm_eps": 1e-3}),
    "mistral": ("Mistral", SIZES | {"sliding_window": 3}),
    "qwen2": ("Qwen2", SIZES),
    "qwen3": ("Qwen3", SIZES | {"head_dim": 16}),
}


def written(folder: Path, family: str, sizes: dict[str, Any], kind: str = "AutoModelForCausalLM", **saving: Any) -> Any:
    """Writes a random model of `transformers`. Returns it in double precision."""
    torch.manual_seed(0)
    marks = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = getattr(transformers, f"{family}Config")(**marks | sizes, attn_implementation="eager")
    model = getattr(transformers, kind).from_config(config)
    for key, weight in model.named_parameters():
        torch.nn.init.normal_(weight, 1.0 if "norm" in key or "ln_" in key else 0.0, 0.2)
    model = model.double().eval()
    model.save_pretrained(folder, **saving)
    return model


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_has_the_same_logits_and_continues_alike(tmp_path: Path, name: str) -> None:
    theirs = written(tmp_path / "theirs", *CAUSAL[name])
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    ours = archlang.load(tmp_path / "ours")
    tokens, lengths = torch.randint(50, (3, 20)), [20, 7, 1]
    with torch.no_grad():
        padded = ours(tokens, lengths=lengths)
        for row, length in enumerate(lengths):
            # Except for GPT-2, they compute norms and angles in 32 bits.
            kind = torch.float64 if name.startswith("gpt2") else torch.float32
            close(padded[row, :length].to(kind), theirs(tokens[row : row + 1, :length]).logits[0].to(kind))
        prompt = tokens[:, :5]
        continued = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=9, do_sample=False, eos_token_id=None
        )
    assert torch.equal(ours.decode(begin=prompt, limit=9).tokens, continued[:, 5:])
