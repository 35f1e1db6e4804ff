"""However types, kinds and statements are mixed up, a program has diagnostics, and its edits make another such text."""

import random

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text
from archlang.resolve import library

BLOCKS = sorted({name.rpartition(".")[2] for name in library.blocks()})
NAMES = ["h", "v", "x", "q", "k", "z", "c", "f", "g", "u"]
TYPES = [
    "seq[n, d]", "seq[m, d]", "seq[n, 2 * d]", "seq[d, n]", "seq[n, 1]", "vec[d]", "vec[1]", "tokens[n]", "map[n, n]",
    "map[n, m, h]", "prob", "address[n, b]", "pointer[t, n, k]", "logits[classes]",
]  # fmt: skip
STATICS = [
    "4", "0", "-1", "1.5", "d", "n", "true", "relu", "none", '"a"', "[1, 2]", "1..3", "norm", "linear[d]", "heads",
    "f", "d / 2", "d * n", "not true", "x", "valid.accuracy", "k == 2", "2 when d > 3 else 4",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "%", "==", ">", "and", "in"]
LOOPS = [
    "repeat 2", "repeat 0", "repeat d", "repeat n", "repeat heads", "repeat 2 truncated 2",
    "repeat 2 drawn by evenly", "stack 2", "stack heads", "stack 0", "repeat 3 halting h by token_halt",
    "repeat heads halting v as s by global_halt", "repeat 2 halting k by norm", "scan c in h",
    "scan c in chunks[4](h) carry v", "scan w after p in k carry h, z",
    "scan w after p[4] in chunks[d](k) carry k growing", "scan h in v carry v truncated 2", "scan c in x",
    "scan c in q", "experts w in h by softmax(linear[4](h))", "experts w in v by h",
]  # fmt: skip
MODEL = """model m[d = 8, heads = 2](x: tokens[n]) -> {} {{
    h = embed[d](x)
    v = mean(h)
{}
    return {}
}}
recipe r {{
    task {}
    model m
    train adamw[steps = 2]
    {}
}}
"""


class Writer:
    """Writes random programs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def program(self) -> str:
        one_of = self.random.choice
        if self.random.random() < 0.5:
            inputs = ", ".join(f"{name}: {one_of(TYPES)}" for name in self.random.sample(NAMES, one_of([1, 2, 3])))
            return (
                f"block b[heads = 2]({inputs}) -> {one_of(TYPES)} {{\n{self.body(1)}\n    return {self.value()}\n}}\n"
            )
        result = one_of(["logits[classes]", "logits[n, vocab]", "vec[d]"])
        task = one_of(["ctl", "flipflop", "copy", "listops"])
        line = one_of(["", "vary model.heads in [1, 2]", "test model.heads = 3", "search model.d in 4..8"])
        return MODEL.format(result, self.body(1), self.value(), task, line)

    def body(self, depth: int, in_loop: bool = False) -> str:
        lines = (self.statement(depth, in_loop) for _ in range(self.random.randint(1, 4)))
        return "\n".join("    " * depth + line for line in lines)

    def statement(self, depth: int, in_loop: bool) -> str:
        one_of, margin = self.random.choice, "    " * depth
        kind = one_of(["bind", "bind", "bind", "bind", "let", "loss", "if", "loop", "loop", "loop"])
        if kind == "let":
            return f"let {one_of(NAMES)} = {one_of(BLOCKS)}{one_of(['', '[d]', '[4]', '[heads = 2]'])}"
        if kind == "loss":
            return f"loss cost = {self.value()}"
        if kind == "if" and depth < 4:
            otherwise = f" else {{\n{self.body(depth + 1, in_loop)}\n{margin}}}" if self.random.random() < 0.5 else ""
            return f"if {one_of(STATICS)} {{\n{self.body(depth + 1, in_loop)}\n{margin}}}{otherwise}"
        if kind == "loop" and depth < 4:
            target = one_of(["", f"{one_of(NAMES)} = "])
            emit = f"\n{margin}    emit {self.value()}" if target or self.random.random() < 0.2 else ""
            return f"{target}{one_of(LOOPS)} {{\n{self.body(depth + 1, in_loop=True)}{emit}\n{margin}}}"
        return f"{one_of(NAMES)} {'<-' if in_loop and self.random.random() < 0.6 else '='} {self.value()}"

    def value(self, depth: int = 0) -> str:
        one_of = self.random.choice
        kind = one_of(["name"] * 4 + ["operator", "call", "call", "call", "pipe", "sign"]) if depth < 3 else "name"
        if kind == "operator":
            return f"({self.value(depth + 1)} {one_of(OPERATORS)} {self.value(depth + 1)})"
        if kind == "call":
            inputs = ", ".join(self.value(depth + 1) for _ in range(one_of([0, 1, 1, 2, 3])))
            return f"{self.block()}({inputs})"
        if kind == "pipe":
            return f"{self.value(depth + 1)} |> {self.block()}"
        if kind == "sign":
            return one_of(
                ["-h", "h when d > 3 else v", "[h, v]", "1..2", '"s"', "h[0]", "learned[4, d]()", "chunks[4](h)"]
            )
        return one_of([*NAMES, "0", "1", "2.5", "d", "n", "true", "norm", "heads"])

    def block(self) -> str:
        one_of = self.random.choice
        statics = [
            one_of(["", "d = ", "heads = ", "causal = ", "k = ", "out = "]) + one_of(STATICS)
            for _ in range(one_of([0, 0, 1, 2]))
        ]
        return one_of([*BLOCKS, "f", "g"]) + (f"[{', '.join(statics)}]" if statics else "")


def check_mixed(seed: int, count: int) -> None:
    writer = Writer(seed)
    for _ in range(count):
        text = writer.program()
        mistakes = check_text(text, "mixed.arch")
        edited = apply_edits(text, [edit for mistake in mistakes for edit in mistake.edits])
        check_text(edited, "mixed.arch")


@pytest.mark.parametrize("seed", range(5))
def test_every_mixture_of_types_is_answered(seed: int) -> None:
    check_mixed(seed, 60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 15))
def test_each_of_many_mixtures_is_answered(seed: int) -> None:
    check_mixed(seed, 1_000)
