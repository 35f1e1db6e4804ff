"""Each construct of the language, alone and in others, computes what the reference interpreter computes.

Random programs reach every construct, but not each in every run."""

import pytest
import torch

from archlang.export.plain.file import plain_module, plain_text
from tests.closeness import close, same_gradients
from tests.semantics import properties
from tests.semantics.batches import randomised
from tests.semantics.compiled import Compiled, compile_text
from tests.semantics.properties import PROPERTIES
from tests.semantics.test_soundness_regressions import model

TOLERANCE = 1e-10
READ = "let read = attention[2] "
LOOKS = "attention[1](h, y) + sum(y) / (1 + sum(y) * sum(y))"
BODIES = {
    # Repeat and stack
    "a stack that reads outer values": "let f = linear[d] k = h stack 2 { h <- feedforward[6](h) + f(k) "
    "stack 3 { k <- relu(linear[d](k)) + f(h) } } return linear[vocab](h + k)",
    "a stack whose steps differ": "let f = linear[d] y = stack 4 as i { repeat 2 { h <- tanh(f(h) / (i + 1)) } "
    "if i % 3 == 2 { h <- norm(h + attention[1](h)) } else { h <- h + feedforward[4 + i](h) } "
    "stack 2 { h <- h + linear[d](h) } loss size = mean(linear[1](h)) emit linear[d](h) } return linear[vocab](y + h)",
    "a stack whose steps differ in loops": "stack 2 { stack 3 as i { h <- norm(h + linear[d](linear[d * (i + 1)](h))) "
    "} } s = mean(learned[1, d, init = normal]()) y = scan v in h carry s { stack 2 as j { "
    "if j == 0 { s <- tanh(linear[d](s) + v) } else { s <- s - v } } emit s } return linear[vocab](y)",
    "numbers as states": "k = 2.0 repeat 3 { k <- k * k h <- tanh(h * k) } return linear[vocab](h * k)",
    "a shared block with loops": "let f = linear[d] stack 3 { repeat 2 { h <- norm(h + f(linear[d](h))) } } "
    "return linear[vocab](f(h))",
    "broadcast features and vectors": "g = linear[1](h) v = mean(h) k = linear[1](v) "
    "return linear[vocab]((h * g - v) / (v * k + 90) + k * g + h * (g + v))",
    **{
        f"a repeat truncated after {steps} steps": "let f = relative_attention[1] let g = linear[d] s = g(h) "
        f"repeat 5 truncated {steps} {{ s <- h h <- tanh(s + f(h, g(h))) }} return linear[vocab](h + s)"
        for steps in (0, 1, 2, 5, 9)
    },
    "a settled repeat": "let f = relative_attention[1] let g = linear[d] s = 0 * h t = 1 k = mean(h) "
    "y = repeat 5 settled { s <- tanh(0.5 * g(s) + f(h, s) + k) t <- t + 1 k <- 0.1 * tanh(mean(s) + k) "
    "loss size = mean(sum_features(s * s)) emit linear[d](s) / t } return linear[vocab](y + s)",
    "a settled repeat of fewer terms in loops": "stack 2 { repeat 3 truncated 2 settled { h <- tanh(linear[d](h)) } } "
    "z = scan v in h { repeat 3 settled { v <- tanh(linear[d](v) + 1) } emit v } return linear[vocab](h + z)",
    # Halting
    **{
        f"states of other lengths and {halt}": "k = h v = mean(h) m = learned[2, d, init = normal]() "
        f"repeat 4 halting h as s by {halt} {{ k <- tanh(k + h) v <- tanh(v + mean(s)) m <- norm(m + v) "
        "h <- norm(h + s + linear[d](h)) } return linear[vocab](h + k + v + mean(m))"
        for halt in ("token_halt[0.8]", "global_halt[0.8]")
    },
    "states of a halting loop that change at once": "a = tanh(h) b = relu(h) "
    "repeat 3 halting h by token_halt { h <- tanh(h) c = a a <- b b <- c } return linear[vocab](h + a - b)",
    "halting in halting": "k = 0 * h repeat 3 halting h by token_halt[0.8] { g = h "
    "repeat 2 halting g by token_halt[0.7] { g <- tanh(g + 1) k <- k + 1 } h <- norm(h + linear[d](g)) } return "
    "linear[vocab](h + k)",
    "halting in a repeat, a stack and a scan": "repeat 2 { "
    "repeat 4 halting h by token_halt[0.8] { h <- tanh(h + 1) } } "
    "stack 2 { repeat 4 halting h by token_halt[0.8] { h <- norm(h + linear[d](h)) } } "
    "y = scan c in chunks[2](h) { repeat 4 halting c by token_halt[0.8] { c <- tanh(c + 1) } emit c } "
    "return linear[vocab](y)",
    "halting of what is before a part, at first nothing": "y = scan v after b in learned[3, d, init = normal]() { "
    "k = b repeat 3 halting k by token_halt[0.8] { k <- tanh(k + 1) } emit v + sum(k) } "
    "return linear[vocab](h + sum(y))",
    "emission of a halting loop": "y = repeat 4 halting h by token_halt[0.8] { h <- tanh(h + 1) "
    "emit linear[d](mean(h)) * h + sum(h) } return linear[vocab](y)",
    "act with captured values and another state": "k = h m = learned[3, d, init = normal]() "
    "repeat 9 halting h by act[epsilon = 0.2, ponder = equation] { k <- norm(k + h) "
    "h <- h + attention[2](norm(h), m) + linear[d](k) } return linear[vocab](h + k)",
    "scans in a halting loop": "u = chunks[3](linear[d](h)) repeat 6 halting h by global_halt[0.9, transition = true] "
    "{ m = learned[2, d]() y = scan c in chunks[3](h) carry m { m <- norm(m + attention[1](m, c)) "
    "emit c + attention[2](c, m) } z = scan a in u carry m { m <- norm(m + attention[1](m, a)) emit a } "
    "h <- norm(h + y + z) } return linear[vocab](h)",
    "a memory of a halting loop in a scan": "m = learned[2, d]() y = scan c in chunks[3](h) carry m { "
    "repeat 6 halting c by global_halt[0.9] { c <- c + attention[2](norm(c), m) } m <- norm(m + attention[1](m, c)) "
    "emit c } return linear[vocab](y)",
    # Emissions of other lengths
    "a longer emission of a repeat": "y = repeat 2 { h <- norm(h) emit append(h, h) } return "
    f"linear[vocab]({LOOKS})",
    "a longer emission of a stack": "y = stack 2 { h <- linear[d](h) emit append(learned[3, d, init = normal](), "
    f"append(h, h)) }} return linear[vocab]({LOOKS})",
    "a longer emission of a halting loop": "y = repeat 3 halting h by global_halt { h <- norm(h + 1) "
    f"emit pad[before = 1](h) }} return linear[vocab]({LOOKS})",
    "a longer emission in a scan": "y = scan c in chunks[4](h) { z = repeat 2 { c <- norm(c) emit append(c, c) } "
    f"emit attention[1](c, z) }} return linear[vocab]({LOOKS})",
    "a longer emission that a loop reads": "y = repeat 2 { h <- norm(h) emit append(h, h) } "
    f"repeat 2 {{ h <- h + attention[1](h, y) }} return linear[vocab]({LOOKS})",
    # Scans
    "scans in loops and loops in scans": "m = mean(h) repeat 2 { y = scan c in chunks[2](h) carry m "
    "{ repeat 3 { c <- tanh(c + 1) } m <- m + mean(c) emit c } h <- y } "
    "z = scan c in chunks[9](h) carry m { m <- m + mean(c) emit c } return linear[vocab](z + m)",
    "a recurrent network": "let f = linear[d] s = mean(learned[1, d, init = normal]()) "
    "y = scan v in h carry s { s <- tanh(linear[d](v) + f(s)) emit s * 2.0 } return linear[vocab](y + s)",
    "a scan of several sequences": "s = mean(learned[1, d, init = normal]()) y = scan v in linear[d](h), g in "
    "sigmoid(linear[1](h)), w in h carry s { s <- tanh(g * s + v) emit s * w } return linear[vocab](y + s)",
    "a truncated scan": "let f = linear[d] s = mean(learned[1, d, init = normal]()) "
    "y = scan v in h carry s truncated 2 { s <- tanh(linear[d](v) + f(s)) emit v } return linear[vocab](y + s)",
    **{
        f"{reach} positions before chunks of {size}": f"{READ}m = mean(learned[1, d, init = normal]()) "
        f"y = scan c after b[{reach}] in chunks[{size}](h) carry m {{ a = read(c, append(b, c)) + m m <- m + mean(b) "
        "emit a } return linear[vocab](y)"
        for reach, size in ((2, 3), (5, 2))
    },
    "all positions before a position": "y = scan v after past in h { emit linear[d](v) + sum(past) } "
    "z = scan v after last[2] in y { emit v * mean(last) } return linear[vocab](z)",
    "a scan over what is before": "s = mean(learned[1, d, init = normal]()) y = scan v after b in h carry s "
    "{ scan c in chunks[2](b) carry s { s <- tanh(s + 1 + mean(c)) } emit v + s } return linear[vocab](y)",
    "a memory of summaries": f"{READ}let f = attention[2] memory = constant[0, d]() "
    "y = scan c in chunks[3](h) carry memory growing { a = c + read(c, memory) "
    "memory <- append(memory, f(learned[2, d, init = normal](), a)) emit a } return linear[vocab](y + mean(memory))",
    "keys and values that grow together": "k = learned[1, d, init = normal]() u = k "
    "y = scan c in chunks[3](h) carry k and u growing { s = softmax_keys(scores(c, k)) e = c + weigh(s, u * k) "
    "k <- append(k, expand(mean(c))) u <- append(u, expand(mean(e))) emit e } "
    "z = scan v in y carry k and u growing { k <- append(k, expand(v)) u <- append(u, expand(tanh(v))) "
    "emit sum(softmax_positions(sum_features(k * v)) * u) } return linear[vocab](z + sum(k * u))",
    "a memory of truncated states": f"{READ}let f = linear[d] s = mean(learned[1, d, init = normal]()) "
    "past = learned[1, d, init = normal]() y = scan v in h carry s, past growing truncated 3 { "
    "s <- tanh(v + f(s) + first(read(expand(s), past))) past <- append(past, expand(s)) emit s } "
    "return linear[vocab](y + read(y, past))",
    "a memory that begins with the sequence": f"{READ}past = h "
    "y = scan c after b[2] in chunks[3](h) carry past growing { a = c + read(c, append(past, b)) past <- "
    "append(append(expand(mean(a)), norm(past)), a) emit a } "
    "return linear[vocab](y + read(h, past))",
    "a memory that grows in nested scans": f"{READ}past = learned[1, d, init = normal]() "
    "y = scan c in chunks[3](h) carry past growing { z = scan v in c carry past growing "
    "{ a = v + first(read(expand(v), past)) past <- append(past, expand(a)) emit a } "
    "repeat 2 { z <- norm(z + read(z, past)) } emit z } repeat 2 { y <- norm(y + read(y, past)) } "
    "return linear[vocab](y)",
    "work of a chunk before its memory is read": "m = learned[3, d, init = normal]() g = linear[d](h) "
    "y = scan c in chunks[5, balanced = true](h) carry m "
    "{ k = norm(2 * c + feedforward[6](c)) stack 2 { k <- norm(k + c) } "
    "a = k + attention[2](k, m) + attention[2](c, g) m <- norm(m + attention[1](m, a)) emit a } "
    "return linear[vocab](y)",
    # Gradients
    "gradients in scans, stacks, experts and truncated loops": "m = learned[3, d, init = normal]() "
    "repeat 4 truncated 2 { h <- h - gradient(sum_features(tanh(linear[d](h))), h) } "
    "y = scan c in chunks[2](h) carry m truncated 1 { m <- m - gradient(mean(linear[1](attention[1](c, tanh(m)))), m) "
    "emit c + attention[1](c, m) } "
    "stack 2 { y <- y + gradient(sum(sum_features(attention[1](tanh(y), h))), y) } "
    "z = experts v in y by softmax(linear[3](y)) * top_k[1](linear[3](y)) { "
    "emit v + gradient(sum_features(tanh(linear[2](v))), v) } return linear[vocab](z)",
    "a gradient of a scan and of a gradient": "s = mean(h) y = scan v in h carry s { s <- tanh(s + v) emit s } "
    "g = gradient(mean(sum_features(y * y)), h) return linear[vocab](gradient(sum_features(g * tanh(g)), h))",
    # Experts and auxiliary losses
    "experts of positions and of a vector": "let f = linear[d] s = softmax(linear[4](h)) y = experts v in h by s "
    "* top_k[2](s) "
    "{ emit linear[3](tanh(linear[8](v) + linear[1](f(v)))) + mean(linear[3](h)) } "
    "g = softmax(linear[3](last(y))) z = experts v in last(y) by g * top_k[1](g) { emit linear[d](v) } "
    "return linear[vocab](f(h)) + linear[vocab](y) + linear[vocab](z)",
    "auxiliary losses of several loops": "scan v in h { loss part = sum_features(v) emit v } "
    "stack 2 { loss step = sum_features(mean(h)) h <- norm(h) } "
    "loss step = mean(linear[1](h)) return linear[vocab](h)",
    # Quotients that are infinite at padding
    "a quotient at padding": "w = 1 / softmax_positions(linear[1](h)) return linear[vocab](attention[1](h, w * h) "
    "+ sum(w * h) + geometric_attention[1](h, w * h) + lstm[d](w * h))",
    "a quotient of maps at padding": "a = softmax_keys(scores(h, h)) repeat 2 { t = transpose_map(a) "
    "a <- transpose_map(t / outer_sum(sum_keys(t), 0 * sum_keys(t))) } return linear[vocab](weigh(a, h))",
    "a quotient in chunks at padding": "m = constant[2, d]() y = scan c in chunks[3](h) carry m { "
    "w = 1 / softmax_positions(linear[1](c)) m <- m + attention[1](m, w * c) emit c + attention[1](c, m) } "
    "return linear[vocab](y)",
    **{
        f"a quotient at padding {where}": f"{body} return linear[vocab](y)"
        for where, body in {
            "by a mean": "y = scan c in chunks[2](h) { emit c / mean(c) }",
            "of what is before": "y = scan c after b[2] in chunks[2](h) "
            "{ emit attention[1](c, b) + c * (1 / first(c)) }",
            "in a memory": "m = learned[2, d, init = normal]() y = scan c in chunks[2](h) carry m { "
            "m <- norm(m + attention[1](m, c) / max(c)) repeat 2 { c <- norm(c + c / mean(c)) } emit mean(m) + c }",
            "in a halting loop": "y = scan c in chunks[2](h) { repeat 3 halting c by token_halt[0.9] { "
            "c <- norm(c + attention[1](c) / mean(c)) } emit c }",
            "of positions": "g = attention[1](h) s = mean(h) y = scan v in g carry s "
            "{ s <- tanh(s + v / v) emit s / v }",
        }.items()
    },
    # Samples without positions, and bodies without a tensor of the batch
    "a scan of empty samples": "m = learned[3, d]() y = scan c in chunks[3](h) carry m { "
    "m <- norm(m + attention[1](m, c)) emit c + attention[1](c, m) } return linear[vocab](y)",
    "pooled empty samples": "f = start_end(start_end(h)) k = learned[4, d]() g = bilstm[d](h) "
    "repeat 3 halting g by global_halt[0.9] { g <- norm(g + attention[1](g)) } "
    "v = last(h) + first(g) + mean(g) + mean(attention[2](k, h)) + mean(attention[2](f)) "
    "return linear[vocab](reverse(gru[d](h, v)) + v)",
    **{
        f"a {loop} that emits learned vectors only": "memory = learned[1, d]() "
        f"y = {loop} 2 {{ inner = {loop} 1 {{ memory <- tanh(memory) emit learned[1, d, init = normal]() }} "
        "memory <- inner emit inner } return linear[vocab](h + mean(y))"
        for loop in ("stack", "repeat")
    },
    # Values that leave loops
    **{
        f"an invariant of {loop}": f"k = linear[d](h) {loop} {{ h <- norm(h + attention[2](h, norm(k) * 2)) }} "
        "return linear[vocab](h)"
        for loop in ("repeat 5", "repeat 5 halting h by global_halt[0.9]", "stack 2")
    },
    "an invariant of a scan in a repeat": "k = linear[d](h) repeat 2 { y = scan c in chunks[3](h) "
    "{ emit c + geometric_attention[2, key_dropout = 0.0](c, norm(k)) } h <- y } return linear[vocab](h)",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_a_construct_has_the_meaning_of_the_interpreter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties, "TOLERANCE", TOLERANCE)
    body = BODIES[name]
    program = compile_text(model(body))
    assert isinstance(program, Compiled), program.errors
    PROPERTIES["interpreter"](program, 1)
    if "growing" in body or "empty" in name:
        PROPERTIES["empty"](program, 1)
    if "append" in body or "/" in body:  # padding that is computed with
        PROPERTIES["alone"](program, 1)
    module = randomised(program.graph, 1).eval()
    plain = plain_module(module, plain_text(module))
    weights = dict(plain.named_parameters())
    # Of auxiliary losses, a plain file has no weights.
    assert (len(weights) < len(dict(module.named_parameters()))) is ("linear[1]" in body.partition("loss ")[2])
    x = torch.randint(5, (3, 7))
    close(plain(x), module(x))
    for lengths in (torch.tensor([7, 0, 1]), torch.tensor([7, 4, 1])):
        real = torch.arange(7) < lengths[:, None]
        results = plain(x, lengths=lengths)[real], module(x, lengths=lengths)[real]
        close(*results)
    same_gradients(*results, weights.values(), [module.get_parameter(name) for name in weights])
