"""The families of models that have a page, and how the config and the weights of each correspond to it, both ways."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from archlang.elaborate.signature_check import load_file
from archlang.elaborate.static_arguments import evaluated, parameter_kind
from archlang.graph.graph import Graph
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
    r"task_specific_params.*|problem_type|output_\w+|return_dict|chunk_size_feed_forward|_\w+|torchscript)"
)
# The names of transformers 5 and of older files, and those of the rows.
_RENAMED = {
    "rope_parameters.rope_theta": "rope_theta", "rope_parameters.partial_rotary_factor": "rotary_pct",
    "rope_scaling.type": "rope_scaling.rope_type",
}  # fmt: skip

_KINDS: Mapping[str, type] = {"int": int, "float": float, "bool": bool}

Config = Mapping[str, Any]  # Any: JSON
Weights = Mapping[str, Tensor]
Change = Callable[[Tensor, Mapping[str, StaticValue]], Tensor]


def _transposed(weight: Tensor, _: Mapping[str, StaticValue]) -> Tensor:
    return weight.T.contiguous()


# How a weight of a file becomes that of the page, and back.
_CHANGES: Mapping[str, tuple[Change, Change]] = {"transposed": (_transposed, _transposed)}


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
    is_causal: bool

    def statics_of(self, config: Config) -> dict[str, StaticValue]:
        """Returns the statics of the page that a config sets.

        Raises:
            WeightsError: the config says what the page cannot."""
        flat = {_RENAMED.get(key, key): value for key, value in _flat(config)}
        flat = {key.replace("rope_parameters.", "rope_scaling."): value for key, value in flat.items()}
        for key, value in flat.items():
            allowed = (None, False) if key not in self.only else (*self.only[key], None)
            is_known = key in self.statics.values() or key in self.unused or key == "vocab_size"
            if not is_known and not _UNUSED.fullmatch(key) and value not in allowed:
                raise mistakes.not_on_page(self.model_type, key, value, self.page)
        chosen = dict(self.given)
        for parameter in self._model.item.signature.statics:
            key = self.statics.get(parameter.name, "")
            if (value := flat.get(key)) is None:
                continue
            kind = parameter_kind(parameter, self._model.file)
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

    def text(self, statics: Mapping[str, StaticValue]) -> str:
        """Returns the page with these statics as the defaults of its model."""
        source = self._file.program.source
        text = source.text
        for parameter in reversed(self._model.item.signature.statics):
            if parameter.name in statics and parameter.default is not None:
                span = parameter.default.span
                text = f"{text[: span.start]}{static_text(statics[parameter.name])}{text[span.end :]}"
        return format_program(parse(replace(source, text=text)))

    def all_statics(self, statics: Mapping[str, StaticValue], vocab: int) -> dict[str, StaticValue]:
        """Returns every static of the page's model if these are given."""
        bounds = {name: Bound(evaluated(value), None) for name, value in statics.items()}
        return model_statics(self._model, bounds, {"vocab": vocab})

    def graph(self, statics: Mapping[str, StaticValue], vocab: int) -> Graph:
        """Returns the graph of the page's model."""
        return model_graph(self._file, self.page, {**statics, "vocab": vocab})

    def config_of(self, statics: Mapping[str, StaticValue], vocab: int) -> dict[str, Any]:  # Any: JSON
        """Returns the config of a page with these statics."""
        config: dict[str, Any] = {
            "architectures": [self.architecture], "model_type": self.model_type, "vocab_size": vocab,
            "dtype": "float32", **{key: values[0] for key, values in self.only.items()},
        }  # fmt: skip
        for static, key in self.statics.items():
            value = statics[static]
            first, _, second = key.partition(".")
            if second:
                config.setdefault(first, {})[second] = value if isinstance(value, int | float) else str(value)
            else:
                config[key] = value
        return config

    def to_page(self, name: str, weight: Tensor, statics: Mapping[str, StaticValue]) -> tuple[str, Tensor]:
        """Returns the name and the value on the page of a weight in a file."""
        own = _renamed(name, self.names)
        return own, self._changed(own, weight, statics, 0)

    def to_file(self, own: str, weight: Tensor, statics: Mapping[str, StaticValue]) -> tuple[str, Tensor]:
        """Returns the name and the value in a file of a weight of the page."""
        return _renamed(own, [(here, there) for there, here in self.names]), self._changed(own, weight, statics, 1)

    def _changed(self, own: str, weight: Tensor, statics: Mapping[str, StaticValue], direction: int) -> Tensor:
        for end, change in self.changed.items():
            if f".{own}".endswith(f".{end}"):
                return _CHANGES[change][direction](weight, statics)
        return weight


def _flat(config: Config, prefix: str = "") -> Iterator[tuple[str, Any]]:  # Any: JSON
    """Yields the values of a config by their dotted paths; a list of equal words is one of them."""
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(item == value[0] for item in value):
            yield f"{prefix}{key}", value[0]
        else:
            yield f"{prefix}{key}", value


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
        row.get("repeated", []), row.get("causal", True),
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
