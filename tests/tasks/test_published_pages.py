"""The pages of published tasks of recall, reasoning and graphs agree with their definitions, written with loops."""

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from math import log
from random import Random

import pytest

from archlang.elaborate.binding import problems_of_task
from archlang.resolve import library
from archlang.tasks.kit import lengths
from archlang.tasks.kit.split import Ragged
from tests.tasks.every import page, task_of


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "_BATCH_SYMBOLS", 1 << 14)


Words = list[str]
SIZES = "train_size = 400, valid_size = 40, test_size = 40"


def items(text: str, sizes: str = SIZES) -> Iterator[tuple[Words, Words, list[bool]]]:
    """What is read of each item of all splits, the answers, and which of them count."""
    task = task_of(f"{text.removesuffix(']')}, {sizes}]")
    for split in task.split_names():
        generated = task.generate(split, 0)
        assert isinstance(generated.targets, Ragged)
        assert generated.scored is not None
        for index in range(len(generated)):
            words = [task.vocabulary[token] for token in generated.inputs["x"][index]]
            names = getattr(task, "class_names", ()) or task.vocabulary
            answers = [names[token] for token in generated.targets[index]]
            yield words, answers, generated.scored[index].tolist()


def counted(answers: Words, marks: list[bool]) -> Words:
    return [answer for answer, mark in zip(answers, marks, strict=True) if mark]


def is_next(words: Words, answers: Words) -> bool:
    return words[1:] == answers[:-1]


def near(counts: Counter[int], shares: dict[int, float], tolerance: float) -> bool:
    total = sum(counts.values())
    return counts.keys() == shares.keys() and all(
        abs(counts[value] / total - share) < tolerance for value, share in shares.items()
    )


def says(name: str, text: str) -> bool:
    item = library.task(name)
    return item is not None and text.replace("%", " %") in " ".join(item.documentation)


