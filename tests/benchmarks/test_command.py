"""The command of the benchmarks, its groups and their measurements of time and memory; the stages on a GPU."""

import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import benchmarks.__main__ as command
from benchmarks import GROUPS, halting, language, processes
from benchmarks import measure as measurement
from benchmarks.measure import BATCHES, MIB, MS, CallOfModule, Case, Group, Setting, Sides, captured, measure
from benchmarks.memory import HEADS, saved_matrices
from tests.closeness import close
from tests.train.test_cuda_graph import Captures

CPU = Setting(torch.device("cpu"), tiny=True)


def _cases(setting: Setting) -> Iterator[Case]:
    def fail() -> Sides:
        raise AssertionError("it is built")

    yield Case("one thing", "another", lambda: Sides(lambda: None, lambda: None))
    yield Case("something else", "another", fail)
    yield Case("something large", "another", fail, memory=20)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpus = Group("others", "Only for GPUs.", _cases, devices=("cuda",))
    monkeypatch.setattr(command, "GROUPS", (Group("things", "Of no size.", _cases), on_gpus))


@pytest.mark.usefixtures("two_groups")
def test_a_list_builds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--list"])
    assert capsys.readouterr().out.splitlines() == [
        "things: one thing, beside another (ms)",
        "things: something else, beside another (ms)",
        "things: something large, beside another (ms)",
    ]


@pytest.mark.usefixtures("two_groups")
def test_only_matching_cases_are_built_and_reported_in_every_format(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / "results.json", tmp_path / "results.md"]
    command.main(
        ["ONE", "large", "--seconds", "0", "--rounds", "1", "--json", str(files[0]), "--markdown", str(files[1])]
    )
    out = capsys.readouterr().out
    table = files[1].read_text(encoding="utf-8")
    assert "### things\n\nOf no size.\n\n| case | beside | unit |" in out
    assert "| one thing | another | ms |" in table
    assert "| something large | another | ms | left out: would need about 20 GiB |" in table
    assert "threads 2" in table
    report = json.loads(files[0].read_text(encoding="utf-8"))
    assert set(report["machine"]) >= {"threads", "processor", "capability", "commit", "torch", "gpu"}
    (group,) = report["groups"]
    assert [result["case"] for result in group["results"]] == ["one thing", "something large"]
    assert group["results"][0]["rounds"] == 1


@pytest.mark.usefixtures("two_groups")
@pytest.mark.parametrize("name", ["nothing like that", "others"])
def test_a_filter_without_matches_is_an_error(name: str) -> None:
    with pytest.raises(SystemExit, match="no case on cpu matches"):
        command.main([name])


def test_a_missing_device_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="^no CUDA device is available: omit --device$"):
        command.main(["--device", "cuda"])


def test_no_two_cases_compare_the_same() -> None:
    names = [(case.name, case.beside) for group in GROUPS for case in group.cases(Setting(torch.device("cpu")))]
    assert len(names) == len(set(names))


# They start processes or train longer.
_SLOW = ("memory", "start-up", "passes", "dynamic halt", "adversarial files", "written")
# They compile, which the checks of types in tests do not allow, or need another package.
_ELSEWHERE = ("language", "linear recurrences")


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, id=group.name, marks=[pytest.mark.slow] if group.name in _SLOW else [])
        for group in GROUPS
        if group.name not in _ELSEWHERE
    ],
)
def test_every_case_runs_on_both_sides(group: Group) -> None:
    for case in group.cases(Setting(torch.device("cpu"), tiny=True)):
        sides = case.build()
        for call in (sides.ours, sides.theirs):
            assert case.unit.read(call) > 0, case.name


# The cases of the stages `as CUDA graphs` of `benchmarks.gpu`.
_AS_GRAPHS = {
    "halting": "",
    "seq2seq": "",
    "mixers": "",
    "operators": "geometric",
    "dynamic halt": "",
    "written": "forgetting, N",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in _SLOW else []) for name in _AS_GRAPHS]
)
def test_the_cases_of_stages_on_a_gpu_can_be_captured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    captures = Captures()
    monkeypatch.setattr(measurement, "gpu_capture", lambda: captures)
    (group,) = (group for group in GROUPS if group.name == name)
    cases = [case for case in group.cases(CPU) if case.unit is MS and _AS_GRAPHS[name] in case.name]
    for case in cases:
        call = captured(case.build().ours)
        for _ in range(2):
            call()
    assert len(captures.launched) + len(captures.launched_evaluations) == 2 * len(cases)


