"""Random short programs that read any value in scope, so that many of them see the future.

The programs of `generator` are mostly causal by construction. These read values of every length in every manner, update
them in every loop and capture them in every body: if a rule of causality is too permissive, one of them shows it."""

from __future__ import annotations

import random
from collections.abc import Sequence

_HEAD = """model m[d = 4](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    m = learned[3, d, init = normal]()
    z = absolute_positions(zeros[d](x))
    f = start_end(h)
    p = every[2](h)
    u = interleave[2](concat(h, h))
"""
LENGTHS = {"h": "n", "m": "3", "z": "n", "f": "n + 2", "p": "n / 2", "u": "2 * n"}
_HALTING = (
    "token_halt[0.8]", "token_halt[0.8, transition = true]", "global_halt[0.8, causal = true]", "global_halt[0.8]",
    "act[epsilon = 0.3, ponder = equation]",
)  # fmt: skip


def leaky(seed: int) -> str:
    """Returns the text of a program whose model is `m`."""
    writer = _Writer(random.Random(seed), LENGTHS, tuple(LENGTHS), 0)
    writer.statements(writer.chance.choice((1, 1, 2, 3)))
    total = " + ".join(["h", *writer.seen()])
    body = "".join(f"    {line}\n" for line in (*writer.lines, f"return linear[vocab]({total})"))
    return f"{_HEAD}{body}}}\n"


