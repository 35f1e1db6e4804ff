"""Claims about names in Python."""

import random
import re

import pytest
import torch
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.backend.lower.names import Names, attribute_name, relative_path
from archlang.backend.lower.regions import lower
from archlang.graph.text import parse_graph
from tests.conftest import Compiled
from tests.sampling import one_in

# Every name of the user stands between angle brackets.
PROGRAM = """
block <layer>[ff = 6](<p>: seq[<k>, <e>]) -> seq[<k>, <e>] {
    let <shared> = linear[<e>]
    <q> = norm(<p> + <shared>(<p>))
    repeat 2 { <q> <- <q> + feedforward[ff](<shared>(<q>)) + 2.0 * linear[<e>](<p>) }
    return <q>
}
model <model>[d = 4](<x>: tokens[<n>], <y>: tokens[<m>]) -> logits[<n>, vocab] {
    let <first> = linear[d]
    let <second> = linear[d]
    let <third> = <layer>[ff = 5]
    <h> = <first>(embed[d](<x>)) + <second>(embed[d](<x>)) + linear[d](zeros[1, d]() |> embedless)
    <u> = linear[d](<third>(embed[d](<y>)))
    <memory> = learned[3, d, init = normal]()
    <scale> = 0.5
    stack 2 { <h> <- <h> + <layer>(<h>) + attention[2](<h>, <u>) * <scale> }
    <out> = scan <c> in chunks[3](<h>) carry <memory> {
        <a> = norm(<c>) + attention[2](<c>, <memory>)
        repeat 3 halting <c> as <s> by token_halt[0.9] {
            <b> = <c> + <a> + attention[2](norm(<s>))
            <c> <- <third>(<b>) + <first>(<b>)
        }
        <memory> <- norm(<memory> + attention[2](<memory>, <a>))
        emit <c> + <a> * <scale>
    }
    repeat 2 { <u> <- <u> + <second>(<u>) }
    <result> = start_end(<out>) |> <first>
    return linear[vocab](norm(<out>) + attention[1](<out>, <u>) + attention[1](<out>, <result>))
}
""".replace(" + linear[d](zeros[1, d]() |> embedless)", "")
NAMES = sorted(set(re.findall(r"<(\w+)>", PROGRAM)))
# Python's, torch's and those of generated code; some differ by case, underscores or numbers only.
NASTY = re.findall(
    r"\S+",
    """
self class lambda None True def del forward outer program ponder mean_depth decode half half_ half__ Half float to
sum map input id len type print torch inf nan device fx_pytree pytree NoneType operator getitem __name__ __class__ _ __
A a AA aA Aa a_1 a_2 a_2_2 A_2 q Q q_1 norm_2 linear_2 linear_3 linear_2_2 attention_2 embed_2 embed_and_mask
batch join join_2 join_weights join_products repeat_2 repeat_results scan_2 scan_results scan_head_results halting
halting_2 halting_results run_stack run_stack_2 stack_2 stack_2_2 depth number products value value_2 key query hidden
mask mask_n mask_m mask_n_2 mask_n_plus_2 mask_c_length c_length add add_1 multiply extend weights rest n m
head_results first_head start_end_and_mask archlang_backend_lower result output
head scan_head scan_rest tokens fields lengths
""",
)


def renamed(names: dict[str, str]) -> str:
    return re.sub(r"<(\w+)>", lambda match: names[match[1]], PROGRAM)


def results(module: Architecture, weights: list[Tensor]) -> list[Tensor]:
    """The results of a call for weights in the order of the module, with lengths and without."""
    state = module.state_dict()
    assert [tensor.shape for tensor in state.values()] == [tensor.shape for tensor in weights]
    module.load_state_dict(dict(zip(state, weights, strict=True)))
    x, y = torch.arange(14).reshape(2, 7) % 11, torch.arange(10).reshape(2, 5)
    names = module.program.fields
    lengths = {names[0]: torch.tensor([7, 2]), names[1]: torch.tensor([1, 5])}
    module.eval()
    return [module(x, y), module.ponder, module(x, y, lengths=lengths), module.ponder]


