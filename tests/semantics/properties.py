"""Properties of every program that `check` accepts: its results are those that docs/semantics.md defines."""

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from unittest.mock import patch

import torch
from torch import Tensor

from archlang.backend.decode.greedy import target_of
from archlang.compile import build
from archlang.elaborate import calls
from archlang.errors import Source, effort
from archlang.graph.graph import Graph
from archlang.graph.passes.pipeline import NAMES
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from tests.semantics.batches import (
    Outcome,
    Sample,
    backward,
    gradients,
    outcome,
    ragged,
    randomised,
    run,
    samples,
    sum_of,
    weighted,
    with_fixed_draws,
)
from tests.semantics.compiled import PATH, Compiled, graph_of
from tests.semantics.interpreter import Answer, interpret

# In float64, relative to the largest number of the expected tensor.
TOLERANCE = 1e-9
# Tensors with larger numbers are not compared: rounding errors dominate there.
LARGEST = 1e6

# Blocks whose ponder, but not result, depends on padding.
_ONLY_PONDER = ("act",)

Property = Callable[[Compiled, int], None]


# The exceptions of the page


def depends_on_padding(graph: Graph) -> bool:
    """Whether the signature of a block says that its result depends on the padded length."""
    return any(
        "padding" in instance.caveats and instance.block not in _ONLY_PONDER for instance in graph.instances.values()
    )


def depends_on_mates(graph: Graph) -> bool:
    """Whether a block mixes samples."""
    return any("batch" in instance.caveats for instance in graph.instances.values())


def ponders_over_padding(graph: Graph) -> bool:
    """Whether ponder is divided by the padded length."""
    return any(
        "padding" in instance.caveats and instance.block in _ONLY_PONDER for instance in graph.instances.values()
    )


# Properties


def runs(program: Compiled, seed: int) -> None:
    """Forward and backward run at every length, with lengths and without."""
    graph, chance = program.graph, random.Random(seed)
    module = randomised(graph, seed)
    fields = len(graph.region.inputs)
    for lengths in ([(1,) * fields], [*ragged(graph, chance, 3, shortest=0), (1,) * fields]):
        outcome(module, samples(graph, lengths, seed))
    outcome(module, samples(graph, [(chance.randint(1, 7),) * fields] * 2, seed), masked=False)


def accepts_empty_samples(program: Compiled, seed: int) -> None:
    """A sample without positions has the same result in a batch, alone and in the interpreter, without NaN."""
    graph, chance = program.graph, random.Random(seed)
    module = randomised(graph, seed)
    fields = len(graph.region.inputs)
    empty = (0,) * fields if fields == 1 or chance.random() < 0.4 else chance.choice(((0, 4), (3, 0)))
    empty_sample, full_sample = samples(graph, [empty, (3,) * fields], seed)
    alone = outcome(module, [empty_sample])
    assert not any(result.isnan().any() for result in alone.results), "NaN in the result of an empty sample"
    outcome(module, [empty_sample, empty_sample], masked=False)
    if depends_on_padding(graph) or depends_on_mates(graph):
        return
    with torch.no_grad():
        mixed = run(module, [full_sample, empty_sample])
    _equal("results of an empty sample in a batch and alone", mixed[1:], alone.results)
    # The module computes a batch without positions with one position, over which `act` may take its mean.
    _compare_with_interpreter(graph, [empty_sample], seed, with_ponder=not ponders_over_padding(graph))


def equals_the_interpreter(program: Compiled, seed: int) -> None:
    """Results, gradients, ponder and steps of each sample are those of the reference interpreter."""
    graph, chance = program.graph, random.Random(seed)
    batch = samples(graph, ragged(graph, chance, 3), seed)
    if depends_on_padding(graph) or depends_on_mates(graph):
        for sample in batch:
            _compare_with_interpreter(graph, [sample], seed, with_ponder=True)
        return
    averages_padding = ponders_over_padding(graph)
    _compare_with_interpreter(graph, batch, seed, with_ponder=not averages_padding)
    if averages_padding:
        _compare_with_interpreter(graph, batch[:1], seed, with_ponder=True)


