"""Small random models of `transformers`."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

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
YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16}
NEOX = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "rotary_pct": 0.5,
}  # fmt: skip
MAMBA = {
    "vocab_size": 50, "hidden_size": 32, "num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 1,
    "num_hidden_layers": 2, "chunk_size": 8,
}  # fmt: skip
CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", GPT2),
    "gpt2_untied": ("GPT2", GPT2 | {"tie_word_embeddings": False, "n_inner": 48, "layer_norm_epsilon": 1e-3}),
    "llama": ("Llama", SIZES),
    "llama3": ("Llama", SIZES | {"rope_parameters": LLAMA3, "tie_word_embeddings": True, "head_dim": 16}),
    "llama_biases": ("Llama", SIZES | {"attention_bias": True, "mlp_bias": True, "rms_norm_eps": 1e-3}),
    "mistral": ("Mistral", SIZES | {"sliding_window": 3}),
    "mixtral": ("Mixtral", SIZES | {"num_local_experts": 3, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2", SIZES),
    "qwen2_yarn": ("Qwen2", SIZES | {"rope_parameters": YARN}),
    "llama_yarn": (
        "Llama",
        SIZES | {"rope_parameters": YARN | {"beta_fast": 4.0, "beta_slow": 0.5, "truncate": False}, "head_dim": 16},
    ),
    "gpt_neox": ("GPTNeoX", NEOX),
    "gpt_neox_serial": ("GPTNeoX", NEOX | {"use_parallel_residual": False, "tie_word_embeddings": True}),
    "olmo2": ("Olmo2", SIZES),
    "gemma2": (
        "Gemma2",
        SIZES | {"head_dim": 8, "query_pre_attn_scalar": 20, "sliding_window": 3, "attn_logit_softcapping": 5.0},
    ),
    "gemma2_uncapped": (
        "Gemma2",
        SIZES | {"head_dim": 16, "attn_logit_softcapping": None, "final_logit_softcapping": None},
    ),
    "gemma3": ("Gemma3Text", SIZES | {"head_dim": 8, "num_hidden_layers": 8, "sliding_window": 3}),
    "gemma3_scaled": (
        "Gemma3Text",
        SIZES
        | {"head_dim": 8, "num_hidden_layers": 7, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
        | {"final_logit_softcapping": 5.0, "sliding_window": 3},
    ),
    "mamba2": ("Mamba2", MAMBA),
    "qwen3": ("Qwen3", SIZES | {"head_dim": 16}),
}
BERT = {name: SIZES[name] for name in SIZES if name != "num_key_value_heads"} | {"max_position_embeddings": 64}
MODERN = BERT | {"cls_token_id": 1, "sep_token_id": 2}
T5: dict[str, Any] = {
    "vocab_size": 50, "d_model": 32, "d_kv": 6, "d_ff": 48, "num_layers": 2, "num_heads": 4,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12, "decoder_start_token_id": 0,
}  # fmt: skip
MASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", BERT),
    "modernbert": ("ModernBert", MODERN | {"num_hidden_layers": 6, "local_attention": 5}),
    "modernbert_biases": (
        "ModernBert",
        MODERN
        | {"num_hidden_layers": 4, "local_attention": 8, "attention_bias": True, "mlp_bias": True}
        | {"classifier_bias": True, "decoder_bias": False},
    ),
}


def written(folder: Path, family: str, sizes: dict[str, Any], kind: str = "AutoModelForCausalLM", **saving: Any) -> Any:
    """Writes a random model of `transformers`. Returns it in double precision."""
    torch.manual_seed(0)
    marks = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = getattr(transformers, f"{family}Config")(
        **marks | sizes, attn_implementation="eager", experts_implementation="eager"
    )
    model = getattr(transformers, kind).from_config(config)
    for key, weight in model.named_parameters():
        torch.nn.init.normal_(weight, 1.0 if "norm" in key or "ln_" in key else 0.0, 0.2)
    model = model.double().eval()
    model.save_pretrained(folder, **saving)
    return model


def write_tokenizer(folder: Path, size: int = 300) -> None:
    """Writes a tokenizer of bytes and pairs, whose token 0 ends a text."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), Decoder()
    trainer = BpeTrainer(
        vocab_size=size, special_tokens=["<|end|>"], show_progress=False, initial_alphabet=ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(["so much depends upon a red wheel barrow"] * 3, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
