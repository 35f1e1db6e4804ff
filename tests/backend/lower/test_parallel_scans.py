"""Claims about scans whose positions are computed at once: only the time changes."""

import copy
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor

from archlang.backend import Architecture
from archlang.backend.lower.text import print_torch
from archlang.backend.runtime import scans
from archlang.backend.runtime.elementwise_recurrence import elementwise_maximum
from archlang.backend.runtime.recording import recording
from tests.backend.lower.scan_forms import require_equal, with_and_without
from tests.closeness import close

HEAD = """
model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    let each = repeat_features[4]
    let by_head = head_columns[2]
    let gate = linear[d] let key = linear[d] let query = linear[d]
    let small = linear[2] let other = linear[2]
    h = embed[d](x)
    s = mean(learned[1, d, init = normal]())
    u = mean(learned[1, d, init = normal]())
    top = mean(learned[1, d, init = normal]())
    memory = learned[4, d, init = normal]()
    norms = learned[4, 2, init = normal]()
    other_memory = learned[4, d, init = normal]()
    column = learned[4, 1, init = normal]()
"""
VECTOR, BOTH, MATRIX = "s", "s, u", "memory"
READ = "emit norm(sum(each(by_head(query(v))) * memory)) + v"
# The states of a scan, and its body.
PARALLEL = {
    "a moving average": (VECTOR, "g = sigmoid(gate(v)) s <- g * s + (1 - g) * v emit s"),
    "quotients and differences": (VECTOR, "old = s s <- -(v - s) * gate(v) + (s - v) / (3 + v) emit s - old"),
    "factors above 1": (VECTOR, "s <- (1.01 + abs(v)) * s - v emit tanh(s)"),
    "what forgets its past": (VECTOR, "s <- v emit s"),
    "a shift by two": (BOTH, "old = u u <- s s <- v emit old + u"),
    "a state in another": (BOTH, "s <- 0.5 * s + v u <- sigmoid(gate(s)) * u + tanh(key(v)) * s emit norm(u) * s"),
    "a matrix as a whole": (MATRIX, "memory <- sigmoid(v) * memory + 0.1 * v emit sum(softmax(memory)) + v"),
    "a matrix that a block reads": (
        MATRIX, "memory <- 0.9 * memory + each(by_head(v)) * v emit mean(attention[2](expand(v), memory))"
    ),
    "linear attention": (MATRIX, f"memory <- memory + each(by_head(key(v))) * v {READ}"),
    "a decay for each head": (MATRIX, f"memory <- each(sigmoid(small(v))) * memory + each(by_head(key(v))) * v {READ}"),
    "a decay for each row": (
        MATRIX, f"memory <- each(by_head(sigmoid(gate(v)))) * memory + each(by_head(key(v))) * v {READ}"
    ),
    "a decay of any sign": (MATRIX, f"memory <- each(tanh(small(v))) * memory + each(by_head(key(v))) * v {READ}"),
    "a decay of 0": (MATRIX, f"memory <- each(relu(small(v))) * memory + each(by_head(key(v))) * v {READ}"),
    "what is read before": (
        MATRIX,
        "old = sum(each(by_head(query(v))) * memory) memory <- 0.9 * memory + each(by_head(key(v))) * v "
        "emit sum(each(by_head(query(v))) * memory) - old * v",
    ),
    "the delta rule": (
        MATRIX, f"k = each(by_head(unit_norm[2](key(v)))) memory <- memory + k * (v - sum(k * memory)) {READ}"
    ),
    "the gated delta rule": (
        MATRIX,
        "k = each(by_head(unit_norm[2](key(v)))) kept = each(sigmoid(small(v))) * memory "
        f"memory <- kept + k * (each(sigmoid(other(v))) * (v - sum(k * kept))) {READ}",
    ),
    "a decay for each row and the delta rule": (
        MATRIX,
        "k = each(by_head(unit_norm[2](key(v)))) kept = each(by_head(sigmoid(gate(v)))) * memory "
        f"memory <- kept + k * (v - sum(k * kept)) {READ}",
    ),
    "another column than the key": (
        MATRIX,
        "erased = sum(each(by_head(tanh(query(v)))) * memory) memory <- 0.9 * memory "
        f"+ each(by_head(0.1 * tanh(gate(v)))) * erased + each(by_head(key(v))) * v {READ}",
    ),
    "DeltaProduct: two updates in a position": (
        MATRIX,
        "k = each(by_head(unit_norm[2](key(v)))) l = each(by_head(unit_norm[2](gate(v)))) b = each(sigmoid(small(v))) "
        f"memory <- memory + k * (b * (v - sum(k * memory))) memory <- memory + l * (2 * v - sum(l * memory)) {READ}",
    ),
    "three updates of other kinds, and what is read before": (
        MATRIX,
        "old = sum(each(by_head(query(v))) * memory) k = each(by_head(unit_norm[2](key(v)))) "
        "g = each(by_head(0.1 * tanh(gate(v)))) memory <- each(sigmoid(small(v))) * memory "
        "memory <- memory - k * sum(k * memory) + each(by_head(gate(v))) * v "
        f"memory <- 0.9 * memory + g * sum(each(by_head(tanh(query(v)))) * memory) {READ} - old",
    ),
    "a quotient of two reads": (
        "memory, norms",
        "f = sigmoid(small(v)) i = exp(other(v)) k = by_head(key(v)) q = by_head(query(v)) "
        "memory <- each(f) * memory + each(i) * (each(k) * v) norms <- f * norms + k * i "
        "emit sum(each(q) * memory) / (1 + each(abs(sum(q * norms))))",
    ),
    "a quotient by a read, which is 0 without positions": (
        MATRIX, "memory <- each(by_head(v)) * v emit v / sum(each(by_head(v)) * memory)"
    ),
    "a memory of two, of which one decays into the other": (
        "memory, other_memory",
        "k = each(by_head(key(v))) old = memory memory <- 0.5 * memory + k * v "
        "other_memory <- 0.5 * old + k * v emit sum(k * other_memory) + sum(k * memory)",
    ),
    "one column that two groups read": (
        "column", "column <- 0.5 * column + head_columns(slice_features[0, 4](v)) "
        "emit each(sum(by_head(v) * column))",
    ),
    "a change as a divisor": (VECTOR, "old = s s <- 0.5 * s + v emit v / (s - old)"),
    "weights that no input is needed for": (
        MATRIX,
        "memory <- sigmoid(mean(learned[1, d, init = normal]())) * memory + each(by_head(v)) * v " + READ,
    ),
    "a function of 0": (
        MATRIX, f"memory <- each(sigmoid(0 * small(v))) * memory + each(by_head(tanh(0 * v) + v)) * v {READ}"
    ),
    "rows without heads": (MATRIX, "memory <- softmax(v) * memory + tanh(each(by_head(v)) + v) emit sum(memory)"),
    "a state that another one reads before its update": (
        "s, memory", f"memory <- 0.9 * memory + each(by_head(v)) * s s <- 0.5 * s + v {READ}"
    ),
    "the greater of a decaying state and a term": (
        BOTH, "moved = u + log(sigmoid(gate(v))) u <- moved + relu(key(v) - moved) s <- exp(-abs(u)) * s + v emit u * s"
    ),
    "the greater of a term and a state": (VECTOR, "s <- v + relu(s - 0.1 - v) emit s"),
    "the greater of 0 and a state": (BOTH, "s <- relu(s - v) u <- relu(v - (0.2 * v + u)) + v + u emit s + u"),
    "the less": (BOTH, "s <- v - relu(v - 0.1 - s) u <- u + v - relu(u + key(v)) emit s * u"),
    "the less, negated": (VECTOR, "s <- -relu(-(s + v)) emit s"),
    "equal numbers": (BOTH, "s <- s + relu(0.1 - s) u <- 0.1 + relu(u - 0.1) emit s * v + u"),
    "mLSTM": (
        "memory, u",
        "i = each(small(v)) f = log(sigmoid(each(other(v)))) moved = u + f old = u u <- moved + relu(i - moved) "
        "kept = exp(f + old - u) memory <- kept * memory + exp(i - u) * (each(by_head(key(v))) * v) "
        "emit sum(each(by_head(query(v))) * memory) + kept",
    ),
    "RWKV-4, with a maximum against overflow": (
        "s, u, top",
        "k = key(v) now = 0.3 + k most = top + relu(now - top) near = exp(now - most) far = exp(top - most) "
        "read = (far * s + near * v) / (far * u + near) moved = top - exp(mean(learned[1, d, init = normal]())) "
        "top <- moved + relu(k - moved) kept = exp(moved - top) i = exp(k - top) s <- kept * s + i * v "
        "u <- kept * u + i emit sigmoid(gate(v)) * read",
    ),
    "a value from outside": (VECTOR, "s <- s * mean(h) + v emit s * last(h) + mean(attention[2](expand(v), h))"),
}  # fmt: skip
# These look like the ones above, and are not: the states of a scan, its body, and what stands in its way.
ONE_BY_ONE = {
    "a state times itself": (VECTOR, "s <- 0.1 * s * s + v emit s", "0.1 * s * s"),
    "a function of a state": (VECTOR, "s <- tanh(key(s)) + v emit s", "tanh(key(s))"),
    "the greater of two states": (BOTH, "old = u u <- s s <- s + relu(old - s) emit s", "has no parallel form in `u`"),
    "the greater of a state and its half": (VECTOR, "s <- s + relu(v - 0.5 * s) emit s", "relu"),
    "a divisor": (VECTOR, "s <- v / (3 + abs(s)) emit s", "abs(s)"),
    "a factor of 0": (VECTOR, "s <- (0 * s) * gate(v) + v emit s", "it multiplies by 0"),
    "a linear map of a state": (VECTOR, "s <- 0.1 * key(s) + v emit s", "key(s)"),
    "each a factor of the other": (BOTH, "s <- u * s + v u <- 0.5 * u + s emit s", "has no parallel form in `u`"),
    "a gate that reads the memory": (
        MATRIX, f"memory <- sigmoid(sum(memory)) * memory + each(by_head(v)) * v {READ}", "sigmoid(sum(memory))"
    ),
    "rows that move": (MATRIX, f"memory <- append(slice[1, 3](memory), expand(v)) {READ}", "append"),
    "a memory that is read as a whole, after the delta rule": (
        MATRIX, "k = by_head(key(v)) memory <- memory + each(k) * (v - sum(each(k) * memory)) emit sum(tanh(memory))",
        "memory",
    ),
    "a memory of two, of which one reads the other": (
        "memory, other_memory",
        "k = each(by_head(unit_norm[2](key(v)))) memory <- memory + k * (v - sum(k * memory)) "
        "other_memory <- other_memory + k * (sum(k * memory) - sum(k * other_memory)) emit sum(k * other_memory)",
        "has no parallel form in `other_memory`",
    ),
    "a cut gradient": ("s truncated 2", "s <- 0.5 * s + v emit s", "its gradient is truncated"),
    "what was before": ("after b[2] s", "s <- 0.5 * s + mean(b) emit s + v", "it takes the positions before each"),
}  # fmt: skip
LENGTHS = (1, 2, 7, 40)


