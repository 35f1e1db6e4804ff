"""The clauses of a signature become facts of an instance, and any block that states them is treated alike."""

from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from archlang.backend import Architecture
from archlang.backend.runtime.recording import recording
from archlang.compile import compile_graph
from archlang.errors import ProgramError
from archlang.graph import Graph, Instance
from archlang.graph.facts import UNKNOWN, Act, Costs, LinearMap, Record
from archlang.graph.operations import Call, Product, Repeat
from archlang.graph.summary import summarize
from archlang.plan.check import check, check_text
from archlang.types import Dim
from tests.closeness import close
from tests.conftest import Compiled

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def instance(folder: Path, clauses: str, statics: str = "wide = true", width: str = "8") -> Instance:
    file = folder / "m.arch"
    file.write_text(
        "extern block mix[wide: bool, heads: int = 2](q: seq[n, d], kv: seq[m, e] = q) -> seq[n, d]\n"
        f'    {clauses}\n    python "mine:Mix"\n'
        f"model m(h: seq[n, {width}]) -> seq[n, {width}] {{ return mix[{statics}](h) }}\n"
    )
    return compile_graph(file, "m").instances["mix"]


def test_terms_of_a_cost_add_up_and_lengths_stay_symbols(tmp_path: Path) -> None:
    costs = "costs parameters = d * e, parameters = heads when wide, flops = 2 * n * m * d, flops = n when heads > 2"
    n, m = Dim.of("n"), Dim.of("m")
    assert instance(tmp_path, costs).costs == Costs(66, Dim.of(16) * n * m)
    assert instance(tmp_path, costs, "wide = false, heads = 4").costs == Costs(64, Dim.of(16) * n * m + n)


def test_a_size_has_a_name_that_other_clauses_use(tmp_path: Path) -> None:
    clauses = "sizes width = 2 * heads when wide else d costs flops = n * width maps key(kv), value(kv) = width"
    for statics, width in (("wide = true", 4), ("wide = false", 8)):
        mix = instance(tmp_path, clauses, statics)
        assert mix.costs == Costs(None, Dim.of(width) * Dim.of("n"))
        assert mix.maps == (LinearMap("key", 1, width), LinearMap("value", 1, width))


def test_maps_records_and_even_cuts_depend_on_conditions(tmp_path: Path) -> None:
    clauses = "maps key(kv) = d when wide records gate = q when wide, attention"
    wide, narrow = instance(tmp_path, clauses), instance(tmp_path, clauses, "wide = false")
    assert wide.maps == (LinearMap("key", 1, 8),)
    assert wide.records == (Record("gate", 0), Record("attention"))
    assert narrow.maps == ()
    assert narrow.records == (Record("attention"),)


def test_acts_have_numbers_and_inputs_and_depend_on_conditions(tmp_path: Path) -> None:
    clauses = "acts reflects[heads + 1](kv, q), bounded[-1, 0.5] when wide, affine"
    reflects, bounded, affine = Act("reflects", (3.0,), (1, 0)), Act("bounded", (-1.0, 0.5)), Act("affine")
    assert instance(tmp_path, clauses).acts == (reflects, bounded, affine)
    assert instance(tmp_path, clauses, "wide = false").acts == (reflects, affine)


@pytest.mark.parametrize(("wide", "even"), [("true", 2), ("false", None)])
def test_even_cuts_depend_on_conditions(tmp_path: Path, wide: str, even: int | None) -> None:
    file = tmp_path / "m.arch"
    file.write_text(
        'extern block cut[wide: bool](x: seq[n, d]) -> chunks[n, d, 3] cuts evenly into 2 when wide python "mine:Cut"\n'
        f"model m(h: seq[n, 8]) -> seq[n, 8] {{ y = scan c in cut[{wide}](h) {{ emit c }} return y }}\n"
    )
    assert compile_graph(file, "m").instances["cut"].even == even


@pytest.mark.parametrize(
    ("clauses", "costs"), [("", UNKNOWN), ("pure", Costs(0)), ("costs flops = 0", Costs(None, Dim.of(0)))]
)
def test_a_cost_that_no_clause_gives_is_unknown(tmp_path: Path, clauses: str, costs: Costs) -> None:
    assert instance(tmp_path, clauses).costs == costs


def test_facts_of_a_size_that_is_not_known_are_unknown(tmp_path: Path) -> None:
    mix = instance(tmp_path, "costs parameters = d, flops = 2 * n maps key(kv) = e, value(kv) = 4", width="k")
    assert mix.costs == Costs(None, Dim.of(2) * Dim.of("n"))
    assert mix.maps == (LinearMap("value", 1, 4),)