def _compare_with_interpreter(graph: Graph, batch: Sequence[Sample], seed: int, with_ponder: bool) -> None:
    compiled = outcome(randomised(graph, seed), batch, with_ponder=with_ponder)
    module = randomised(graph, seed, NAMES)  # with the weights that passes may remove
    answers = [interpret(graph, module, sample.fields) for sample in batch]
    loss = sum((_loss(answer, with_ponder) for answer in answers), torch.zeros((), dtype=torch.float64))
    backward(loss)
    expected = Outcome(
        tuple(answer.result.detach() for answer in answers),
        torch.stack([answer.ponder.detach() for answer in answers]).mean(),
        None
        if answers[0].depth is None
        else torch.stack([answer.depth for answer in answers if answer.depth is not None]),
        gradients(module),
        {name: torch.stack([answer.losses[name].detach() for answer in answers]).mean() for name in answers[0].losses},
    )
    _same(compiled, expected, "the module", "the interpreter", with_ponder)


def _loss(answer: Answer, with_ponder: bool) -> Tensor:
    return (
        weighted(answer.result)
        + sum_of(list(answer.losses.values()))
        + (answer.ponder.double() if with_ponder else 0.0)
    )


def is_causal(program: Compiled, seed: int) -> None:
    """If the checker accepts the model as causal, later tokens change no earlier position of the result."""
    if not program.causal:
        return
    graph = program.graph
    longest = random.Random(seed).randint(5, 9)
    module = randomised(graph, seed)
    generator = torch.Generator().manual_seed(seed)
    lengths = (*(5 for _ in graph.region.inputs[1:]), longest)
    for sample in samples(graph, [lengths] * 2, seed):
        last = sample.fields[-1]
        cuts = [position for position in range(1, longest) for _ in range(3)]
        changed = [torch.cat((last[:cut], _changed(last[cut:], generator))) for cut in cuts]
        with torch.no_grad():
            before, *after = run(module, [Sample((*sample.fields[:-1], field)) for field in (last, *changed)])
        for cut, result in zip(cuts, after, strict=True):
            difference = _difference(result[:cut], before[:cut])
            assert difference <= TOLERANCE, (
                f"position {_first_difference(result[:cut], before[:cut])} of the result changes by {difference:.3g} "
                f"with the tokens from {cut} on"
            )


def _changed(field: Tensor, generator: torch.Generator) -> Tensor:
    """Returns other values; every token changes, by a shift of 1 to 3 modulo 4."""
    if field.dtype == torch.int64:
        return (field + torch.randint(1, 4, field.shape, generator=generator)) % 4
    return field + torch.randn(field.shape, generator=generator, dtype=field.dtype)


def stands_alone(program: Compiled, seed: int) -> None:
    """The result of a sample is the same alone, in a batch, in another order and with more padding, whatever is in it;
    so are the gradients with more padding."""
    graph, chance = program.graph, random.Random(seed + 1)
    if depends_on_padding(graph) or depends_on_mates(graph):
        return
    module = randomised(graph, seed)
    batch = samples(graph, ragged(graph, chance, 4), seed)
    ponders = not ponders_over_padding(graph)
    expected = outcome(module, batch, with_ponder=ponders)
    for content in (7.0, chance.choice((torch.nan, torch.inf, 1e30))):
        padded = outcome(module, batch, extra=3, with_ponder=ponders, content=content)
        _same(padded, expected, f"a batch with more padding of {content}", "one with less", ponders)
    with torch.no_grad():
        together = run(module, batch)
        ponder, depth, losses = module.ponder, module.sample_depth, module.losses
        backwards = run(module, batch[::-1])
        _equal("results in another order", backwards[::-1], together)
        alone, ponders_alone, depths, losses_alone = [], [], [], []
        for sample in batch:
            alone += run(module, [sample], masked=False)
            ponders_alone.append(module.ponder)
            depths.append(module.sample_depth)
            losses_alone.append(module.losses)
        _equal("results alone and in a batch", alone, together)
        means = {name: torch.stack([own[name] for own in losses_alone]).mean() for name in losses}
        _same_losses(means, losses, "samples alone and in a batch")
        if ponders:
            _equal("ponder alone and in a batch", [torch.stack(ponders_alone).mean()], [ponder])
        assert all((sample_depth is None) is (depth is None) for sample_depth in depths), "depth is None only sometimes"
        if depth is not None:
            known = [sample_depth for sample_depth in depths if sample_depth is not None]
            _equal("depth alone and in a batch", known, list(depth[:, None]))


