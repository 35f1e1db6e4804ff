"""`archlang summary` says which settings give the sizes that are unknown."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command

PROGRAM = """block mixer(h: seq[n, d], g: seq[n, e]) -> seq[n, d] { return h + linear[d](concat(h, g)) }
model m(x: tokens[n]) -> logits[classes] { return embed[8](x) |> last |> linear[classes] }
"""


@pytest.mark.parametrize(
    ("name", "sets", "reason"),
    [
        ("mixer", "--set d=16 --set e=16", "sets sizes that the inputs have"),
        ("m", "--set classes=10 --set vocab=10", "sets sizes that a task sets"),
    ],
)
def test_the_remedy_sets_every_unknown_size(
    name: str, sets: str, reason: str, archlang: Command, tmp_path: Path
) -> None:
    file = tmp_path / "p.arch"
    file.write_text(PROGRAM, encoding="utf-8")
    shown = archlang("summary", str(file), "--model", name).out
    assert f"`{sets}` {reason}." in shown
    assert "The sums do not include" not in archlang("summary", str(file), "--model", name, *sets.split()).out
