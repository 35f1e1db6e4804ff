"""Stored graphs get what they lack from the library's blocks."""

from dataclasses import replace
from pathlib import Path

import archlang
from archlang.elaborate.library_facts import with_library_facts
from archlang.graph.text import parse_graph, print_graph
from archlang.plan.from_file import plan_recipe

RECIPES = Path(archlang.__file__).parent / "recipes"
TRAINED = ("gutlb", "ndr", "mixed/chunked_pointers", "mixed/halting_decoder", "mixed/ndr_panm")


def test_a_graph_that_was_written_and_read_again_has_the_card_of_its_program() -> None:
    for recipe in (*TRAINED, "s3", "field/delta_net"):
        graph = plan_recipe(RECIPES / f"{recipe}.arch").graph
        assert with_library_facts(parse_graph(print_graph(graph))) == graph


def test_an_instance_gets_the_defaults_of_statics_that_its_version_lacked() -> None:
    graph = plan_recipe(RECIPES / "mixed" / "halting_decoder.arch").graph
    (path, instance), *_ = ((p, i) for p, i in graph.instances.items() if i.block == "attention")
    older = replace(instance, statics={name: instance.statics[name] for name in ("heads", "position", "causal")})
    filled = with_library_facts(replace(graph, instances={**graph.instances, path: older})).instances[path].statics
    assert filled.keys() == instance.statics.keys()
    assert filled["kv_heads"] == instance.statics["heads"]
