"""The input of an inspection: an item of a split, or text that the user types."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from archlang.backend.architecture import Architecture
from archlang.record.mistakes import RunError
from archlang.runs.evaluation import OpenedRun
from archlang.runs.inputs import InputFormat, Item
from archlang.runs.prediction import complete
from archlang.tasks.kit.split import Split
from archlang.train.data import Batch, Data


def split_item(run: OpenedRun, split: str, index: int) -> Batch:
    """Returns an item of a split as a batch of one.

    Raises:
        RunError: The task has no such split, or the split has fewer items."""
    items = run.load([split], None)[split]
    if not 0 <= index < len(items):
        raise RunError(f"the split `{split}` has no item {index}", f"its items are 0 to {len(items) - 1}")
    return item_batch(run.module, items, index)


def item_batch(module: Architecture, items: Split, index: int) -> Batch:
    """Returns an item of a split as a batch of one."""
    return Data(items.select([index]), next(module.parameters()).device).batch(np.asarray([0]))


def typed_input(module: Architecture, input_format: InputFormat, item: Item | Sequence[str]) -> Batch:
    """Returns an input as a batch of one, without a target.

    Marks that the task declares, such as `[B]`, are added if they are missing. If the last field is an answer with an
    end token, it may be omitted: the model decodes it.

    Raises:
        RunError: The input does not fit the model."""
    split = input_format.split([item], [""])
    batch = replace(item_batch(module, split, 0), form=input_format.form)
    if len(split.inputs) < len(input_format.fields):
        batch, _ = complete(module, input_format, batch)
    return batch