def program(states: str, body: str) -> str:
    after, _, states = states.rpartition("] ")
    after = f" {after}]" if after else ""
    scan = f"    y = scan v{after} in h carry {states} {{ {body} }}\n    return linear[classes](y)\n}}\n"
    return f"{HEAD}{scan}"


def modules(tmp_path: Path, text: str) -> tuple[Architecture, Architecture]:
    return with_and_without(tmp_path, text, "parallel_scans")


@pytest.mark.parametrize("name", PARALLEL)
def test_all_positions_at_once_equal_one_after_the_other(tmp_path: Path, name: str) -> None:
    ours, plain = modules(tmp_path, program(*PARALLEL[name]))
    (loop,) = ours.program.code.loops
    assert loop.parallel is not None, loop.obstacle
    require_equal(ours, plain, LENGTHS)


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_scan_that_is_not_affine_runs_step_by_step_and_says_why(tmp_path: Path, name: str) -> None:
    states, body, reason = ONE_BY_ONE[name]
    ours, plain = modules(tmp_path, program(states, body))
    (loop,) = ours.program.code.loops
    assert loop.parallel is None
    assert reason in loop.obstacle
    assert loop.obstacle in print_torch(ours)
    require_equal(ours, plain, (7,))


@pytest.mark.parametrize("closed", [-50.0, -1e8, -1e30, -torch.inf, torch.inf, torch.nan])
@pytest.mark.parametrize("place", ["shift", "term"])
@pytest.mark.parametrize("takes_term", [True, False])
def test_a_maximum_is_exact_where_a_number_is_huge(closed: float, place: str, takes_term: bool) -> None:
    shift, term, state = -torch.rand(2, 40, 3), torch.randn(2, 40, 3), torch.zeros(2, 3)
    (shift if place == "shift" else term)[:, 17] = closed
    current, expected = state, []
    for a, c in zip(shift.unbind(1), term.unbind(1), strict=True):
        current = torch.maximum(current + a, c)
        expected.append(current)
    result = elementwise_maximum(shift, term, state, takes_term)
    torch.testing.assert_close(result, torch.stack(expected, 1), atol=1e-6, rtol=1e-6, equal_nan=True)


