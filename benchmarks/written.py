"""Attention with maps and recurrences as scans, as pages write them, against blocks of the library and plain torch."""

from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.compile import load_named
from archlang.errors import Source
from benchmarks.comparison import ModelPair, training_step
from benchmarks.measure import Case, Group, Setting, Sides

_PROGRAM = Path(__file__).with_name("written.arch")
_VOCAB = 64
# The forms, and the position of the block that stands beside each.
FORMS = {
    "softmax_attention": "none",
    "by_distance": "alibi",
    "by_distance[learned_bias = true]": "none",
    "soft_cap": "none",
    "window": "none",
    "forgetting": "none",
    "contextual": "none",
}
LENGTHS = (128, 512, 1024, 2048, 4096)
BATCH, WIDTH = 2, 128
RECURRENCES = {
    "the delta rule": "delta",
    "the gated delta rule": "gated_delta",
    "gated linear attention": "decaying[decays = d]",
    "Mamba-2": "decaying",
    "RWKV-7": "two_vectors",
    "KDA": "kimi_delta",
}
# Recurrences that the library has no block for.
WITHOUT_BLOCK = {"mLSTM": "mlstm", "DeltaProduct": "delta_product"}
RECURRENCE_LENGTHS = (256, 2048)
LSTM_SIZES = ((8, 64, 128), (32, 128, 128), (8, 64, 512))
"""batch, features and length"""


def _layer(form: str, setting: Setting, width: int = WIDTH, without: Collection[str] = ()) -> Architecture:
    torch.manual_seed(0)
    d = 16 if setting.tiny else width
    text = _PROGRAM.read_text(encoding="utf-8").replace("f: block = softmax_attention", f"f: block = {form}")
    sets = {"model.d": str(d), "model.vocab": str(_VOCAB)}
    return load_named(Source(str(_PROGRAM), text), "layer", None, sets, without=without)


def _block(form: str) -> str:
    return f"built_in[position = {FORMS[form]}]"


def model_pair(form: str, length: int, setting: Setting) -> ModelPair:
    """Returns a layer of a form and one of the block, and a loss on random tokens."""
    tokens = torch.randint(_VOCAB, (BATCH, length), device=setting.device)

    def loss(module: nn.Module) -> Tensor:
        result: Tensor = module(tokens)
        return result.square().mean()

    return ModelPair(_layer(form, setting), _layer(_block(form), setting), loss)


def _decoding(form: str, length: int, setting: Setting) -> Sides:
    """Returns the decoding of twenty tokens after a prompt, by either side."""
    prompt = torch.randint(_VOCAB, (BATCH, length), device=setting.device)
    ours, theirs = (_layer(each, setting).to(setting.device).eval() for each in (form, _block(form)))
    return Sides(*(partial(module.decode, begin=prompt, limit=20) for module in (ours, theirs)))


def _without_written(form: str) -> str:
    name, _, rest = form.partition("[")
    return f"{name}[written = false{', ' + rest if rest else ']'}"


def recurrence_pair(form: str, length: int, setting: Setting) -> ModelPair:
    """Returns a layer with a recurrence as a page, one with its block, or without the pass `parallel_scans` if it has
    none, and a loss on random tokens."""
    tokens = torch.randint(_VOCAB, (BATCH, length), device=setting.device)

    def loss(module: nn.Module) -> Tensor:
        result: Tensor = module(tokens)
        return result.square().mean()

    if form in WITHOUT_BLOCK.values():
        return ModelPair(_layer(form, setting), _layer(form, setting, without=("parallel_scans",)), loss)
    return ModelPair(_layer(form, setting), _layer(_without_written(form), setting), loss)


class _PlainLSTM(nn.Module):
    """The operations of the page `lstm`, in a loop of Python; with `native`, torch's own LSTM."""

    def __init__(self, width: int, native: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(_VOCAB, width)
        self.norm = nn.LayerNorm(width)
        self.gates = nn.LSTM(width, width, batch_first=True) if native else nn.Linear(2 * width, 4 * width)
        self.unembed = nn.Linear(width, _VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embed(tokens)
        x = self.norm(h)
        y = self.gates(x)[0] if isinstance(self.gates, nn.LSTM) else self._run(x)
        result: Tensor = self.unembed(h + y)
        return result

    def _run(self, x: Tensor) -> Tensor:
        cell = state = x.new_zeros(x.shape[0], x.shape[2])
        states = []
        for v in x.unbind(1):
            i, f, u, o = self.gates(torch.cat((v, state), -1)).chunk(4, -1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(u)
            state = torch.sigmoid(o) * torch.tanh(cell)
            states.append(state)
        return torch.stack(states, 1)


def lstm_pair(size: tuple[int, int, int], native: bool, setting: Setting) -> ModelPair:
    """Returns the page of an LSTM and one in torch, and a loss on random tokens."""
    batch, width, length = size
    tokens = torch.randint(_VOCAB, (batch, length), device=setting.device)

    def loss(module: nn.Module) -> Tensor:
        result: Tensor = module(tokens)
        return result.square().mean()

    return ModelPair(_layer("lstm", setting, width), _PlainLSTM(16 if setting.tiny else width, native), loss)


def _cases(setting: Setting) -> Iterator[Case]:
    for form in FORMS:
        for length in (7,) if setting.tiny else LENGTHS:
            build = partial(training_step, partial(model_pair, form, length), setting)
            yield Case(f"{form}, N = {length}, forward and backward", "the block", build)
        length = 7 if setting.tiny else 800
        yield Case(f"{form}, 20 tokens after {length}", "the block", partial(_decoding, form, length, setting))
    for name, form in {**RECURRENCES, **WITHOUT_BLOCK}.items():
        beside = "one position after the other" if name in WITHOUT_BLOCK else "its block"
        for length in (7,) if setting.tiny else RECURRENCE_LENGTHS:
            build = partial(training_step, partial(recurrence_pair, form, length), setting)
            yield Case(f"{name} as a page, N = {length}, forward and backward", beside, build)
    for size in ((2, 16, 7),) if setting.tiny else LSTM_SIZES:
        for native, beside in ((False, "a plain loop in torch"), (True, "torch's own")):
            build = partial(training_step, partial(lstm_pair, size, native), setting)
            yield Case(f"LSTM as a page, batch, d, N = {size}, forward and backward", beside, build)


GROUP = Group("written", f"Batch {BATCH}, {WIDTH} features, 4 heads, causal, unless a row says otherwise.", _cases)
