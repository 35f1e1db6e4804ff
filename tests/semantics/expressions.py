"""Random well-typed expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.semantics.program_parts import NUMBER, Chance, Instance, Kind, Names, Style, Value

POINTWISE = (
    "norm", "norm[1e-3]", "tanh", "relu", "gelu", "silu", "sigmoid", "softplus", "abs", "feedforward[3]",
    "feedforward[4, activation = gelu]", "feedforward[3, bias = -3]", "gate[3]", "dropout[0.0]", "softmax", "detach",
    "log[0.1]", "noise[0.0]", "gumbel_noise[0.0]", "uniform_noise[0.0]", "clamp", "greater", "equal", "rms_norm",
    "unit_norm", "group_norm[1]", "sin", "cos", "sqrt[0.1]", "floor", "ceil", "round", "sign",
)  # fmt: skip
REDUCTIONS = (
    "sum_features", "max_features", "min_features", "product_features", "length_features", "logsumexp_features",
)  # fmt: skip
ATTENTIONS = {
    "attention": (
        "position = none", "position = absolute", "position = rotary", "position = xpos", "padded = computed",
        "window = 2", "softcap = 1.5, sinks = true", "kv_heads = 1, qk_norm = true, gate = per_head, bias = true",
    ),
    "geometric_attention": ("normalised = true", "head_dim = 2"),
    "relative_attention": ("scale = learned", "head_dim = 2"),
    "absrel_attention": ("gates = shared", "scale = fixed"),
}  # fmt: skip
LITERALS = ("0", "1", "2", "3", "0.5", "1.5", "1e-3", "10", "-1")


class Expressions:
    """Writes the expressions of a body. `movable` are the states that the body may update, `values` those in scope."""

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
        self.routes = False  # whether experts are around: auxiliary losses and halting loops have no meaning there

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
        if tokens and chance.happens(0.05):
            return Value(f"linear[{kind.width}](is_token[1]({chance.choice(tokens).text}))", kind)
        if tokens and chance.happens(0.05):
            token = chance.choice(tokens).text
            ngram = f"pair_tokens(shift_tokens[{chance.randrange(3)}]({token}), {token})"
            made = chance.choice((ngram, f"modulo_tokens[3]({ngram})", f"hash_tokens[5]({ngram})"))
            text = f"tanh(token_values({made}))" if chance.happens(0.2) else f"embed[8]({made})"
            return Value(f"linear[{kind.width}]({text})", kind)
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
            if self.chance.happens(0.3):
                weights = f"linear[2]({source.text}) + first(head_columns[2](identity[2]()))"
                return Value(f"linear[{kind.width}](mix_groups[1]({source.text}, {weights}))", kind, source.free)
            part = self.chance.choice(
                ("slice_features[1, 2]", "repeat_features[2]", "tile_features[2]", "transpose_features[1]")
            )
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
        memories = [value for value in self.values.values() if value.kind.name == "seq" and value.free]
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
        if is_own and chance.happens(0.3):
            query = keys = self.leaf(kind)  # one value for both inputs
        else:
            keys = self.data(kind, depth - 1) if is_own else self.memory(depth - 1)
            keys = replace(keys, text=f"linear[{kind.width}]({keys.text})")
        hides = "[causal = true]" if is_own and (self.style.causal or chance.happens(0.3)) else ""
        near = hides.replace("]", ", window = 2]") or "[window = 2]"
        scores = self.pairs(query.text, keys.text, heads, is_own, 2)
        if is_own and not hides and chance.happens(0.3):
            scores = f"transpose_map({scores})"
        within = f"lower_triangle[{chance.choice(('0', '-1', '-2'))}]({scores})" if hides else scores
        sums = chance.choice(("", "exclusive = true", "backward = true", "backward = true, exclusive = true"))
        sums += ", causal = true" if sums and hides else ""
        total = f"cumulative_sum_keys{f'[{sums}]' if sums else ''}({within})"
        chosen = f"top_k_keys[2{', causal = true' if hides else ''}]({scores})"
        options = [
            f"softmax_keys{hides}({scores})", f"softmax_keys{hides}({scores})", f"tanh({total})", f"sigmoid({within})",
            f"masked_softmax_keys{hides}({scores}, {chosen})", f"tanh({within})", f"softmax_keys{near}({scores})",
            f"interpolate(tanh({within}), {total})",
            f"sink_softmax_keys{hides}({scores}, mean(learned[1, {heads}, init = normal]()))",
            *([] if hides else [f"softmax_queries({scores})"]),
        ]  # fmt: skip
        weights = chance.choice(options)
        if chance.happens(0.2):
            reduction = chance.choice(("sum_keys", "max_keys", "logsumexp_keys"))
            text = f"linear[{kind.width}]({reduction}{hides}({weights}))"
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
            f"rotary_positions_at[2, interleaved = true]({x}, linear[1]({value.text}))",
            f"linear[{width}](nondeterministic_stack[2, 2, 2]({x}))", f"linear[{width}](linear[2]({x}) * {vector})",
            f"hold[2](shift(linear[{width}](patches[2]({x}))), {key})",
            f"hold[3](every[3](cumulative_sum({x})), {key})",
            f"convolve[{width}, 2, dilation = 2, causal = {'true' if self.style.causal else 'false'}]({x})",
            f"every[2](lstm[{width}](interleave[2](concat({x}, {key}))))",
        ]  # fmt: skip
        if not self.style.causal:  # images of two columns, and their squares of two rows
            options.append(f"hold[4](linear[{width}](image_patches[2, 2]({x})), {x})")
            options.append(f"convolve_image[{width}, 3, 2, groups = 2]({x})")
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
            block = self.chance.choice(
                ("shift", "shift[2]", "cumulative_sum", "cumulative_max", "cumulative_logsumexp", "indices")
            )
            text = f"exp(-0.1 * indices({value.text}))" if block == "indices" else f"{block}({value.text})"
            return Value(f"(tanh({value.text}) * {text})", kind, value.free)
        if not self.style.causal and self.chance.happens(0.4):
            return Value(
                f"{self.chance.choice(('shift[-1]', 'softmax_positions', 'top_k_positions[2]'))}({value.text})", kind
            )
        if self.style.causal or self.chance.happens(0.5):
            if kind.width not in ("d", "2 * d"):
                return value
            block = self.chance.choice(("absolute_positions", "learned_positions[6]"))
            return Value(f"{block}({value.text})", kind, value.free)
        if self.chance.happens(0.3):
            return Value(f"reverse(tanh(reverse({value.text})))", kind)
        return Value(f"reverse({value.text})", kind)

    def pointed(self, kind: Kind, depth: int) -> Value:
        """The data that pointers read from a memory, a relational read of it, or some of its positions."""
        if self.chance.happens(0.3):
            steps, memory = self.data(kind, depth - 1), self.memory(depth - 1)
            hides = ""
            if self.chance.happens(0.5):
                memory, hides = self.leaf(Kind("seq", kind.length, "d")), "[causal = true]"
            text = f"gather{hides}({memory.text}, 3 * sigmoid(linear[1]({steps.text})))"
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
        starts = hides + (", restart = true" if causal and chance.happens(0.5) else "")
        unit = (
            f"pointer_unit[{pointers}, hidden = 4, form = {form}, address_hidden = 3{starts}]({address}, {steps.text})"
        )
        read = f"dereference[{chance.choice(('code', 'paper'))}{hides}]({unit}, {memory.text})"
        return Value(f"linear[{kind.width}]({read})", kind)

    def pooled(self, kind: Kind, depth: int) -> Value:
        source = self.data(Kind("seq", self.chance.choice(self.lengths()), kind.width), depth)
        if depth and kind.width not in ("1", "3") and self.chance.happens(0.2):
            return Value(f"bilstm_final[{kind.width}]({source.text})", kind, source.free)
        return Value(
            f"{self.chance.choice(('first', 'last', 'mean', 'sum', 'max', 'min', 'logsumexp'))}({source.text})",
            kind,
            source.free,
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
