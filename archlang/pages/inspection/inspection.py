"""A trained model with one input: what it answers, and everything that was recorded on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from archlang.backend.decode.greedy import target_of
from archlang.backend.runtime.recording import recording
from archlang.diagnostics import ArchlangError
from archlang.diagnostics.names import listed, suggest
from archlang.pages.inspection.heatmap import Heatmap
from archlang.pages.inspection.panels import Field, panels
from archlang.plan.from_file import plan_recipe
from archlang.record.mistakes import RunError
from archlang.runs.evaluation import OpenedRun
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import DecodableTask, Kind, Task
from archlang.train.data import Batch, Data
from archlang.train.generators import fixed_randomness
from archlang.train.predictions import forward, predict, span_logits

# So many items are looked at to see by which marks every one begins and ends.
_LOOKED_AT = 100


@dataclass(frozen=True)
class Answer:
    """One thing that was asked for: where, what the model says and how sure it is, and what is right, if known."""

    place: str
    predicted: str
    probability: float
    target: str | None

    @property
    def right(self) -> bool | None:
        return None if self.target is None else self.predicted == self.target


@dataclass(frozen=True, eq=False)
class Inspection:
    """What one input did."""

    title: str
    model: str
    fields: Mapping[str, tuple[str, ...]]
    answers: tuple[Answer, ...]
    panels: tuple[Heatmap, ...]
    mean_depth: float | None

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "title": self.title,
            "model": self.model,
            "fields": {name: list(texts) for name, texts in self.fields.items()},
            "answers": [{**vars(one), "right": one.right} for one in self.answers],
            "mean_depth": self.mean_depth,
            "panels": [one.to_json() for one in self.panels],
        }


# What is looked at


def item_of(run: OpenedRun, split: str, index: int) -> Batch:
    """An item of a split.

    Raises:
        RunError: there is no such split, or it has fewer items."""
    items = run.load([split], None)[split]
    if not 0 <= index < len(items):
        raise RunError(f"the split `{split}` has no item {index}", f"its items are 0 to {len(items) - 1}")
    return Data(items.select([index]), run.device).batch(np.asarray([0]))


def own_input(run: OpenedRun, texts: Sequence[str]) -> Batch:
    """An input as it was typed: a text for each field, tokens separated by spaces. Marks that every item of the task
    has at its ends need not be typed. The last field of a task whose answers are written may be left out: the model
    then writes it.

    Raises:
        RunError: a token is not in the vocabulary, or the fields are not as many as the model's."""
    task = run.task
    if task.kind is Kind.SPANS:
        raise RunError(
            "what is marked in a text of this task cannot be typed", "choose an item: `--split test --index 0`"
        )
    split = run.load([_example_split(task)], None)[_example_split(task)]
    names = list(split.inputs)
    written = target_of(run.module.program.graph) if isinstance(task, DecodableTask) else None
    if any(ragged.values.ndim == 2 for ragged in split.inputs.values()):
        raise RunError(
            "a field of this task is numbers, which cannot be typed", "choose an item: `--split test --index 0`"
        )
    ends = isinstance(task, DecodableTask) and task.end is not None
    writes = ends and written is not None and len(names) > 1 and len(texts) == len(names) - 1
    if len(texts) != len(names) and not writes:
        raise RunError(
            f"the model reads {len(names)} {'field' if len(names) == 1 else 'fields'}, and {len(texts)} were given",
            f"give one `--input` for each of {listed(names)}",
        )
    given = [name for index, name in enumerate(names) if not (writes and index == written)]
    tokens = {name: _tokens(task, split, name, text) for name, text in zip(given, texts, strict=True)}
    fields = {name: torch.tensor([ids], device=run.device) for name, ids in tokens.items()}
    if writes:
        assert isinstance(task, DecodableTask)
        assert written is not None
        answer = run.module.decode(*fields.values(), begin=task.begin, end=task.end, limit=_longest(split))
        begin = torch.full((1, 1), task.begin, device=run.device)
        fields[names[written]] = torch.cat([begin, answer.tokens[:, : int(answer.lengths[0])]], 1)
        fields = {name: fields[name] for name in names}
    lengths = {name: torch.tensor([field.shape[1]], device=run.device) for name, field in fields.items()}
    last = list(fields.values())[-1]
    shape = (1,) if split.form is Form.CLASSES else last.shape
    scored = None if split.form is Form.CLASSES else torch.ones_like(last, dtype=torch.bool)
    return Batch(
        torch.tensor([-1], device=run.device), tuple(fields.values()), lengths,
        torch.full(shape, -1, device=run.device), scored, split.form,
    )  # fmt: skip


def _example_split(task: Task) -> str:
    return next(name for name in task.split_names() if name != "train")


def _longest(split: Split) -> int:
    """So long may an answer become that does not end: twice what the task shows."""
    return 2 * int(max(ragged.lengths.max(initial=1) for ragged in split.inputs.values()))