@pytest.mark.parametrize(
    ("clauses", "code", "message"),
    [
        ("costs parameters = width", "E0313", "`width`"),
        ("costs parameters = n", "E0318", "`n` is a length"),
        ("maps key(x) = n", "E0318", "`n` is a length"),
        ("costs flops = 0.5", "E0303", "the number `0.5`"),
        ("sizes a = true", "E0303", "`true`"),
        ("sizes d_model = 1, d_model = 2", "E0205", "`d_model`"),
        ("costs parameters = positions", "E0313", "`positions`"),
        ("costs parameters = 1 when heads", "E0313", "`heads`"),
        ("maps key(y) = d", "E0502", "no input `y`"),
        ("records gate = y", "E0502", "no input `y`"),
        ("reads x grouped", "E0503", "`grouped`"),
        ("reads x causal[2]", "E0503", "`causal`"),
        ("reads x held[n]", "E0318", "`n` is a length"),
        ("costs memory = 3", "E0507", "`memory`"),
        ("records gates", "E0508", "`gates`"),
        ("costs flops = 0 - 5", "E0509", "at least 0, but `0 - 5` is -5"),
        ("maps key(x) = 0", "E0509", "at least 1, but `0` is 0"),
        ("pure costs parameters = d", "E0510", "has no weights"),
        ("pure maps key(x) = d", "E0510", "has no weights"),
        ("cuts evenly", "E0510", "gives no `chunks`"),
        ("acts reflect(x)", "E0508", "unknown kind of act `reflect`"),
        ("acts reflects(k)", "E0502", "no input `k`"),
        ("maps key(t) = d", "E0510", "`t` is `tokens[n]`"),
        ("records attention = x", "E0510", "not an input"),
        ("sizes d = 3", "E0205", "`d` already means a size"),
        ("sizes n = 3", "E0205", "`n` already means a size"),
        ("sizes positions = 3", "E0205", "`positions` already means a size"),
    ],
)
def test_a_clause_that_cannot_be_is_reported(clauses: str, code: str, message: str) -> None:
    (mistake,) = check_text(f'extern block mix(x: seq[n, d], t: tokens[n]) -> seq[n, d] {clauses} python "mine:Mix"\n')
    assert mistake.code == code, mistake.message
    assert message in mistake.message


@pytest.mark.parametrize(
    ("clauses", "code", "message"),
    [
        ("costs parameters = d - 10", "E0509", "`d - 10` is -2"),
        ("costs parameters = d / 3", "E0509", "`d / 3` is 2.66667"),
        ("costs flops = n - 3 * n", "E0509", "`n - 3 * n` is -2 where every length is 1"),
        ("maps key(q) = d - 8", "E0509", "`d - 8` is 0"),
        ("costs parameters = d / (heads - 2)", "E0307", "divides by zero"),
        ("costs activations = n when heads", "E0303", "a condition takes `true` or `false`"),
    ],
)
def test_a_clause_that_a_call_shows_to_be_wrong_is_reported_by_check_and_by_compiling(
    tmp_path: Path, clauses: str, code: str, message: str
) -> None:
    with pytest.raises(ProgramError) as caught:
        instance(tmp_path, clauses)
    for mistakes in (caught.value.diagnostics, check(tmp_path / "m.arch")):
        assert [mistake.code for mistake in mistakes] == [code]
        assert message in mistakes[0].message


@pytest.mark.parametrize(("reads", "manner"), [("grouped[heads]", "grouped.2"), ("held[heads - 2]", "full")])
def test_a_size_of_groups_is_a_positive_static(tmp_path: Path, reads: str, manner: str) -> None:
    assert instance(tmp_path, f"reads q {reads}").reads[0] == manner


# A block of the user's own

MODEL = """
model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    h = embed[d](x)
    memory = norm(h)
    repeat 3 { h <- norm(h + blur[6](h, memory) + blur[4](memory)) }
    return linear[classes](h)
}"""
X = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


@pytest.fixture
def blurred(compiled: Compiled) -> Architecture:
    """A model with a block of docs/examples, which states all that a signature can."""
    return compiled((EXAMPLES / "blur.arch").read_text() + MODEL, model="m", plugins=[EXAMPLES / "blur.py"]).eval()


def calls(graph: Graph) -> list[str]:
    (loop,) = (node for node in graph.region.nodes if isinstance(node.operation, Repeat))
    return [node.operation.instance for node in loop.regions[0].nodes if isinstance(node.operation, Call)]


def test_a_user_block_and_its_maps_leave_loops(blurred: Architecture) -> None:
    graph = blurred.program.graph
    products = [node.operation for node in graph.region.nodes if isinstance(node.operation, Product)]
    assert products == [Product("blur", "key"), Product("blur", "value")]
    assert "blur" in calls(graph)
    assert "blur_2" not in calls(graph), "what does not change in the loop is computed before it"


def test_a_user_block_with_products_has_the_same_results(compiled: Compiled) -> None:
    text = (EXAMPLES / "blur.arch").read_text() + MODEL
    results = []
    for without in ((), ("invariants", "common")):
        torch.manual_seed(0)
        module = compiled(text, model="m", plugins=[EXAMPLES / "blur.py"], without_passes=without)
        results.append(module.eval()(X))
    close(*results)


def test_a_user_block_has_costs(blurred: Architecture, tmp_path: Path) -> None:
    graph = compile_graph(tmp_path / "program.arch", "m", statics={"vocab": 11, "classes": 5})
    summary = summarize(graph, 8)
    assert not summary.unknown
    assert not summary.uncounted
    assert summary.unique == sum(weights.numel() for weights in blurred.parameters())
    # The passes compute the memory's blur, and the maps of the memory, once instead of three times.
    with FlopCounterMode(display=False) as counter:
        blurred(X)
    twice = 2 * (4 * 6 * 8 * 8 + 4 * 4 * (8 * 8 + 8 * 8 + 8 * 8))
    assert summary.flops - twice == counter.get_total_flops()


def test_a_user_block_is_recorded(blurred: Architecture) -> None:
    with torch.no_grad(), recording(blurred) as recorder:
        blurred(X)
    attention = [moment for moment in recorder.moments if moment.kind == "attention" and moment.path == "blur"]
    assert [moment.turns[0].index for moment in attention] == [0, 1, 2]
    for moment in attention:
        assert moment.values.shape == (1, 1, 8, 8)
        close(moment.values.sum(-1), torch.ones(1, 1, 8))
