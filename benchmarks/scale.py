"""The start of a training on a large text file, with an empty and a filled cache: `python -m benchmarks.scale [BYTES]`.

Each command is a process of its own, which ends after its first step. Memory is what the process has had at most, above
a process that has imported torch alone; pages of mapped files count, although processes share them and the system can
take them back. `private` does not count them."""

import argparse
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks import processes

PROGRAM = """
model small[d = 16](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> linear[vocab] }

recipe scale {
    task  file_language_model[path = "texts.txt", words = 10_000, valid_share = 0.01]
    model small
    train adamw[lr = 1e-3, batch = 32, steps = 1_000]
}
"""
_TORCH = "import torch; from archlang.disk.memory import peak_memory; print(peak_memory())"
_COMMAND = """
import json, os, sys, time
from pathlib import Path
from archlang.cli.main import main
from archlang.disk.memory import peak_memory
from archlang.train import trainer

advance, start = trainer._advance, float(sys.argv.pop(1))

def advanced(*arguments):
    advance(*arguments)
    private = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    moments = [time.time() - start, time.process_time(), peak_memory(), int(private.split()[1]) * 1024]
    print(json.dumps(moments), flush=True)
    os._exit(0)

trainer._advance = advanced
sys.argv[0] = "archlang"
main()
"""
# Words of a text are drawn from so many, by a power law.
_WORDS, _EXPONENT = 300_000, 1.15
_ROWS = 1 << 16


def write_texts(file: Path, size: int) -> int:
    """Writes lines of about 100 characters until they are `size` bytes. Returns their number."""
    random = np.random.default_rng(0)
    letters = random.integers(97, 123, (_WORDS, 9), dtype=np.uint8)
    words = [bytes(row[:length]) for row, length in zip(letters, random.integers(2, 10, _WORDS), strict=True)]
    count = 0
    with file.open("wb") as stream:
        while stream.tell() < size:
            lengths = random.integers(6, 25, _ROWS)
            picked = np.minimum(random.zipf(_EXPONENT, int(lengths.sum())), _WORDS) - 1
            text = np.array(words, dtype=object)[picked].tolist()
            ends = np.cumsum(lengths).tolist()
            lines = [b" ".join(text[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]
            stream.write(b"\n".join(lines) + b"\n")
            count += _ROWS
    return count


def measure(folder: Path, cache: Path) -> list[float]:
    """Returns the seconds and the CPU seconds until the first step has ended, and the peak and private bytes."""
    with TemporaryDirectory() as runs:
        command = ("train", str(folder / "scale.arch"), "--device", "cpu", "--out", f"{runs}/run")
        now = processes.run("-c", "import time; print(time.time())").strip()
        printed = processes.run("-c", _COMMAND, now, *command, ARCHLANG_CACHE=str(cache))
    return [float(number) for number in json.loads(printed.splitlines()[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Measure a start on large texts.")
    parser.add_argument("bytes", nargs="?", type=float, default=1e8, help="the size of the file (1e8)")
    size = int(parser.parse_args().bytes)
    base = int(processes.run("-c", _TORCH))
    with TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        place = Path(folder)
        (place / "scale.arch").write_text(PROGRAM)
        items = write_texts(place / "texts.txt", size)
        megabytes = (place / "texts.txt").stat().st_size / 1e6
        print(
            f"{megabytes:,.0f} MB, {items:,} items\n\n| cache | seconds | CPU seconds | MB/s a core | peak | private |"
        )
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for name in ("empty", "filled"):
            seconds, busy, peak, private = measure(place, place / "cache")
            memory = " | ".join(f"{(value - base) / 1e6:,.0f} MB" for value in (peak, private))
            print(f"| {name} | {seconds:.1f} | {busy:.1f} | {megabytes / busy:.1f} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
