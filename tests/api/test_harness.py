"""A run answers the requests of lm-eval, on a small task of its own."""

import math
from typing import Any

import pytest

import archlang
from archlang.plan.from_file import plan_recipe
from archlang.train.runs.training import train

lm_eval = pytest.importorskip("lm_eval", reason="lm-eval is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")
instances, tasks = (pytest.importorskip(f"lm_eval.api.{name}") for name in ("instance", "task"))

PROGRAM = """
model page[d = 16](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    return linear[vocab](h + attention[1, rotary, true](h))
}
recipe page {
    task  text[path = "corpus.txt", valid_share = 0.1, length = 18]
    model page
    train adamw[lr = 0.01, batch = 8, steps = 60]
}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> archlang.Run:
    folder = tmp_path_factory.mktemp("harness")
    (folder / "corpus.txt").write_text("".join(f"so much depends\n{number:03}" for number in range(120)))
    (folder / "page.arch").write_text(PROGRAM)
    train(plan_recipe(folder / "page.arch"), folder / "run", device="cpu")
    return archlang.load_run(folder / "run")


def requests(kind: str, *arguments: tuple[Any, ...]) -> list[Any]:  # Any: of lm-eval
    return [instances.Instance(kind, {}, each, number) for number, each in enumerate(arguments)]


def test_a_task_of_choices_is_measured(run: archlang.Run) -> None:
    documents = [
        {"question": "so mu", "choices": ["ch", "zz"], "answer": 0},
        {"question": "depe", "choices": ["xx", "nds"], "answer": 1},
    ]
    task = tasks.ConfigurableTask(
        config={
            "task": "own", "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(documents)},
            "output_type": "multiple_choice", "test_split": "test", "doc_to_text": "question", "target_delimiter": "",
            "doc_to_choice": "choices", "doc_to_target": "answer",
        }
    )  # fmt: skip
    results = lm_eval.evaluate(run.lm_eval(), task_dict={"own": task}, bootstrap_iters=0)
    assert results["results"]["own"]["acc,none"] == 1.0


def test_likelihoods_are_those_of_the_run_and_long_texts_are_read_in_windows(run: archlang.Run) -> None:
    pairs = [("so mu", "ch dep"), ("", "so")]
    expected = [(each.logarithm, each.is_likeliest) for each in run.likelihoods(pairs)]
    assert run.lm_eval(length=100).loglikelihood(requests("loglikelihood", *pairs)) == expected
    long = "so much depends\n" * 3
    (short,) = run.likelihoods([(long[-10:-3], long[-3:])])
    model = run.lm_eval(length=9)
    ((logarithm, _),) = model.loglikelihood(requests("loglikelihood", (long[:-3], long[-3:])))
    assert math.isfinite(logarithm)
    assert logarithm != short.logarithm  # which begins with a mark
    whole, windows, none = run.lm_eval(length=100).loglikelihood_rolling(
        requests("loglikelihood_rolling", (long,), (long[:16],), ("",))
    )
    assert whole == pytest.approx(run.likelihoods([("", long)])[0].logarithm)
    assert windows == pytest.approx(run.lm_eval().loglikelihood_rolling(requests("", (long[:16],)))[0])
    assert none == 0
    # Two windows of 8 tokens that are read; the second one predicts the last 7.
    field = run.input_format.fields[0]
    first, *tokens = field.encode(long[:15]).tolist()
    cut = run.likelihoods([([first], tokens[:8]), (tokens[6:8], tokens[8:])])
    (rolled,) = run.lm_eval(length=8).loglikelihood_rolling(requests("", (long[:15],)))
    assert rolled == pytest.approx(sum(each.logarithm for each in cut))


def test_texts_are_generated_until_a_stop(run: archlang.Run) -> None:
    greedy: dict[str, Any] = {"until": ["\n", "p"], "max_gen_toks": 12}
    drawn = {"until": [], "max_gen_toks": 6, "do_sample": True, "temperature": 3.0}
    texts = run.lm_eval(length=100).generate_until(
        requests("generate_until", ("so m", greedy), ("much", greedy), ("so", drawn))
    )
    answers = [each.answer for each in run.predict(["so m", "much"], length=12)]
    assert texts[:2] == [each.partition("\n")[0].partition("p")[0] for each in answers]
    assert texts[0]
    sampling = archlang.Sampling(temperature=3.0)
    assert texts[2] == run.predict(["so"], length=6, sampling=sampling)[0].answer
