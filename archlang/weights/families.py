"""The families of models that have a page, and how the config and the weights of each correspond to it, both ways."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from archlang.api.saving import without_places
from archlang.backend.architecture import Architecture
from archlang.elaborate.signature_check import load_file
from archlang.elaborate.static_arguments import evaluated, parameter_kind
from archlang.errors import ProgramError
from archlang.graph.graph import Graph
from archlang.graph.text import print_graph
from archlang.plan.model_graphs import model_graph
from archlang.plan.overrides import static_from_python, static_text
from archlang.plan.statics import model_statics
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.resolve.values import Bound
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from archlang.types.statics import StaticValue
from archlang.weights import mistakes

_FOLDER = Path(__file__).parent / "families"
# Keys that no page needs: the names of things, token ids, the initial weights, and what only training with
# `transformers` uses.
_UNUSED = re.compile(
    r"(architectures|model_type|_name_or_path|name_or_path|transformers_version|(torch_)?dtype|.*_token_id|use_cache|"
    r"initializer_\w+|.*dropout\w*|.*_pdrop|summary_\w+|gradient_checkpointing|id2label.*|label2id.*|"
    r"task_specific_params.*|problem_type|output_\w+|return_dict|chunk_size_feed_forward|_\w+|torchscript|transformers\.js_config.*)"
)
# The names of transformers 5 and of older files, and those of the rows.
_RENAMED = {
    "rope_parameters.rope_theta": "rope_theta", "rope_parameters.partial_rotary_factor": "rotary_pct",
    "rope_scaling.type": "rope_scaling.rope_type", "rotary_emb_base": "rope_theta",
    "rope_parameters.sliding_attention.rope_theta": "rope_local_base_freq",
    "local_rope_theta": "rope_local_base_freq", "global_rope_theta": "rope_theta",
}  # fmt: skip

_KINDS: Mapping[str, type] = {"int": int, "float": float, "bool": bool}

Config = Mapping[str, Any]  # Any: JSON
Statics = Mapping[str, StaticValue]
Weights = Mapping[str, Tensor]
Change = Callable[[Tensor, Statics], Tensor]


def _exchanged(weight: Tensor, outer: str, inner: str) -> Tensor:
    parts = weight.reshape(int(outer), int(inner), -1, *weight.shape[1:])
    return parts.transpose(0, 1).reshape(weight.shape)


# How a weight of a file becomes that of the page, and back.
_CHANGES: Mapping[str, tuple[Change, Change]] = {
    "transposed": (lambda weight, _: weight.T, lambda weight, _: weight.T),
    "plus_one": (lambda weight, _: weight + 1, lambda weight, _: weight - 1),
    "row": (lambda weight, _: weight[None], lambda weight, _: weight[0]),
    # From queries, keys and values of each head, one head after another, to all queries first.
    "by_head": (lambda weight, statics: _exchanged(weight, str(statics["heads"]), "3"),
                lambda weight, statics: _exchanged(weight, "3", str(statics["heads"]))),
}  # fmt: skip
# How a number of a config becomes a static, and back.
_FORMS: Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "inverse": (lambda x: 1 / x, lambda x: 1 / x), "inverse_root": (lambda x: x**-0.5, lambda x: x**-2.0),
    "half": (lambda x: x // 2, lambda x: 2 * x),
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """A row of `families.toml`, which explains the fields."""

    model_type: str
    architecture: str
    page: str
    statics: Mapping[str, str]
    only: Mapping[str, list[Any]]  # Any: JSON
    unused: list[str]
    given: Mapping[str, StaticValue]
    names: list[tuple[str, str]]
    changed: Mapping[str, str]
    repeated: list[str]
    left: list[str]
    layer: str
    is_causal: bool
    marks: Mapping[str, int]

    def statics_of(self, config: Config) -> dict[str, StaticValue]:
        """Returns the statics of the page that a config sets.

        Raises:
            WeightsError: the config says what the page cannot."""
        flat = dict(_flat(config))
        for key, value in flat.items():
            allowed = (None, False) if key not in self.only else (*self.only[key], None)
            is_known = key not in self.only and (
                any(key == name.rpartition(" ")[2] for name in self.statics.values())
                or any(fnmatch(key, unused) for unused in self.unused)
                or key == "vocab_size"
                or _UNUSED.fullmatch(key)
            )
            if not is_known and not any(_is_allowed(value, each) for each in allowed):
                raise mistakes.not_on_page(self.model_type, key, value, self.page, self.only.get(key, ()))
        chosen = dict(self.given)
        for parameter in self._model.item.signature.statics:
            form, _, key = self.statics.get(parameter.name, "").rpartition(" ")
            if (value := flat.get(key)) is None:
                continue
            kind = parameter_kind(parameter, self._model.file)
            value = _in_form_of_static(value, form, 0)
            if kind == "float" and type(value) is int:
                value = float(value)
            # A word of a stranger becomes a part of the program.
            is_word = kind == "symbol" and isinstance(value, str) and re.fullmatch(r"[a-z]\w*", value)
            if not is_word and type(value) is not _KINDS.get(kind or ""):
                raise mistakes.not_on_page(self.model_type, key, value, self.page)
            chosen[parameter.name] = static_from_python(value)
        return chosen

    @cached_property
    def _file(self) -> ResolvedFile:
        return load_file(_FOLDER / f"{self.page}.arch")

    @property
    def _model(self) -> Declaration:
        return self._file.own[self.page]

    def text(self, statics: Statics) -> str:
        """Returns the page with these statics as the defaults of its model."""
        source = self._file.program.source
        text = source.text
        for parameter in reversed(self._model.item.signature.statics):
            if parameter.name in statics and parameter.default is not None:
                span = parameter.default.span
                text = f"{text[: span.start]}{static_text(statics[parameter.name])}{text[span.end :]}"
        return format_program(parse(replace(source, text=text)))

    def all_statics(self, statics: Statics, vocab: int) -> dict[str, StaticValue]:
        """Returns every static of the page's model if these are given."""
        bounds = {name: Bound(evaluated(value), None) for name, value in statics.items()}
        return model_statics(self._model, bounds, {"vocab": vocab})

    def graph(self, statics: Statics, vocab: int) -> Graph:
        """Returns the graph of the page's model."""
        return model_graph(self._file, self.page, {**statics, "vocab": vocab})

    def config_of(self, statics: Statics, vocab: int) -> dict[str, Any]:  # Any: JSON
        """Returns the config of a page with these statics."""
        config: dict[str, Any] = {
            "architectures": [self.architecture], "model_type": self.model_type, "vocab_size": vocab, **self.marks,
        }  # fmt: skip
        for static, key in self.statics.items():
            form, _, key = key.rpartition(" ")
            value: object = statics[static]
            if not isinstance(value, int | float):
                value = str(value)
            elif value == 0 and value is not False:
                value = None  # zero turns a window or a cap off
            value = _in_form_of_static(value, form, 1)
            first, _, second = key.partition(".")
            (config.setdefault(first, {}) if second else config)[second or first] = value
        if config.get("rope_scaling", {}).get("rope_type") == "default":
            del config["rope_scaling"]  # or `transformers` warns of its other keys
        return config

    def statics_of_module(self, module: Architecture) -> dict[str, StaticValue] | None:
        """Returns the statics of the page's model if a module is this page with a config of the family; else None."""
        origin = module.program.origin
        if origin is None or origin.graph.name != self.page:
            return None
        own = {name.removeprefix("model."): value for name, value in origin.settings.items()}
        own = {name: value for name, value in own.items() if name in self.statics or name in self.given}
        try:
            statics = self.all_statics({**own, **self.given}, vocab_of(module))
            graph = self.graph(statics, vocab_of(module))
        except ProgramError:
            return None
        is_same = print_graph(without_places(graph)) == print_graph(without_places(origin.graph))
        return statics if is_same else None

    def to_page(self, name: str, weight: Tensor, module: Architecture, statics: Statics) -> tuple[str, Tensor]:
        """Returns the name and the value on the page of a weight in a file."""
        own = _renamed(name, self.names)
        if match := re.match(r"layers\.(\d+)\.", own):
            layers = self._layers(module)
            place = int(match[1])
            own = f"{layers[place]}.{own[match.end() :]}" if place < len(layers) else own
        return own, self._changed(own, weight, statics, 0)

    def to_file(self, own: str, weight: Tensor, module: Architecture, statics: Statics) -> tuple[str, Tensor]:
        """Returns the name and the value in a file of a weight of the page."""
        name = own
        for place, layer in enumerate(self._layers(module)):
            if own.startswith(f"{layer}."):
                name = f"layers.{place}{own.removeprefix(layer)}"
        return _renamed(name, [(here, there) for there, here in self.names]), self._changed(own, weight, statics, 1)

    def _layers(self, module: Architecture) -> list[str]:
        end = f".{self.layer}.weight"
        return [name.removesuffix(end) for name in module.state_dict() if self.layer and name.endswith(end)]

    def _changed(self, own: str, weight: Tensor, statics: Statics, direction: int) -> Tensor:
        for end, change in self.changed.items():
            if f".{own}".endswith(f".{end}"):
                return _CHANGES[change][direction](weight, statics)
        return weight


