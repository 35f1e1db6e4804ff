"""CPU milliseconds of each answer of the editor's service after a change: `python -m benchmarks.editor`.

Texts are the longest shipped program, the shipped program with the most recipes, a recipe whose model has a variant for
each row of its table, and a program of 5,000 lines. A change is a letter in a name, or half of a call, in the middle of
the text. The first answer after a change also parses the text, so each row is measured after a change of its own."""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping

from archlang.editor.completion import completions
from archlang.editor.corrections import corrections
from archlang.editor.document import Document
from archlang.editor.hover import hints, hover
from archlang.editor.outline import folds, outline
from archlang.editor.semantic_tokens import semantic_tokens
from archlang.editor.signature_help import signature_help
from archlang.editor.symbols import DocumentNames
from archlang.editor.workspace import collect_rarely
from archlang.resolve.library import BLOCKS, recipe_files

LINES = 5_000
_BLOCK = """## Layer {number}.
block layer{number}[width = 8](h: seq[n, d]) -> seq[n, d] {{
    a = norm(h)
    u = feedforward[width](a)
    repeat 2 {{
        h <- h + u
    }}
    return relu(h)
}}

"""
_CHANGES = {"a letter": "x", "half of a call": "norm(\n"}

Answer = Callable[[Document, int], object]
ANSWERS: Mapping[str, Answer] = {
    "diagnostics": lambda document, place: document.diagnostics,
    "corrections": lambda document, place: corrections(document, place, place),
    "hover": hover,
    "completion": completions,
    "signature help": signature_help,
    "definition": lambda document, place: DocumentNames(document).at(place),
    "inlay hints": lambda document, place: hints(document),
    "semantic tokens": lambda document, place: semantic_tokens(document),
    "outline and folds": lambda document, place: (outline(document), folds(document)),
    "formatting": lambda document, place: document.formatted,
}


def texts(lines: int = LINES) -> dict[str, str]:
    """Returns the texts by their names."""
    longest = max(BLOCKS.rglob("*.arch"), key=lambda file: file.stat().st_size)
    recipes = max(recipe_files().values(), key=lambda file: file.read_text(encoding="utf-8").count("\nrecipe "))
    variants = recipe_files()["papers/panm/id_sort"]
    many_blocks = "".join(_BLOCK.format(number=number) for number in range(lines // 10))
    return {file.name: file.read_text(encoding="utf-8") for file in (longest, recipes, variants)} | {
        f"{lines:,} lines": many_blocks
    }


def measure(text: str, change: str, answer: Answer, rounds: int) -> float:
    """Returns the median CPU milliseconds of an answer, each after a change of the text."""
    times = []
    before = Document("program.arch", text)
    assert before.diagnostics is not None
    place = max(text.rfind(sign, 0, len(text) // 2) for sign in "([")
    answer(before, place + 1)  # reads the library
    for round_ in range(rounds):
        inserted = change if round_ % 2 == 0 else ""
        changed = text[:place] + inserted + text[place:]
        document = Document("program.arch", changed)
        start = time.process_time()
        answer(document, place + len(inserted) + 1)
        times.append(1000 * (time.process_time() - start))
        # The rest of the answers of a change is not measured, but happens.
        assert document.diagnostics is not None
    return statistics.median(times[::2])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editor", description="Measure the editor's service.")
    parser.add_argument("answers", nargs="*", help="the answers to measure (all)")
    parser.add_argument("--rounds", type=int, default=10, help="changes for each answer (10)")
    parser.add_argument("--lines", type=int, default=LINES, help=f"lines of the longest text ({LINES})")
    options = parser.parse_args()
    collect_rarely()  # as `archlang lsp` does
    shown = texts(options.lines)
    columns = [(name, change) for name in shown for change in _CHANGES]
    print(f"| answer | {' | '.join(f'{name}, {change}' for name, change in columns)} |")
    print(f"| --- |{' ---: |' * len(columns)}")
    for name in options.answers or ANSWERS:
        answer = ANSWERS[name]
        cells = [measure(shown[text], _CHANGES[change], answer, options.rounds) for text, change in columns]
        print(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
