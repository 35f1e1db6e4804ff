"""CPU seconds of `archlang check` for files made to be slow, each of up to 1 MB, beside an ordinary file."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from archlang.syntax.reading import LARGEST
from archlang.syntax.tokens import MOST_WORDS, pieces
from benchmarks.measure import Case, Group, Setting, Sides, Unit

ROOT = Path(__file__).parent.parent
ORDINARY = ROOT / "recipes" / "ndr.arch"
SIZE = 900_000
_TINY = 2_000
_CPU = Unit("s of CPU, whole process", lambda call: float(call()), warm=0, most=1)

_HEAD = "block b(h: seq[n, d]) -> seq[n, d] {\n"
_END = "    return h\n}\n"
_MODEL = (
    "model small[d = 8, heads = 1, steps = 2](x: tokens[n]) -> logits[classes] {\n"
    "    h = embed[d](x)\n"
    "    repeat steps { h <- norm(h + attention[heads](h)) }\n"
    "    return h |> last |> linear[classes]\n"
    "}\n"
)
_RECIPE = "    task ctl\n    model small\n    train adamw[lr = 1e-3, steps = 100]\n"

Texts = Mapping[str, str | bytes]


def repeated(pattern: str, size: int, between: str = "") -> str:
    """As many copies of a pattern as fit; `{i}` is the number of the copy."""
    longest = len(pattern.replace("{i}", "000000")) + len(between)
    return between.join(pattern.replace("{i}", str(index)) for index in range(max(size // longest, 2)))


def block(lines: str) -> str:
    return f"{_HEAD}{lines}{_END}"


def signed(statics: str, where: str = "", name: str = "b") -> str:
    return f"block {name}{statics}(h: seq[n, d]) -> seq[n, d] {where} {{ return h }}\n"


def recipe(lines: str, name: str = "trial") -> str:
    return f"recipe {name} {{\n{_RECIPE}{lines}}}\n"


def doubling(levels: int, calls: int = 2) -> str:
    """Blocks of which each calls the one before several times."""
    text = "block b0(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
    for level in range(1, levels):
        inner = f"b{level - 1}("
        text += f"block b{level}(h: seq[n, d]) -> seq[n, d] {{ return {inner * calls}h{')' * calls} }}\n"
    return text


def nested(opening: str, closing: str, size: int, middle: str = "h") -> str:
    """A construct in itself, again and again, below the limit of depth; many of these."""
    levels = 28
    pattern = f"    v{{i}} = {opening * levels}{middle}{closing * levels}\n"
    return block(repeated(pattern, size))


def loops(word: str, levels: int, size: int, inner: str = "h <- norm(h)") -> str:
    return block(repeated("    " + f"{word} 2 {{ " * levels + inner + " }" * levels + "\n", size))


def states(count: int) -> str:
    """Nested loops whose states depend on one another in a chain."""
    names = [f"s{index}" for index in range(count)]
    bind = "".join(f"    {name} = h\n" for name in names)
    moves = " ".join(f"{name} <- {name} + {names[index - 1]}" for index, name in enumerate(names))
    return block(bind + "    " + "repeat 2 { " * 20 + moves + " }" * 20 + "\n")


def loops_in_blocks(levels: int) -> str:
    """Blocks of which each calls the one before inside of loops."""
    text = "block b0(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"
    for level in range(1, levels):
        loop = "repeat 2 { " * 12 + f"h <- b{level - 1}(h)" + " }" * 12
        text += f"block b{level}(h: seq[n, d]) -> seq[n, d] {{ {loop} return h }}\n"
    return text


def slow_states(count: int) -> str:
    """A loop in whose states a dependence moves on by one state in each step."""
    bind = "".join(f"    s{index} = e\n" for index in range(count))
    moves = " ".join(f"s{index} <- s{index} + s{index + 1}" for index in range(count - 1))
    last = f"s{count - 1}"
    loop = f"    repeat 2 {{ {moves} {last} <- {last} + attention[1, causal = true]({last}) }}\n"
    return language_model(f"{bind}{loop}    result = s0\n")


def language_model(lines: str) -> str:
    """A model of a causal task; `lines` bind `result`, from the embedded tokens `e`."""
    model = f"    e = embed[8](x)\n{lines}    return result |> linear[vocab]\n"
    return f"model small(x: tokens[n]) -> logits[n, vocab] {{\n{model}}}\n" + recipe("").replace("ctl", "flipflop")


def nested_scans(levels: int, count: int) -> str:
    """Scans in scans, in whose states a dependence moves on by one state in each step."""
    names = [f"s{index}" for index in range(count)]
    bind = "".join(f"    {name} = learned[1, 8]() |> last\n" for name in names)
    moves = " ".join(f"{name} <- {name} + {after}" for name, after in pairwise(names))
    loop = f"{moves} {names[-1]} <- last(c{levels}) emit c{levels} + s0"
    for level in range(levels, 0, -1):
        outer = f"c{level - 1}" if level > 1 else "e"
        loop = f"v{level} = scan c{level} in chunks[8]({outer}) carry {', '.join(names)} {{ {loop} }} emit v{level}"
    return language_model(f"{bind}    {loop.removesuffix(' emit v1')}\n    result = v1\n")


def ladder(size: int) -> str:
    """Sizes whose polynomials double in degree."""
    count = min(size // 30, 60)
    statics = ", ".join(["s0: int", *(f"s{index} = s{index - 1} * s{index - 1}" for index in range(1, count))])
    return f"block b[{statics}](h: seq[n, d]) -> seq[n, d] {{ return h }}\n"


def polynomial(size: int) -> str:
    """A power of a sum of many sizes."""
    names = [f"a{index}" for index in range(12)]
    power = " * ".join([f"({' + '.join(names)})"] * min(max(size // 80, 2), 40))
    return signed(f"[{', '.join(f'{name}: int' for name in names)}, all = {power}]")


def chain(count: int) -> Texts:
    """Files of which each uses the next."""
    files = {f"f{index}.arch": f'use "./f{index + 1}.arch"\n' for index in range(1, count)}
    return {"main.arch": 'use "./f1.arch"\n', **files, f"f{count}.arch": block("")}


def diamond(levels: int, width: int) -> Texts:
    """Levels of files of which each uses all of the next level."""
    files: dict[str, str] = {"main.arch": "".join(f'use "./f0_{i}.arch" as a{i}\n' for i in range(width))}
    for level in range(levels):
        uses = "".join(f'use "./f{level + 1}_{i}.arch" as a{i}\n' for i in range(width))
        for i in range(width):
            files[f"f{level}_{i}.arch"] = (uses if level + 1 < levels else "") + block("")
    return files


def circle(count: int) -> Texts:
    files = {f"f{index}.arch": f'use "./f{(index + 1) % count}.arch"\n' for index in range(count)}
    return {"main.arch": 'use "./f0.arch"\n', **files}


# For each way to be slow its file of about so many bytes, or its files, of which the first is checked.
PROGRAMS: dict[str, Callable[[int], str | bytes | Texts]] = {
    # Text
    "one comment": lambda size: "#" + "x" * size,
    "comments": lambda size: "#\n" * (size // 2),
    "comments above a statement": lambda size: _HEAD + "    # why\n" * (size // 14) + _END,
    "comments in an expression": lambda size: block("    v = h # why\n" + repeated("    + h # why {i}\n", size)),
    "blank lines": lambda size: _HEAD + "\n" * size + _END,
    "one long line": lambda size: _HEAD + repeated("v{i} = h ", size) + _END,
    "spaces at the end of lines": lambda size: repeated("#" + " " * 200 + "\n", size),
    "carriage returns": lambda size: block(repeated("    v{i} = h\n", size)).replace("\n", "\r\n"),
    "bare carriage returns": lambda size: block(repeated("    v{i} = h\r", size)),
    "zero bytes": lambda size: b"\0" * size,
    "zero bytes between statements": lambda size: block(repeated("    v{i} = h\0\n", size)),
    "invalid UTF-8": lambda size: b"#" * (size - 1) + b"\xff",
    "byte order marks": lambda size: "\ufeff" * (size // 3),
    "wide letters": lambda size: "é " * (size // 3),
    "a long name": lambda size: block(f"    {'x' * size} = y\n"),
    "long names": lambda size: block(repeated(f"    {'x' * 1000}{{i}} = {'y' * 1000}\n", size)),
    "a long string": lambda size: f'use "{"x" * size}"\n',
    "a long number": lambda size: block(f"    v = h * {'9' * size}\n"),
    "a large exponent": lambda size: block(repeated("    v{i} = h * 1e9999999\n", size)),
    "numbers out of range": lambda size: block(repeated(f"    v{{i}} = h * {'9' * 100}\n", size)),
    # Brackets
    "open brackets": lambda size: "[" * size,
    "closed brackets": lambda size: "}" * size,
    "pairs of brackets": lambda size: "{}" * (size // 2),
    "wrong pairs": lambda size: "([)]" * (size // 4),
    "items without end": lambda size: "block b(\n" * (size // 14),
    "brackets too deep in each item": lambda size: repeated(f"block b{{i}}{'(' * 70}\n", size),
    "nested calls": lambda size: nested("norm(", ")", size),
    "nested groups": lambda size: nested("(", ")", size),
    "nested lists": lambda size: nested("[", "]", size),
    "nested statics": lambda size: nested("attention[", "]", size, "1"),
    "signs": lambda size: nested("-", "", size),
    "sums": lambda size: nested("h + ", "", size),
    "pipes": lambda size: nested("h |> ", "", size, "norm"),
    "conditions": lambda size: nested("h when true else ", "", size),
    "else if": lambda size: block(repeated("    " + "if true { } else " * 20 + "{ }\n", size)),
    "else if too deep": lambda size: block("    " + "if true { } else " * (size // 17) + "{ }\n"),
    "nested loops": lambda size: loops("repeat", 28, size),
    "nested stacks": lambda size: loops("stack", 28, size),
    "nested conditionals": lambda size: loops("if true or", 20, size, "v = h").replace("true or 2", "true"),
    "nested unknown conditionals": lambda size: loops("if n ==", 28, size),
    "unknown conditionals": lambda size: block(repeated("    if d == {i} { h{i} = norm(h) }\n", size)),
    "unknown conditionals in loops": lambda size: block(
        repeated("    repeat 2 { if d == {i} { h{i} = norm(h) } else { g{i} = h } }\n", size)
    ),
    "states in nested loops": lambda size: states(min(size // 40, 300)),
    # Mistakes
    "undefined names": lambda size: block(repeated("    v{i} = w{i}\n", size)),
    "undefined names like others": lambda size: block(repeated("    variable{i} = variable{i}x\n", size)),
    "undefined blocks": lambda size: block(repeated("    v{i} = block{i}(h)\n", size)),
    "undefined statics": lambda size: block(repeated("    v{i} = attention[w{i}](h)\n", size)),
    "unknown statics": lambda size: block(repeated("    v{i} = attention[1, w{i} = 2](h)\n", size)),
    "syntax errors": lambda size: block(repeated("    v{i} = = h\n", size)),
    "syntax errors on one line": lambda size: _HEAD + "a = = " * (size // 6) + _END,
    "unclosed brackets": lambda size: repeated("block b{i}(h: seq[n, d]) -> seq[n, d] {\n    v = (h\n", size),
    "unclosed strings": lambda size: repeated('    v = "h\n', size),
    "wrong characters": lambda size: block(repeated("    v{i} = h ? h\n", size)),
    "names bound twice": lambda size: block("    v = h\n" * (size // 10)),
    "blocks defined twice": lambda size: block("") * (size // 60),
    "recipes defined twice": lambda size: _MODEL + recipe("") * (size // 110),
    "unused names": lambda size: block(repeated("    v{i} = norm(h)\n", size)),
    "statements after return": lambda size: _HEAD + "    return h\n" * (size // 14) + "}\n",
    "emits outside scans": lambda size: block("    emit h\n" * (size // 14)),
    "moves outside loops": lambda size: block("    h <- h\n" * (size // 14)),
    "mistake used often": lambda size: (
        _HEAD + "    return missing\n}\n" + repeated("block c{i}(h: seq[n, d]) -> seq[n, d] { return b(h) }\n", size)
    ),
    # Items
    "tokens": lambda size: "a " * (size // 2),
    "blocks": lambda size: repeated("block b{i}(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n", size),
    "blocks in a chain": lambda size: (
        "block b0(h: seq[n, d]) -> seq[n, d] { return h }\n"
        + "".join(
            f"block b{index}(h: seq[n, d]) -> seq[n, d] {{ return b{index - 1}(h) }}\n"
            for index in range(1, size // 60)
        )
    ),
    "blocks in a circle": lambda size: repeated("block b{i}(h: seq[n, d]) -> seq[n, d] { return b0(h) }\n", size),
    "blocks that double": lambda size: doubling(40),
    "blocks that double, and many users": lambda size: (
        doubling(12) + repeated("block c{i}(h: seq[n, d]) -> seq[n, d] { return b11(h) }\n", size)
    ),
    "statements": lambda size: block(
        "    v0 = h\n" + "".join(f"    v{index} = v{index - 1} + h\n" for index in range(1, size // 25))
    ),
    "lets": lambda size: block(repeated("    let f{i} = norm\n    v{i} = f{i}(h)\n", size)),
    "scans": lambda size: block(repeated("    v{i} = scan c in chunks[8](h) carry h { h <- h emit c }\n", size)),
    "captures": lambda size: block(
        repeated("    v{i} = norm(h)\n", size // 3)
        + "    repeat 2 {\n"
        + repeated("    h <- h + v{i}\n", size // 3)
        + "    }\n"
    ),
    "arguments": lambda size: block(f"    v = concat({', '.join(['h'] * (size // 3))})\n"),
    "statics": lambda size: f"block b[{repeated('s{i}: int', size, ', ')}](h: seq[n, d]) -> seq[n, d] {{ return h }}\n",
    "statics of statics": lambda size: signed(
        f"[s0: int, {', '.join(f's{index + 1} = s{index} + 1' for index in range(size // 20))}]"
    ),
    "sizes of large degree": lambda size: ladder(size),
    "sizes with many terms": lambda size: polynomial(size),
    "inputs": lambda size: (
        f"block b(h: seq[n, d], {repeated('x{i}: seq[n{i}, d{i}]', size, ', ')}) -> seq[n, d] {{ return h }}\n"
    ),
    "conditions of a signature": lambda size: (
        f"block b[s: int](h: seq[n, d]) -> seq[n, d] where {repeated('s > {i}', size, ', ')} {{ return h }}\n"
    ),
    "reads": lambda size: (
        f'extern block b(h: seq[n, d]) -> seq[n, d] reads {repeated("h pointwise", size, ", ")} python "a:B"\n'
    ),
    "a list of numbers": lambda size: (
        f"block b[s = [{repeated('{i}', size, ', ')}]](h: seq[n, d]) -> seq[n, d] {{ return h }}\n"
    ),
    "a list of names": lambda size: (
        f"block b[s: symbol](h: seq[n, d]) -> seq[n, d] where s in [{repeated('w{i}', size, ', ')}] {{ return h }}\n"
    ),
    "lists in many calls": lambda size: (
        f"block b[s = [{repeated('{i}', size // 2, ', ')}]](h: seq[n, d]) -> seq[n, d] {{ return h }}\n"
        + block(repeated("    v{i} = b(h)\n", size // 2)).replace("block b", "block c")
    ),
    "a product of sizes, added": lambda size: signed(
        f"[{repeated('a{i}: int', size // 2, ', ')}, s = {' + '.join(f'a{index}' for index in range(60))}]"
    ),
    "concatenations that double": lambda size: block(
        "    v0 = h\n" + "".join(f"    v{index + 1} = concat(v{index}, v{index})\n" for index in range(size // 30))
    ),
    "blocks in loops in blocks": lambda size: loops_in_blocks(39),
    "inputs with defaults": lambda size: (
        f"block b(h: seq[n, d], {repeated('x{i}: seq[n, d] = h', size // 2, ', ')})"
        " -> seq[n, d] { return h }\n" + block(repeated("    v{i} = b(h)\n", size // 2)).replace("block b", "block c")
    ),
    "a state that moves on slowly": lambda size: slow_states(min(size // 40, 1_500)),
    "states in nested scans": lambda size: nested_scans(20, min(size // 100, 60)),
    "a long path after a leak": lambda size: language_model(
        "    v0 = e + attention[1](e)\n"
        + "".join(f"    v{index} = v{index - 1} + e\n" for index in range(1, size // 25))
        + f"    result = v{size // 25 - 1}\n"
    ),
    "uses": lambda size: repeated("use archlang.models.panm as a{i}\n", size),
    "uses of missing files": lambda size: repeated('use "./missing{i}.arch"\n', size),
    # Files
    "files in a chain": lambda size: chain(min(2000, size // 300)),
    "files in diamonds": lambda size: diamond(min(12, size // 300), min(12, size // 300)),
    "files in a circle": lambda size: circle(min(500, size // 300)),
    # Recipes
    "recipes": lambda size: _MODEL + "".join(recipe("", f"r{index}") for index in range(size // 110)),
    "recipes in a chain": lambda size: (
        _MODEL
        + recipe("", "r0")
        + "".join(
            f"recipe r{index} from r{index - 1} {{\n    train adamw[warmup = 10]\n}}\n"
            for index in range(1, size // 60)
        )
    ),
    "recipes that vary": lambda size: (
        _MODEL
        + "".join(
            recipe("    vary model.d in [8, 16, 24, 32], model.steps in [1, 2, 3, 4]\n", f"r{index}")
            for index in range(size // 180)
        )
    ),
    "points": lambda size: (
        _MODEL + recipe("    vary model.d in 1..1000, model.heads in 1..1000, model.steps in 1..1000, seed in 1..10\n")
    ),
    "points in lists": lambda size: (
        _MODEL
        + recipe(
            f"    vary model.d in [{repeated('{i}', size // 3, ', ')}],\n"
            f"        model.heads in [{repeated('{i}', size // 3, ', ')}]\n"
        )
    ),
    "varied statics": lambda size: _MODEL + recipe(f"    vary {repeated('model.d in [8, 16]', size, ', ')}\n"),
    "searched values": lambda size: _MODEL + recipe(f"    search model.d in [{repeated('{i}', size, ', ')}]\n"),
    "searched statics": lambda size: _MODEL + recipe(f"    search {repeated('model.d in [8, 16]', size, ', ')}\n"),
    "settings at test": lambda size: _MODEL + recipe(f"    test {repeated('model.steps = {i}', size, ', ')}\n"),
    "claims": lambda size: (
        _MODEL + recipe(repeated('    claim test.accuracy = 0.{i} at model.d = {i} from "x"\n', size))
    ),
    "tasks": lambda size: _MODEL + recipe("    task ctl\n" * (size // 13)),
    "rows": lambda size: (
        _MODEL
        + recipe("")
        + 'table t {\n    column "c" test.accuracy\n'
        + repeated('    row "r{i}" trial at model.d = {i}\n', size)
        + "}\n"
    ),
    "rows by columns": lambda size: (
        _MODEL
        + recipe("")
        + "table t {\n"
        + repeated('    column "c{i}" test.accuracy[{i}]\n', size // 2)
        + repeated('    row "r{i}" trial\n', size // 2)
        + "}\n"
    ),
    "cells that plan": lambda size: (
        _MODEL
        + recipe("")
        + "table t {\n"
        + repeated('    column "c{i}" test.accuracy at model.heads = {i}\n', size // 2)
        + repeated('    row "r{i}" trial at model.d = {i}\n', size // 2)
        + "}\n"
    ),
    "unknown rows": lambda size: (
        _MODEL
        + recipe("")
        + 'table t {\n    column "c" test.accuracy\n'
        + repeated('    row "r{i}" trail{i}\n', size)
        + "}\n"
    ),
    "seeds of a table": lambda size: (
        _MODEL
        + recipe("    vary seed in 1..10_000\n")
        + 'table t {\n    column "c" test.accuracy\n'
        + repeated('    row "r{i}" trial at model.d = {i}\n', size)
        + "}\n"
    ),
    "large models in many recipes": lambda size: (
        doubling(12)
        + "model big(x: tokens[n]) -> logits[classes] { return embed[8](x) |> b11 |> last |> linear[classes] }\n"
        + "".join(recipe("", f"r{index}").replace("small", "big") for index in range(size // 110))
    ),
}


def largest(make: Callable[[int], str | bytes | Texts]) -> str | bytes | Texts:
    """The largest of these files that has neither more bytes nor more words than a program may have."""
    low, high = _TINY, SIZE
    while high - low > 100:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(make(middle)) else (low, middle)
    return make(SIZE) if _fits(make(SIZE)) else make(low)


def _fits(content: str | bytes | Texts) -> bool:
    texts = list(content.values()) if isinstance(content, Mapping) else [content]
    sizes = [len(text if isinstance(text, bytes) else text.encode("utf-8")) for text in texts]
    words = (word for text in texts if isinstance(text, str) for word in pieces(text))
    return max(sizes) <= LARGEST and next(islice(words, MOST_WORDS, None), None) is None


def write(content: str | bytes | Texts, folder: Path) -> Path:
    """The file to check, with those that it uses beside it."""
    files = {"main.arch": content} if isinstance(content, str | bytes) else content
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return folder / next(iter(files))


def cpu_seconds(file: Path) -> float:
    """CPU seconds of a whole `archlang check`, whatever it says about the file."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "archlang", "check", str(file)]
    before = os.times()
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    after = os.times()
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    return after.children_user + after.children_system - before.children_user - before.children_system


def _seconds(make: Callable[[], str | bytes | Texts]) -> float:
    with TemporaryDirectory() as folder:
        return cpu_seconds(write(make(), Path(folder)))


def _sides(name: str, setting: Setting) -> Sides:
    make = partial(PROGRAMS[name], _TINY) if setting.tiny else partial(largest, PROGRAMS[name])
    return Sides(partial(_seconds, make), partial(cpu_seconds, ORDINARY))


def _cases(setting: Setting) -> Iterator[Case]:
    for name in list(PROGRAMS)[: 2 if setting.tiny else None]:
        yield Case(f"check, {name}", "check of ndr.arch", partial(_sides, name, setting), _CPU)


GROUP = Group(
    "adversarial files",
    "Whole processes of `archlang check`. Each file is made to be slow in one way, and has as many words as a program "
    "may have.",
    _cases,
    devices=("cpu",),
)
