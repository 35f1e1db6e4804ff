"""Trials of commands on run folders with planted links and FIFOs, and with damaged files."""

import json
import os
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.faults.judging import EQUAL, FAULT, REFUSED, Bench, Trial, Verdict
from tests.faults.workshop import Case, contents

# The temporary names of earlier versions, which a stranger can plant.
_TEMPORARIES = (".lock", ".report.html.part", "report.html", "inspect.html", ".results.json.part", ".run.json.part")
_PLANTS = ("a link to a file outside", "a link to a folder outside", "a link to a new file outside", "a FIFO")
_DAMAGES = ("empty", "half", "flipped bit", "random bytes", "missing", "code in a text")
_SECONDS = 20.0


def _commands(case: Case) -> dict[str, Sequence[str | Path]]:
    """Returns the commands that read or continue a run."""
    run = case.run
    return {
        "train --out": case.train(),
        "train --resume": ("train", "--resume", run, "--device", "cpu"),
        "eval": ("eval", run, "--device", "cpu"),
        "report": ("report", run),
        "inspect": ("inspect", run, "--split", "test", "--device", "cpu"),
        "runs list": ("runs", "list", case.folder),
        "runs show": ("runs", "show", run),
        "runs compare": ("runs", "compare", run, run),
        "export": ("export", run, "-o", case.folder / "plain.py"),
        "table --no-run": ("table", case.program, "--no-run", "--out", case.folder),
        "show": ("show", run / "recipe.arch"),
        "viz": ("viz", run / "recipe.arch"),
    }


def trials(bench: Bench) -> Iterator[Trial]:
    """Yields a trial for each file, each plant or damage, and each command."""
    names = sorted(name for name in contents(bench.finished.run) if not name.startswith("tensorboard/"))
    folders = ["checkpoints", "checkpoints/step-00000006", "tensorboard"]
    for command in _commands(bench.finished):
        for plant in _PLANTS:
            for name in (*names, *_TEMPORARIES, *folders):
                if _concerns(command, name) and (plant != "a FIFO" or name not in folders):
                    yield Trial(
                        f"{plant} in place of a file", f"{name}, {command}", partial(_planted, name, plant, command)
                    )
        for damage in _DAMAGES:
            for name in names:
                if _concerns(command, name):
                    yield Trial(
                        f"a file is damaged: {damage}", f"{name}, {command}", partial(_damaged, name, damage, command)
                    )


def _concerns(command: str, name: str) -> bool:
    """Returns whether a command may read a file: `show` and `viz` are given only the program."""
    return command not in ("show", "viz") or name == "recipe.arch"


def _planted(name: str, plant: str, command: str, bench: Bench) -> Verdict:
    with bench.shop.case(bench.finished) as case:
        path = case.run / name
        _remove(path)
        (case.outside / "folder" / "step-00000099").mkdir(parents=True)
        (case.outside / "folder" / "step-00000099" / "weights.safetensors").write_text("precious\n")
        targets = {
            "a link to a file outside": "victim", "a link to a folder outside": "folder",
            "a link to a new file outside": "new",
        }  # fmt: skip
        if plant == "a FIFO":
            os.mkfifo(path)
        else:
            path.symlink_to(case.outside / targets[plant])
        before = contents(case.outside)
        process = bench.shop.start(case, *_commands(case)[command])
        end = bench.shop.wait(case, process, _SECONDS)
        # The command line of these names the link itself, and the user may read what it points to.
        return bench.judge_look(case, end, before, may_print=command in ("show", "viz"))


def _damaged(name: str, damage: str, command: str, bench: Bench) -> Verdict:
    with bench.shop.case(bench.finished) as case:
        path = case.run / name
        content = path.read_bytes()
        generator = random.Random(f"{name} {damage}")
        if damage == "missing":
            path.unlink()
        elif damage == "code in a text":
            path.write_bytes(_with_code(content, case.outside / "planted", generator))
        else:
            path.write_bytes(_damage(content, damage, generator))
        before = case.record()
        end = bench.shop.wait(case, bench.shop.start(case, *_commands(case)[command]), _SECONDS)
        verdict = bench.judge_look(case, end, contents(bench.finished.outside))
        # With another text, such as the metric of a claim, a run may rightly say something else.
        goes_on = verdict.outcome == EQUAL and command.startswith("train") and damage != "code in a text"
        if goes_on and (difference := bench.difference(case, name)):
            return Verdict(FAULT, f"went on with {difference}")
        if verdict.outcome == REFUSED and case.record() != before:
            return Verdict(FAULT, "refused, and changed the run")
        return verdict


def _damage(content: bytes, damage: str, generator: random.Random) -> bytes:
    if damage == "empty":
        return b""
    if damage == "half":
        return content[: len(content) // 2]
    if damage == "random bytes":
        return generator.randbytes(len(content))
    flipped = bytearray(content)
    if flipped:
        flipped[generator.randrange(len(flipped))] ^= 1 << generator.randrange(8)
    return bytes(flipped)


def _with_code(content: bytes, planted: Path, generator: random.Random) -> bytes:
    """Replaces a word or a text of a file by one that ends a docstring, and then has code that makes a file."""
    values = list(re.finditer(rb'(?<== )[a-z]\w*|"[^"\n]*"', content))
    if not values:
        return content
    code = f'"""\n__import__("pathlib").Path({str(planted)!r}).touch()\n"""'
    value = generator.choice(values)
    return content[: value.start()] + json.dumps(code).encode() + content[value.end() :]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