def survives_passes(program: Compiled, seed: int) -> None:
    """Results, gradients, names of weights and their initial values, ponder and depth are the same without passes."""
    graph, chance = program.graph, random.Random(seed)
    batch = samples(graph, [*ragged(graph, chance, 3, shortest=0), (2,) * len(graph.region.inputs)], seed)
    expected = outcome(randomised(graph, seed), batch)
    torch.manual_seed(seed)
    initial = build(graph).state_dict()
    for without in (NAMES, *(tuple(name for name in NAMES if chance.random() < 0.5) for _ in range(2))):
        _same(
            outcome(randomised(graph, seed, without), batch),
            expected,
            f"without {', '.join(without)}",
            "with all",
            True,
        )
        torch.manual_seed(seed)
        weights = build(graph, without=without).state_dict()
        assert list(weights) == list(initial), (
            f"names of weights: {list(weights)} without {without}, not {list(initial)}"
        )
        for name, weight in weights.items():
            assert torch.equal(weight, initial[name]), f"another initial value of {name} without {without}"


def survives_formatting(program: Compiled, seed: int) -> None:
    """Formatted text has an equal graph, and formatting it again changes nothing."""
    formatted = format_program(parse(Source(PATH, program.text)))
    again = format_program(parse(Source(PATH, formatted)))
    assert again == formatted, f"formatted twice:\n{formatted}\n{again}"
    graph = graph_of(formatted)
    assert graph == program.graph, f"another graph:\n{formatted}"


def survives_known_calls(program: Compiled, seed: int) -> None:
    """The graph is the same if each call of a library block is bound anew, as if no equal one had been before."""
    with patch.object(calls, "_key_of_call", return_value=None):
        expected = graph_of(program.text)
    assert program.graph == expected, "another graph after other programs"
    effort.forget()
    assert graph_of(program.text) == expected, "another graph after equal calls of the program"


def survives_copies(program: Compiled, seed: int) -> None:
    """A deep copy, and a module that loads the weights, compute the same."""
    graph = program.graph
    module = randomised(graph, seed)
    batch = samples(graph, ragged(graph, random.Random(seed), 2), seed)
    expected = outcome(module, batch)
    _same(outcome(with_fixed_draws(copy.deepcopy(module)), batch), expected, "a copy", "the module", True)
    fresh = randomised(graph, seed + 1)
    fresh.load_state_dict(module.state_dict())
    _same(outcome(fresh, batch), expected, "a module with the same weights", "the module", True)


def runs_in_half_precision(program: Compiled, seed: int) -> None:
    """A model runs in bfloat16, and its result is finite if it is moderate in float64."""
    graph = program.graph
    module = randomised(graph, seed)
    batch = samples(graph, ragged(graph, random.Random(seed), 2), seed)
    with torch.no_grad():
        exact = run(module, batch)
        module.bfloat16()
        halves = [
            Sample(tuple(field.bfloat16() if field.is_floating_point() else field for field in sample.fields))
            for sample in batch
        ]
        rounded = run(module, halves)
    for half, double in zip(rounded, exact, strict=True):
        assert half.dtype == torch.bfloat16, f"the result is {half.dtype}"
        assert half.shape == double.shape
        if _is_moderate(double):
            assert half.isfinite().all(), "infinite in bfloat16"


