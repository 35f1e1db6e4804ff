"""The pages of the library: each has a line in docs/architectures.md, trains every weight, and is decoded."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from archlang.errors import Source
from archlang.resolve.library import library_file
from archlang.syntax.parser import parse
from archlang.syntax.tree import Definition
from tests.closeness import close
from tests.conftest import Compiled
from tests.test_architectures_page import PAGE

SECTION = PAGE.read_text(encoding="utf-8").partition("## Pages of the library\n")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (`[^|]+`) \| [^|]+ \| ([^|]+) \| `(\w+)` \|$", SECTION, re.MULTILINE)
# Files whose blocks with a source are all architectures.
PAGES = (
    "delta_rules", "recurrent_cells", "attention_variants", "loops", "shared_depth", "equilibria", "linear_mixers",
    "inner_gradients", "computed_positions", "residual_streams",
)  # fmt: skip


def text_of(file: str) -> str:
    path = library_file(f"archlang.models.{file}")
    assert path is not None, file
    return Path(path).read_text(encoding="utf-8")


@pytest.mark.parametrize(("names", "source", "file"), ROWS)
def test_a_line_names_a_page_and_its_source(names: str, source: str, file: str) -> None:
    text = text_of(file)
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"^(block|model) {name}\b", text, re.MULTILINE), f"{file} has no {name}"
    (author,) = re.findall(r"^([\w-]+(?: Team)?)", source)
    assert author in text or "arXiv " + source.partition("arXiv ")[2] in text


@pytest.mark.parametrize("file", PAGES)
def test_every_page_with_a_source_has_a_line(file: str) -> None:
    listed = {name for names, _, of_file in ROWS for name in re.findall(r"`(\w+)`", names) if of_file == file}
    items = [item for item in parse(Source(file, text_of(file))).items if isinstance(item, Definition)]
    assert {item.name for item in items if any(line.startswith("Source:") for line in item.documentation)} == listed


MODEL = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] {{ h = embed[d](x) return linear[vocab](h + {}) }}\n"
CAUSAL = [
    ("delta_rules", each)
    for each in (
        "kimi_delta_attention[2](h)", "gated_delta_net_2[2](h)", "comba[2](h)", "mesa[2](h)",
        "gated_delta_product[2](h)",
    )
] + [
    ("recurrent_cells", each)
    for each in (
        "scalar_lstm[2](h)", "matrix_lstm[2](h)", "min_gru[8](h)", "min_lstm[8](h)", "permuting_state_space[3](h)",
    )
] + [
    ("attention_variants", each)
    for each in (
        "differential_attention[2](h)", "selective_attention[2](h)", "threshold_relative_attention[2](h)",
        "delta_former[2](h)", "canon_layer[2, 12](h)", "gated_attention[2](h)", "value_residual_layers[2, 12, 3](h)",
        "product_key_memory[4, 3](h)", "path_attention[2](h)", "block_attention[2, size = 2, k = 2](h)",
    )
] + [
    ("loops", each)
    for each in (
        "relaxed_recursion[2, 12](h)", "mixture_of_recursions[2, 12](h)", "hyperloop[feedforward[12]](h)",
        "mixer_loop[attention[2, causal = true], 12](h)", "parallel_loop[2, 12](h)", "loop_former[2, 12](h)",
        "trellis_network[8](h)", "continuous_thoughts[2, 12](h, greater[3](indices(h)))",
    )
] + [
    ("shared_depth", each)
    for each in (
        "shared_layers[feedforward[12], 2, 2](h)", "algorithm_layers[feedforward[12], 2](h)",
        "length_looped[feedforward[12], 9](h)", "chained_turns[2, 12](h)",
        "hybrid_loop[attention[2, causal = true], 2, 12](h)",
    )
] + [
    ("equilibria", each)
    for each in ("phantom_equilibrium[feedforward[12]](h)", "monotone_equilibrium[8](h)")
]  # fmt: skip
OTHERS = [
    ("loops", "universal_reasoning[2, 12](h)"), ("loops", "neural_gpu[most = 9](h)"),
    ("loops", "fixed_point_reasoning[2, 12](h)"), ("shared_depth", "shared_encoder[8, 2, 12](h)"),
    ("shared_depth", "recall_network[8, 5](h)"), ("shared_depth", "sum(slot_attention[3, 12](h))"),
    ("shared_depth", "relational_network[3](h, softmax_keys(scores(h, h)))"),
    ("equilibria", "implicit_graph[8](h, softmax_keys(scores(h, h)))"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "call"), [*CAUSAL, *OTHERS])
def test_a_page_trains_every_weight_in_single_precision(file: str, call: str, compiled: Compiled) -> None:
    torch.manual_seed(1)
    module = compiled(f"use archlang.models.{file}\n{MODEL.format(call)}", vocab=5)
    optimizer, tokens = torch.optim.AdamW(module.parameters(), lr=1e-2), torch.randint(5, (4, 10))
    moved = {name: False for name, _ in module.named_parameters()}
    for _ in range(4):
        logits = module(tokens[:, :-1], lengths=[9, 9, 5, 1])
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        torch.autograd.backward([loss, *(own.mean() for own in module.losses.values())])
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            moved[name] |= bool(parameter.grad.any())
        optimizer.step()
    assert all(moved.values()), [name for name, is_moved in moved.items() if not is_moved]


@pytest.mark.parametrize(("file", "call"), CAUSAL)
def test_a_page_is_decoded_as_it_is_computed(file: str, call: str, compiled: Compiled) -> None:
    torch.manual_seed(1)
    module = compiled(f"use archlang.models.{file}\n{MODEL.format(call)}", vocab=5).double().eval()
    written = [module.decode(begin=torch.tensor([[1, 3], [4, 0]]), limit=6, cache=cache) for cache in (False, True)]
    assert written[0].tokens.equal(written[1].tokens)
    close(written[0].logits, written[1].logits)
