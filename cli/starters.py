"""The files that `archlang new` writes. `NAME` is the user's name, and `Name` its class."""

_RECIPE = """
    task  flipflop[
        length = 16, test_length = [16, 32], train_size = 2_000, iid_size = 200, valid_size = 50, test_size = 50]
"""
_TRAIN = """
    train adamw[lr = 3e-3, batch = 32, steps = 200, every = 50]
"""

BLOCK = {
    "NAME.arch": f"""## Mixes each position with the one before it: y_i = x_i + w * x_(i-1).
extern block NAME(x: seq[n, d]) -> seq[n, d]
    reads x causal
    costs parameters = d
    python "NAME:Name"

model NAME_model[d = 32, steps = 4](x: tokens[n]) -> logits[n, vocab] {{
    h = embed[d](x)
    repeat steps {{
        h <- h + feedforward[2 * d](norm(NAME(h)))
    }}
    return linear[vocab](h)
}}

model plain_model[d = 32, steps = 4](x: tokens[n]) -> logits[n, vocab] {{
    h = embed[d](x)
    repeat steps {{
        h <- h + feedforward[2 * d](norm(h))
    }}
    return linear[vocab](h)
}}

recipe NAME {{{_RECIPE}    model NAME_model{_TRAIN}}}

recipe plain {{{_RECIPE}    model plain_model{_TRAIN}}}
""",
    "NAME.py": '''"""The Python of NAME.arch: a block that mixes each position with the one before it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Name(nn.Module):
    """y_i = x_i + w * x_(i-1), with x_0 = 0. The constructor takes the statics and the feature sizes of the inputs."""

    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor, *, mask_n: Tensor | None = None) -> Tensor:
        """Takes x [b, n, d], and mask_n [b, n], true where a position is real; None if all are."""
        before = nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        return x + self.weight * before
''',
    "test_NAME.py": '''"""The block NAME keeps the promises of its signature, and its models run."""

from pathlib import Path

import archlang
import torch
from archlang.contracts import hold, program_blocks
from archlang.plugins import Plugins

PROGRAM = Path(__file__).with_name("NAME.arch")
PYTHON = Path(__file__).with_name("NAME.py")


def test_the_block_keeps_its_signature() -> None:
    for block in program_blocks(PROGRAM):
        verdicts = hold(block, plugins=Plugins.read([PYTHON]))
        assert [verdict.mistake for verdict in verdicts if verdict.mistake is not None] == []


def test_the_model_computes_logits() -> None:
    module = archlang.load(PROGRAM, plugins=[PYTHON])
    assert module(torch.zeros(2, 5, dtype=torch.int64)).isfinite().all()
''',
}

TASK = {
    "NAME.arch": """## Is the number of ones even? The task's class is in NAME.py.
extern task NAME[train: range = 1..8, valid: range = 1..8, test: range = 9..16](x: tokens[n]) -> logits[classes]
    gives vocab = 2, classes = 2
    python "NAME:Name"

model counter[d = 16](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> lstm[d] |> last |> linear[classes]
}

recipe NAME {
    task  NAME
    model counter
    train adamw[lr = 1e-2, batch = 32, steps = 300, every = 100]
}
""",
    "NAME.py": '''"""The task of NAME.arch: is the number of ones in a sequence of bits even?"""

from dataclasses import dataclass

import numpy as np

from archlang.tasks import Kind, Ragged, Split, Unit
from archlang.types.statics import Interval

SHORT, LONG = Interval(1, 8), Interval(9, 16)


@dataclass(frozen=True)
class Name:
    """The statics of the signature, with the same defaults: the lengths of each split."""

    train: Interval = SHORT
    valid: Interval = SHORT
    test: Interval = LONG

    kind = Kind.CLASSIFICATION
    vocabulary = ("0", "1")
    class_names = ("even", "odd")
    breakdown = "length"
    in_distribution = ("train", "valid")
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    version = 1  # raise it if the items change for a reason outside of this file

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", "test")

    def generate(self, split: str, seed: int) -> Split:
        lengths: Interval = getattr(self, split)
        random = np.random.default_rng([seed, self.split_names().index(split)])
        rows = [random.integers(0, 2, random.integers(lengths.low, lengths.high + 1)).tolist() for _ in range(500)]
        x = Ragged.of(rows)
        return Split({"x": x}, np.array([sum(row) % 2 for row in rows]), groups={"length": x.lengths})
''',
    "test_NAME.py": '''"""The task NAME generates what it says."""

from pathlib import Path

import archlang

PROGRAM = Path(__file__).with_name("NAME.arch")
PYTHON = Path(__file__).with_name("NAME.py")


def test_the_class_of_an_item_is_the_parity_of_its_ones() -> None:
    loader = archlang.loader(PROGRAM, "test", batch=50, plugins=[PYTHON])
    for batch in loader:
        assert (batch.fields["x"].sum(1) % 2 == batch.targets).all()
''',
}

RECIPE = {
    "NAME.arch": f"""## A loop of attention and feedforward layers whose steps share their weights.
model NAME_model[d = 32, heads = 2, steps = 2](x: tokens[n]) -> logits[n, vocab] {{
    h = embed[d](x)
    repeat steps {{
        h <- h + attention[heads, causal = true, position = rotary](norm(h))
        h <- h + feedforward[2 * d](norm(h))
    }}
    return linear[vocab](norm(h))
}}

recipe NAME {{{_RECIPE}    model NAME_model{_TRAIN}}}

recipe shallow {{{_RECIPE}    model NAME_model[steps = 1]{_TRAIN}}}
""",
    "test_NAME.py": '''"""The program NAME.arch has no mistakes, and its model runs."""

from pathlib import Path

import archlang
import torch

PROGRAM = Path(__file__).with_name("NAME.arch")


def test_the_program_has_no_mistakes() -> None:
    assert archlang.check(PROGRAM) == ()


def test_the_model_computes_logits() -> None:
    module = archlang.load(PROGRAM)
    assert module(torch.zeros(2, 5, dtype=torch.int64)).isfinite().all()
''',
}

PROJECT = {
    **RECIPE,
    ".gitignore": "runs/\n__pycache__/\n",
    "README.md": """# NAME

`NAME.arch` has a model and two recipes that train it to recall the last bit that was written, with two steps and with
one. It learns the lengths that it is trained on in 200 steps, and recalls less in sequences twice as long.

```sh
archlang check NAME.arch
archlang train NAME.arch --out runs/NAME
archlang report runs/NAME
archlang table NAME.arch
pytest
```

`archlang play` edits the program beside its picture, and `archlang blocks` lists the blocks for models.
`archlang new block NAME_block` adds a block in Python.
""",
}

STARTERS = {"project": PROJECT, "recipe": RECIPE, "block": BLOCK, "task": TASK}


def starter(kind: str, name: str) -> dict[str, str]:
    """Returns the texts of the files of a new `project`, `recipe`, `block` or `task`, by their names."""
    class_name = "".join(word.capitalize() for word in name.split("_"))
    return {
        file.replace("NAME", name): text.replace("NAME", name).replace("Name", class_name)
        for file, text in STARTERS[kind].items()
    }
