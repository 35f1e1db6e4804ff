"""Random well-typed programs: blocks and a model `m` that nest every construct, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

# Names that a program may use and that mean something in the language, in Python or in what the compiler writes.
NASTY = (
    "self", "A", "a", "aa", "halting", "carry", "by", "as", "batch", "mask", "mask_n", "inf", "nan", "torch", "device",
    "forward", "block", "model", "tokens", "seq", "number", "number_2", "classify", "lambda", "class", "def", "None",
    "import", "value", "values", "states", "chunk", "outer", "training", "weight", "pytree", "result", "result_2",
    "norm_2", "_", "__", "add", "part", "x_1", "ponder", "depth", "recipe", "use", "pure", "reads", "where", "owner",
)  # fmt: skip
POINTWISE = (
    "norm", "norm[1e-3]", "tanh", "relu", "gelu", "silu", "sigmoid", "softplus", "abs", "feedforward[3]",
    "feedforward[4, activation = gelu]", "feedforward[3, bias = -3]", "gate[3]", "dropout[0.0]", "softmax", "detach",
    "log[0.1]", "noise[0.0]", "gumbel_noise[0.0]", "uniform_noise[0.0]", "clamp", "greater", "equal", "rms_norm",
    "unit_norm", "group_norm[1]",
)  # fmt: skip
REDUCTIONS = ("sum_features", "max_features", "min_features", "product_features", "length_features")
ATTENTIONS = {
    "attention": (
        "position = none",
        "position = absolute",
        "position = rotary",
        "position = xpos",
        "padded = computed",
    ),
    "geometric_attention": ("normalised = true", "head_dim = 2"),
    "relative_attention": ("scale = learned", "head_dim = 2"),
    "absrel_attention": ("gates = shared", "scale = fixed"),
}
LITERALS = ("0", "1", "2", "3", "0.5", "1.5", "1e-3", "10", "-1")


@dataclass(frozen=True)
class Kind:
    """A type as text: `seq`, `vec`, `number`, `tokens`, `chunks` or `address`, with a length and a width."""

    name: str
    length: str = ""
    width: str = ""


NUMBER = Kind("number")


@dataclass(frozen=True)
class Value:
    """A name or an expression, of a kind. A causal model may read a `free` value in full: it depends on no token of the
    current chunk, or on none at all."""

    text: str
    kind: Kind
    free: bool = False


@dataclass(frozen=True)
class Instance:
    """An instance that `let` names, with the type of its argument and the width of its result."""

    name: str
    takes: tuple[str, str]  # "seq" or "data", and the width
    width: str
    free: bool  # whether it reads pointwise or causally


@dataclass(frozen=True)
class BlockSignature:
    """A composed block of the program. Its first input is seq[n, d]; `memory` says that it has a second input."""

    name: str
    memory: bool
    pooled: bool
    causal: bool
    statics: tuple[str, ...]


@dataclass
class Chance(random.Random):
    """A random number generator that draws events."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)

    def happens(self, probability: float) -> bool:
        return self.random() < probability


@dataclass
class Names:
    """Fresh names of one definition; some are in NASTY."""

    chance: Chance
    taken: set[str] = field(default_factory=set)
    count: int = 0

    def fresh(self, stem: str) -> str:
        nasty = [name for name in NASTY if name not in self.taken]
        if nasty and self.chance.happens(0.15):
            name = self.chance.choice(nasty)
        else:
            self.count += 1
            name = f"{stem}{self.count}"
        self.taken.add(name)
        return name


@dataclass(frozen=True)
class Style:
    """The style of a program: whether it is causal, and the blocks that it may apply. A `bold` program reads values in
    full that may have seen the future, so that the checker rejects some programs."""

    causal: bool
    bold: bool = False
    blocks: tuple[BlockSignature, ...] = ()
    statics: tuple[str, ...] = ("times", "flag", "rate")
    block_static: str = ""