def test_a_division_by_0_is_left_to_the_run(tmp_path: Path) -> None:
    ours, _ = modules(tmp_path, program(VECTOR, "s <- s / 0 + v emit s"))
    (loop,) = ours.program.code.loops
    assert loop.obstacle == "it divides by 0"
    assert not ours(torch.zeros(1, 2, dtype=torch.long)).isfinite().any()


def test_what_is_not_finite_reaches_no_position_before_it(tmp_path: Path) -> None:
    both = modules(tmp_path, program(MATRIX, f"memory <- 0.5 * memory + each(by_head(v)) * (v / relu(v)) {READ}"))
    for module in both:
        table = module.get_parameter("embed.weight").data
        table[:5] = table[:5].abs()
    tokens = torch.tensor([[1, 2, 3, 9, 4]])
    finite = [module(tokens).isfinite().all(-1) for module in both]
    assert finite[0].tolist() == finite[1].tolist() == [[True, True, True, False, False]]


def test_a_long_sequence_is_computed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, plain = modules(tmp_path, program(*PARALLEL["a quotient of two reads"]))
    monkeypatch.setattr(scans, "_MOST_POSITIONS", 10)
    require_equal(ours, plain, (11,))


def test_a_recording_sees_each_position(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*PARALLEL["the delta rule"]))
    tokens = torch.randint(11, (2, 5))
    records = []
    for module in (ours, plain):
        with recording(module) as record:
            module(tokens)
        records.append(record.moments)
    assert len(records[0]) == len(records[1]) > 5
    for ours_moment, plain_moment in zip(*records, strict=True):
        assert (ours_moment.kind, ours_moment.turns) == (plain_moment.kind, plain_moment.turns)
        close(ours_moment.values, plain_moment.values)
    require_equal(ours, plain, (7,))