def vocab_of(module: Architecture) -> int:
    """Returns the number of tokens that a module reads; 0 if its first field has numbers."""
    first = module.program.graph.region.inputs[0].type
    return first.dims[-1].constant or 0 if first.name == "tokens" else 0


def _in_form_of_static(value: object, form: str, direction: int) -> object:
    if form == "hyphens" and isinstance(value, str):
        return value.replace(*("-_" if direction == 0 else "_-"))
    if form in _FORMS and isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return _plain_number(_FORMS[form][direction](value))
    return value


def _plain_number(value: float) -> int | float:
    return round(value) if abs(value - round(value)) < 1e-9 * max(1, abs(value)) else value


def _flat(config: Config, prefix: str = "") -> Iterator[tuple[str, Any]]:  # Any: JSON
    """Yields the values of a config by their dotted paths, which are those of the rows."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            path = f"{prefix}{key}".replace("full_attention.", "")
            path = _RENAMED.get(path, path)
            yield path.replace("rope_parameters.", "rope_scaling."), value


def _is_allowed(value: object, allowed: object) -> bool:
    """Whether a value of a config is one that a row allows. A list is also allowed if it repeats that of the row."""
    if isinstance(value, list) and isinstance(allowed, list):
        return value == (allowed * len(value))[: len(value)]
    return value == allowed


def _renamed(name: str, rows: list[tuple[str, str]]) -> str:
    for before, after in rows:
        pattern = re.escape(before).replace(r"\*", "(.+)").replace(r"\#", r"(\d+)")
        if match := re.fullmatch(pattern, name):
            return re.sub("[*#]", "{}", after).format(*match.groups())
    return name


@cache
def families() -> Mapping[str, Family]:
    """Returns the families by the `model_type` of their configs."""
    rows = tomllib.loads((_FOLDER / "families.toml").read_text(encoding="utf-8"))
    return {name: _family(name, _with_base(row, rows)) for name, row in rows.items()}


def _family(name: str, row: Mapping[str, Any]) -> Family:  # Any: TOML
    return Family(
        name, row["class"], row["page"], row["statics"], row.get("only", {}), row.get("unused", []),
        row.get("given", {}), [(there, here) for there, here in row["names"]], row.get("changed", {}),
        row.get("repeated", []), row.get("left", []), row.get("layer", ""), row.get("causal", True),
        row.get("marks", {}),
    )  # fmt: skip


def _with_base(row: dict[str, Any], rows: Mapping[str, dict[str, Any]]) -> dict[str, Any]:  # Any: TOML
    if "like" not in row:
        return row
    base = _with_base(rows[row["like"]], rows)
    return {key: _joined(row.get(key), base.get(key)) for key in {**base, **row}}


def _joined(own: Any, base: Any) -> Any:  # Any: TOML
    if isinstance(own, dict) and isinstance(base, dict):
        return {**base, **own}
    return [*own, *base] if isinstance(own, list) and isinstance(base, list) else base if own is None else own
