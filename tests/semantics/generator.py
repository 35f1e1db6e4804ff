"""Random well-typed programs: blocks and a model `m` that nest every construct, from a seed."""

from __future__ import annotations

from dataclasses import replace

from tests.semantics.program_parts import BlockSignature, Chance, Kind, Names, Style, Value
from tests.semantics.statements import Writer


def program(seed: int) -> str:
    """Returns the text of a program whose model is `m`."""
    chance = Chance(seed)
    causal = chance.happens(0.7)
    blocks: list[BlockSignature] = []
    texts = []
    for index in range(chance.choice((0, 0, 1, 1, 2))):
        signature, text = _block(chance, f"block{index}", Style(causal, tuple(blocks)))
        blocks.append(signature)
        texts.append(text)
    texts.append(_model(chance, Style(causal, tuple(blocks))))
    return "\n".join(texts)


def _block(chance: Chance, name: str, style: Style) -> tuple[BlockSignature, str]:
    """A composed block with statics; some take a block as a static, or a memory."""
    memory, pooled = chance.happens(0.25), chance.happens(0.2)
    names = Names(chance, {"h", "g", "f", "n", "m", "d", "e"})
    takes_block = not style.causal and chance.happens(0.4)
    statics = [
        "times: int = 2",
        "flag: bool = true",
        "rate: float = 0.5",
        *(["f: block = norm"] if takes_block else []),
    ]
    style = replace(style, block_static="f" if takes_block else "")
    values = [Value("h", Kind("seq", "n", "d"))]
    if memory:
        values.append(Value("g", Kind("seq", "m", "e"), free=True))
    writer = Writer(chance, names, style, values, (), (), chance.choice((1, 3, 5)), 1)
    writer.own = {"h"}
    writer.statements(3)
    result = writer.total(Kind("vec", width="d") if pooled else Kind("seq", "n", "d"))
    if memory and not pooled and not style.causal:
        result = Value(f"{result.text} + attention[1](h, g)", result.kind)
    writer.write(f"return {result.text}")
    inputs = "h: seq[n, d], g: seq[m, e]" if memory else "h: seq[n, d]"
    gives = "vec[d]" if pooled else "seq[n, d]"
    head = f"block {name}[{', '.join(statics)}]({inputs}) -> {gives} {{"
    choices = ["times = 1", "times = 3", "flag = false", "rate = 2.0"]
    choices += ["f = feedforward[3]", "f = attention[1]"] if takes_block else []
    signature = BlockSignature(name, memory, pooled, style.causal, tuple(chance.sample(choices, len(choices))))
    return signature, "\n".join((head, *writer.lines, "}", ""))


def _model(chance: Chance, style: Style) -> str:
    names = Names(chance, {"x", "y", "n", "m", "d", "h", "vocab", "classes", "words", "e", "memory"})
    pooled = chance.happens(0.1 if style.causal else 0.4)
    fields, values = _fields(chance)
    predicted = values[-1]
    writer = Writer(chance, names, style, values, (), (), chance.choice((3, 5, 8, 12)), 1)
    tied = chance.happens(0.2) and predicted.kind.name == "tokens"
    if tied:
        writer.write("let e = embed[d]")
    for index, value in enumerate(values):
        name = f"h{index or ''}"
        read = f"linear[d]({value.text})" if value.kind.name == "seq" else _reader(chance, tied and value is predicted)
        writer.write(f"{name} = {read.format(value.text)}")
        first = Value(name, Kind("seq", value.kind.length, "d"), free=len(values) > 1 and index == 0)
        writer.bind(name, first)
    if chance.happens(0.6):
        writer.write("memory = learned[3, d, init = normal]()")
        writer.bind("memory", Value("memory", Kind("seq", "3", "d"), free=True))
    writer.statements(chance.choice((2, 4, 6)))
    if pooled:
        result = f"linear[classes]({writer.total(Kind('vec', width='d')).text})"
        gives = "logits[classes]"
    else:
        length = predicted.kind.length
        total = writer.total(Kind("seq", length, "d")).text
        result = f"{'unembed[e]' if tied else chance.choice(('linear[vocab]', 'mlp[3, vocab]'))}({total})"
        gives = f"logits[{length}, vocab]"
    writer.write(f"return {result}")
    statics = (
        f"d = {chance.choice((4, 4, 8))}, times = {chance.choice((1, 2, 2))}, flag = {chance.choice(('true', 'false'))}"
    )
    return "\n".join((f"model m[{statics}, rate = 0.5]({fields}) -> {gives} {{", *writer.lines, "}", ""))


def _fields(chance: Chance) -> tuple[str, list[Value]]:
    match chance.randrange(8):
        case 0:
            return "x: tokens[n], y: tokens[m]", [Value("x", Kind("tokens", "n")), Value("y", Kind("tokens", "m"))]
        case 1:
            return "x: seq[n, 3]", [Value("x", Kind("seq", "n", "3"))]
    return "x: tokens[n]", [Value("x", Kind("tokens", "n"))]


def _reader(chance: Chance, tied: bool) -> str:
    if tied:
        return "e({})"
    return chance.choice(("embed[d]({})", "embed[d]({})", "absolute_positions(embed[d]({}))", "linear[d](one_hot({}))"))
