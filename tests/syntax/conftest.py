"""Programs that the tests of the syntax share."""

from pathlib import Path

import pytest

import archlang

# Every construct of the language once, in the one layout.
EVERYTHING = """\
## What the file is about.

use archlang.models.panm
use "./mine.arch" as mine

# Kept for comparison.
## The layer.
## It has two lines of documentation.
block layer[heads: int, ff: int = 4 * heads, attend: block = attention](h: seq[n, d], kv: seq[m, d] = h) -> seq[n, d]
    where d % heads == 0, heads in [1, 2] or not heads > 8 and true {
    let read = attend[heads]
    a = norm(h + read(h, kv))   # attention
    u = feedforward[ff](a)      # and what follows it

    # The gate is closed at first.
    if heads == 1 { u2 = a } else if ff <= 3 { u2 = u } else { u2 = -u }
    return (a + u2) * (1 - u) when heads != 2 else a |> mine.gate[bias = -3, 7] |> sigmoid
    # Nothing follows.
}

model tagger[d = 64, depth = 6, variant = graves](x: tokens[n], y: tokens[m]) -> logits[n, classes] {
    h = embed[d](x)
    s = learned[10, d]()
    repeat depth { h <- layer[4](h) }
    stack depth - 1 { h <- layer[heads = 4](h) }
    repeat 20 halting h as mean by token_halt[threshold = 0.999] {
        a = norm(h)
        h <- a + mean
    }
    repeat 20 halting h by act[variant] { h <- norm(h) }
    z = scan c in chunks[10](h) carry s, h {
        s <- s + c
        emit c
    }
    scan c in chunks[size = 10](h) {
        emit c / 2
    }
    return linear[classes](z)
}

extern block attention[heads: int, position: symbol = none, causal: bool = false](
    q: seq[n, d], kv: seq[m, e] = q) -> seq[n, d]
    where position in [none, xpos]
    reads q pointwise, kv causal when causal else full
    depends on padding when position == xpos or causal
    depends on batch
    random in training when heads > 1
    stops gradients
    python "mine.attention:Attention"

extern block join(xs: data[d]...) -> data[sum(d)] reads xs pointwise pure python "mine.join:Join"

extern block halt[causal: bool = false](state: seq[n, d]) -> prob[n] when causal else prob python "mine.halt:Halt"

extern task copy[train: range = 1..9](x: tokens[n]) -> logits[n, vocab] gives vocab = 21 causal python "mine.copy:Copy"

extern settings training[batch: int = 32] where batch > 0

extern optimizer sgd[lr: float = 1e-3] where lr > 0 with training python "torch.optim:SGD"

recipe quick {
    task  copy[train = 1..9]   # short ones
    model tagger
    train sgd[lr = 1.5e-4, steps = 30_000, select = valid.accuracy]
    test  model.depth = 24
    vary  task.train in [1..5, 1..9], seed in 1..5
    claim test.accuracy[20] = 0.84 ± 0.01 at task.train = 1..9 from "PANM, Table 7"
    # More to come.
}

recipe deep from quick {
    model tagger[depth = 12]
    claim median test.accuracy = 0.9 from "PANM, Table 8"
}

recipe slow from deep { train sgd[steps = 60_000] }

table lengths from "PANM, Table 7" {
    row    "Quick" quick at model.d = 32 best of model.depth, seed claims 1.00 ± 0.00, -, 0.5, 0.25 from "PANM, Table 9"
    row    "Deep" deep claims median 1.00, 0.98 ± 0.10, -0.5, -
    row    "Prior work" claims 0.9, 0.8, 0.7, 0.6
    row    "DNC" absent "it has no page" claims 0.9, 0.8, 0.7, 0.6
    column "20" test.accuracy[20] at seed = 1 best of task.train
    columns "Longer" test.accuracy at test.length in [40, 80]
    columns valid.accuracy at model.d in [16], seed = 3 best of task.train
    column "Both" average of mine.lengths
    column "Forty" average of mine.lengths at test.length = 40, task.order = forward
}

# The end.
"""


@pytest.fixture
def everything() -> str:
    return EVERYTHING


def _programs() -> list[Path]:
    package = Path(archlang.__file__).parent
    folders = [package / name for name in ("blocks", "tasks", "train", "recipes")]
    folders.append(Path(__file__).parent.parent / "corpus" / "good")
    return sorted(file for folder in folders for file in folder.rglob("*.arch"))


@pytest.fixture(params=_programs(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def program_file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path
