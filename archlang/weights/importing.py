"""A folder of Hugging Face as a saved model, whose program is a page of its family with the numbers of its config."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from archlang.api import saving
from archlang.backend.architecture import Architecture
from archlang.backend.runtime.block import weights_loaded_later
from archlang.compile import load_named, plan_named
from archlang.disk.folder import Folder, open_path
from archlang.disk.limits import LARGEST_JSON
from archlang.disk.os_errors import os_errors_as
from archlang.disk.readable import ReadableFolders
from archlang.errors.source import Source
from archlang.plan.plan import Plan
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.train.record import reading, schemas
from archlang.train.record.checkpoint import load_weights
from archlang.train.runs.inputs import InputFormat
from archlang.weights import mistakes
from archlang.weights.families import Config, Family, families

_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_TOKENIZER, _LARGEST_TOKENIZER = "tokenizer.json", 64 << 20
_SHARD = re.compile(r"[\w.-]+\.safetensors")
# Buffers of older files, which `transformers` computes.
_BUFFER = re.compile(r"(.*\.)?((attn|attention)\.(masked_)?bias|position_ids|inv_freq|token_type_ids)")


class HubFolder:
    """A folder as Hugging Face writes it. Its files may be links into the `blobs` of the same cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        blobs = [path.absolute().parents[1] / "blobs"] if path.absolute().parent.name == "snapshots" else []
        self._readable = ReadableFolders.of_program(path / _CONFIG, blobs)

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def read(self, name: str, most: int) -> bytes:
        with os_errors_as(mistakes.not_read, self.path / name):
            real = Path(self.real(name))
            with Folder.open(real.parent) as folder:
                return folder.read(real.name, most)

    def read_json(self, name: str) -> dict[str, Any]:  # Any: JSON
        try:
            value = json.loads(self.read(name, LARGEST_JSON))
        except (ValueError, RecursionError) as error:
            raise mistakes.damaged(self.path / name, str(error)) from error
        if not isinstance(value, dict):
            raise mistakes.damaged(self.path / name, "it is no JSON object")
        return value

    def weights(self) -> dict[str, Tensor]:
        """Returns all weights by their names in the files."""
        if self.has(_WEIGHTS):
            names = {_WEIGHTS}
        elif self.has(_INDEX):
            listed = self.read_json(_INDEX).get("weight_map")
            if not isinstance(listed, dict) or not all(
                isinstance(name, str) and _SHARD.fullmatch(name) for name in listed.values()
            ):
                raise mistakes.damaged(self.path / _INDEX, "its `weight_map` does not name files of safetensors")
            names = set(listed.values())
        else:
            for pickle in sorted(self.path.glob("pytorch_model*.bin")):
                raise mistakes.pickled(pickle)
            raise mistakes.not_a_model(self.path, _WEIGHTS)
        return {key: value for name in sorted(names) for key, value in self._tensors(name).items()}

    def _tensors(self, name: str) -> dict[str, Tensor]:
        path = self.path / name
        with os_errors_as(mistakes.not_read, path):
            real = Path(self.real(name))
            with Folder.open(real.parent) as folder, folder.open_file(real.name) as file:
                try:
                    return load_weights(open_path(file, real))
                except ValueError as error:
                    raise mistakes.damaged(path, str(error)) from error

    def real(self, name: str) -> str:
        real = self._readable.find(self.path / name)
        if real is None:
            raise mistakes.link_outside(self.path / name)
        return real


# The line `weights` of a program beside its weights begins with them.
_RECIPE = """
recipe {page} {{
    task  text[
        path = "corpus.txt", valid_share = 0.1, tokenizer = "tokenizer.json", words = {words}, begin_token = {begin},
        end_token = {end}, length = {length}]
    model {page}
    train adamw[lr = 1e-4, schedule = cosine, warmup = 50, clip = 1.0, batch = 8, steps = 1_000,
        weights = "."]
}}
"""
_LENGTH = 256


