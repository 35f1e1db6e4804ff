"""Random statements, which nest every construct of the language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.semantics.expressions import ATTENTIONS, POINTWISE, Expressions
from tests.semantics.program_parts import NUMBER, Instance, Kind, Value


class Writer(Expressions):
    """Writes the statements of one body."""

    def bind(self, name: str, value: Value) -> None:
        self.values[name] = Value(name, value.kind, value.free)
        self.own.add(name)

    def write(self, line: str) -> None:
        self.lines.append("    " * self.level + line)

    def kind(self) -> Kind:
        """The kind of a new value."""
        width = self.chance.choice(("d", "d", "d", "2 * d", "3"))
        if self.chance.happens(0.12):
            return Kind("vec", width=width)
        lengths = [length for length in self.lengths() if not length.isdigit()] or ["3"]
        return Kind("seq", "3" if self.chance.happens(0.2) else self.chance.choice(lengths), width)

    def statements(self, count: int) -> None:
        for _ in range(count):
            if self.budget <= 0:
                return
            self.budget -= 1
            options: list[tuple[float, Callable[[], None]]] = [
                (3, self.assign), (0.7, self.assign_number), (1, self.let), (0.7, self.branch), (0.4, self.framed),
                (0.4, self.addressed), (0.4, self.halved), (0.3, self.loss), (0.6, self.experts),
                (0.5, self.gradient),
            ]  # fmt: skip
            if self.level < 4:
                options += [(2, self.repeat), (1.2, self.stack), (2, self.halting), (2.5, self.scan)]
            weights, actions = zip(*options, strict=True)
            self.chance.choices(actions, weights)[0]()

    def assign(self) -> None:
        kind = self.kind()
        value = self.data(kind)
        name = self.names.fresh("v")
        self.write(f"{name} = {_bare(value.text)}")
        self.bind(name, value)

    def assign_number(self) -> None:
        name, value = self.names.fresh("q"), self.number(2)
        self.write(f"{name} = {_bare(value.text)}")
        self.bind(name, value)

    def let(self) -> None:
        name, chance = self.names.fresh("f"), self.chance
        width = chance.choice(("d", "d", "2 * d"))
        match chance.randrange(4):
            case 0:
                self.write(f"let {name} = linear[{width}]")
                self.instances.append(Instance(name, ("data", "d"), width, free=True))
            case 1:
                causal = self.style.causal or chance.happens(0.3)
                block = chance.choice(tuple(ATTENTIONS))
                self.write(f"let {name} = {block}[1{', causal = true' if causal else ''}]")
                self.instances.append(Instance(name, ("seq", width), width, free=causal))
            case 2 if not self.routes and any(not (block.memory or block.pooled) for block in self.style.blocks):
                composed = chance.choice([block for block in self.style.blocks if not (block.memory or block.pooled)])
                self.write(f"let {name} = {composed.name}")
                self.instances.append(Instance(name, ("seq", width), width, free=composed.causal))
            case _:
                self.write(f"let {name} = {chance.choice(POINTWISE)}")
                self.instances.append(Instance(name, ("data", width), width, free=True))

    def branch(self) -> None:
        kind, name = self.kind(), self.names.fresh("b")
        then, otherwise = self.data(kind), self.data(kind)
        self.write(f"if {self.test()} {{ {name} = {_bare(then.text)} }} else {{ {name} = {_bare(otherwise.text)} }}")
        self.bind(name, Value(name, kind, then.free and otherwise.free))

    def framed(self) -> None:
        """A sequence that is two positions longer."""
        lengths = [length for length in self.lengths() if length in ("n", "m")]
        if not lengths:
            return self.assign()
        kind = Kind("seq", self.chance.choice(lengths), "d")
        value, name = self.data(kind), self.names.fresh("framed")
        match self.chance.randrange(4):
            case 0:
                text = f"pad[before = {self.chance.choice(('0, after = 2', '1, after = 1'))}]({_bare(value.text)})"
            case 1:
                memory = self.memory(1)
                parts = [value.text, f"slice[{self.chance.choice(('0', '1', '-2'))}, 2](linear[d]({memory.text}))"]
                text = f"append({', '.join(self.chance.sample(parts, 2))})"
                value = replace(value, free=value.free and memory.free)
            case 2:
                vector = self.start("d", 1)
                text = f"append(expand({vector.text}), append({value.text}, learned[1, d, init = normal]()))"
                value = replace(value, free=value.free and vector.free)
            case _:
                text = f"start_end({_bare(value.text)})"
        self.write(f"{name} = {text}")
        self.bind(name, Value(name, replace(kind, length=f"{kind.length} + 2"), value.free))
        return None

    def experts(self) -> None:
        """Experts that a soft or a sparse choice routes. Their body has no auxiliary loss and no halting loop."""
        chance, kind = self.chance, self.kind()
        over = self.data(kind, 1)
        if chance.happens(0.6):
            weights = self.data(Kind(kind.name, kind.length, "3"), 1)
            chosen = chance.choice(("softmax({w}) * top_k[1]({w})", "tanh({w}) * top_k[2]({w})", "sigmoid({w})"))
            by = Value(chosen.format(w=weights.text), weights.kind, weights.free)
        else:
            by = self.data(Kind(kind.name, kind.length, chance.choice(("3", "d"))), 1)
        variable, target = self.names.fresh("e"), self.names.fresh("y")
        values = {
            name: value
            for name, value in self.values.items()
            if value.free or value.kind == NUMBER or not self.style.causal
        }
        values[variable] = Value(variable, Kind("vec", width=over.kind.width))
        inner = self.inner(tuple(values.values()), [variable])
        inner.own.add(variable)
        inner.routes, inner.instances = True, []
        inner.statements(chance.choice((0, 0, 1, 2)))
        emission = inner.data(Kind("vec", width=chance.choice(("d", over.kind.width))), 2)
        inner.write(f"emit {_bare(emission.text)}")
        self.close(f"{target} = experts {variable} in {_bare(over.text)} by {_bare(by.text)}", inner)
        self.bind(target, Value(target, replace(kind, width=emission.kind.width), over.free and by.free))

    def gradient(self) -> None:
        """The gradient of a loss of each sample or position. In a causal program, the loss of a position reads the
        value there only, unless the value may be read in full."""
        kind, chance = self.kind(), self.chance
        source, other = self.data(kind, 1), self.data(kind, 1)
        name, target, free = self.names.fresh("w"), self.names.fresh("g"), source.free and other.free
        self.write(f"{name} = tanh({source.text})")
        self.bind(name, Value(name, kind, source.free))
        loss = f"sum_features(tanh(linear[3]({name})) * linear[3]({other.text}))"
        if not self.style.causal and chance.happens(0.4):
            routes, self.routes = self.routes, True  # a loss has no halting loops
            loss = f"sum_features(silu({self.data(kind, 2).text} + {name}))"
            self.routes = routes
        if kind.name == "seq" and (free or not self.style.causal) and chance.happens(0.4):
            loss = f"mean({loss})"
        self.write(f"{target} = gradient({loss}, {name})")
        self.bind(target, Value(target, kind, free))

    def loss(self) -> None:
        """An auxiliary loss, which may read the future in a causal program too."""
        if self.routes:
            return self.assign()
        lengths = self.lengths()
        if self.level and self.chance.happens(0.3):
            text = f"linear[1]({self.start('d', 1).text})"
        else:
            text = f"mean(linear[1]({self.data(Kind('seq', self.chance.choice(lengths), 'd'), 1).text}))"
        self.write(f"loss {self.chance.choice(('balance', 'entropy', 'depth'))} = tanh({text})")
        return None

    def addressed(self) -> None:
        kind = Kind("seq", self.chance.choice(self.lengths()), "d")
        value, name = self.data(kind, 1), self.names.fresh("address")
        self.write(f"{name} = addresses[bits = 3, base = zero]({_bare(value.text)})")
        self.bind(name, Value(name, Kind("address", kind.length)))

    def halved(self) -> None:
        """Binds chunks to a name."""
        kind = Kind("seq", self.chance.choice(self.lengths()), "d")
        value, name = self.data(kind, 1), self.names.fresh("cut")
        self.write(f"{name} = chunks[{self.size()}]({_bare(value.text)})")
        self.bind(name, Value(name, Kind("chunks", kind.length, "d"), value.free))

    def size(self) -> str:
        """The size of chunks."""
        if not self.style.causal and self.chance.happens(0.1):
            return self.chance.choice(("count = 2", "3, balanced = true"))
        return self.count()

    def count(self) -> str:
        return self.chance.choice(("1", "2", "3", "4", "9", "times + 1"))

    def inner(self, values: Sequence[Value], states: Sequence[str]) -> Writer:
        budget = self.budget // 2
        self.budget -= budget
        inner = Writer(self.chance, self.names, self.style, values, self.instances, states, budget, self.level + 1)
        inner.routes = self.routes
        return inner

    def states(self, numbers: bool) -> list[str]:
        """Some of the names that a loop may update."""
        kinds = ("seq", "vec", "address", *(("number",) if numbers else ()))
        possible = sorted(name for name in self.movable | self.own if self.values[name].kind.name in kinds)
        chosen = self.chance.sample(possible, min(len(possible), self.chance.choice((1, 1, 2, 3))))
        memories = [name for name in possible if self.values[name].kind.length.isdigit() and name not in chosen]
        return [*chosen, *memories[:1]] if self.chance.happens(0.4) else chosen

    def move(self, name: str) -> None:
        """The next value of a state."""
        before = self.values[name]
        if before.kind == NUMBER:
            value = Value(f"{name} {self.chance.choice(('+ 1', '* 0.5', '- 0.5', '/ 2'))}", NUMBER, free=True)
        elif self.chance.happens(0.08) or before.kind.length not in ("", *self.lengths()):
            value = before
        elif before.kind.name == "address":
            memory = self.leaf(Kind("seq", before.kind.length, "d"))
            value = Value(f"addresses[bits = 3, base = zero]({memory.text})", before.kind)
        else:
            value = self.data(before.kind)
            if self.chance.happens(0.6):
                value = Value(f"{self.chance.choice(('norm', 'tanh'))}({before.text} + {value.text})", before.kind)
        self.write(f"{name} <- {_bare(value.text)}")
        self.values[name] = Value(name, before.kind, before.free and (value.free))

    def body(self, inner: Writer, states: Sequence[str]) -> None:
        """Writes statements, then an update of each state that none of them updates."""
        for name in self.chance.sample(states, len(states)):
            inner.statements(self.chance.choice((0, 1, 1, 2)))
            inner.move(name)
        if self.chance.happens(0.2):
            inner.statements(1)
        for name in states:
            before = self.values[name]
            self.values[name] = replace(before, free=before.free and inner.values[name].free)

    def close(self, head: str, inner: Writer) -> None:
        self.write(f"{head} {{")
        self.lines += inner.lines
        self.write("}")

    def repeat(self) -> None:
        self.plain("repeat")

    def stack(self) -> None:
        self.plain("stack")

    def plain(self, word: str) -> None:
        states = self.states(numbers=True)
        if not states:
            return self.assign()
        inner = self.inner(tuple(self.values.values()), states)
        self.body(inner, states)
        of_step = ""
        divided = [name for name in states if self.values[name].kind.name != "address"]
        if word == "stack" and divided and self.chance.happens(0.3):
            index, state = self.names.fresh("i"), self.chance.choice(divided)
            of_step = f" as {index}"
            inner.write(f"if {index} % 2 == 1 {{ {state} <- {state} / {index} }} else {{ {state} <- {state} * 0.5 }}")
        counts: tuple[str, ...] = ("0", "1", "2", "2", "3", "times", "times - 1")
        target, emission = "", None
        if self.chance.happens(0.3):
            target, emission, counts = self.names.fresh("y"), inner.data(self.kind()), ("1", "2", "3", "times")
            inner.write(f"emit {_bare(emission.text)}")
        count = self.chance.choice(counts)
        if word == "repeat" and count in "123" and self.chance.happens(0.3):
            is_one = count == "1" and self.chance.happens(0.5)
            count += f" drawn by {'log_normal_poisson[1, 100.0]' if is_one else f'uniform_steps[1, {count}]'}"
        truncated = f" truncated {self.chance.choice('0112')}" if word == "repeat" and self.chance.happens(0.3) else ""
        truncated += " settled" if word == "repeat" and self.chance.happens(0.2) else ""
        head = f"{f'{target} = ' if target else ''}{word} {count}{of_step}{truncated}"
        self.close(head, inner)
        if emission is not None:
            self.bind(target, emission)
        return None

    def halting(self) -> None:
        """A halting loop; some of its states have other lengths, or no positions."""
        chance = self.chance
        if self.routes:
            return self.assign()
        states = self.states(numbers=False)
        halted = [name for name in states if self.values[name].kind.name == "seq"]
        if not halted:
            return self.assign()
        state = chance.choice(halted)
        by_chance = chance.happens(0.2)
        if by_chance:
            of = self.values[chance.choice(halted)].kind if chance.happens(0.5) else None
            state = self.names.fresh("p")
            first = self.probability(of)
            self.write(f"{state} = {first.text}")
            self.bind(state, first)
        values = dict(self.values)
        mixture = ""
        if chance.happens(0.4):
            name = self.names.fresh("s")
            mixture = f" as {name}"
            values[name] = Value(name, self.values[state].kind)
        inner = self.inner(tuple(values.values()), [*states, *([state] if by_chance else [])])
        self.body(inner, states)
        if by_chance:
            states.append(state)
            inner.write(f"{state} <- {inner.probability(of).text}")
        limit = chance.choice(("0", "1", "3", "4", "5", "times + 1"))
        target, emission = "", None
        if limit != "0" and chance.happens(0.4):
            target, emission = self.names.fresh("y"), inner.data(self.kind())
            inner.write(f"emit {_bare(emission.text)}")
        head = f"{f'{target} = ' if target else ''}repeat {limit} halting {state}{mixture}"
        by = self.halting_block()
        if by_chance:
            is_sample = self.values[state].kind.name == "vec"
            by = f"bernoulli_halt[{chance.choice(('median', 'never'))}]"
            by = by if is_sample else f"bernoulli_token_halt[{chance.choice(('quantile, 0.7', 'never'))}]"
        self.close(f"{head} by {by}", inner)
        for name in states:
            self.values[name] = replace(self.values[name], free=False)
        if emission is not None:
            self.bind(target, replace(emission, free=False))
        return None

    def probability(self, of: Kind | None) -> Value:
        """A probability for the sample, or for each position of a kind."""
        if of is not None:
            value = self.data(of, 1)
            return replace(value, text=f"sigmoid(linear[1]({_bare(value.text)}))", kind=replace(of, width="1"))
        value = self.start("d", 1) if self.style.causal else self.data(Kind("vec", width="d"), 1)
        return Value(f"sigmoid(linear[1]({_bare(value.text)}))", Kind("vec", width="1"), value.free)

    def halting_block(self) -> str:
        chance = self.chance
        block = chance.choice(("token_halt", "global_halt", "act"))
        if block == "act":
            statics = [chance.choice(("graves", "dehghani")), f"epsilon = {chance.choice(('0.01', '0.3', '0.5'))}"]
            if chance.happens(0.6):
                statics.append("ponder = equation")
        else:
            statics = [chance.choice(("0.5", "0.8", "0.95", "1.0"))]
            statics += [
                static
                for static in ("transition = true", "length_cap = false", "ponder = equation")
                if chance.happens(0.3)
            ]
            if block == "global_halt" and (self.style.causal or chance.happens(0.3)):
                statics.append("causal = true")
        return f"{block}[{', '.join(statics)}]"

    def scan(self) -> None:
        chance = self.chance
        over, scanned, is_cut = self.over()
        carried = self.states(numbers=False) if chance.happens(0.7) else []
        emits = not carried or chance.happens(0.8)
        variable = self.names.fresh("c")
        values = {
            name: value
            for name, value in self.values.items()
            if name in carried or value.free or value.kind == NUMBER or not self.style.causal
        }
        part = Kind("seq", f"{variable}.length", over.width) if is_cut else Kind("vec", width=over.width)
        values[variable] = Value(variable, part)
        after = ""
        if chance.happens(0.3):
            before = self.names.fresh("b")
            after = f" after {before}" + (f"[{self.count()}]" if chance.happens(0.6) else "")
            values[before] = Value(before, Kind("seq", f"{before}.length", over.width), free=True)
        others = ""
        if not is_cut and not after and chance.happens(0.4):
            further, kind = self.names.fresh("c"), replace(over, width=chance.choice(("d", "2 * d", "1")))
            others = f", {further} in {_bare(self.data(kind, 1).text)}"
            values[further] = Value(further, Kind("vec", width=kind.width))
        memory = self.empty_memory() if chance.happens(0.35) else ""
        if memory:
            values[memory] = Value(memory, Kind("seq", f"{memory}.length", "d"), free=True)
        twin = self.names.fresh("g") if memory and chance.happens(0.4) else ""
        if twin:
            self.write(f"{twin} = tanh({memory})")
            values[twin] = replace(values[memory], text=twin)
        inner = self.inner(tuple(values.values()), [*carried, variable])
        inner.own.add(variable)
        emission: Value | None = None
        if emits and chance.happens(0.5):
            emission = inner.data(replace(part, width=chance.choice(("d", over.width))))
            inner.write(f"emit {_bare(emission.text)}")
        if chance.happens(0.3):
            inner.move(variable)
        self.body(inner, carried)
        if emits and emission is None:
            emission = inner.data(replace(part, width=chance.choice(("d", over.width))))
            inner.write(f"emit {_bare(emission.text)}")
        if memory:
            inner.append(memory, part)
        if twin:
            inner.write(f"{twin} <- linear[d]({memory})")
        together = " and ".join(filter(None, (memory, twin)))
        states = [*carried, f"{together} growing"] if memory else carried
        carry = f" carry {', '.join(states)}" if states else ""
        carry += f" truncated {chance.choice('123')}" if states and chance.happens(0.2) else ""
        target = self.names.fresh("y") if emission is not None else ""
        self.close(f"{f'{target} = ' if target else ''}scan {variable}{after} in {scanned}{others}{carry}", inner)
        for name in carried:
            self.values[name] = replace(self.values[name], free=False)
        if emission is not None:
            self.bind(target, Value(target, replace(over, width=emission.kind.width)))
        for name in filter(None, (memory, twin)):
            self.read(name)

    def empty_memory(self) -> str:
        """Writes the first value of a growing state, and returns its name."""
        name = self.names.fresh("g")
        start = self.chance.choice(("constant[0, d]()", "learned[2, d, init = normal]()", self.memory(1).text))
        self.write(f"{name} = linear[d]({_bare(start)})")
        return name

    def append(self, memory: str, part: Kind) -> None:
        """Writes the update of a growing state, in a scan over parts of a kind."""
        chance = self.chance
        pieces = [f"expand({self.data(Kind('vec', width='d')).text})", f"slice[-2, 2](linear[d]({memory}))"]
        pieces += [self.data(replace(part, width="d")).text] * 2 if part.name == "seq" else []
        added = chance.choice(pieces)
        grown = f"append({memory}, {added})" if chance.happens(0.8) else f"append({added}, {memory})"
        if chance.happens(0.3):
            grown = f"append(norm({grown}), {chance.choice(pieces)})"
        self.write(f"{memory} <- {grown}")

    def read(self, memory: str) -> None:
        """Writes values that read a growing state after its scan. Its length has no name."""
        name = self.names.fresh("v")
        kind = Kind("seq", self.chance.choice(self.lengths()), "d")
        if self.chance.happens(0.5):
            kind = Kind("vec", width="d")
            self.write(f"{name} = {self.chance.choice(('mean', 'last', 'first'))}({memory})")
        else:
            self.write(f"{name} = attention[1]({_bare(self.data(kind, 1).text)}, {memory})")
        self.bind(name, Value(name, kind))

    def over(self) -> tuple[Kind, str, bool]:
        """What a scan takes parts of: its kind as a sequence, its text, and whether it is cut into chunks."""
        named = [value for value in self.values.values() if value.kind.name == "chunks"]
        if named and self.chance.happens(0.5):
            value = self.chance.choice(named)
            return Kind("seq", value.kind.length, value.kind.width), value.text, True
        slots = [length for length in self.lengths() if length.isdigit()] or ["3"]
        length = self.chance.choice(slots if self.chance.happens(0.3) else self.lengths())
        kind = Kind("seq", length, self.chance.choice(("d", "d", "2 * d")))
        text = _bare(self.data(kind, 1).text)
        return (kind, text, False) if self.chance.happens(0.4) else (kind, f"chunks[{self.size()}]({text})", True)

    def total(self, kind: Kind) -> Value:
        """A value of a kind that uses many values in scope."""
        named = self.named(kind)
        chosen = self.chance.sample(named, min(len(named), 4))
        parts = [*(value.text for value in chosen), self.data(kind).text]
        others = [value for value in self.values.values() if value.kind.name == "seq" and value.kind.width == "d"]
        others = [
            value for value in others if value.kind.length != kind.length and (value.free or not self.style.causal)
        ]
        if kind.name == "seq" and others and self.chance.happens(0.6):
            parts.append(f"attention[1]({parts[0]}, {self.chance.choice(others).text})")
        vectors = [value for value in self.named(Kind("vec", width=kind.width)) if value.free or not self.style.causal]
        if kind.name == "seq" and vectors and self.chance.happens(0.5):
            parts.append(f"gru[{kind.width}]({parts[0]}, {self.chance.choice(vectors).text})")
        return Value(" + ".join(parts), kind)


def _bare(text: str) -> str:
    """Removes the parentheses around a whole expression."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text