def test_a_captured_call_returns_what_the_call_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate of the GPT-2 stage is its result by the time."""
    monkeypatch.setattr(measurement, "gpu_capture", Captures)
    step = language.step(language.page(language.TINY), language.TINY, CPU)
    assert captured(step)() == step() > 0


def test_a_call_in_pieces_has_the_gradients_of_the_call() -> None:
    sides = next(halting.GROUP.cases(CPU)).build()
    assert isinstance(sides.ours, CallOfModule)
    module, results = sides.ours.module, []
    for call in (sides.ours, captured(sides.ours)):
        call()
        results.append([torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in module.parameters()])
    close(*results)
    assert any(gradient.abs().sum() > 0 for gradient in results[0])


def test_both_sides_are_called_equally_often_and_the_ratio_is_ours_over_theirs() -> None:
    called: list[str] = []
    sides = Sides(lambda: called.append("ours"), lambda: called.append("theirs"))
    result = measure(Case("case", "another", lambda: sides), seconds=0.0, least=6)
    assert called.count("ours") == called.count("theirs") == 2 + 6
    assert called[4:8] == ["ours", "theirs", "theirs", "ours"]
    assert len(result.ours) == len(result.theirs) == 6
    assert result.spread[0] <= result.ratio <= result.spread[1]


@pytest.mark.slow
def test_the_unit_of_a_case_determines_the_meaning_of_results() -> None:
    memory = measure(Case("memory", "another", lambda: Sides(lambda: 6.0, lambda: 4.0), MIB), seconds=0.0, least=5)
    assert memory.ratio == pytest.approx(1.5)
    assert len(memory.ours) == 2, "memory needs few rounds"
    rates = measure(Case("data", "another", lambda: Sides(lambda: 6, lambda: 4), BATCHES), seconds=0.0, least=1)
    assert rates.ours[0] > 0


def test_a_case_that_would_need_too_much_memory_is_not_built() -> None:
    def build() -> Sides:
        raise AssertionError("it is built")

    result = measure(Case("large", "another", build, memory=9.2), seconds=0.0)
    assert result.left_out == "would need about 9 GiB"


def test_a_call_that_takes_too_long_ends_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure.LONGEST", 0.0)
    result = measure(Case("slow", "another", lambda: Sides(lambda: None, lambda: None)), seconds=0.0)
    assert result.left_out == "a call takes 0 s"


@pytest.mark.slow
def test_modules_are_freed_before_the_next_case() -> None:
    built: list[weakref.ref[nn.Module]] = []

    def build() -> Sides:
        module = nn.Linear(3, 3)
        built.append(weakref.ref(module))
        return Sides(lambda: module(torch.ones(3)), lambda: None)

    result = measure(Case("module", "another", build), seconds=0.0, least=1)
    gc.collect()
    assert result.ours
    assert built[0]() is None


# Holds 64 MiB, then allocates and frees another 192 MiB.
STEP = """
import torch
from benchmarks.memory import above
held = torch.ones(16 << 20)
print(above(lambda: [torch.ones(16 << 20) for _ in range(3)]))
"""


def test_the_peak_of_a_step_excludes_memory_held_before() -> None:
    assert float(processes.run("-c", STEP)) == pytest.approx(192, abs=8)


def test_a_failed_process_is_reported_with_its_output() -> None:
    with pytest.raises(SystemExit, match="ended with 3:\nwhy"):
        processes.run("-c", "import sys; print('why'); sys.exit(3)")


def test_saved_tensors_are_counted_once_in_units_of_score_matrices() -> None:
    n = 16
    logits = torch.randn(1, HEADS, n, n, requires_grad=True)

    def forward() -> torch.Tensor:
        weights = logits.softmax(-1)  # saved once, for itself and for its square
        return weights * weights

    assert saved_matrices(forward, n) == pytest.approx(1.0)
