"""Checks that a saved and loaded block and a copied block compute the same result."""

import copy

import torch
from torch import nn

from archlang.contracts import mistakes
from archlang.contracts.independence import changed
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken


def saving(subject: Subject) -> None:
    """Loads the weights into a block that was constructed with another seed, and copies the block.

    Raises:
        Broken: loading or copying raises an error, or the result differs."""
    fresh = subject.construct(subject.seed + 1).double().eval()
    try:
        fresh.load_state_dict(subject.root.state_dict())
    except (RuntimeError, KeyError) as error:
        raise _unsaved(subject, "the saved weights", f"do not load: {_first_line(error)}") from error
    _require_same(subject, fresh, "a block that loads the saved weights")
    try:
        copied = copy.deepcopy(subject.root)
    except Exception as error:  # the block may raise any error
        raise _unsaved(subject, "the block", f"cannot be copied: {_first_line(error)}") from error
    _require_same(subject, copied, "a copy")


def _require_same(subject: Subject, root: nn.Module, name: str) -> None:
    sample = subject.sample(subject.sizes()[-1])
    with torch.no_grad():
        change = changed(subject.evaluate(sample), subject.run(root, [sample])[0])
    if change:
        raise _unsaved(subject, name, f"differs: {change}")


def _unsaved(subject: Subject, copied: str, reason: str) -> Broken:
    facts = subject.facts([subject.sample(subject.sizes()[-1])], subject.sizes()[-1])
    return Broken(mistakes.unsaved(subject.case, copied, reason, facts))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