@pytest.mark.parametrize("noise", [0, 30])
@pytest.mark.parametrize("symbols", [5, 16])
def test_values_of_repeated_keys_are_recalled(noise: int, symbols: int) -> None:
    noisy, expected = 0, 0.0
    statics = f"symbols = {symbols}, noise = {noise}, noise_symbols = 3, length = 20, test_length = [20, 30]"
    for words, answers, marks in items(f"in_context_recall[{statics}]"):
        assert is_next(words, answers)
        of = dict[str, str]()
        for place in range(0, len(words), 2):
            key, value = words[place], answers[place]
            is_noise = int(key) >= symbols
            assert not any(marks[place + 1 : place + 2])
            assert marks[place] == (not is_noise and key in of)
            if is_noise:
                assert int(value) >= symbols
            else:
                assert int(key) < symbols // 2 <= int(value) < symbols
                assert of.setdefault(key, value) == value
            noisy += is_noise
        # One pair before the last is never noise, and neither is the last.
        expected += noise / 100 * (len(words) // 2 - 1)
        assert marks[-1], "the last key is known"
    assert noisy == pytest.approx(expected, rel=0.1)


def test_the_key_asked_last_is_any_of_those_before() -> None:
    counts = Counter[int]()
    statics = "symbols = 6, length = 12, test_length = []"
    for words, _, _ in items(f"in_context_recall[{statics}]", "train_size = 8_000, valid_size = 0, test_size = 0"):
        keys = list(dict.fromkeys(words[:-1:2]))
        if len(keys) == 3:
            counts[keys.index(words[-1])] += 1
    assert near(counts, {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, 0.03)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_values_of_fuzzy_keys_are_recalled(most: int) -> None:
    sizes = Counter[int]()
    for words, answers, marks in items(f"fuzzy_in_context_recall[most = {most}, symbols = 9, length = 40, "
                                       "test_length = [60]]"):  # fmt: skip
        assert is_next(words, answers)
        text, counts = [words[0], *answers], [False, *marks]
        start = next(place for place, word in enumerate(text) if word != "_")
        assert start <= 4 * most
        assert not any(counts[:start])
        of, runs = dict[tuple[str, ...], tuple[str, ...]](), list[tuple[int, list[str]]]()
        for place in range(start, len(text)):
            if not runs or (int(text[place]) < 4) != (int(text[place - 1]) < 4):
                runs.append((place, []))
            runs[-1][1].append(text[place])
        assert len(runs) % 2 == 0
        for (place, key), (after, value) in zip(runs[::2], runs[1::2], strict=True):
            assert len(set(key)) == len(key) <= most
            assert len(set(value)) == len(value) <= most
            assert not any(counts[place:after])
            assert counts[after : after + len(value)] == [tuple(key) in of] * len(value)
            if tuple(key) not in of:
                sizes[len(value)] += 1
            assert of.setdefault(tuple(key), tuple(value)) == tuple(value)
        assert counts[-1]
    assert near(sizes, dict.fromkeys(range(1, most + 1), 1 / most), 0.04)


def test_a_compressed_sequence_is_its_own_answer() -> None:
    for words, answers, marks in items("compression[symbols = 7, length = 12, test_length = [20]]"):
        assert words[-1] == "[C]"
        assert counted(answers, marks) == words[:-1]
        assert marks == [True] * (len(words) - 1) + [False]


def test_memorized_values_are_the_same_everywhere() -> None:
    of = dict[str, str]()
    for words, answers, marks in items("memorization[keys = 9, length = 12, test_length = [20]]"):
        assert words[1::2] == ["?"] * (len(words) // 2)
        assert marks == [False, True] * (len(words) // 2)
        for key, value in zip(words[::2], answers[1::2], strict=True):
            assert of.setdefault(key, value) == value
    assert len(of) == len(set(of.values())) == 9
    assert of.keys().isdisjoint(of.values())


def prefix(words: Words, modulus: int) -> int:
    """The value of an expression in prefix notation, which is taken from the words."""
    word = words.pop(0)
    if word.isdigit():
        return int(word)
    left, right = prefix(words, modulus), prefix(words, modulus)
    return (left + right if word == "+" else left - right if word == "-" else left * right) % modulus


def operators(words: Words) -> int:
    """How many operators an expression has, which is taken from the words."""
    return 1 + operators(words) + operators(words) if not words.pop(0).isdigit() else 0


@pytest.mark.parametrize("modulus", [2, 23])
def test_expressions_in_prefix_notation_have_their_value(modulus: int) -> None:
    task = task_of(f"mano[modulus = {modulus}, train = 1..5, test = 6..9, {SIZES}]")
    for split in task.split_names():
        generated = task.generate(split, 0)
        lengths = Counter[int]()
        for index in range(len(generated)):
            words = [task.vocabulary[token] for token in generated.inputs["x"][index]]
            lengths[sum(not word.isdigit() for word in words)] += 1
            rest = list(words)
            assert generated.targets[index] == prefix(rest, modulus)
            assert not rest
        assert set(lengths) == set(range(6, 10) if split == "test" else range(1, 6))


@pytest.mark.parametrize(("modulus", "more"), [(23, {"counting"}), (8, set())])
def test_what_prefix_notation_demands(modulus: int, more: set[str]) -> None:
    """Products of -1 and 1 are a parity, and sums count."""
    assert problems_of_task(page("mano")(modulus=modulus)._binding) == {"nonregular", "parity", *more}


def test_the_first_operand_has_any_share_of_the_operators() -> None:
    task = task_of("mano[train = 4..4, test = 5..5, train_size = 6_000]")
    x = task.generate("train", 0).inputs["x"]
    words = [[task.vocabulary[token] for token in x[index]] for index in range(len(x))]
    assert near(Counter(operators(each[1:]) for each in words), dict.fromkeys(range(4), 1 / 4), 0.03)
    signs = Counter(task.vocabulary.index(each[0]) for each in words)
    assert near(signs, {23: 1 / 3, 24: 1 / 3, 25: 1 / 3}, 0.03)


@pytest.mark.parametrize("size", [1, 3])
def test_questions_are_about_nodes_some_edges_ahead(size: int) -> None:
    steps = Counter[int]()
    for words, answers, marks in items(f"depo[symbols = 12, size = {size}, depth = 5, questions = 4, train = 3..6, "
                                       "test = 7..9]"):  # fmt: skip
        assert is_next(words, answers)
        text, counts = [words[0], *answers], [False, *marks]
        first = next(place for place, word in enumerate(text) if int(word) >= 12)
        names = [tuple(text[place : place + size]) for place in range(0, first, size)]
        following = dict(zip(names[::2], names[1::2], strict=True))
        assert len(following) == len(names) // 2 == len(set(following.values()))
        asked = list[tuple[str, ...]]()
        for place in range(first, len(text), 2 * size + 1):
            node = tuple(text[place + 1 : place + 1 + size])
            asked.append(node)
            ahead = int(text[place]) - 11
            steps[ahead] += 1
            for _ in range(ahead):
                node = following[node]
            assert tuple(text[place + 1 + size : place + 1 + 2 * size]) == node
            assert counts[place : place + 1 + 2 * size] == [False] * (1 + size) + [True] * size
        assert len(asked) == len(set(asked)) == min(len(following), 4)
        assert not any(counts[:first])
        node, seen = names[0], set[tuple[str, ...]]()
        while node not in seen:
            seen.add(node)
            node = following[node]
        assert len(seen) == len(following), "it is one cycle"
    assert near(steps, dict.fromkeys(range(1, 6), 1 / 5), 0.04)


def test_dependences_are_listed_in_order() -> None:
    for words, answers, marks in items("brevo[names = 40, train = 3..12, test = 13..20]"):
        query = words.index("?")
        edges = list(zip(words[:query:2], words[1:query:2], strict=True))
        assert len(set(edges)) == len(edges)
        before = {node: {a for a, b in edges if b == node} for node in words[:query]}
        assert all(len(nodes) <= 4 for nodes in before.values())
        assert all(sum(node in nodes for nodes in before.values()) <= 4 for node in before)
        asked = words[query + 1]
        assert words[query + 2] == "="
        needed, found = {asked}, [asked]
        while found:
            for node in before[found.pop()] - needed:
                needed.add(node)
                found.append(node)
        order = list[str]()
        while len(order) < len(needed):
            ready = [node for node in needed - {*order} if before[node] <= {*order}]
            order.append(min(ready, key=int))
        assert words[query + 3 :] == order
        assert counted(answers, marks) == [*order, "[E]"]
        assert marks.index(True) == query + 2


def test_nodes_depend_on_one_to_all_before_them() -> None:
    edges, first = Counter[int](), Counter[int]()
    for words, _, _ in items("brevo[train = 3..3, test = 4..4]", "train_size = 4_000, valid_size = 0, test_size = 0"):
        query = words.index("?")
        edges[query // 2] += 1
        if query == 4:  # the one node on which the last depends is the first, or the second
            (parent,) = (a for a, b in zip(words[:query:2], words[1:query:2], strict=True) if b == words[query + 1])
            first[words[1:query:2].count(parent)] += 1
    assert near(edges, {2: 1 / 2, 3: 1 / 2}, 0.03)
    assert near(first, {0: 1 / 2, 1: 1 / 2}, 0.04)


def fitting(a: int, b: int, most: int) -> Iterator[tuple[str, int]]:
    """The signs, and their results from 1 to `most`."""
    for sign, result in (("+", a + b), ("*", a * b), ("-", a - b), ("/", a // b if a % b == 0 else 0)):
        if 1 <= result <= most:
            yield sign, result


def combined(numbers: tuple[int, ...]) -> Iterator[tuple[int, int, list[int]]]:
    """The two numbers of each pair, the larger first, and the others."""
    for i, j in combinations(range(len(numbers)), 2):
        others = [number for place, number in enumerate(numbers) if place not in (i, j)]
        yield max(numbers[i], numbers[j]), min(numbers[i], numbers[j]), others


def solutions(numbers: tuple[int, ...], target: int, most: int) -> Iterator[list[str]]:
    if numbers == (target,):
        yield []
    for a, b, others in combined(numbers):
        for sign, result in fitting(a, b, most):
            for steps in solutions((*others, result), target, most):
                yield [f"{a} {sign} {b} = {result}", *steps]


@pytest.mark.parametrize(("train", "test", "most"), [(3, 4, 100), (4, 3, 9), (2, 5, 7)])
def test_steps_are_the_first_solution_of_the_search(train: int, test: int, most: int) -> None:
    statics = f"most = {most}, train = {train}..{train}, test = {test}..{test}"
    several = list[bool]()
    for words, answers, marks in items(f"countdown[{statics}]", "train_size = 4_000, valid_size = 40, test_size = 40"):
        place = words.index("?")
        remaining = solutions(tuple(map(int, words[:place])), int(words[place + 1]), most)
        assert " ".join(words[place + 2 :]) == " ".join(next(remaining))
        assert counted(answers, marks) == [*words[place + 2 :], "[E]"]
        assert marks.index(True) == place + 1
        if place == 3:
            several.append(next(remaining, None) is not None)
    if most == 100:
        assert says("countdown", f"{sum(several) / len(several):.0%} of the items with 3 numbers have some.")


def test_a_target_is_the_result_of_random_steps() -> None:
    def targets(numbers: tuple[int, ...]) -> Iterator[tuple[int, float]]:
        if len(numbers) == 1:
            yield numbers[0], 1.0
        pairs = list(combined(numbers))
        for a, b, others in pairs:
            results = [result for _, result in fitting(a, b, 4)]
            for result in results:
                for target, share in targets((*others, result)):
                    yield target, share / len(pairs) / len(results)

    shares = dict.fromkeys(range(1, 5), 0.0)
    for numbers in product(range(1, 5), repeat=3):
        for target, share in targets(numbers):
            shares[target] += share / 4**3
    sizes = "train_size = 8_000, valid_size = 0, test_size = 0"
    drawn = [words[:5] for words, _, _ in items("countdown[most = 4]", sizes)]
    assert near(Counter(int(words[4]) for words in drawn), shares, 0.02)
    assert near(Counter(int(words[0]) for words in drawn), dict.fromkeys(range(1, 5), 1 / 4), 0.02)


def test_words_of_an_automaton_take_its_edges() -> None:
    """With two states, from each of which edges lead to the other, the symbols of a state are those at every other
    place of a word."""
    degrees, lengths, counts = Counter[int](), Counter[int](), Counter[int]()
    statics = "symbols = 6, states = 2, edges = 2, longest = 5, length = 120, test_length = [60]"
    for words, answers, marks in items(f"regbench[{statics}]"):
        assert is_next(words, answers)
        assert all(marks)
        text = " ".join(words[:-1]).split("|")[:-1]
        known = [{symbol for word in text for symbol in word.split()[place::2]} for place in (0, 1)]
        if len(words) == 120:
            degrees.update(map(len, known))
        assert len(known[0] | known[1]) <= 2
        lengths.update(len(word.split()) for word in text[:20])
        if len(known[0]) == 2:
            counts.update(int(word.split()[0] == min(known[0])) for word in text if word.split())
    assert near(degrees, {1: 1 / 2, 2: 1 / 2}, 0.05)
    assert near(lengths, dict.fromkeys(range(5), 1 / 5), 0.03)
    assert near(counts, {0: 1 / 2, 1: 1 / 2}, 0.03)
    different = Counter(len({*words} - {"|"}) for words, _, _ in items("regbench[states = 5, length = 400]"))
    assert max(different) == 5


def test_the_documented_best_score_is_that_of_the_definition() -> None:
    """An observer knows the automaton, its state, and that words have less than 50 symbols."""
    dice, hits, loss, total = Random(0), 0.0, 0.0, 0
    for _ in range(1_500):
        states = dice.randint(2, 12)
        degrees = [dice.randint(1, min(4, states)) for _ in range(states)]
        targets = [[(state + dice.randint(1, states - 1)) % states for _ in range(degrees[state])]
                   for state in range(states)]  # fmt: skip
        state, left, taken = 0, dice.randrange(50), 0
        for place in range(256):
            end = 1 / (50 - taken)
            shares = [end, *[(1 - end) / degrees[state]] * degrees[state]]
            if place:
                hits, total = hits + max(shares), total + 1
                loss -= sum(share * log(share) for share in shares if share)
            state = targets[state][dice.randrange(degrees[state])] if left else 0
            left, taken = (left - 1, taken + 1) if left else (dice.randrange(50), 0)
    assert says("regbench", f"predicts {hits / total:.0%} of them, with a loss of {loss / total:.2f}.")


@pytest.mark.parametrize("weights", [1, 5])
@pytest.mark.parametrize("answer", ["distances", "predecessors"])
def test_answers_are_those_of_the_shortest_paths(weights: int, answer: str) -> None:
    edges, pairs, weighed = 0, 0.0, Counter[int]()
    statics = f"names = 30, weights = {weights}, farthest = 7, train = 4..7, test = 8..12, answer = {answer}"
    for words, answers, marks in items(f"shortest_paths[{statics}]"):
        place, size = words.index("?"), 2 + (weights > 1)
        joined = dict[tuple[str, str], int]()
        for start in range(0, place, size):
            a, b = words[start : start + 2]
            assert (a, b) not in joined
            joined[a, b] = joined[b, a] = int(words[start + 2]) if size == 3 else 1
            weighed[joined[a, b]] += 1
        nodes = words[place + 1 :]
        assert len(set(nodes)) == len(nodes)
        assert {node for edge in joined for node in edge} <= set(nodes)
        edges, pairs = edges + place // size, pairs + len(nodes) * min(3, len(nodes) - 1) / 2
        far = 10**6
        distance = {node: 0 if node == nodes[0] else far for node in nodes}
        for _ in nodes:
            for (a, b), weight in joined.items():
                distance[b] = min(distance[b], distance[a] + weight)
        expected = [str(min(distance[node], 8)) for node in nodes]
        if answer == "predecessors":
            expected = []
            for node in nodes:
                steps = {other: distance[other] + joined.get((other, node), far) for other in nodes}
                before = [other for other in nodes if steps[other] == distance[node] < 8]
                # Of equal ones, `min` takes the first.
                expected.append(min(before, key=distance.__getitem__, default=node))
        assert counted(answers, marks) == expected
        assert marks == [False] * (place + 1) + [True] * len(nodes)
    assert edges / pairs == pytest.approx(1, abs=0.05)
    assert near(weighed, dict.fromkeys(range(1, weights + 1), 1 / weights), 0.03)


def test_coupled_digits_of_one_significance_have_one_position() -> None:
    starts = Counter[int]()
    task = task_of(f"coupled_addition[most = 12, train = 1..4, test = 5..9, {SIZES}]")
    for split in task.split_names():
        generated = task.generate(split, 0)
        assert generated.scored is not None
        for index in range(len(generated)):
            words = [task.vocabulary[token] for token in generated.inputs["x"][index]]
            plus, equals = words.index("+"), words.index("=")
            left, right, answer = words[:plus], words[plus + 1 : equals], words[equals + 1 :]
            assert int("".join(left)) + int("".join(right)) == int("".join(answer[::-1]))
            assert len(left) == len(right) == len(answer) - 1
            positions = generated.inputs["position"][index].tolist()
            start = positions[plus]
            assert positions[equals] == start
            assert positions[equals + 1 :] == [start + 1 + place for place in range(len(answer))]
            assert positions[:plus] == positions[plus + 1 : equals] == positions[equals + 1 : -1][::-1]
            assert max(positions) < 12
            starts[start] += len(left) == 4
            answers = [task.vocabulary[token] for token in generated.targets[index]]
            assert counted(answers, generated.scored[index].tolist()) == [*answer, "[E]"]
    assert {start for start, count in starts.items() if count} == set(range(7))