class Writer:
    """Writes the statements of one body. `movable` are the states that the body may update, `values` those in scope."""

    def __init__(
        self,
        chance: Chance,
        names: Names,
        style: Style,
        values: Sequence[Value],
        instances: Sequence[Instance],
        movable: Sequence[str],
        budget: int,
        level: int,
    ) -> None:
        self.chance = chance
        self.names = names
        self.style = style
        self.values = {value.text: value for value in values}
        self.instances = list(instances)
        self.movable = set(movable)
        self.own: set[str] = set()
        self.budget = budget
        self.level = level
        self.lines: list[str] = []
        self.routes = False  # whether experts are around: charges and halting loops have no meaning there

    # Expressions

    def named(self, kind: Kind) -> list[Value]:
        return [value for value in self.values.values() if value.kind == kind]

    def lengths(self) -> list[str]:
        """The lengths of the sequences in scope; 3 if there are none, because a program can always learn a sequence."""
        lengths = {value.kind.length for value in self.values.values() if value.kind.name in ("seq", "tokens")}
        return sorted(lengths) or ["3"]

    def leaf(self, kind: Kind) -> Value:
        """A short expression of a kind."""
        chance = self.chance
        if kind == NUMBER:
            return self.number(0)
        named = self.named(kind)
        if named and not (kind.name == "seq" and kind.length.isdigit() and chance.happens(0.2)):
            return chance.choice(named)
        if kind.name == "vec":
            return self.pooled(kind, 0)
        tokens = self.named(Kind("tokens", kind.length))
        if tokens:
            block = "embed" if not chance.happens(0.15) else "zeros"
            return Value(f"{block}[{kind.width}]({chance.choice(tokens).text})", kind, free=block == "zeros")
        others = [v for v in self.values.values() if v.kind.name == "seq" and v.kind.length == kind.length]
        if others and not kind.length.isdigit():
            source = chance.choice(others)
            return Value(f"linear[{kind.width}]({source.text})", kind, source.free)
        assert kind.length.isdigit(), f"nothing has the length {kind.length}"
        if kind.length == "3" and kind.width == "3" and chance.happens(0.3):
            return Value("transpose[3](learned[3, 3, init = normal]())", kind, free=True)
        init = ", init = normal" if chance.happens(0.8) else ""
        return Value(f"learned[{kind.length}, {kind.width}{init}]()", kind, free=True)

    def data(self, kind: Kind, depth: int = 2) -> Value:
        """An expression for a sequence or a vector."""
        if depth <= 0 or self.chance.happens(0.2):
            return self.leaf(kind)
        options: list[Callable[[Kind, int], Value]] = [self.arithmetic, self.pointwise, self.linear, self.with_number]
        options += [self.pointwise, self.composed, self.shared, self.chosen, self.piped, self.joined, self.broadcast]
        options += [self.routed] if self.chance.happens(0.3) else []
        if kind.name == "seq":
            options += [self.attended, self.attended, self.recurrent, self.ordered, self.pointed, self.weighed]
            options += [self.mixed] if self.chance.happens(0.5) else []
        else:
            options += [self.pooled]
        return self.chance.choice(options)(kind, depth - 1)

    def arithmetic(self, kind: Kind, depth: int) -> Value:
        left, right = self.data(kind, depth), self.data(kind, depth)
        free = left.free and right.free
        match self.chance.randrange(6):
            case 0:
                return Value(f"({left.text} - {right.text})", kind, free)
            case 1:
                return Value(f"(tanh({left.text}) * {right.text})", kind, free)
            case 2:
                return Value(f"({left.text} / (softplus({right.text}) + 1))", kind, free)
            case 3:
                return Value(f"(-{left.text} + {right.text})", kind, free)
        return Value(f"({left.text} + {right.text})", kind, free)

    def broadcast(self, kind: Kind, depth: int) -> Value:
        """Arithmetic with a feature of size 1 or, for a sequence, with a vector."""
        wide, source = self.data(kind, depth), self.data(kind, depth - 1)
        reduction = self.chance.choice(("linear[1]", "linear[1]", *REDUCTIONS))
        narrow = Value(f"tanh({reduction}({source.text}))", kind, source.free)
        if kind.name == "seq" and self.chance.happens(0.6):
            vector = self.start(kind.width, depth - 1)
            if self.chance.happens(0.3):  # an outer product
                wide = vector
            else:
                width_one = self.chance.happens(0.3)
                narrow = Value(f"linear[1]({vector.text})", kind, vector.free) if width_one else vector
        left, right = self.chance.sample((wide, narrow), 2)
        free = left.free and right.free
        if self.chance.happens(0.2):
            return Value(f"({left.text} / (softplus({right.text}) + 1))", kind, free)
        return Value(f"({left.text} {self.chance.choice('+-*')} {right.text})", kind, free)

    def with_number(self, kind: Kind, depth: int) -> Value:
        value, number = self.data(kind, depth), self.number(1)
        operator = self.chance.choice(("+", "-", "*", "/"))
        if operator == "/":
            number = Value(self.chance.choice(("2", "0.5", "(1 / 0)", "(3 - 1)")), NUMBER)
        if operator in "+-" and self.chance.happens(0.3):
            return Value(f"({number.text} {operator} {value.text})", kind, value.free)
        return Value(f"({value.text} {operator} {number.text})", kind, value.free)

    def number(self, depth: int) -> Value:
        named = [value.text for value in self.named(NUMBER)]
        statics = [static for static in ("times", "rate") if static in self.style.statics]
        text = self.chance.choice((*LITERALS, *named, *named, *statics))
        if depth and self.chance.happens(0.4):
            operand = self.chance.choice((*LITERALS, *named, *statics))
            text = f"({text} {self.chance.choice('+-*')} {operand})"
        return Value(text, NUMBER, free=True)

    def pointwise(self, kind: Kind, depth: int) -> Value:
        value = self.data(kind, depth)
        if self.chance.happens(0.1):
            return Value(f"exp(tanh({value.text}))", kind, value.free)
        if self.chance.happens(0.05):
            other, operation = self.data(kind, depth - 1), self.chance.choice(("two", "decrement", "add", "less"))
            text = f"integer_arithmetic[{operation}](softmax({value.text}), softmax({other.text}))"
            return Value(text, kind, value.free and other.free)
        if self.chance.happens(0.2):
            update, state = self.data(kind, depth - 1), self.leaf(kind)
            gate = "copy_gate[0.0]" if self.chance.happens(0.3) else "copy_gate"
            free = value.free and update.free and state.free
            return Value(f"{gate}(sigmoid({value.text}), {update.text}, {state.text})", kind, free)
        if self.style.block_static and not self.routes and kind.name == "seq" and self.chance.happens(0.3):
            return Value(f"{self.style.block_static}({value.text})", kind)
        return Value(f"{self.chance.choice(POINTWISE)}({value.text})", kind, value.free)

    def routed(self, kind: Kind, depth: int) -> Value:
        """The largest of some features, with a gradient or without."""
        source = self.data(kind, depth)
        if self.chance.happens(0.5):
            part = self.chance.choice(("slice_features[1, 2]", "repeat_features[2]", "tile_features[2]"))
            return Value(f"linear[{kind.width}]({part}({source.text}))", kind, source.free)
        statics = self.chance.choice(("1", "2", "2, straight_through = true"))
        return Value(f"linear[{kind.width}](top_k[{statics}](linear[3]({source.text})))", kind, source.free)

    def linear(self, kind: Kind, depth: int) -> Value:
        source = self.data(replace(kind, width=self.chance.choice(("d", "2 * d", "3"))), depth)
        block = self.chance.choice(
            ("linear[{}]", "linear[{}, bias = false]", "mlp[3, {}]", "mlp[hidden = 4, out = {}]")
        )
        return Value(f"{block.format(kind.width)}({source.text})", kind, source.free)

    def joined(self, kind: Kind, depth: int) -> Value:
        if kind.width == "2 * d":
            left, right = self.data(replace(kind, width="d"), depth), self.data(replace(kind, width="d"), depth)
            return Value(f"concat({left.text}, {right.text})", kind, left.free and right.free)
        parts = [self.data(kind, depth - 1) for _ in range(3)]
        text = ", ".join(part.text for part in parts)
        return Value(f"linear[{kind.width}](concat({text}))", kind, all(part.free for part in parts))

    def piped(self, kind: Kind, depth: int) -> Value:
        value = self.data(kind, depth)
        stages = [self.chance.choice(POINTWISE) for _ in range(self.chance.randint(1, 2))]
        return Value(f"({' |> '.join((value.text, *stages))})", kind, value.free)

    def chosen(self, kind: Kind, depth: int) -> Value:
        then, otherwise = self.data(kind, depth), self.leaf(kind)
        test = self.test()
        return Value(f"({then.text} when {test} else {otherwise.text})", kind, then.free and otherwise.free)

    def test(self) -> str:
        return self.chance.choice(("flag", "not flag", "times > 1", "times == 2 and flag", "rate < 1"))

    def attended(self, kind: Kind, depth: int) -> Value:
        """Attention to the same sequence or to another. A causal program masks later keys, or attends to a value
        without them."""
        if kind.width not in ("d", "2 * d"):
            return self.linear(kind, depth)
        chance, causal = self.chance, self.style.causal
        query = self.data(kind, depth)
        name = chance.choice((*ATTENTIONS, "attention"))
        options = [str(chance.randint(1, 2)), *([chance.choice(ATTENTIONS[name])] if chance.happens(0.5) else [])]
        sequences = [value for value in self.values.values() if value.kind.name == "seq"]
        memories = [value for value in sequences if value.free]
        if self.style.bold and chance.happens(0.3):
            memories += [value for value in sequences if value.kind.length != kind.length]
        if causal and memories and chance.happens(0.5):
            memory = chance.choice(memories)
            return Value(f"{name}[{', '.join(options)}]({query.text}, {memory.text})", kind, query.free)
        if causal or chance.happens(0.3):
            options.append("causal = true")
            if name == "attention" and len(options) == 2 and chance.happens(0.2):
                options.append("position = alibi")
            if chance.happens(0.5):
                return Value(f"{name}[{', '.join(options)}]({query.text})", kind, query.free)
            keys = self.data(Kind("seq", kind.length, "d"), depth)
            return Value(f"{name}[{', '.join(options)}]({query.text}, {keys.text})", kind, query.free and keys.free)
        keys = self.data(Kind("seq", chance.choice(self.lengths()), "d"), depth)
        if not keys.kind.length.isdigit() and chance.happens(0.15):
            keys = Value(f"start_end({keys.text})", keys.kind)
        return Value(f"{name}[{', '.join(options)}]({query.text}, {keys.text})", kind)

    def weighed(self, kind: Kind, depth: int) -> Value:
        """Attention written with maps, to the same positions or to a memory that may be read in full."""
        if kind.width not in ("d", "2 * d"):
            return self.linear(kind, depth)
        chance, heads = self.chance, self.chance.choice(("1", "2"))
        query = self.data(kind, depth)
        is_own = chance.happens(0.6)
        keys = self.data(kind, depth - 1) if is_own else self.memory(depth - 1)
        keys = replace(keys, text=f"linear[{kind.width}]({keys.text})")
        hides = "[causal = true]" if is_own and (self.style.causal or chance.happens(0.3)) else ""
        scores = self.pairs(query.text, keys.text, heads, is_own, 2)
        if is_own and not hides and chance.happens(0.3):
            scores = f"transpose_map({scores})"
        within = f"lower_triangle[{chance.choice(('0', '-1', '-2'))}]({scores})" if hides else scores
        sums = chance.choice(("", "exclusive = true", "backward = true", "backward = true, exclusive = true"))
        total = f"cumulative_sum_keys{f'[{sums}]' if sums else ''}({within})"
        chosen = f"top_k_keys[2{', causal = true' if hides else ''}]({scores})"
        options = [
            f"softmax_keys{hides}({scores})", f"softmax_keys{hides}({scores})", f"tanh({total})", f"sigmoid({within})",
            f"masked_softmax_keys{hides}({scores}, {chosen})", f"tanh({within})",
            f"interpolate(tanh({within}), {total})",
            *([] if hides else [f"softmax_queries({scores})"]),
        ]  # fmt: skip
        weights = chance.choice(options)
        if chance.happens(0.2):
            text = f"linear[{kind.width}](sum_keys{hides}({weights}))"
        else:
            text = f"weigh{hides}({weights}, {keys.text})"
        return Value(text, kind, query.free and keys.free and not is_own)

    def mixed(self, kind: Kind, depth: int) -> Value:
        """A linear recurrence, or another causal block of the library."""
        if kind.width not in ("d", "2 * d"):
            return self.linear(kind, depth)
        width, value = kind.width, self.data(kind, depth)
        x, gate = f"tanh({value.text})", f"linear[2]({value.text})"
        key, decay, beta = f"unit_norm[2]({x})", f"-softplus({gate})", f"sigmoid({gate})"
        half = "d" if width == "2 * d" else "d / 2"
        state = f"constant[{half}, {width}, 0.5]()"
        rest = f"-softplus({x}), -0.1 * {key}, 0.1 * {key}, {state}"
        vector = f"mean(head_columns[2]({self.start(width, 0).text}))"
        options = [
            f"retention[2]({x}, {key}, {x})", f"linear_attention[2]({x}, {key}, {x}, {decay})",
            f"delta_rule[2]({x}, {key}, {x}, {beta})", f"gated_delta_rule[2]({x}, {key}, {x}, {beta}, {decay})",
            f"linear_recurrence[2]({x}, {key}, {x}, {rest})", f"rotary_positions[2]({x})",
            f"linear[{width}](nondeterministic_stack[2, 2, 2]({x}))", f"linear[{width}](linear[2]({x}) * {vector})",
        ]  # fmt: skip
        if not self.style.causal:
            options += [f"({x} + mean(linear_recurrence_state[2]({key}, {x}, {rest})))"] * 2
        return Value(self.chance.choice(options), kind)

    def pairs(self, query: str, keys: str, heads: str, is_own: bool, depth: int) -> str:
        """An expression for a map, whose entry (i, j) depends on no position after i and j."""
        chance = self.chance
        options = [
            f"scores[{heads}]({query}, {keys})", f"scores[heads = {heads}]({query}, {keys})",
            f"outer_sum(linear[{heads}]({query}), linear[{heads}]({keys}))",
            f"(scores[{heads}]({query}, {keys}) + alibi_bias[{heads}]({query}, {keys}))",
            f"(scores[{heads}]({query}, {keys}) + relative_bias[{heads}, span = 2]({query}, {keys}))",
            f"(scores[{heads}]({query}, {keys}) * exp(-abs(distances({query}, {keys}))))",
            f"(scores[{heads}]({query}, {keys}) - 0.1 * distance_buckets(distances({query}, {keys})))",
        ]  # fmt: skip
        if depth:
            inner = self.pairs(query, keys, heads, is_own, depth - 1)
            options += [f"tanh({inner})", f"linear[{heads}]({inner})", f"(1 - {inner})", f"convolve_map[2]({inner})"]
            options += [f"transpose_map({inner})", f"lower_triangle({inner})"] if is_own else []
        return chance.choice(options)

    def recurrent(self, kind: Kind, depth: int) -> Value:
        if kind.width == "3":
            return self.linear(kind, depth)
        chance = self.chance
        source = self.data(replace(kind, width=chance.choice(("d", "3"))), depth)
        block = chance.choice(("lstm", "gru_from_zero", "stack_rnn", "gru", "bilstm", "attentive_gru"))
        if self.style.causal and block == "bilstm":
            block = "lstm"
        match block:
            case "stack_rnn":
                return Value(f"stack_rnn[{kind.width}, slots = 3, width = 2]({source.text})", kind, source.free)
            case "gru" | "attentive_gru":
                start = self.start(kind.width, depth)
                memory = f"{self.memory(depth).text}, " if block == "attentive_gru" else ""
                return Value(f"{block}[{kind.width}]({source.text}, {memory}{start.text})", kind, source.free)
            case "lstm" if chance.happens(0.3):
                return Value(f"lstm[{kind.width}, layers = 2]({source.text})", kind, source.free)
        return Value(f"{block}[{kind.width}]({source.text})", kind, source.free)

    def start(self, width: str, depth: int) -> Value:
        """A vector for an initial state."""
        kind = Kind("vec", width=width)
        if not self.style.causal:
            return self.data(kind, depth)
        named = [value for value in self.named(kind) if value.free]
        return (
            self.chance.choice(named)
            if named
            else Value(f"mean(learned[2, {width}, init = normal]())", kind, free=True)
        )

    def memory(self, depth: int) -> Value:
        """A sequence that may be read in full."""
        if not self.style.causal:
            return self.data(Kind("seq", self.chance.choice(self.lengths()), "d"), depth)
        named = [value for value in self.values.values() if value.kind.name == "seq" and value.free]
        kind = Kind("seq", "3", "d")
        return self.chance.choice(named) if named else Value("learned[3, d, init = normal]()", kind, free=True)

    def ordered(self, kind: Kind, depth: int) -> Value:
        value = self.data(kind, depth)
        if self.chance.happens(0.4):
            block = self.chance.choice(("shift", "shift[2]", "cumulative_sum", "indices"))
            text = f"exp(-0.1 * indices({value.text}))" if block == "indices" else f"{block}({value.text})"
            return Value(f"(tanh({value.text}) * {text})", kind, value.free)
        if not self.style.causal and self.chance.happens(0.4):
            return Value(
                f"{self.chance.choice(('shift[-1]', 'softmax_positions', 'top_k_positions[2]'))}({value.text})", kind
            )
        if self.style.causal or self.chance.happens(0.5):
            if kind.width not in ("d", "2 * d"):
                return value
            return Value(f"absolute_positions({value.text})", kind, value.free)
        if self.chance.happens(0.3):
            return Value(f"reverse(tanh(reverse({value.text})))", kind)
        return Value(f"reverse({value.text})", kind)

    def pointed(self, kind: Kind, depth: int) -> Value:
        """The data that pointers read from a memory, a relational read of it, or some of its positions."""
        if self.chance.happens(0.3):
            steps, memory = self.data(kind, depth - 1), self.memory(depth - 1)
            text = f"gather({memory.text}, 3 * sigmoid(linear[1]({steps.text})))"
            return Value(f"linear[{kind.width}]({text})", kind, steps.free and memory.free)
        if not self.chance.happens(0.4):
            return self.leaf(kind)
        chance, causal = self.chance, self.style.causal
        steps = self.data(kind, depth - 1)
        hides = ", causal = true" if causal else ""
        memory = self.leaf(Kind("seq", kind.length, "d")) if causal else self.memory(depth - 1)
        if chance.happens(0.4):
            form = chance.choice(("code", "paper"))
            read = f"relational_read[reads = 1, hidden = 3, form = {form}, dropout = 0.0{hides}]"
            return Value(f"linear[{kind.width}]({read}({steps.text}, {memory.text}))", kind)
        named = self.named(Kind("address", memory.kind.length))
        address = f"addresses[bits = {chance.choice(('2', '4'))}, base = zero]({memory.text})"
        if named and chance.happens(0.5):
            address = chance.choice(named).text
        form, pointers = chance.choice(("code", "paper")), chance.choice(("1", "2", "3"))
        unit = (
            f"pointer_unit[{pointers}, hidden = 4, form = {form}, address_hidden = 3{hides}]({address}, {steps.text})"
        )
        read = f"dereference[{chance.choice(('code', 'paper'))}{hides}]({unit}, {memory.text})"
        return Value(f"linear[{kind.width}]({read})", kind)

    def pooled(self, kind: Kind, depth: int) -> Value:
        source = self.data(Kind("seq", self.chance.choice(self.lengths()), kind.width), depth)
        if depth and kind.width != "3" and self.chance.happens(0.2):
            return Value(f"bilstm_final[{kind.width}]({source.text})", kind, source.free)
        return Value(
            f"{self.chance.choice(('first', 'last', 'mean', 'sum', 'max', 'min'))}({source.text})", kind, source.free
        )

    def composed(self, kind: Kind, depth: int) -> Value:
        """A call of a composed block of the program."""
        fitting = [
            block
            for block in self.style.blocks
            if not self.routes and block.pooled == (kind.name == "vec") and (block.causal or not self.style.causal)
        ]
        if not fitting or kind.width == "3":
            return self.pointwise(kind, depth)
        block = self.chance.choice(fitting)
        length = kind.length if kind.name == "seq" else self.chance.choice(self.lengths())
        value = self.data(Kind("seq", length, kind.width), depth)
        statics = {static.partition(" ")[0]: static for static in block.statics if self.chance.happens(0.3)}
        chosen = f"[{', '.join(statics.values())}]" if statics else ""
        memory = f", {self.memory(depth).text}" if block.memory else ""
        return Value(f"{block.name}{chosen}({value.text}{memory})", kind)

    def shared(self, kind: Kind, depth: int) -> Value:
        """A call of an instance that `let` names."""
        fitting = [
            instance
            for instance in self.instances
            if instance.width == kind.width
            and instance.takes[0] in ("data", kind.name)
            and (instance.free or not self.style.causal)
        ]
        if not fitting:
            return self.pointwise(kind, depth)
        instance = self.chance.choice(fitting)
        value = self.data(replace(kind, width=instance.takes[1]), depth)
        return Value(f"{instance.name}({value.text})", kind, value.free and instance.free)

    # Statements

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
                (0.4, self.addressed), (0.4, self.halved), (0.3, self.charge), (0.6, self.experts),
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
        """Experts that are routed by a soft or a sparse choice. Their body has no charges and no halting loops."""
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
            if value.free or value.kind == NUMBER or not self.style.causal or self.dares()
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

    def charge(self) -> None:
        """A charge, which may read the future in a causal program too."""
        if self.routes:
            return self.assign()
        lengths = self.lengths()
        if self.level and self.chance.happens(0.3):
            text = f"linear[1]({self.start('d', 1).text})"
        else:
            text = f"mean(linear[1]({self.data(Kind('seq', self.chance.choice(lengths), 'd'), 1).text}))"
        self.write(f"charge {self.chance.choice(('balance', 'entropy', 'depth'))} = tanh({text})")
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
        if not self.style.causal and self.chance.happens(0.1):
            return self.chance.choice(("count = 2", "3, balanced = true"))
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
        self.values[name] = Value(name, before.kind, before.free and (value.free or self.dares()))

    def dares(self) -> bool:
        """Whether to treat a value as free without a reason."""
        return self.style.bold and self.chance.happens(0.6)

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
        counts: tuple[str, ...] = ("0", "1", "2", "2", "3", "times", "times - 1")
        target, emission = "", None
        if self.chance.happens(0.3):
            target, emission, counts = self.names.fresh("y"), inner.data(self.kind()), ("1", "2", "3", "times")
            inner.write(f"emit {_bare(emission.text)}")
        count = self.chance.choice(counts)
        if word == "repeat" and count in "123" and self.chance.happens(0.3):
            # Both draw what the interpreter takes.
            is_one = count == "1" and self.chance.happens(0.5)
            count += f" drawn by {'log_normal_poisson[1, 100.0]' if is_one else f'uniform_steps[{count}, {count}]'}"
        truncated = f" truncated {self.chance.choice('0112')}" if word == "repeat" and self.chance.happens(0.3) else ""
        head = f"{f'{target} = ' if target else ''}{word} {count}{truncated}"
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
            state = self.names.fresh("p")
            first = self.probability()
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
            inner.write(f"{state} <- {inner.probability().text}")
        limit = chance.choice(("0", "1", "3", "4", "5", "times + 1"))
        target, emission = "", None
        if limit != "0" and chance.happens(0.4):
            target, emission = self.names.fresh("y"), inner.data(self.kind())
            inner.write(f"emit {_bare(emission.text)}")
        head = f"{f'{target} = ' if target else ''}repeat {limit} halting {state}{mixture}"
        by = f"bernoulli_halt[{chance.choice(('median', 'never'))}]" if by_chance else self.halting_block()
        self.close(f"{head} by {by}", inner)
        for name in states:
            self.values[name] = replace(self.values[name], free=self.values[name].free and self.dares())
        if emission is not None:
            self.bind(target, replace(emission, free=emission.free and self.dares()))
        return None

    def probability(self) -> Value:
        """A probability for the sample."""
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
            if name in carried or value.free or value.kind == NUMBER or not self.style.causal or self.dares()
        }
        part = Kind("seq", f"{variable}.length", over.width) if is_cut else Kind("vec", width=over.width)
        values[variable] = Value(variable, part)
        after = ""
        if chance.happens(0.3):
            before = self.names.fresh("b")
            after = f" after {before}" + (f"[{self.size()}]" if chance.happens(0.6) else "")
            values[before] = Value(before, Kind("seq", f"{before}.length", over.width), free=True)
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
        carry = f" carry {', '.join(carried)}" if carried else ""
        carry += f" truncated {chance.choice('123')}" if carried and chance.happens(0.2) else ""
        target = self.names.fresh("y") if emission is not None else ""
        self.close(f"{f'{target} = ' if target else ''}scan {variable}{after} in {scanned}{carry}", inner)
        for name in carried:
            self.values[name] = replace(self.values[name], free=self.values[name].free and self.dares())
        if emission is not None:
            free = over.length.isdigit() and self.dares()
            self.bind(target, Value(target, replace(over, width=emission.kind.width), free))

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


def program(seed: int) -> str:
    """Returns the text of a program whose model is `m`."""
    chance = Chance(seed)
    causal, bold = chance.happens(0.7), chance.happens(0.5)
    blocks: list[BlockSignature] = []
    texts = []
    for index in range(chance.choice((0, 0, 1, 1, 2))):
        signature, text = _block(chance, f"block{index}", Style(causal, bold, tuple(blocks)))
        blocks.append(signature)
        texts.append(text)
    texts.append(_model(chance, Style(causal, bold, tuple(blocks))))
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
