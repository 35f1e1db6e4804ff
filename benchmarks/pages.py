"""Pages beside `transformers`, with equal sizes and random weights: cases of the group `written`.

Those of docs/architectures.md, and Mamba-2 as `archlang import` writes it. `transformers` runs in its default form:
torch's fused attention, but for Gemma 2, and plain torch for Mamba-2 where `mamba_ssm` is missing."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.compile import load_named
from archlang.errors import Source
from benchmarks.comparison import ModelPair, training_step
from benchmarks.measure import Case, Setting, Sides

BESIDE = "transformers"
_ROOT = Path(__file__).parents[1]
_VOCAB, _BATCH = 512, 2
LENGTHS = (128, 1024)
WINDOW = 128


@dataclass(frozen=True)
class Page:
    """A model of ours with its statics, and the class of `transformers` with the settings of its config."""

    model: str
    theirs: str
    statics: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    decodes: bool = False
    file: Path = _ROOT / "docs" / "architectures.md"


def pages(tiny: bool) -> dict[str, Page]:
    """Returns the pages by their names, with 4 layers of 256 features and 8 heads."""
    d, heads, layers, ff, most = (32, 2, 2, 64, 64) if tiny else (256, 8, 4, 512, 2048)
    kv, states = heads // 2, d // 4
    common = {"d": d, "heads": heads}
    of_llama = {
        "hidden_size": d, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": d // heads,
        "intermediate_size": ff, "num_hidden_layers": layers, "max_position_embeddings": most,
        "tie_word_embeddings": False,
    }  # fmt: skip
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return {
        "GPT-2": Page(
            "gpt2", "GPT2LMHeadModel", common | {"depth": layers, "most": most},
            {"n_embd": d, "n_head": heads, "n_layer": layers, "n_positions": most, "tie_word_embeddings": False}
            | dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0), True,
        ),
        "Llama": Page(
            "llama", "LlamaForCausalLM", common | {"kv_heads": kv, "depth": layers, "ff": ff}, of_llama, True
        ),
        "Gemma 2": Page(
            "gemma2", "Gemma2ForCausalLM", common | {"kv_heads": kv, "pairs": layers // 2, "ff": ff},
            of_llama | {"sliding_window": WINDOW}, True,
        ),
        "T5's encoder": Page(
            "t5_encoder", "T5EncoderModel", common | {"depth": layers, "ff": ff},
            {"d_model": d, "num_heads": heads, "d_kv": d // heads, "d_ff": ff, "num_layers": layers,
             "dropout_rate": 0.0},
        ),
        "BERT": Page(
            "bert", "BertForMaskedLM", common | {"depth": layers, "ff": ff, "most": most},
            {"hidden_size": d, "num_attention_heads": heads, "num_hidden_layers": layers, "intermediate_size": ff,
             "max_position_embeddings": most, **no_dropout},
        ),
        "Mamba-2": Page(
            "mamba2", "Mamba2ForCausalLM", common | {"head_dim": 2 * d // heads, "states": states, "depth": layers},
            {"hidden_size": d, "num_heads": heads, "head_dim": 2 * d // heads, "state_size": states, "n_groups": 1,
             "num_hidden_layers": layers}, True, _ROOT / "archlang" / "weights" / "families" / "mamba2.arch",
        ),
    }  # fmt: skip


NAMES = tuple(pages(tiny=True))


def _ours(page: Page) -> Architecture:
    text = page.file.read_text(encoding="utf-8")
    if page.file.suffix == ".md":
        fences = re.findall(r"^```arch\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        (text,) = (fence for fence in fences if f"model {page.model}[" in fence)
        text = text.replace("window = 3,", f"window = {WINDOW},")
    sets = {f"model.{name}": str(value) for name, value in ({**page.statics, "vocab": _VOCAB}).items()}
    return load_named(Source(page.model, text), page.model, None, sets)


def _theirs(page: Page) -> nn.Module:
    import transformers

    model = getattr(transformers, page.theirs)
    theirs: nn.Module = model(model.config_class(vocab_size=_VOCAB, **page.settings))
    return theirs


def pair(name: str, length: int, setting: Setting) -> ModelPair:
    """Returns the page and the model of `transformers`, and a loss on random tokens."""
    page = pages(setting.tiny)[name]
    tokens = torch.randint(_VOCAB, (_BATCH, 7 if setting.tiny else length), device=setting.device)

    def loss(module: nn.Module) -> Tensor:
        output = module(tokens)
        result: Tensor = output if isinstance(output, Tensor) else output[0]
        return result.square().mean()

    torch.manual_seed(0)
    return ModelPair(_ours(page), _theirs(page), loss)


def _decoding(name: str, count: int, setting: Setting) -> Sides:
    """Returns the decoding of so many tokens after as many, by either side's cache."""
    both, prompt = pair(name, count, setting), torch.randint(_VOCAB, (_BATCH, count), device=setting.device)
    ours, theirs = (module.to(setting.device).eval() for module in (both.ours, both.theirs))

    @torch.no_grad()
    def by_transformers() -> None:
        tokens, cache = prompt, dict[str, Any]()
        for _ in range(count):
            output = theirs(tokens, use_cache=True, **cache)
            # The result names the cache as the argument is called, which depends on the model and the version.
            cache = {key: value for key, value in output.items() if key != "logits"}
            tokens = output.logits[:, -1:].argmax(-1)

    assert isinstance(ours, Architecture)
    return Sides(partial(ours.decode, begin=prompt, limit=count), by_transformers)


def steps() -> dict[str, Callable[[Setting], Sides]]:
    """Returns the training steps of all pages, by the names of their cases."""
    return {
        f"the page of {name}, N = {length}": partial(training_step, partial(pair, name, length))
        for name in NAMES
        for length in LENGTHS
    }


def is_measured() -> bool:
    """Returns whether `transformers` is installed."""
    return find_spec("transformers") is not None


def cases(setting: Setting) -> Iterator[Case]:
    """Yields training steps and decodings of pages, if `transformers` is installed."""
    if not is_measured():
        return
    for name, step in steps().items():
        yield Case(f"{name}, forward and backward", BESIDE, partial(step, setting))
    count = 7 if setting.tiny else 100
    for name, page in pages(setting.tiny).items():
        if page.decodes:
            build = partial(_decoding, name, count, setting)
            yield Case(f"the page of {name}, {count} tokens after {count}", BESIDE, build)
