"""Folders of Hugging Face: in, as a saved model with the page of its family and the numbers of its config; and out, in
the format of the family, or with its own code for any other page."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from archlang.api import saving
from archlang.backend.architecture import Architecture
from archlang.backend.decode.greedy import target_of
from archlang.compile import load_named, plan_named
from archlang.disk.folder import Folder, open_path
from archlang.disk.limits import LARGEST_JSON
from archlang.disk.os_errors import os_errors_as
from archlang.disk.readable import ReadableFolders
from archlang.errors import Source
from archlang.export.plain.file import plain_text, plain_weights
from archlang.plan.overrides import static_text
from archlang.plan.plan import Plan
from archlang.syntax.reading import LARGEST as LARGEST_PROGRAM
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.split import Ragged, Split
from archlang.train.record import reading, schemas
from archlang.train.record.checkpoint import load_weights, write_safetensors
from archlang.train.record.mistakes import RunWarning
from archlang.train.record.run_folder import stored_files
from archlang.train.runs.inputs import InputFormat
from archlang.weights import mistakes
from archlang.weights.families import Config, Family, families, vocab_of
from archlang.weights.tokenizer_files import CONFIG, OF_A_FILE, TOKENIZER, tokenizer_files

# The code of a model that has no family, for `transformers`; MODEL is its class.
_WRAPPER = Path(__file__).parent / "wrapper.txt"
_CODE, _OWN_TYPE = "modeling_archlang.py", "archlang"
_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_LARGEST_TOKENIZER = 64 << 20
_SHARD = re.compile(r"[\w.-]+\.safetensors")
# Buffers of older files, which `transformers` computes.
_BUFFER = re.compile(r"(.*\.)?((attn|attention)\.(masked_)?bias|position_ids|inv_freq|token_type_ids)")


# In


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

    def read_tokenizer(self) -> str:
        return self.read(TOKENIZER, _LARGEST_TOKENIZER).decode(errors="replace")

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
        tensors = ((key, value) for name in sorted(names) for key, value in self._tensors(name).items())
        # The first files of BERT call the weights of norms `gamma` and `beta`.
        return {
            key.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): value
            for key, value in tensors
        }

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
    if config.get("model_type") == _OWN_TYPE:
        return _import_own(hub, out)
    family = _family_of(folder, config)
    vocab = _first_number(config, "vocab_size")
    if vocab is None:
        raise mistakes.damaged(folder / _CONFIG, "`vocab_size` is no number")
    chosen = family.statics_of(config)
    statics = family.all_statics(chosen, vocab)
    weights = hub.weights()
    text, (begin, end) = family.text(chosen), _marks(config)
    if has_task := family.is_causal and end is not None and hub.has(TOKENIZER):
        most = statics.get("most", _LENGTH)
        length = min(most if isinstance(most, int) else _LENGTH, _LENGTH)
        text += _RECIPE.format(page=family.page, words=vocab, begin=begin, end=end, length=length)
    source = Source(str(out.absolute() / reading.RECIPE), text)
    module = load_named(source, family.page, None, {"model.vocab": str(vocab)})
    unread = {name for name in weights for pattern in family.left if fnmatch(name, pattern)}
    names = [name for name in weights if name not in unread and not _BUFFER.fullmatch(name)]
    own = dict(family.to_page(name, weights.pop(name), module, statics) for name in names)
    _load(module, family.page, family.repeated, folder, own)
    if has_task:
        plan = plan_named(source, None, family.page, {})
        assert plan is not None, "the recipe has this name"
        saving.write_model(module, out, _texts_of_task(plan, module, hub, end))
        return module
    settings = {f"model.{name}": value for name, value in {**statics, "vocab": vocab}.items()}
    record = schemas.ModelRecord(model=family.page, settings=settings)
    tokenizer = {TOKENIZER: hub.read_tokenizer()} if hub.has(TOKENIZER) else {}
    saving.write_model(module, out, {schemas.RUN: schemas.json_text(record), **tokenizer})
    return module


def _import_own(hub: HubFolder, out: Path) -> Architecture:
    """The model of a folder that `export_folder` has written with its code; of it only the program is read."""
    try:
        record = schemas.ModelRecord.model_validate_json(hub.read(schemas.RUN, LARGEST_JSON))
        text = hub.read(reading.RECIPE, LARGEST_PROGRAM).decode()
    except ValueError as error:
        raise mistakes.damaged(hub.path, str(error)) from error
    sets = {path: static_text(value) for path, value in record.settings.items()}
    module = load_named(Source(str(out.absolute() / reading.RECIPE), text), record.model, None, sets)
    weights = {name.removeprefix("model."): value for name, value in hub.weights().items()}
    _load(module, record.model, [], hub.path, weights)
    saving.write_model(module, out, {schemas.RUN: schemas.json_text(record)})
    return module


def _texts_of_task(plan: Plan, module: Architecture, hub: HubFolder, end: int | None) -> dict[str, str]:
    tokenizer = {"tokenizer": hub.real(TOKENIZER)}
    task = make_task(plan.task.name, plan.task.python, {**plan.task.statics, **tokenizer})
    x = Ragged.table(np.array([[0]]))
    length = plan.task.statics["length"]
    assert isinstance(length, int), "as the recipe says"
    own = {"end": end, "limit": 2 * length}
    vocabulary = InputFormat.of(task, module, {"train": Split({"x": x}, x)}).model_copy(update=own)
    return {
        schemas.RUN: schemas.json_text(schemas.RunRecord.of(plan, "32")),
        schemas.VOCABULARY: schemas.json_text(vocabulary),
        TOKENIZER: hub.read_tokenizer(),
    }


def _load(module: Architecture, page: str, repeated: Sequence[str], folder: Path, weights: dict[str, Tensor]) -> None:
    own = module.state_dict()
    for name in {*repeated} - {*own}:
        value = weights.pop(name, None)
        if value is not None and not any(torch.equal(value, other) for other in weights.values()):
            weights[name] = value
    for name in sorted({*own, *weights}):
        ours, theirs = (list(each[name].shape) if name in each else None for each in (own, weights))
        if ours != theirs:
            raise mistakes.names_differ(folder, page, name, ours, theirs)
    kinds = {value.dtype for value in weights.values()}
    module.to(torch.float64 if kinds == {torch.float64} else torch.float32)
    module.load_state_dict(weights)


def _marks(config: Config) -> tuple[int, int | None]:
    tokens = [_first_number(config, f"{name}_token_id") for name in ("bos", "eos", "pad")]
    begin, *ends = (None if token is None or token >= config["vocab_size"] else token for token in tokens)
    end = next((token for token in (ends[0], begin, ends[1]) if token is not None), None)
    return -1 if begin in (None, end) else begin, end


def _first_number(config: Config, key: str) -> int | None:
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


# Out


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
    run = None
    if source is not None and reading.has(source, schemas.VOCABULARY):
        run = reading.read_record(source, schemas.VOCABULARY, InputFormat)
    marks = _marks_of(module, run)
    files, weights = _family_files(module, marks) or _files_with_code(module, marks)
    note = ""
    if tokenizer := _tokenizer_files(source, run):
        files |= tokenizer
    elif source is not None:
        note = f"there is no tokenizer, because {'its task cuts no texts' if run else 'no run has recorded one'}"
        warnings.warn(note, RunWarning, stacklevel=2)
    files["README.md"] = _model_card(module, source, note)
    with (
        os_errors_as(mistakes.not_written, folder),
        Folder.create(folder.absolute().parent) as parent,
        parent.new_folder(folder.name) as unfinished,
    ):
        for name, content in files.items():
            unfinished.write(name, content)
        with unfinished.create_file(_WEIGHTS) as file:
            write_safetensors(file, weights, {"format": "pt"})
    return [folder / name for name in (*files, _WEIGHTS)]


def _tokenizer_files(source: Path | None, run: InputFormat | None) -> dict[str, str]:
    if run is not None:
        return tokenizer_files(run)
    if source is not None and reading.has(source, TOKENIZER):
        text = reading.read_bytes(source, TOKENIZER, _LARGEST_TOKENIZER).decode(errors="replace")
        return {TOKENIZER: text, CONFIG: json.dumps(OF_A_FILE) + "\n"}
    return {}


def _family_files(module: Architecture, marks: Config) -> tuple[dict[str, str], dict[str, Tensor]] | None:
    for family in families().values():
        if (statics := family.statics_of_module(module)) is None:
            continue
        config = family.config_of(statics, vocab_of(module))
        weights = dict(family.to_file(name, value, module, statics) for name, value in module.state_dict().items())
        return _config_file({**marks, **config}, weights), weights
    return None


def _files_with_code(module: Architecture, marks: Config) -> tuple[dict[str, str], dict[str, Tensor]]:
    if len(module.program.inputs) != 1 or target_of(module.program.graph) is None:
        raise mistakes.not_a_language_model(module.program.graph.name)
    name = "ArchlangForCausalLM"
    places = {"AutoConfig": f"{Path(_CODE).stem}.ArchlangConfig", "AutoModelForCausalLM": f"{Path(_CODE).stem}.{name}"}
    config = {"architectures": [name], "model_type": _OWN_TYPE, "vocab_size": vocab_of(module), "auto_map": places}
    config |= {"use_cache": False, "tie_word_embeddings": False, **marks}
    weights = {f"model.{key}": value for key, value in plain_weights(module).items()}
    text = plain_text(module)
    found = re.search(r"def load\(.*\) -> (\w+):", text)
    assert found is not None, "the file has a function that loads its weights"
    files = {
        **_program_of(module),
        **_config_file(config, weights),
        "plain_model.py": text,
        _CODE: _WRAPPER.read_text(encoding="utf-8").replace("MODEL", found[1]),
    }
    return files, weights


def _program_of(module: Architecture) -> dict[str, str]:
    origin = module.program.origin
    if origin is None or origin.program is None or stored_files(origin.program, origin.used):
        return {}
    settings = {path: value for path, value in origin.settings.items() if path.startswith("model.")}
    record = schemas.ModelRecord(model=origin.graph.name, settings={**settings, "model.vocab": vocab_of(module)})
    return {reading.RECIPE: origin.program.text, schemas.RUN: schemas.json_text(record)}


def _config_file(config: Config, weights: Mapping[str, Tensor]) -> dict[str, str]:
    config = {**config, "dtype": str(next(iter(weights.values())).dtype).removeprefix("torch.")}
    return {_CONFIG: json.dumps(config, indent=2) + "\n"}


def _marks_of(module: Architecture, run: InputFormat | None) -> Config:
    if run is not None and run.end is not None:
        first = run.answer.first
        return {"bos_token_id": run.end if first is None else int(first), "eos_token_id": run.end}
    origin = module.program.origin
    settings = origin.settings if origin is not None else {}
    end, begin = settings.get("task.end_token", -1), settings.get("task.begin_token", -1)
    if not isinstance(end, int) or not isinstance(begin, int) or end < 0:
        return {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    return {"bos_token_id": end if begin < 0 else begin, "eos_token_id": end}


def _model_card(module: Architecture, source: Path | None, note: str) -> str:
    origin = module.program.origin
    lines = [f"# {module.program.graph.name}", "", "A model that is a page of archlang."]
    if note:
        lines += ["", f"It reads token ids: {note}."]
    results = None if source is None else reading.read_results(source)
    for split, result in results.splits.items() if results is not None else ():
        measured = ", ".join(f"{metric} {value:.4g}" for metric, value in result.metrics.items() if value is not None)
        lines += ["", f"On {split}, {result.items} items: {measured}."]
    if origin is not None and origin.program is not None:
        lines += ["", *(f"    {line}".rstrip() for line in origin.program.text.splitlines())]
    return "\n".join(lines) + "\n"
