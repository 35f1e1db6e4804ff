"""The universal relative Transformer on SCAN, compiled from the library, against the same model by hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from archlang.backend import Architecture
from archlang.backend.decode.greedy import decode
from archlang.resolve.library import library_file
from benchmarks.comparison import ModelPair, cases_of, share_weights
from benchmarks.handwritten_seq2seq import Seq2seq
from benchmarks.measure import Case, Group, Setting, Sides

_SHARED = {"relative_attention.": "attention.", "feedforward.hidden.": "hidden.", "feedforward.output.": "output."}
_ENCODER = {**_SHARED, "norm.": "norms.0.", "norm_2.": "norms.1."}
_DECODER = {**_ENCODER, "attention.": "cross.", "norm_3.": "norms.2."}
# From archlang's names to the handwritten module's.
NAMES = {
    "read.": "read.",
    "table.": "table.",
    "unembed.bias": "bias",
    **{f"encoder.encoder_layer.{ours}": f"encoder.{hand}" for ours, hand in _ENCODER.items()},
    **{f"decoder.decoder_layer.{ours}": f"decoder.{hand}" for ours, hand in _DECODER.items()},
}


@dataclass(frozen=True)
class Size:
    """The sizes of a model, and the largest sizes of a batch."""

    d: int = 128
    heads: int = 8
    ff: int = 256
    layers: int = 3
    words: int = 15
    vocab: int = 7
    batch: int = 256
    source: int = 11
    target: int = 27
    dropout: float = 0.1


SCAN = Size()
TINY = Size(d=16, heads=2, ff=24, layers=2, batch=3, source=5, target=6)
# The token that both begins and ends an answer.
_MARK = 6


def pair(size: Size) -> tuple[Architecture, Seq2seq]:
    """Returns both modules with equal weights."""
    torch.manual_seed(0)
    theirs = Seq2seq(size.words, size.vocab, size.d, size.heads, size.ff, size.layers, size.dropout)
    page = library_file("archlang.models.seq2seq")
    assert page is not None
    statics = {name: getattr(size, name) for name in ("d", "heads", "ff", "layers", "words", "vocab", "dropout")}
    ours = archlang.load(page, "seq2seq", universal=True, relative=True, **statics)
    share_weights(ours, theirs, NAMES)
    return ours, theirs


def batch(size: Size) -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
    """Returns source, decoder input, their lengths, and answers padded with -100."""
    torch.manual_seed(1)
    longest = {"source": size.source, "target": size.target}
    lengths = {name: torch.randint(3, most + 1, (size.batch,)) for name, most in longest.items()}
    for name, most in longest.items():
        lengths[name][0] = most
    source = torch.randint(0, size.words, (size.batch, size.source))
    target = torch.randint(0, _MARK, (size.batch, size.target))
    ends = torch.full((size.batch, 1), _MARK)
    seen, answers = torch.cat((ends, target[:, :-1]), 1), target.clone()
    answers.scatter_(1, lengths["target"][:, None] - 1, ends)
    answers[torch.arange(size.target) >= lengths["target"][:, None]] = -100
    return source, seen, lengths, answers


def _moved(size: Size, setting: Setting) -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
    source, seen, lengths, answers = batch(size)
    device = setting.device
    lengths = {name: values.to(device) for name, values in lengths.items()}
    return source.to(device), seen.to(device), lengths, answers.to(device)


def _model_pair(setting: Setting) -> ModelPair:
    size = TINY if setting.tiny else SCAN
    source, seen, lengths, answers = _moved(size, setting)

    def loss(module: nn.Module) -> Tensor:
        return F.cross_entropy(module(source, seen, lengths=lengths).flatten(0, 1), answers.flatten())

    return ModelPair(*pair(size), loss)


MODEL_PAIRS = {"universal relative seq2seq, SCAN": _model_pair}


def decoders(size: Size, setting: Setting) -> Sides:
    """Returns both sides of greedy decoding up to the longest answer of the batch, as in the authors' program."""
    source, _, lengths, _ = _moved(size, setting)
    ours, theirs = pair(size)
    for module in (ours, theirs):
        module.to(setting.device).eval()
    answer_lengths, steps = lengths["target"] - 1, size.target

    def write() -> Tensor:
        # The number of steps is known, as in evaluations, so that a CUDA graph can write all tokens.
        decoded = decode(
            ours, ours.program, [source], lengths["source"], _MARK, _MARK, None, answer_lengths, cache=True, steps=steps
        )
        return decoded.choices

    return Sides(write, partial(theirs.decode, source, lengths["source"], _MARK, steps))


def _cases(setting: Setting) -> Iterator[Case]:
    yield from cases_of(MODEL_PAIRS, setting, "plain torch, by hand")
    build = partial(decoders, TINY if setting.tiny else SCAN, setting)
    yield Case("universal relative seq2seq, SCAN, greedy decoding", "by hand, with cached layer inputs", build)


GROUP = Group(
    "seq2seq",
    "Batch 256, commands of 3 to 11 words, answers of 3 to 27 actions, d 128, 8 heads, ff 256, 3 steps, dropout 0.1.",
    _cases,
)
