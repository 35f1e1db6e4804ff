"""Attention with maps, recurrences as scans and whole models, as pages write them, against blocks of the library, plain
torch and `transformers`."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.backend.decode.incremental import Extension
from archlang.backend.runtime.masks import code_inputs
from archlang.compile import load_named
from archlang.errors import Source
from benchmarks import pages
from benchmarks.comparison import ModelPair, training_step
from benchmarks.measure import Call, Case, Group, Setting, Sides

_PROGRAM = Path(__file__).with_name("written.arch")
_VOCAB = 64
# The forms, and the position of the block that stands beside each.
FORMS = {
    "softmax_attention": "none",
    "by_distance": "alibi",
    "by_distance[learned_bias = true]": "none",
    "soft_cap": "none",
    "window": "none",
    "sinks": "none",
    "forgetting": "none",
    "contextual": "none",
    "stick_breaking": "none",
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
RNNS = {"LSTM": "lstm", "GRU": "gru_page"}
RNN_SIZES = ((8, 64, 128), (32, 128, 128), (8, 64, 512))
"""batch, features and length"""
# Windows of 128, each beside all positions.
_WINDOWS = {"a window": "windowed", "a window, capped": "windowed[cap = 20.0]",
            "a window with sinks": "windowed[with_sinks = true]"}  # fmt: skip
_FULL, _LONG = "softmax_attention", 8192


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
    return ModelPair(_layer(form, setting), _layer(_block(form), setting), _loss(length, setting))


def _loss(length: int, setting: Setting, batch: int = BATCH) -> Callable[[nn.Module], Tensor]:
    tokens = torch.randint(_VOCAB, (batch, length), device=setting.device)

    def loss(module: nn.Module) -> Tensor:
        result: Tensor = module(tokens)
        return result.square().mean()

    return loss


def _decoding(form: str, length: int, setting: Setting) -> Sides:
    """Returns the decoding of twenty tokens after a prompt, by either side."""
    prompt = torch.randint(_VOCAB, (BATCH, length), device=setting.device)
    ours, theirs = (_layer(each, setting).to(setting.device).eval() for each in (form, _block(form)))
    return Sides(*(partial(module.decode, begin=prompt, limit=20) for module in (ours, theirs)))


def _tokens(form: str, length: int, setting: Setting) -> Sides:
    """Returns the decoding of one more token, by either side, after a prompt of this length, which is read here."""
    prompt = torch.randint(_VOCAB, (BATCH, length), device=setting.device)
    return Sides(*(_next_token(_layer(each, setting), prompt) for each in (form, _block(form))))


def _next_token(module: Architecture, prompt: Tensor) -> Call:
    module.to(prompt.device).eval()
    extension = Extension(module, module.program, 0, code_inputs(module.program, [prompt], {}))

    @torch.no_grad()
    def write() -> Tensor:
        return extension.extend(prompt[:, :1])

    with torch.no_grad():
        extension.extend(prompt)
    return write


def _windows(form: str, setting: Setting) -> Sides:
    """Returns training steps of attention in a window of 128, and of attention to all positions before."""
    length = 7 if setting.tiny else _LONG
    pair = ModelPair(_layer(form, setting), _layer(_FULL, setting), _loss(length, setting))
    return training_step(lambda _: pair, setting)


def _without_written(form: str) -> str:
    name, _, rest = form.partition("[")
    return f"{name}[written = false{', ' + rest if rest else ']'}"


def recurrence_pair(form: str, length: int, setting: Setting) -> ModelPair:
    """Returns a layer with a recurrence as a page, one with its block, or without the pass `parallel_scans` if it has
    none, and a loss on random tokens."""
    loss = _loss(length, setting)
    if form in WITHOUT_BLOCK.values():
        return ModelPair(_layer(form, setting), _layer(form, setting, without=("parallel_scans",)), loss)
    return ModelPair(_layer(form, setting), _layer(_without_written(form), setting), loss)


class _Plain(nn.Module):
    """The operations of the page `lstm` or `gru_page`, in a loop of Python; with `native`, torch's own network."""

    def __init__(self, name: str, width: int, native: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(_VOCAB, width)
        self.norm = nn.LayerNorm(width)
        gates = 4 if name == "lstm" else 2
        network = {"lstm": nn.LSTM, "gru_page": nn.GRU}[name]
        self.gates = network(width, width, batch_first=True) if native else nn.Linear(2 * width, gates * width)
        self.candidate = nn.Linear(2 * width, width) if name == "gru_page" and not native else None
        self.unembed = nn.Linear(width, _VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.embed(tokens)
        x = self.norm(h)
        if not isinstance(self.gates, nn.Linear):
            y = self.gates(x)[0]
        else:
            y = self._lstm(x) if self.candidate is None else self._gru(x, self.candidate)
        result: Tensor = self.unembed(h + y)
        return result

    def _lstm(self, x: Tensor) -> Tensor:
        cell = state = x.new_zeros(x.shape[0], x.shape[2])
        states = []
        for v in x.unbind(1):
            i, f, u, o = self.gates(torch.cat((v, state), -1)).chunk(4, -1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(u)
            state = torch.sigmoid(o) * torch.tanh(cell)
            states.append(state)
        return torch.stack(states, 1)

    def _gru(self, x: Tensor, candidate: nn.Linear) -> Tensor:
        state = x.new_zeros(x.shape[0], x.shape[2])
        states = []
        for v in x.unbind(1):
            r, z = torch.sigmoid(self.gates(torch.cat((v, state), -1))).chunk(2, -1)
            u = torch.tanh(candidate(torch.cat((v, r * state), -1)))
            state = u + z * (state - u)
            states.append(state)
        return torch.stack(states, 1)


RNN_NAMES = {"embed.": "embed.", "norm.": "norm.", "f.": "", "linear.": "unembed."}


def rnn_pair(name: str, size: tuple[int, int, int], native: bool, setting: Setting) -> ModelPair:
    """Returns the page of an LSTM or GRU and one in torch, and a loss on random tokens."""
    batch, width, length = size
    plain = _Plain(name, 16 if setting.tiny else width, native)
    return ModelPair(_layer(name, setting, width), plain, _loss(length, setting, batch))


def _cases(setting: Setting) -> Iterator[Case]:
    for form in FORMS:
        for length in (7,) if setting.tiny else LENGTHS:
            build = partial(training_step, partial(model_pair, form, length), setting)
            yield Case(f"{form}, N = {length}, forward and backward", "the block", build)
        length = 7 if setting.tiny else 800
        yield Case(f"{form}, 20 tokens after {length}", "the block", partial(_decoding, form, length, setting))
        yield Case(f"{form}, a token after {length}", "the block", partial(_tokens, form, length, setting))
    for name, form in _WINDOWS.items():
        title = f"{name} of 128, N = {_LONG}, forward and backward"
        yield Case(title, "all positions", partial(_windows, form, setting))
    for name, form in {**RECURRENCES, **WITHOUT_BLOCK}.items():
        beside = "one position after the other" if name in WITHOUT_BLOCK else "its block"
        for length in (7,) if setting.tiny else RECURRENCE_LENGTHS:
            build = partial(training_step, partial(recurrence_pair, form, length), setting)
            yield Case(f"{name} as a page, N = {length}, forward and backward", beside, build)
    for (title, name), size in product(RNNS.items(), ((2, 16, 7),) if setting.tiny else RNN_SIZES):
        for native, beside in ((False, "a plain loop in torch"), (True, "torch's own")):
            build = partial(training_step, partial(rnn_pair, name, size, native), setting)
            yield Case(f"{title} as a page, batch, d, N = {size}, forward and backward", beside, build)
    yield from pages.cases(setting)


GROUP = Group("written", f"Batch {BATCH}, {WIDTH} features, 4 heads, causal, unless a row says otherwise.", _cases)