def _tokens(task: Task, split: Split, name: str, text: str) -> list[int]:
    vocabulary = _words(task, name)
    ids = {word: index for index, word in enumerate(vocabulary)}
    found: list[int] = []
    for word in text.split():
        if word in ids:
            found.append(ids[word])
        elif all(sign in ids for sign in word):
            found.extend(ids[sign] for sign in word)
        else:
            first = "its first tokens are " + " ".join(vocabulary[:12])
            raise RunError(f"`{word}` is no token of the task", suggest(word, vocabulary, first))
    if not found:
        raise RunError("the input has no tokens", "write some, separated by spaces")
    ragged = split.inputs[name]
    some = [ragged[i] for i in range(min(_LOOKED_AT, len(split))) if len(ragged[i])]
    begins, finishes = {int(one[0]) for one in some}, {int(one[-1]) for one in some}
    if len(some) > 1 and len(begins) == 1 and found[0] not in begins:
        found = [*begins, *found]
    if len(some) > 1 and len(finishes) == 1 and found[-1] not in finishes:
        found = [*found, *finishes]
    return found


def _words(task: Task, field: str) -> Sequence[str]:
    words: Sequence[str] = getattr(task, "words", task.vocabulary) if field == "source" else task.vocabulary
    return words


# What it did


def inspect(run: OpenedRun, batch: Batch, title: str) -> Inspection:
    """Runs the model on a batch of one item, and records."""
    module = run.module.eval()
    names = list(batch.lengths)
    texts = {
        name: _texts(_words(run.task, name), batch.fields[index], int(batch.lengths[name][0]))
        for index, name in enumerate(names)
    }
    graph = module.program.graph
    inputs = graph.region.inputs
    fields = [
        Field(value.name, value.type.lengths[0], texts[name])
        for value, name in zip(inputs, names, strict=True)
        if value.type.lengths
    ]
    with torch.no_grad(), fixed_randomness(run.device), recording(module) as found:
        logits = forward(module, batch)
    depth = module.mean_depth
    return Inspection(
        title,
        graph.name,
        texts,
        tuple(_answers(run.task, logits, batch, texts)),
        panels(found.moments, fields, _lines(run)),
        None if depth is None else float(depth),
    )


def _lines(run: OpenedRun) -> dict[str, str]:
    """The line of the program that each block stands in, as far as this version of archlang still reads it so."""
    try:
        graph = plan_recipe(run.folder / "recipe.arch", run.recipe).at_test
    except (ArchlangError, OSError):
        return {}
    return {
        path: f"{Path(one.span.source.path).name}:{one.span.line}: {one.span.text.splitlines()[0].strip()}"
        for path, one in graph.instances.items()
        if one.span is not None
    }


def _texts(words: Sequence[str], field: Tensor, length: int) -> tuple[str, ...]:
    if field.dim() == 3:
        return tuple("·" for _ in range(length))
    return tuple(words[token] if token < len(words) else str(token) for token in field[0, :length].tolist())


def _answers(task: Task, logits: Tensor, batch: Batch, fields: Mapping[str, tuple[str, ...]]) -> list[Answer]:
    """What was asked for, one by one. The target -1 is not known."""
    chosen, targets = predict(logits, batch)[0], batch.targets[0]
    if batch.form is Form.SPANS:
        where = span_logits(logits, batch).softmax(1)[0]
        pairs = [(int(one), int(other)) for one, other in zip(chosen, targets, strict=True)]
        return [
            Answer(name, str(place), float(where[place, i]), _known(target, str(target)))
            for i, (name, (place, target)) in enumerate(zip(("begins at", "ends at"), pairs, strict=True))
        ]
    if batch.form is Form.CLASSES:
        share = logits.float().softmax(-1)[0]
        return [Answer("", f"class {int(chosen)}", float(share[chosen]), _known(int(targets), f"class {int(targets)}"))]
    assert batch.scored is not None
    words = task.vocabulary
    shown = next((texts for texts in reversed(list(fields.values())) if len(texts) >= int(batch.scored[0].sum())), ())
    answers = []
    for place in batch.scored[0].nonzero()[:, 0].tolist():
        at = f"{place} {shown[place]}" if place < len(shown) else str(place)
        if batch.form is Form.SETS:
            share = logits.float().sigmoid()[0, place]
            sure = float(torch.where(chosen[place], share, 1 - share).min())
            right = None if int(targets.flatten()[0]) < 0 else _set(words, targets[place])
            answers.append(Answer(at, _set(words, chosen[place]), sure, right))
            continue
        said, wanted = int(chosen[place]), int(targets[place])
        named = words if task.kind is not Kind.TAGGING else ()  # what tags stand for is known to the task alone
        share = logits.float()[0, place].softmax(-1)
        answers.append(Answer(at, _word(named, said), float(share[said]), _known(wanted, _word(named, wanted))))
    return answers


def _word(words: Sequence[str], token: int) -> str:
    return words[token] if 0 <= token < len(words) else str(token)


def _known(target: int, text: str) -> str | None:
    return None if target < 0 else text


def _set(words: Sequence[str], members: Tensor) -> str:
    return "{" + ",".join(words[k] for k in members.bool().nonzero()[:, 0].tolist()) + "}"