def decodes_with_a_cache(program: Compiled, seed: int) -> None:
    """A causal model decodes the same tokens with a cache and without."""
    graph = program.graph
    target = target_of(graph)
    if not program.causal or target is None or depends_on_padding(graph) or depends_on_mates(graph):
        return
    module = randomised(graph, seed).eval()
    batch = [sample.fields for sample in samples(graph, [(4,) * len(graph.region.inputs)] * 2, seed)]
    fields = [torch.stack(values) for index, values in enumerate(zip(*batch, strict=True)) if index != target]
    begin = torch.randint(0, 4, (2, 2), generator=torch.Generator().manual_seed(seed))
    with_cache = module.decode(*fields, begin=begin, limit=6)
    without = module.decode(*fields, begin=begin, limit=6, cache=False)
    _equal("logits with a cache and without", list(with_cache.logits), list(without.logits))


PROPERTIES: Mapping[str, Property] = {
    "runs": runs,
    "empty": accepts_empty_samples,
    "interpreter": equals_the_interpreter,
    "causal": is_causal,
    "alone": stands_alone,
    "passes": survives_passes,
    "format": survives_formatting,
    "known calls": survives_known_calls,
    "copies": survives_copies,
    "half": runs_in_half_precision,
    "decoding": decodes_with_a_cache,
}


# Comparison


def _same(actual: Outcome, expected: Outcome, actual_name: str, expected_name: str, with_ponder: bool) -> None:
    _equal(f"results of {actual_name} and {expected_name}", actual.results, expected.results)
    if with_ponder:
        _equal(f"ponder of {actual_name} and {expected_name}", [actual.ponder], [expected.ponder])
    _same_losses(actual.losses, expected.losses, f"{actual_name} and {expected_name}")
    assert (actual.depth is None) is (expected.depth is None), (
        f"only one of {actual_name} and {expected_name} has a depth"
    )
    if actual.depth is not None and expected.depth is not None:
        _equal(f"depth of {actual_name} and {expected_name}", [actual.depth], [expected.depth], 1e-6)
    scale = max((gradient.abs().max().item() for gradient in expected.gradients.values()), default=0.0)
    for name, gradient in expected.gradients.items():
        if name not in actual.gradients or not _is_moderate(gradient):
            continue
        difference = (actual.gradients[name] - gradient).abs().max().item()
        assert difference <= TOLERANCE * max(1.0, scale), (
            f"gradient of {name}: {actual_name} and {expected_name} differ by {difference:.3g}"
        )


def _same_losses(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor], what: str) -> None:
    assert actual.keys() == expected.keys(), f"auxiliary losses of {what} differ: {[*actual]} and {[*expected]}"
    for name in expected:
        _equal(f"the auxiliary loss {name} of {what}", [actual[name]], [expected[name]])


def _equal(what: str, actual: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float = 0.0) -> None:
    for row, (value, expected_value) in enumerate(zip(actual, expected, strict=True)):
        assert value.shape == expected_value.shape, (
            f"{what}: {tuple(value.shape)} and {tuple(expected_value.shape)} in row {row}"
        )
        if not _is_moderate(expected_value) and not (expected_value.isnan().any() and _is_moderate(value)):
            continue
        difference = _difference(value, expected_value)
        assert difference <= (tolerance or TOLERANCE), f"{what} differ by {difference:.3g} in row {row}"


def _difference(value: Tensor, expected_value: Tensor) -> float:
    """The largest difference, relative to the largest number; a NaN counts as infinite."""
    if not expected_value.numel():
        return 0.0
    difference = (value.double() - expected_value.double()).abs().nan_to_num(float("inf"), float("inf")).max().item()
    return difference / max(1.0, expected_value.abs().nan_to_num(0.0).max().item())


def _first_difference(value: Tensor, expected_value: Tensor) -> int:
    rows = (value - expected_value).abs().amax(tuple(range(1, value.dim()))) > TOLERANCE
    return int(rows.nonzero()[0]) if rows.any() else 0


def _is_moderate(value: Tensor) -> bool:
    return not value.numel() or bool((value.abs() < LARGEST).all())
