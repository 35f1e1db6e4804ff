"""PANM on copy, compiled from the library, against a step-by-step implementation by hand."""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from benchmarks.comparison import ModelPair, cases_of, share_weights
from benchmarks.handwritten_panm import Panm
from benchmarks.measure import Case, Group, Setting

_FILE = Path(archlang.__file__).parent / "blocks" / "models" / "panm.arch"
VOCAB, BATCH, LENGTH = 12, 128, 9
_TINY_BATCH = 2
_MEMORY = "recurrent_panm.pointer_memory."
# From archlang's names to the handwritten module's.
NAMES = {
    "recurrent_panm.gru_from_zero.gru.": "ahead.",
    "recurrent_panm.gru_from_zero_2.gru.": "back.",
    f"{_MEMORY}relational_read.read.pointed.": "pointed.",
    f"{_MEMORY}relational_read.read.": "related.",
    f"{_MEMORY}attentive_gru.": "",
    "linear.": "classify.",
    **{
        f"{_MEMORY}{ours}": f"units.{i}.{hand}"
        for i in range(2)
        for ours, hand in {
            f"pointer_unit.pointers.{i}.cell.": "cell.",
            f"pointer_unit.pointers.{i}.score.state_map.": "state_map.",
            f"pointer_unit.pointers.{i}.score.address_map.": "address_map.",
            f"pointer_unit.pointers.{i}.score.": "attention.",
            f"dereference.value.{i}.": "attention.value.",
            f"dereference.output.{i}.": "attention.output.",
        }.items()
    },
}


def pair() -> tuple[nn.Module, Panm]:
    """Returns both modules with equal weights."""
    torch.manual_seed(0)
    theirs = Panm(VOCAB)
    ours = archlang.load(_FILE, "panm_bigru", vocab=VOCAB)
    share_weights(ours, theirs, NAMES)
    return ours, theirs


def batch(length: int = LENGTH, size: int = BATCH) -> tuple[Tensor, Tensor]:
    """Returns a batch of copy: source and target."""
    torch.manual_seed(1)
    symbols = torch.randint(0, 10, (size, length))
    ends = torch.full((size, 1), 1)
    return torch.cat((11 * ends, symbols, 10 * ends), 1), symbols


def _model_pair(setting: Setting) -> ModelPair:
    source, target = (tensor.to(setting.device) for tensor in batch(size=_TINY_BATCH if setting.tiny else BATCH))
    return ModelPair(*pair(), lambda module: F.cross_entropy(module(source, target).flatten(0, 1), target.flatten()))


MODEL_PAIRS = {"PANM, copy": _model_pair}


def _cases(setting: Setting) -> Iterator[Case]:
    return cases_of(MODEL_PAIRS, setting, "step by step, by hand")


GROUP = Group("panm", f"Batch {BATCH}, {LENGTH} symbols, width 128, 2 pointers.", _cases)
