"""Damages to a run folder: what a broken disk, another program or a stranger may leave in it."""

# ruff: noqa: E501  # a line for each damage

import hashlib
import json
import operator
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

Apply = Callable[[Path], None]


@dataclass(frozen=True)
class Damage:
    """A damage to a run folder.

    name: what is damaged, then how
    apply: damages the run folder of a path"""

    name: str
    apply: Apply

    @property
    def file(self) -> str:
        """The file that is damaged."""
        return self.name.partition(" ")[0]


# Bytes of any file

FILES = (
    "run.json", "data.json", "results.json", "versions.json", "metrics.jsonl", "timings.jsonl", "graph.txt",
    "graph_at_test.txt", "recipe.arch", "vocabulary.json",
)  # fmt: skip
DEEP = "[" * 200_000

_CONTENTS: Mapping[str, bytes] = {
    "is not text": b"\xff\xfe",
    "is nested deeply": DEEP.encode(),
    "is empty": b"",
    "is a list": b"[]\n",
    "is null": b"null\n",
    "is an object without keys": b"{}\n",
    "is a huge number": b"9" * 10_000 + b"\n",
}


def _file(name: str) -> list[Damage]:
    def replaced_by(damage: bytes) -> Apply:
        return lambda run: _write(run / name, damage)

    def missing(run: Path) -> None:
        (run / name).unlink()

    def folder(run: Path) -> None:
        (run / name).unlink()
        (run / name).mkdir()

    def half(run: Path) -> None:
        content = (run / name).read_bytes()
        _write(run / name, content[: len(content) // 2])

    def flipped(run: Path) -> None:
        bits = bytearray((run / name).read_bytes())
        bits[len(bits) // 2] ^= 1
        _write(run / name, bytes(bits))

    return [
        *(Damage(f"{name} {how}", replaced_by(damage)) for how, damage in _CONTENTS.items()),
        Damage(f"{name} is missing", missing),
        Damage(f"{name} is a folder", folder),
        Damage(f"{name} is cut", half),
        Damage(f"{name} has a flipped bit", flipped),
    ]


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


# Values in JSON

_HUGE = 10**400
_ODD_VALUES: tuple[Any, ...] = (  # Any: JSON
    None, True, -1, _HUGE, 1e308, "", "x" * 100_000, [], {}, [[]], {"": {}}, "[/x]", "\x1b[31m", "\ud800",
)  # fmt: skip


def _places(value: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:  # Any: JSON
    """Returns the places of all values in a JSON value, but of a list its first item alone."""
    places = [place] if place else []
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    return places + [found for key, item in items for found in _places(item, (*place, key))]


def _json(name: str, example: Path) -> list[Damage]:
    def changed(place: tuple[str | int, ...], change: Callable[..., object], *more: Any) -> Apply:  # Any: JSON
        """Calls `change` with the object or the list that has the place, and with the last key of the place."""

        def apply(run: Path) -> None:
            value = inner = json.loads((run / name).read_text())
            *outer, last = place
            for key in outer:
                inner = inner[key]
            change(inner, last, *more)
            _write(run / name, json.dumps(value, ensure_ascii=True).encode())

        return apply

    def literal(place: tuple[str | int, ...], text: str) -> Apply:
        def apply(run: Path) -> None:
            changed(place, operator.setitem, "THE PLACE")(run)
            _write(run / name, (run / name).read_bytes().replace(b'"THE PLACE"', text.encode()))

        return apply

    places = _places(json.loads((example / name).read_text()))
    damages = []
    for place in places:
        where = f"{name} {'.'.join(map(str, place))}"
        damages.append(Damage(f"{where} is removed", changed(place, operator.delitem)))
        damages += [
            Damage(f"{where} is {json.dumps(odd)[:20]}", changed(place, operator.setitem, odd)) for odd in _ODD_VALUES
        ]
        damages += [Damage(f"{where} is {text[:20]}", literal(place, text)) for text in ("NaN", "Infinity", DEEP)]
    return damages


# Checkpoints


def checkpoint_of(run: Path) -> Path:
    """Returns the latest checkpoint of a run."""
    return max((run / "checkpoints").glob("step-*"))


def sign(checkpoint: Path) -> None:
    """Writes the manifest of a checkpoint anew, so that the digests of its files match."""
    digests = {
        name: hashlib.sha256((checkpoint / name).read_bytes()).hexdigest()
        for name in ("weights.safetensors", "state.pt")
    }
    (checkpoint / "manifest.json").write_text(json.dumps(digests))


def _signed(name: str, how: str, damage: Callable[[Path], None]) -> Damage:
    """A damage to a file of every checkpoint, whose manifests match it."""

    def apply(run: Path) -> None:
        for checkpoint in (run / "checkpoints").glob("step-*"):
            damage(checkpoint / name)
            sign(checkpoint)

    return Damage(f"{name} {how}", apply)


def _weights() -> list[Damage]:
    def changed(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
        def apply(path: Path) -> None:
            weights = safetensors.torch.load_file(path)
            change(weights)
            path.write_bytes(safetensors.torch.save(weights))

        return apply

    def header(text: bytes, size: int | None = None, rest: bytes = b"") -> Callable[[Path], None]:
        return lambda path: _write(path, struct.pack("<Q", len(text) if size is None else size) + text + rest)

    def tensor(dtype: str, shape: str, end: int) -> bytes:
        return f'{{"a":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{end}]}}}}'.encode()

    def cut(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:-3])

    def first(weights: dict[str, torch.Tensor]) -> str:
        return min(weights)

    kind = "weights.safetensors"
    return [
        _signed(kind, "is empty", lambda path: _write(path, b"")),
        _signed(kind, "is cut", cut),
        _signed(kind, "declares a huge header", header(b"{}", (1 << 63) - 1)),
        _signed(kind, "declares a huge tensor", header(tensor("F32", "[1000000,1000000,1000000]", 4_000_000))),
        _signed(kind, "has no weights", header(b"{}")),
        _signed(kind, "lacks a weight", changed(lambda weights: weights.pop(first(weights)) is None)),
        _signed(kind, "has another weight", changed(lambda weights: weights.update(more=torch.zeros(2)))),
        _signed(kind, "has a weight of another shape", changed(
            lambda weights: weights.update({first(weights): torch.zeros(3, 3, 3)}))),
        _signed(kind, "has a weight of an empty shape", changed(
            lambda weights: weights.update({first(weights): torch.zeros(0)}))),
        _signed(kind, "has weights of whole numbers", changed(
            lambda weights: weights.update({name: weight.long() for name, weight in weights.items()}))),
        _signed(kind, "has complex weights", changed(
            lambda weights: weights.update({name: weight.to(torch.complex64) for name, weight in weights.items()}))),
        _signed(kind, "has weights that are NaN", changed(
            lambda weights: weights.update({name: weight * torch.nan for name, weight in weights.items()}))),
    ]  # fmt: skip


class _Call:
    """An object whose pickle calls a function."""

    def __reduce__(self) -> tuple[Any, ...]:  # Any: the interface of pickle
        return os.system, ("touch hacked",)


def _state() -> list[Damage]:
    def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:  # Any: torch's own state
        def apply(path: Path) -> None:
            state = torch.load(path, weights_only=True)
            change(state)
            torch.save(state, path)

        return apply

    def value(key: str, odd: object) -> Damage:
        shown = repr(odd).replace("\n", " ")[:30]
        return _signed("state.pt", f"{key} is {shown}", changed(lambda state: state.__setitem__(key, odd)))

    def without(key: str) -> Damage:
        return _signed("state.pt", f"{key} is missing", changed(lambda state: state.pop(key)))

    def nested(how: str, change: Callable[[dict[str, Any]], Any]) -> Damage:  # Any: see above
        return _signed("state.pt", how, changed(lambda state: change(state) and None))

    def first_moment(state: dict[str, Any]) -> dict[str, Any]:  # Any: see above
        moments: dict[str, Any] = next(iter(state["optimizer"]["state"].values()))  # Any: see above
        return moments

    deep: list[Any] = []  # Any: nested lists
    for _ in range(150):
        deep = [deep]
    line = {"step": 4, "split": "valid", "loss": 1.0, "metrics": {"accuracy": 0.5}}
    keys = (
        "optimizer", "precision", "random", "epoch", "position", "micro", "looked", "history", "sizes",
    )  # fmt: skip
    odd_values: tuple[object, ...] = (
        None, -1, 10**30, 1 << 62, 1.5, float("nan"), "x", [], {}, {"x": 1}, torch.zeros(2), [[1]],
    )  # fmt: skip
    damages = [without(key) for key in keys] + [value(key, odd) for key in keys for odd in odd_values]
    damages += [
        value("micro", 0),
        value("history", [{"step": -1}]),
        value("history", [{**line, "step": 10**30}]),
        value("history", [{**line, "split": "\x1b[31m[/x]"}]),
        value("history", [{**line, "metrics": {"accuracy": "high"}}]),
        value("history", [{**line, "step": 1}] * 100_000),
        value("sizes", {"metrics.jsonl": -5}),
        value("sizes", {"metrics.jsonl": 10**30}),
        value("sizes", {"metrics.jsonl": 1 << 40}),
        value("sizes", {"../../victim": 0}),
        value("optimizer", {"state": []}),
        value("optimizer", {"state": {0: []}}),
        value("optimizer", {"state": {0: {"step": "x"}}}),
        value("optimizer", {"state": {99: {"step": torch.zeros(())}}}),
        value("optimizer", {"state": {"a": {"step": torch.zeros(())}}}),
        value("random", {"python": [3, [1], None], "numpy": [], "torch": torch.zeros(3)}),
        nested("random has no torch", lambda state: state["random"].pop("torch") is None),
        nested("random of torch is short", lambda state: state["random"].update(torch=torch.zeros(4, dtype=torch.uint8))),
        nested("random of Python is text", lambda state: state["random"].update(python="abc")),
        nested("random of numpy is of another kind", lambda state: state["random"].update(numpy=["PCG64", [1], 0, 0, 0.0])),
        nested("random of numpy is behind its end", lambda state: state["random"].update(numpy=["MT19937", [1] * 624, 10**9, 0, 0.0])),
        nested("optimizer has a moment of another shape", lambda state: first_moment(state).update(exp_avg=torch.zeros(3, 3, 3))),
        nested("optimizer has a moment that is nested deeply", lambda state: first_moment(state).update(exp_avg=deep[:1])),
        nested("optimizer lacks a moment", lambda state: first_moment(state).pop("exp_avg") is None),
        nested("optimizer has steps", lambda state: first_moment(state).update(step=torch.zeros(3))),
        nested("optimizer lacks a weight", lambda state: state["optimizer"]["state"].popitem() is None),
        _signed("state.pt", "is empty", lambda path: _write(path, b"")),
        _signed("state.pt", "is no pickle", lambda path: _write(path, b"\xff" * 1000)),
        _signed("state.pt", "is a list", lambda path: torch.save([1], path)),
        _signed("state.pt", "is a tensor", lambda path: torch.save(torch.zeros(2), path)),
        _signed("state.pt", "calls a function", lambda path: torch.save({"epoch": _Call()}, path)),
        _signed("state.pt", "holds a module", lambda path: torch.save(torch.nn.Linear(2, 2), path)),
        _signed("state.pt", "is cut", lambda path: _write(path, path.read_bytes()[:-100])),
        _signed("state.pt", "begins with another format", lambda path: _write(path, b"\x80" + path.read_bytes())),
        _signed("state.pt", "is a pickle of protocol 0", lambda path: _write(path, b"cos\nsystem\n(S'touch hacked'\ntR.")),
    ]  # fmt: skip
    return damages


def _folders() -> list[Damage]:
    def odd_name(name: str) -> Apply:
        def apply(run: Path) -> None:
            checkpoint_of(run).rename(run / "checkpoints" / name)

        return apply

    def no_manifest(run: Path) -> None:
        (checkpoint_of(run) / "manifest.json").unlink()

    def manifest(content: bytes) -> Apply:
        def apply(run: Path) -> None:
            for checkpoint in (run / "checkpoints").glob("step-*"):
                _write(checkpoint / "manifest.json", content)

        return apply

    return [
        Damage("checkpoints has a step that is huge", odd_name(f"step-{10**30}")),
        Damage("checkpoints has a step that int does not read", odd_name("step-" + "9" * 200)),
        Damage("checkpoints has a step of odd digits", odd_name("step-²")),
        Damage("checkpoints has a step of other digits", odd_name("step-٣")),
        Damage("checkpoints has a step zero", odd_name("step-00000000")),
        Damage("checkpoints has another step", odd_name("step-00000099")),
        Damage("manifest.json is missing", no_manifest),
        *(Damage(f"manifest.json {how}", manifest(damage)) for how, damage in _CONTENTS.items()),
    ]


# Graphs


def _graph(name: str, example: Path) -> list[Damage]:
    text = (example / name).read_text()

    def replaced(how: str, old: str, new: str) -> Damage:
        assert old in text, f"{name} has no {old}"

        def apply(run: Path) -> None:
            _write(run / name, (run / name).read_text().replace(old, new).encode())

        return Damage(f"{name} {how}", apply)

    def of_graph(how: str, content: str) -> Damage:
        return Damage(f"{name} {how}", lambda run: _write(run / name, content.encode()))

    class_name = text.partition("archlang.blocks.")[2].partition('"')[0]
    nested = "\n".join(f"%r{level}: () = apply() {{" for level in range(3000))
    return [
        of_graph("is 5 MB of comments", "graph g\n" + "# more\n" * 800_000),
        of_graph("is nested by loops", f"graph g\n{nested}\n{'return }' * 3000}\nreturn"),
        of_graph("has a nested static", f'graph g\ninstance @a: b[x = {"(" * 50_000}{")" * 50_000}] "c"\nreturn'),
        of_graph("has a long sum as size", f"graph g\ninput %0: tokens[n, {'a + ' * 20_000} a]\nreturn %0"),
        of_graph("returns its input", "graph g\ninput %x x: tokens[n, 8]\nreturn %x\n"),
        replaced("imports os", f"archlang.blocks.{class_name}", "os:system"),
        replaced("names a class of torch", f"archlang.blocks.{class_name}", "archlang.blocks.feedforward:nn"),
        replaced("names a function of archlang", f"archlang.blocks.{class_name}", "archlang.cli.main:main"),
        replaced("names a missing module", f"archlang.blocks.{class_name}", "archlang.blocks.nothing:Nothing"),
        replaced("uses an unknown instance", "call @", "call @other."),
        replaced("uses an unknown value", "return %", "return %other."),
        replaced("has another operation", "= call", "= bake"),
        replaced("has other widths", "= 8", "= 7"),
        replaced("has negative widths", "= 8", "= -8"),
        replaced("has widths that are huge", "= 8", "= 4000000000"),
        replaced("has another vocabulary", "tokens[n", "tokens[m"),
    ]  # fmt: skip


def damages_of(example: Path) -> list[Damage]:
    """Returns every damage to a copy of the finished run `example`."""
    damages = [damage for name in FILES for damage in _file(name)]
    damages += [
        damage
        for name in ("run.json", "data.json", "vocabulary.json", "results.json")
        for damage in _json(name, example)
    ]
    damages += [*_folders(), *_weights(), *_state()]
    return damages + [damage for name in ("graph.txt", "graph_at_test.txt") for damage in _graph(name, example)]
