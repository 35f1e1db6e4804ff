"""The input of an inspection: an item of a split, or text that the user types."""

from collections.abc import Sequence

import numpy as np
import torch

from archlang.backend.decode.greedy import target_of
from archlang.diagnostics.names import listed, suggest
from archlang.record.mistakes import RunError
from archlang.runs.evaluation import OpenedRun
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import DecodableTask, Kind, Task
from archlang.train.data import Batch, Data

# From this many items `_with_marks` infers the tokens at which every item of a split begins and ends.
_SAMPLED_ITEMS = 100
_CHOOSE_ITEM = "choose an item: `--split test --index 0`"


def split_item(run: OpenedRun, split: str, index: int) -> Batch:
    """Returns an item of a split as a batch of one.

    Raises:
        RunError: The task has no such split, or the split has fewer items."""
    items = run.load([split], None)[split]
    if not 0 <= index < len(items):
        raise RunError(f"the split `{split}` has no item {index}", f"its items are 0 to {len(items) - 1}")
    return Data(items.select([index]), run.device).batch(np.asarray([0]))


def typed_input(run: OpenedRun, texts: Sequence[str]) -> Batch:
    """Returns typed text as a batch of one, without a target.

    Tokens that every item of the task has at its ends, such as `[B]`, are added if they are missing. If the last field
    is an answer with an end token, it may be omitted: the model decodes it.

    Args:
        texts: A text for each field of the model, with tokens separated by spaces.

    Raises:
        RunError: A token is not in the vocabulary, the number of texts is not that of the fields, or the task has
            fields that cannot be typed."""
    task = run.task
    if task.kind is Kind.SPANS:
        raise RunError("the spans of this task cannot be typed", _CHOOSE_ITEM)
    example_split = next(name for name in task.split_names() if name != "train")
    split = run.load([example_split], None)[example_split]
    names = list(split.inputs)
    if any(ragged.values.ndim == 2 for ragged in split.inputs.values()):
        raise RunError("this task has a field of numbers, which cannot be typed", _CHOOSE_ITEM)
    decoded: int | None = None
    if isinstance(task, DecodableTask) and task.end is not None and 1 < len(names) == len(texts) + 1:
        decoded = target_of(run.module.program.graph)
    if len(texts) != len(names) and decoded is None:
        raise RunError(
            f"the model reads {len(names)} {'field' if len(names) == 1 else 'fields'}, and {len(texts)} were given",
            f"give one `--input` for each of {listed(names)}",
        )
    typed = [name for index, name in enumerate(names) if index != decoded]
    tokens = {name: _tokens(task, split, name, text) for name, text in zip(typed, texts, strict=True)}
    fields = {name: torch.tensor([ids], device=run.device) for name, ids in tokens.items()}
    if decoded is not None:
        assert isinstance(task, DecodableTask)
        longest = 2 * int(max(ragged.lengths.max(initial=1) for ragged in split.inputs.values()))
        answer = run.module.decode(*fields.values(), begin=task.begin, end=task.end, limit=longest)
        begin = torch.full((1, 1), task.begin, device=run.device)
        fields[names[decoded]] = torch.cat([begin, answer.tokens[:, : int(answer.lengths[0])]], 1)
    fields = {name: fields[name] for name in names}
    lengths = {name: torch.tensor([field.shape[1]], device=run.device) for name, field in fields.items()}
    last = fields[names[-1]]
    target_shape = (1,) if split.form is Form.CLASSES else last.shape
    scored = None if split.form is Form.CLASSES else torch.ones_like(last, dtype=torch.bool)
    return Batch(
        torch.tensor([-1], device=run.device), tuple(fields.values()), lengths,
        torch.full(target_shape, -1, device=run.device), scored, split.form,
    )  # fmt: skip


def field_words(task: Task, field: str) -> Sequence[str]:
    """Returns the text of each token of a field. The field `source` may have its own vocabulary."""
    words: Sequence[str] = getattr(task, "words", task.vocabulary) if field == "source" else task.vocabulary
    return words


def _tokens(task: Task, split: Split, field: str, text: str) -> list[int]:
    """Returns the ids of the words of a text. A word that is no token is split into characters."""
    vocabulary = field_words(task, field)
    ids = {word: index for index, word in enumerate(vocabulary)}
    tokens: list[int] = []
    for word in text.split():
        if word in ids:
            tokens.append(ids[word])
        elif all(character in ids for character in word):
            tokens.extend(ids[character] for character in word)
        else:
            first_tokens = "its first tokens are " + " ".join(vocabulary[:12])
            raise RunError(f"`{word}` is not a token of the task", suggest(word, vocabulary, first_tokens))
    if not tokens:
        raise RunError("the input has no tokens", "type tokens separated by spaces")
    return _with_marks(tokens, split, field)


def _with_marks(tokens: list[int], split: Split, field: str) -> list[int]:
    """Adds the tokens at which every item of the field begins and ends."""
    ragged = split.inputs[field]
    items = [ragged[index] for index in range(min(_SAMPLED_ITEMS, len(split))) if len(ragged[index])]
    if len(items) < 2:
        return tokens
    first, last = {int(item[0]) for item in items}, {int(item[-1]) for item in items}
    if len(first) == 1 and tokens[0] not in first:
        tokens = [*first, *tokens]
    if len(last) == 1 and tokens[-1] not in last:
        tokens = [*tokens, *last]
    return tokens