def test_no_path_hides_an_attribute_of_the_module() -> None:
    module = Architecture(lower(parse_graph("graph g input %1 x: vec[2] return %1")))
    for name in (*dir(module), *dir(nn.ModuleList())):
        if name == "smart_apply":  # transformers adds it to torch's class when it loads a model
            continue
        assert name.startswith("__") or not hasattr(module, name) or attribute_name(name) != name
    assert attribute_name("norm") == "norm"


@pytest.mark.parametrize(
    ("path", "scope", "wanted"),
    [
        ("layer.half", "", "layer.half_"),
        ("layer.half_", "", "layer.half__"),
        ("e", "stack.*", "outer.e"),
        ("stack.*.e", "stack.*", "e"),
        ("stack.*.e", "stack.*.stack.*", "outer.e"),
        ("e", "stack.*.stack.*", "outer.outer.e"),
        ("enc.stack.*.norm", "enc.stack.*", "norm"),
        ("enc.norm", "enc.stack.*", "outer.enc.norm"),
    ],
)
def test_a_path_is_relative_to_the_module_that_runs_the_code(path: str, scope: str, wanted: str) -> None:
    assert relative_path(path, scope) == wanted


def test_a_taken_name_gets_a_number() -> None:
    names = Names({"repeat"})
    names.take("repeat_2")
    assert [names.unused(name) for name in ("repeat", "scan", "repeat", "repeat_2")] == [
        *("repeat_3", "scan", "repeat_4", "repeat_2_2")
    ]


def test_names_that_differ_only_by_case_are_not_both_used() -> None:
    names = Names()
    assert [names.unused(name) for name in ("A", "a", "a_2")] == ["A", "a_2", "a_2_2"]


@pytest.mark.parametrize("word", ["self", "lambda", "torch", "inf", "pytree", "sum", "None", "none"])
def test_a_reserved_name_gets_a_number(word: str) -> None:
    assert Names().unused(word) == f"{word}_2"


def test_different_words_are_different_attributes() -> None:
    words = [
        f"{word}{tail}" for word in ("half", "class", "outer", "norm", "requires_grad") for tail in ("", "_", "__")
    ]
    assert len({attribute_name(word) for word in words}) == len(words)
    assert (attribute_name("half_"), attribute_name("norm_")) == ("half__", "norm_")


PLAIN = {name: f"{name}x" for name in NAMES}


@pytest.mark.parametrize("seed", one_in(6, range(30)))
def test_names_do_not_change_results(compiled: Compiled, seed: int) -> None:
    plain = compiled(renamed(PLAIN), model=PLAIN["model"])
    weights = list(plain.state_dict().values())
    plain_results = results(plain, weights)
    chosen = dict(zip(NAMES, random.Random(seed).sample(NASTY, len(NAMES)), strict=True))
    torch.manual_seed(0)
    renamed_results = results(compiled(renamed(chosen), model=chosen["model"]), weights)
    for actual, expected in zip(renamed_results, plain_results, strict=True):
        assert torch.equal(actual, expected), chosen


def test_a_second_call_and_an_instance_of_its_name_have_separate_weights(compiled: Compiled) -> None:
    module = compiled(
        """
        model m[d = 4](x: tokens[n]) -> logits[n, d] {
            h = linear[d](linear[d](embed[d](x)))
            let linear_2 = linear[d]
            let half = linear[d]
            let half_ = linear[d]
            return linear_2(half(half_(linear[d](h))))
        }
        """
    )
    names = [name for name, _ in module.named_children()]
    assert names == ["embed", "linear", "linear_2", "linear_3", "half__", "half_", "linear_2_2"]


def test_the_length_of_a_chunk_and_a_length_of_its_name_have_separate_masks(compiled: Compiled) -> None:
    text = """
    model m[d = 8](x: tokens[k]) -> logits[k, vocab] {
        h = embed[d](x)
        y = scan c in chunks[3](h) { emit c + attention[1](c, h) + attention[1](c) }
        return linear[vocab](y + attention[1](y))
    }
    """
    x, lengths = torch.arange(14).reshape(2, 7) % 11, torch.tensor([7, 2])
    logits = compiled(text)(x, lengths=lengths)
    torch.manual_seed(0)
    assert torch.equal(logits, compiled(re.sub(r"\bk\b", "c_length", text))(x, lengths=lengths))