class _Writer:
    """Writes the statements of one body. `lengths` are those of the sequences in scope, `movable` the names that the
    body may update."""

    def __init__(
        self, chance: random.Random, lengths: dict[str, str], movable: Sequence[str], level: int, stem: str = ""
    ) -> None:
        self.chance = chance
        self.lengths = dict(lengths)
        self.movable = list(movable)
        self.level = level
        self.stem = stem
        self.count = 0
        self.lines: list[str] = []

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.stem}{self.count}"

    # Expressions

    def expression(self, length: str, depth: int = 2) -> str:
        """Returns an expression for a sequence of a length."""
        chance = self.chance
        names = [name for name, name_length in self.lengths.items() if name_length == length]
        if depth == 0 or chance.random() < 0.2:
            return chance.choice(names)
        first = self.expression(length, depth - 1)
        if length == "n" and chance.random() < 0.15:
            if chance.random() < 0.3:
                return f"every[2]({self.expression('2 * n', depth - 1)})"
            groups = [name for name, name_length in self.lengths.items() if name_length == "n / 2"]
            return f"hold[{chance.choice((1, 2, 2, 4))}]({chance.choice((*self.lengths, *3 * groups))}, {first})"
        match chance.randrange(20):
            case 0 | 1:
                return f"({first} + {self.expression(length, depth - 1)})"
            case 2 | 3:
                return f"attention[1]({first}, {chance.choice(list(self.lengths))})"
            case 4 | 5 | 6:
                return f"attention[1, causal = true]({first}, {chance.choice(list(self.lengths))})"
            case 7:
                return f"reverse({first})"
            case 8:
                pool = chance.choice(("first", "first", "last", "mean"))
                return f"gru[d]({first}, {pool}({chance.choice(list(self.lengths))}))"
            case 9:
                pool = chance.choice(("first", "first", "last", "mean"))
                return f"({first} {chance.choice('+*')} {pool}({chance.choice(list(self.lengths))}))"
            case 10:
                return f"{chance.choice(('shift', 'shift[-1]', 'cumulative_sum', 'softmax_positions'))}({first})"
            case 11:
                keys = f"append({chance.choice(list(self.lengths))}, {chance.choice(list(self.lengths))})"
                return f"attention[1, causal = true]({first}, {keys})"
            case 12:
                return f"gather{self.hides()}({chance.choice(list(self.lengths))}, indices({first}))"
            case 13 | 14:
                other = chance.choice(list(self.lengths))
                return f"weigh{self.hides()}({self.pairs(first, other, length == self.lengths[other])}, {other})"
            case 15:
                other = chance.choice(list(self.lengths))
                pairs = self.pairs(first, other, length == self.lengths[other])
                return f"linear[d]({chance.choice(('sum_keys', 'logsumexp_keys'))}{self.hides()}({pairs}))"
        return f"{chance.choice(('norm', 'tanh', 'linear[d]'))}({first})"

    def hides(self) -> str:
        return self.chance.choice(("", "[causal = true]", "[causal = true]"))

    def pairs(self, queries: str, keys: str, is_square: bool, depth: int = 3) -> str:
        """Returns an expression for a map."""
        chance = self.chance
        if depth == 0 or chance.random() < 0.2:
            block = chance.choice(("scores", "outer_sum", "alibi_bias[d]", "distances"))
            return f"{block}({queries}, {keys})"
        inner = self.pairs(queries, keys, is_square, depth - 1)
        backward, causal = (chance.choice(("true", "false")) for _ in range(2))
        sums = f"cumulative_sum_keys[backward = {backward}, causal = {causal}]"
        options = [
            f"softmax_keys{self.hides()}({inner})", f"softmax_keys{self.hides()}({inner})", f"tanh({inner})",
            f"lower_triangle[{chance.choice((-1, 0, 0, 1))}]({inner})", f"convolve_map[2]({inner})", f"{sums}({inner})",
            f"top_k_keys[1]({inner})", f"interpolate(tanh({inner}), {inner})",
        ]  # fmt: skip
        options += [f"transpose_map({inner})"] * 2 if is_square else []
        return chance.choice(options)

    def seen(self) -> list[str]:
        """Returns some values in scope, as sequences of the model's length, so that the result depends on them."""
        seen = [name for name in self.lengths if self.chance.random() < 0.5]
        shapes = {"n": "{}", "n / 2": "hold[2]({}, h)", "2 * n": "every[2]({})"}
        return [shapes.get(self.lengths[name], "attention[1, causal = true](h, {})").format(name) for name in seen]

    # Statements

    def statements(self, count: int) -> None:
        for _ in range(count):
            kinds = (self.assign, self.halt, self.halt, self.repeat, self.scan, self.scan)
            (self.assign if self.level > 2 else self.chance.choice(kinds))()

    def assign(self) -> None:
        length = self.chance.choice(list(self.lengths.values()))
        name = self.fresh("v")
        self.lines.append(f"{name} = {self.expression(length)}")
        self.lengths[name] = length
        self.movable.append(name)

    def repeat(self) -> None:
        states = self._some(self.movable)
        self._loop(f"repeat {self.chance.choice((1, 2, 3))}", states)

    def halt(self) -> None:
        states = self._some(self.movable)
        halted = self.chance.choice(states)
        mixture = self.fresh("s") if self.chance.random() < 0.3 else ""
        named = {mixture: self.lengths[halted]} if mixture else {}
        rule = f"{f' as {mixture}' if mixture else ''} by {self.chance.choice(_HALTING)}"
        self._loop(f"repeat {self.chance.choice((3, 4, 6))} halting {halted}{rule}", states, named)

    def _loop(self, head: str, states: Sequence[str], named: dict[str, str] | None = None) -> None:
        inner = _Writer(self.chance, {**self.lengths, **(named or {})}, self.movable, self.level + 1, self.fresh("_"))
        inner.statements(self.chance.choice((0, 0, 1)))
        for state in states:
            inner.move(state)
        self._close(head, inner)

    def scan(self) -> None:
        chance = self.chance
        over = chance.choice(list(self.lengths))
        carried = self._some(self.movable) if chance.random() < 0.8 else []
        variable, target = self.fresh("c"), self.fresh("y")
        lengths, after = {**self.lengths, variable: variable}, ""
        if chance.random() < 0.3:
            before = self.fresh("b")
            lengths[before] = before
            after = f" after {before}" + chance.choice(("", "[1]", "[3]"))
        memory = self.fresh("g") if chance.random() < 0.3 else ""
        if memory:
            self.lines.append(f"{memory} = linear[d]({chance.choice(('constant[0, d]()', *self.lengths))})")
            lengths[memory] = memory
        inner = _Writer(chance, lengths, [*carried, variable], self.level + 1, self.fresh("_"))
        inner.statements(chance.choice((0, 1, 1)))
        early = chance.random() < 0.5
        if early:
            inner.lines.append(f"emit {inner.glance(variable)}")
        for state in carried:
            inner.move(state)
        if not early:
            inner.lines.append(f"emit {inner.glance(variable)}")
        if memory:
            piece = chance.choice((inner.glance(variable), f"expand(mean({inner.glance(variable)}))"))
            inner.lines.append(f"{memory} <- append({memory}, {piece})")
        states = [*carried, f"{memory} growing"] if memory else carried
        carry = f" carry {', '.join(states)}" if states else ""
        self._close(f"{target} = scan {variable}{after} in chunks[{chance.choice((1, 2, 3, 4))}]({over}){carry}", inner)
        self.lengths[target] = self.lengths[over]
        self.movable.append(target)
        if memory:
            self.lengths[memory] = memory

    def move(self, name: str) -> None:
        moved = self.chance.choice((f"norm({name} + {{}})", f"({name} + 1)", "{}", name))
        self.lines.append(f"{name} <- {moved.format(self.glance(name))}")

    def glance(self, name: str) -> str:
        """Returns a sequence of the length of a value, in which the value often attends to another."""
        if self.chance.random() < 0.5:
            return self.expression(self.lengths[name])
        return f"attention[1]({name}, {self.chance.choice(list(self.lengths))})"

    def _some(self, names: Sequence[str]) -> list[str]:
        return self.chance.sample(list(names), min(len(names), self.chance.choice((1, 2, 2))))

    def _close(self, head: str, inner: _Writer) -> None:
        self.lines += [f"{head} {{", *(f"    {line}" for line in inner.lines), "}"]
