"""Names for the values of exported code."""

from archlang.export.plain.places import unused_name


def test_every_name_for_a_value_is_a_python_name() -> None:
    taken: set[str] = set()
    for _ in range(3):
        taken.add(unused_name("mask_n / 2", taken))
    assert taken == {"mask_n___2", "mask_n___2_2", "mask_n___2_3"}
