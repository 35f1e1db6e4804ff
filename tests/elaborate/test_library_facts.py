"""Graphs of older versions get the facts of the library's blocks."""

from dataclasses import replace
from pathlib import Path

import pytest

import archlang
from archlang.elaborate.library_facts import with_library_facts
from archlang.graph.card import card
from archlang.graph.facts import UNKNOWN
from archlang.graph.graph import Graph
from archlang.graph.text import parse_graph, print_graph
from archlang.plan.from_file import plan_recipe

RECIPES = Path(archlang.__file__).parent / "recipes"
TRAINED = ("gutlb", "ndr", "mixed/chunked_pointers", "mixed/halting_decoder", "mixed/ndr_panm")


def test_a_graph_that_was_written_and_read_again_has_the_card_of_its_program() -> None:
    for recipe in (*TRAINED, "s3", "field/delta_net"):
        graph = plan_recipe(RECIPES / f"{recipe}.arch").graph
        assert card(with_library_facts(parse_graph(print_graph(graph)))) == card(graph)


def without_facts(graph: Graph) -> Graph:
    return replace(
        graph,
        instances={
            path: replace(instance, costs=UNKNOWN, maps=(), records=(), even=None)
            for path, instance in graph.instances.items()
        },
    )


@pytest.mark.parametrize("recipe", TRAINED)
def test_a_graph_without_facts_gets_those_of_the_library(recipe: str) -> None:
    graph = plan_recipe(RECIPES / f"{recipe}.arch").graph
    assert without_facts(graph) != graph
    assert with_library_facts(without_facts(graph)) == graph


def test_an_instance_gets_the_defaults_of_statics_that_its_version_lacked() -> None:
    graph = plan_recipe(RECIPES / "mixed" / "halting_decoder.arch").graph
    (path, instance), *_ = ((p, i) for p, i in graph.instances.items() if i.block == "attention")
    older = replace(instance, statics={name: instance.statics[name] for name in ("heads", "position", "causal")})
    filled = with_library_facts(replace(graph, instances={**graph.instances, path: older})).instances[path].statics
    assert filled.keys() == instance.statics.keys()
    assert filled["kv_heads"] == instance.statics["heads"]


def test_instances_of_other_classes_keep_their_facts() -> None:
    graph = without_facts(plan_recipe(RECIPES / "ndr.arch").graph)
    own = replace(graph, instances={p: replace(i, python="mine:Block") for p, i in graph.instances.items()})
    assert with_library_facts(own) == own
