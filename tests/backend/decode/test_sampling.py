"""Claims about answers whose tokens are drawn."""

import pytest
import torch
from torch import Tensor

from archlang.backend.decode.sampling import Sampling
from tests.closeness import close
from tests.conftest import Compiled

MODEL = """
model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    return linear[vocab](h + attention[2, causal = true](norm(h)))
}
"""
SETTINGS = [
    Sampling(),
    Sampling(temperature=0.5),
    Sampling(temperature=1.7, top_k=3),
    Sampling(top_p=0.6),
    Sampling(top_p=0.0),
    Sampling(min_p=0.3),
    Sampling(temperature=0.7, top_k=9, top_p=0.8, min_p=0.1),
]


def logits() -> Tensor:
    return 2 * torch.randn(5, 11, generator=torch.Generator().manual_seed(3))


def slow_probabilities(row: list[float], sampling: Sampling) -> list[float]:
    """The probabilities of one position, token by token."""
    values = torch.tensor(row, dtype=torch.float64) / sampling.temperature
    order = sorted(range(len(row)), key=lambda token: -float(values[token]))
    kept = order[: sampling.top_k or len(row)]
    chances = values[kept].softmax(0).tolist()
    while len(kept) > 1 and sum(chances[: len(kept) - 1]) >= sampling.top_p:
        kept.pop()
    chances = values[kept].softmax(0).tolist()
    kept = [token for token, chance in zip(kept, chances, strict=True) if chance >= sampling.min_p * chances[0]]
    result = torch.zeros(len(row), dtype=torch.float64)
    result[kept] = values[kept].softmax(0)
    found: list[float] = result.tolist()
    return found


@pytest.mark.parametrize("sampling", SETTINGS)
def test_probabilities_are_those_of_the_tokens_that_are_left(sampling: Sampling) -> None:
    expected = torch.tensor([slow_probabilities(row, sampling) for row in logits().tolist()])
    torch.testing.assert_close(sampling.probabilities(logits()).double(), expected.double(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("sampling", SETTINGS)
def test_probabilities_are_those_of_transformers(sampling: Sampling) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    scores, nothing = logits(), torch.zeros(5, 0, dtype=torch.long)
    warpers = [transformers.TemperatureLogitsWarper(sampling.temperature)]
    warpers += [transformers.TopKLogitsWarper(sampling.top_k)] if sampling.top_k else []
    warpers += [transformers.TopPLogitsWarper(sampling.top_p)] if 0 < sampling.top_p < 1 else []
    warpers += [transformers.MinPLogitsWarper(sampling.min_p)] if sampling.min_p else []
    if sampling.top_p == 0:
        warpers.append(transformers.TopKLogitsWarper(1))
    for warper in warpers:
        scores = warper(nothing, scores)
    close(sampling.probabilities(logits()), scores.softmax(-1))


def test_tokens_are_drawn_by_their_probabilities() -> None:
    sampling, row = Sampling(temperature=0.9, top_k=6), logits()[:1]
    drawn = sampling.of_items(range(20_000))(row.expand(20_000, -1))
    shares = torch.bincount(drawn, minlength=11) / 20_000
    assert (shares - sampling.probabilities(row)[0]).abs().max() < 0.015


def test_an_answer_depends_on_its_seed_item_and_number_alone(compiled: Compiled) -> None:
    module, sampling = compiled(MODEL), Sampling(temperature=1.2, seed=5)
    begin = torch.randint(11, (4, 3))

    def answers(rows: list[int], cache: bool = True, own: Sampling = sampling, number: int = 0) -> list[list[int]]:
        choose = own.of_items(rows, number)
        return module.decode(begin=begin[rows], limit=12, cache=cache, choose=choose).tokens.tolist()

    together = answers([0, 1, 2, 3])
    assert together == answers([0, 1, 2, 3], cache=False)
    assert [together[2], together[0]] == answers([2, 0])
    assert together != answers([0, 1, 2, 3], number=1)
    assert together != answers([0, 1, 2, 3], own=Sampling(temperature=1.2, seed=6))


def test_a_temperature_of_0_chooses_the_likeliest(compiled: Compiled) -> None:
    module, begin = compiled(MODEL), torch.randint(11, (2, 3))
    drawn = module.decode(begin=begin, limit=6, choose=Sampling(temperature=0.0).of_items(range(2)))
    assert drawn.tokens.tolist() == module.decode(begin=begin, limit=6).tokens.tolist()


@pytest.mark.parametrize(("name", "value"), [("temperature", -1.0), ("top_k", -1), ("top_p", 1.5), ("min_p", -0.1)])
def test_a_number_out_of_its_bounds_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}, and must be"):
        Sampling(**{name: value})  # type: ignore[arg-type]
