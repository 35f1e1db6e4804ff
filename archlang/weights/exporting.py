"""A model as a folder of Hugging Face: in the format of its family, or with its own code for any other page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.decode.greedy import target_of
from archlang.disk.folder import Folder
from archlang.disk.os_errors import os_errors_as
from archlang.export.plain.file import plain_text, plain_weights
from archlang.train.record import reading, schemas
from archlang.train.runs.inputs import InputFormat
from archlang.weights import mistakes
from archlang.weights.families import families, vocab_of

_CODE = "modeling_archlang.py"
_WRAPPER = '''"""The model of `plain_model.py` for `transformers`."""

import torch
import torch.nn.functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from .plain_model import {model}


class ArchlangConfig(PretrainedConfig):
    model_type = "archlang"


class ArchlangForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = ArchlangConfig
    base_model_prefix = "model"

    def __init__(self, config):
        super().__init__(config)
        with torch.device("cpu"):  # which also fills the buffers that no file holds
            self.model = {model}()
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, input_ids, attention_mask=None, labels=None, **_):
        if attention_mask is None:
            logits = self.model(input_ids)
        else:  # the real tokens first, wherever the padding is
            order = attention_mask.argsort(dim=1, descending=True, stable=True)
            logits = self.model(input_ids.gather(1, order), attention_mask.sum(1))
            back = order.argsort(dim=1)[:, :, None].expand_as(logits)
            logits = logits.gather(1, back)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {{"input_ids": input_ids, "attention_mask": attention_mask}}
'''


def export_folder(
    module: Architecture, folder: Path, source: Path | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Writes a model as a folder that `AutoModelForCausalLM.from_pretrained` loads. Returns the files.

    A page of a known family has the family's format. Any other model is written with its own code, which
    `trust_remote_code=True` lets `transformers` run. `source` is the folder of the run or of the saved model, whose
    tokenizer and results are written too.

    Raises:
        WeightsError: the folder exists and `overwrite` is false, or the model does not predict the next token.
        ExportError: a block cannot be written as plain torch code."""
    if folder.is_symlink() or (folder.exists() and not (overwrite and folder.is_dir())):
        raise mistakes.folder_exists(folder)
    files = _of_family(module) or _of_any(module)
    files["README.md"] = _card(module, source)
    if source is not None and reading.has(source, schemas.VOCABULARY):
        tokenizer = reading.read_record(source, schemas.VOCABULARY, InputFormat).answer.tokenizer
        if tokenizer:
            files["tokenizer.json"] = tokenizer
            files["tokenizer_config.json"] = json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}) + "\n"
    with (
        os_errors_as(mistakes.not_written, folder),
        Folder.create(folder.absolute().parent) as parent,
        parent.new_folder(folder.name) as unfinished,
    ):
        for name, content in files.items():
            unfinished.write(name, content)
    return [folder / name for name in files]


def _of_family(module: Architecture) -> dict[str, str | bytes]:
    """Returns the files of a module in the format of its family; none if it has no family."""
    for family in families().values():
        if (statics := family.statics_of_module(module)) is None:
            continue
        config = family.config_of(statics, vocab_of(module))
        weights = dict(family.to_file(name, value, statics) for name, value in module.state_dict().items())
        return _files({**config, **_marks(module)}, weights)
    return {}


def _of_any(module: Architecture) -> dict[str, str | bytes]:
    """Returns the files of a module with its own code."""
    if len(module.program.inputs) != 1 or target_of(module.program.graph) is None:
        raise mistakes.not_a_language_model(module.program.graph.name)
    name = "ArchlangForCausalLM"
    places = {"AutoConfig": f"{Path(_CODE).stem}.ArchlangConfig", "AutoModelForCausalLM": f"{Path(_CODE).stem}.{name}"}
    config = {"architectures": [name], "model_type": "archlang", "vocab_size": vocab_of(module), "auto_map": places}
    config |= {"use_cache": False, "tie_word_embeddings": False, **_marks(module)}
    weights = {f"model.{key}": value for key, value in plain_weights(module).items()}
    text = plain_text(module)
    found = re.search(r"def load\(.*\) -> (\w+):", text)
    assert found is not None, "the file has a function that loads its weights"
    return {**_files(config, weights), "plain_model.py": text, _CODE: _WRAPPER.format(model=found[1])}


def _files(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> dict[str, str | bytes]:  # Any: JSON
    contiguous = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    config = {**config, "dtype": str(next(iter(weights.values())).dtype).removeprefix("torch.")}
    return {
        "config.json": json.dumps(config, indent=2) + "\n",
        "model.safetensors": safetensors.torch.save(contiguous, {"format": "pt"}),
    }


def _marks(module: Architecture) -> dict[str, Any]:  # Any: JSON
    """Returns the tokens that begin and end a text, if the task of a module names them."""
    origin = module.program.origin
    settings = origin.settings if origin is not None else {}
    end, begin = settings.get("task.end_token", -1), settings.get("task.begin_token", -1)
    if not isinstance(end, int) or not isinstance(begin, int) or end < 0:
        return {"bos_token_id": None, "eos_token_id": None}
    return {"bos_token_id": end if begin < 0 else begin, "eos_token_id": end}


def _card(module: Architecture, source: Path | None) -> str:
    """Returns the text of a model card: what was measured, and the program."""
    origin = module.program.origin
    lines = [f"# {module.program.graph.name}", "", "A model that is a page of archlang."]
    results = None if source is None else reading.read_results(source)
    for split, result in results.splits.items() if results is not None else ():
        measured = ", ".join(f"{metric} {value:.4g}" for metric, value in result.metrics.items() if value is not None)
        lines += ["", f"On {split}, {result.items} items: {measured}."]
    if origin is not None and origin.program is not None:
        lines += ["", *(f"    {line}".rstrip() for line in origin.program.text.splitlines())]
    return "\n".join(lines) + "\n"
