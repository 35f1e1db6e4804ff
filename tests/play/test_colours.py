"""The playground colours programs by the same rules as the other editors."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from archlang.play.service import Service
from tests.syntax.conftest import EVERYTHING

TOKENS = Path(__file__).parents[2] / "playground" / "src" / "tokens.js"
SCRIPT = """
const { splitter } = await import(process.argv[1]);
const { rules, lines } = JSON.parse(await new Response(process.stdin).text());
const tokensAt = splitter(rules);
const tokens = (line) => {
  const split = [];
  for (let place = 0; place < line.length; place = split.reduce((sum, [length]) => sum + length, 0))
    split.push(...tokensAt(line, place));
  return split;
};
console.log(JSON.stringify(lines.map(tokens)));
"""
Token = tuple[int, str | None]


def split(rules: list[tuple[re.Pattern[str], list[str]]], line: str) -> list[Token]:
    """Returns the length and the kind of each token of a line, by Python's `re`."""
    tokens: list[Token] = []
    place = 0
    while place < len(line):
        matches = ((pattern.match(line, place), kinds) for pattern, kinds in rules)
        match, kinds = next(((match, kinds) for match, kinds in matches if match), (None, []))
        groups: list[Token] = [(1, None)]
        if match is not None:
            groups = [(len(text), kind) for text, kind in zip(match.groups(), kinds, strict=True) if text]
        tokens += groups
        place += sum(length for length, _ in groups)
    return tokens


def test_the_page_splits_programs_as_other_editors_do(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    started = json.loads(json.dumps(Service(str(tmp_path)).answer({"method": "start"})))
    rules = started["result"]["highlighting"]
    lines = ["recipe table { model causal", "block b[causal = true](x: seq[n, d]) -> seq[n, d]", "    causal", "é !"]
    lines += EVERYTHING.splitlines()
    command = [node, "--input-type=module", "-e", SCRIPT, TOKENS.as_uri()]
    done = subprocess.run(
        command, input=json.dumps({"rules": rules, "lines": lines}), capture_output=True, text=True, check=True
    )
    compiled = [(re.compile(rule["pattern"]), rule["kinds"]) for rule in rules]
    tokens = [[(length, kind) for length, kind in line] for line in json.loads(done.stdout)]
    assert tokens == [split(compiled, line) for line in lines]
    causal = [kind for length, kind in tokens[1] if length == len("causal")]
    assert (causal, tokens[2][-1]) == (["name"], (6, "keyword"))