def test_copies_transforms_and_half_precision_have_the_same_results(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*PARALLEL["the gated delta rule"]))
    tokens = torch.randint(11, (2, 9))
    expected = plain(tokens)
    close(copy.deepcopy(ours)(tokens), expected)
    weights: dict[str, Tensor] = dict(ours.named_parameters())
    close(torch.func.functional_call(ours, weights, tokens), expected)
    stacked = {name: weight[None] for name, weight in weights.items()}
    (mapped,) = torch.vmap(lambda own: torch.func.functional_call(ours, own, tokens))(stacked)
    close(mapped, expected)
    with torch.autocast("cpu", torch.bfloat16):
        halves = [module.float()(tokens).double() for module in (ours, plain)]
    assert (halves[0] - halves[1]).abs().max() < 0.05 * expected.abs().max()


# Random scans


def random_vector(chance: random.Random, depth: int, states: list[str]) -> str:
    """Returns a vector of 8 features, mostly such that affine states stay affine."""
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["v", "gate(v)", "tanh(key(v))", "(0.3 - v)", "0 * v", "each(sigmoid(small(v)))", *states])
    left, right = (random_vector(chance, depth - 1, states) for _ in range(2))
    known = random_vector(chance, depth - 1, [])
    return chance.choice([
        f"({left} + {right})", f"({left} - {right})", f"-({left})", f"tanh({known}) * {left}",
        f"{left} * tanh({known})", f"{left} / (1 + abs({known}))", f"tanh({left})",
        f"({left} + relu({known} - {left}))", f"({known} + relu({left} - {known}))",
        "sum(each(by_head(unit_norm[2](key(v)))) * memory)",
        f"sum({random_column(chance)} * memory)",
    ])  # fmt: skip


def random_column(chance: random.Random) -> str:
    return chance.choice([
        "each(by_head(unit_norm[2](key(v))))", "each(by_head(0.3 * tanh(gate(v))))", "each(0.3 * by_head(query(v)))",
        "0 * each(by_head(v))", "head_columns(0.5 * linear[4, bias = false](v))",
        "0.2 * each(by_head(v)) * each(by_head(sigmoid(v)))",
    ])  # fmt: skip


def random_matrix(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.2:
        return "memory"
    matrix = random_matrix(chance, depth - 1)
    vector = random_vector(chance, 1, [])
    column = random_column(chance)
    return chance.choice([
        f"{matrix} + {column} * {vector}", f"sigmoid({vector}) * ({matrix})", f"({matrix}) * each(sigmoid(small(v)))",
        f"each(by_head(sigmoid(gate(v)))) * ({matrix})", f"({matrix}) - {column} * sum({column} * ({matrix}))",
        f"({matrix}) + {column} * (each(sigmoid(other(v))) * ({vector} - sum({column} * ({matrix}))))", f"-({matrix})",
    ])  # fmt: skip


def random_scan(seed: int) -> str:
    chance = random.Random(seed)
    updates = [
        f"s <- 0.5 * ({random_vector(chance, 2, ['s', 'u'])})",
        f"u <- 0.5 * ({random_vector(chance, 2, ['u', 's'])})",
        f"memory <- {random_matrix(chance, 2)}",
    ]
    chance.shuffle(updates)
    return program("s, u, memory", f"{' '.join(updates)} emit {random_vector(chance, 2, ['s', 'u', 'norm(v)'])}")


@pytest.mark.parametrize("seed", range(30))
def test_random_scans_equal_themselves_one_after_the_other(tmp_path: Path, seed: int) -> None:
    ours, plain = modules(tmp_path, random_scan(seed))
    require_equal(ours, plain, (9,))