def import_folder(folder: Path, out: Path) -> Architecture:
    """Writes the model of a folder of Hugging Face as a saved model. Returns its module.

    If it predicts the next token and has a tokenizer, the program also has a recipe on texts of the user's own.

    Raises:
        WeightsError: the folder has no such model, is damaged, or has what no page has; nothing is written.
        SavedModelError: the folder `out` holds other files or cannot be written."""
    hub = HubFolder(folder)
    if not hub.has(_CONFIG):
        raise mistakes.not_a_model(folder, _CONFIG)
    config = hub.read_json(_CONFIG)
    family = _family_of(folder, config)
    vocab = _number(config, "vocab_size")
    if vocab is None:
        raise mistakes.damaged(folder / _CONFIG, "`vocab_size` is no number")
    chosen = family.statics_of(config)
    statics = family.all_statics(chosen, vocab)
    weights = hub.weights()
    values = dict(family.to_page(name, weights[name], statics) for name in weights if not _BUFFER.fullmatch(name))
    text, (begin, end) = family.text(chosen), _marks(config)
    if has_task := family.is_causal and end is not None and hub.has(_TOKENIZER):
        most = statics.get("most", _LENGTH)
        length = min(most if isinstance(most, int) else _LENGTH, _LENGTH)
        text += _RECIPE.format(page=family.page, words=vocab, begin=begin, end=end, length=length)
    source = Source(str(out.absolute() / reading.RECIPE), text)
    with weights_loaded_later():
        module = load_named(source, family.page, None, {"model.vocab": str(vocab)})
    _load(module, family, folder, values)
    if has_task:
        plan = plan_named(source, None, family.page, {})
        assert plan is not None, "the recipe has this name"
        saving.write_model(module, out, _texts_of_task(plan, module, hub, end))
        return module
    settings = {f"model.{name}": value for name, value in {**statics, "vocab": vocab}.items()}
    record = schemas.ModelRecord(model=family.page, settings=settings)
    saving.write_model(module, out, {schemas.RUN: schemas.json_text(record)})
    return module


def _texts_of_task(plan: Plan, module: Architecture, hub: HubFolder, end: int | None) -> dict[str, str]:
    """Returns the files that a saved model with a task has besides."""
    tokenizer = {"tokenizer": hub.real(_TOKENIZER)}
    task = make_task(plan.task.name, plan.task.python, {**plan.task.statics, **tokenizer})
    x = Ragged.table(np.array([[0]]))
    vocabulary = InputFormat.of(task, module, {"train": Split({"x": x}, x)}).model_copy(update={"end": end})
    return {
        schemas.RUN: schemas.json_text(schemas.RunRecord.of(plan, "32")),
        schemas.VOCABULARY: schemas.json_text(vocabulary),
        _TOKENIZER: hub.read(_TOKENIZER, _LARGEST_TOKENIZER).decode(errors="replace"),
    }


def _load(module: Architecture, family: Family, folder: Path, weights: dict[str, Tensor]) -> None:
    own = module.state_dict()
    for name in family.repeated:
        if name not in own:
            weights.pop(name, None)
    for name in sorted({*own, *weights}):
        ours, theirs = (list(each[name].shape) if name in each else None for each in (own, weights))
        if ours != theirs:
            raise mistakes.names_differ(folder, family.page, name, ours, theirs)
    kinds = {value.dtype for value in weights.values()}
    module.to(torch.float64 if kinds == {torch.float64} else torch.float32)
    module.load_state_dict(weights)


def _marks(config: Config) -> tuple[int, int | None]:
    """Returns the tokens that begin and end a text: -1 for the same, None for none."""
    tokens = [_number(config, f"{name}_token_id") for name in ("bos", "eos", "pad")]
    begin, *ends = (None if token is None or token >= config["vocab_size"] else token for token in tokens)
    end = next((token for token in (ends[0], begin, ends[1]) if token is not None), None)
    return -1 if begin in (None, end) else begin, end


def _number(config: Config, key: str) -> int | None:
    """Returns a number of a config, the first of several."""
    value = config.get(key)
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _family_of(folder: Path, config: Config) -> Family:
    if "auto_map" in config:
        raise mistakes.needs_code(folder)
    model_type = config.get("model_type")
    family = families().get(model_type) if isinstance(model_type, str) else None
    if family is None:
        raise mistakes.unknown_family(model_type, families())
    architectures = config.get("architectures") or [family.architecture]
    if architectures != [family.architecture]:
        raise mistakes.not_the_family(folder, architectures[0], family.architecture)
    return family
