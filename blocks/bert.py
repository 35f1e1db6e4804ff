"""BERT of the package `transformers`, with weights from a folder of the user.

The folder may come from a stranger: only `config.json` and `model.safetensors` are read, without following links, and
`transformers` never sees the folder."""

import importlib
import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call

from archlang.backend.runtime.block import MaskN, reads_initial_weights
from archlang.backend.runtime.stacking import model_by_model
from archlang.disk.folder import Folder
from archlang.disk.mistakes import RefusedFile
from archlang.errors import ErrorWithRemedy
from archlang.errors.machine import needs_extra

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_LARGEST_CONFIG = 1 << 20
# Published weights have the names of the first programs.
_RENAMED = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class BertError(ErrorWithRemedy):
    """BERT cannot be constructed or called."""


class Bert(nn.Module):
    """Returns the last hidden states of BERT.

        h_i = norm(W[x_i] + P[i] + S[s_i]),    then for each layer    a = norm(h + attention(h)),    h = norm(a + ff(a))

    Devlin et al., "BERT: Pre-training of deep bidirectional transformers for language understanding", 2019.

    Raises:
        BertError: `transformers` is not installed, or the folder does not hold a BERT of these sizes."""

    def __init__(
        self,
        *,
        d: int,
        heads: int,
        ff: int,
        layers: int,
        folder: str,
        positions: int,
        separator: int,
        dropout: float,
        epsilon: float,
        vocab: int,
    ) -> None:
        super().__init__()
        sizes: dict[str, int | float | str] = {
            "hidden_size": d, "num_attention_heads": heads, "intermediate_size": ff, "num_hidden_layers": layers,
            "max_position_embeddings": positions, "vocab_size": vocab, "layer_norm_eps": epsilon,
            "type_vocab_size": 2, "hidden_act": "gelu",
        }  # fmt: skip
        with needs_extra("bert"):
            transformers: Any = importlib.import_module("transformers")  # Any: a package that may be missing
        has_files = folder != "" and reads_initial_weights()
        if has_files:
            _check_config(Path(folder), sizes)
        config = transformers.BertConfig(
            **sizes, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, pad_token_id=None
        )
        self.network: nn.Module = transformers.BertModel(config, add_pooling_layer=False)
        self.d, self.separator, self.positions = d, separator, positions
        if has_files:
            _load_weights(Path(folder), self.network)

    def forward(self, x: Int[Tensor, "b n"], *, mask_n: MaskN = None) -> Float[Tensor, "b n d"]:
        if x.shape[1] > self.positions:
            raise BertError(
                f"a sample has {x.shape[1]} tokens, and this BERT has {self.positions} positions",
                f"cut the samples, in the task squad by `longest = {self.positions}`",
            )
        if x.shape[1] == 0:
            return next(self.network.parameters()).new_zeros(*x.shape, self.d)
        mask = torch.ones_like(x, dtype=torch.bool) if mask_n is None else mask_n.clone()
        mask[:, :1] = True  # a sample without positions must attend to something
        names, weights = zip(*self.network.named_parameters(), strict=True)

        def states(x: Tensor, mask: Tensor, *weights: Tensor) -> Tensor:
            is_separator = (x == self.separator).long()
            segments = ((is_separator.cumsum(1) - is_separator) > 0).long()
            fields = {"input_ids": x.long(), "attention_mask": mask, "token_type_ids": segments}
            result: Tensor = functional_call(
                self.network, dict(zip(names, weights, strict=True)), (), fields
            ).last_hidden_state
            return result

        return model_by_model(states, x, mask, *weights)


def _check_config(folder: Path, sizes: dict[str, int | float | str]) -> None:
    try:
        config = json.loads(_content(folder, CONFIG, _LARGEST_CONFIG))
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict) or config.get("model_type") != "bert":
        raise BertError(f"{folder / CONFIG} does not describe a BERT", _DOWNLOAD)
    static = {
        "hidden_size": "d", "num_attention_heads": "heads", "intermediate_size": "ff", "num_hidden_layers": "layers",
        "max_position_embeddings": "positions", "layer_norm_eps": "epsilon",
    }  # fmt: skip
    defaults = {"layer_norm_eps": 1e-12, "type_vocab_size": 2, "hidden_act": "gelu"}
    for key, expected in sizes.items():
        actual = config.get(key, defaults.get(key))
        if actual == expected:
            continue
        message = f"{folder / CONFIG} has {key} = {json.dumps(actual)[:40]}, and the model has {expected}"
        if key in static and isinstance(actual, int | float):
            raise BertError(message, f"write `bert[{static[key]} = {actual}, …]`")
        if key == "vocab_size" and isinstance(actual, int):
            raise BertError(message, f"let the task have a vocabulary of {actual} tokens")
        raise BertError(message, "use a folder of Google's BERT")


def _load_weights(folder: Path, network: nn.Module) -> None:
    try:
        weights = safetensors.torch.load(_content(folder, WEIGHTS))
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise BertError(f"{folder / WEIGHTS} is damaged", _DOWNLOAD) from error
    by_name = {_name(key): weight for key, weight in weights.items()}
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            weight = by_name.get(name)
            if weight is None:
                raise BertError(f"{folder / WEIGHTS} lacks the weights {name}", _DOWNLOAD)
            if weight.shape != parameter.shape:
                message = f"{name} in {folder / WEIGHTS} has the shape {[*weight.shape]}, and not {[*parameter.shape]}"
                raise BertError(message, _DOWNLOAD)
            parameter.copy_(weight)


def _name(key: str) -> str:
    """The name of a weight in `transformers.BertModel`."""
    for old, new in _RENAMED.items():
        key = key.replace(old, new)
    return key.removeprefix("bert.")


def _content(folder: Path, name: str, limit: int | None = None) -> bytes:
    try:
        with Folder.open(folder) as opened:
            return opened.read(name, opened.size(name) if limit is None else limit)
    except RefusedFile as error:
        raise BertError(error.message, error.remedy) from error
    except FileNotFoundError as error:
        raise BertError(f"{folder / name} is missing", _DOWNLOAD) from error
    except OSError as error:
        raise BertError(f"{folder / name} cannot be read: {error.strerror}", _DOWNLOAD) from error


_DOWNLOAD = (
    "download a BERT, `hf download google-bert/bert-base-uncased config.json model.safetensors tokenizer.json "
    "--local-dir bert-base-uncased`, and name its folder with `--set model.folder=bert-base-uncased`"
)
