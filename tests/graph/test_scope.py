"""Scopes of instances."""

from archlang.graph.scope import scope_of, scopes_around


def test_the_scope_of_a_path_ends_at_its_last_star() -> None:
    assert scope_of("layer.norm") == ""
    assert scope_of("stack.*.layer.stack.*.norm") == "stack.*.layer.stack.*"


def test_a_body_uses_its_own_scope_and_those_around_it() -> None:
    assert list(scopes_around("stack.*.layer.stack.*")) == ["stack.*.layer.stack.*", "stack.*", ""]
    assert list(scopes_around("")) == [""]
