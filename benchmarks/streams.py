"""A stream of a large JSONL file through the parts and batches of a run, without a model: `python -m benchmarks.streams
[BYTES] [TOKENIZER WORDS]`. Each row is the end of a part; the file is read three times."""

import argparse
import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from archlang.disk.memory import peak_memory
from archlang.tasks.kit.streams import StreamPart
from archlang.tasks.text import Text
from archlang.train.data import DeviceSplit, Sampler
from benchmarks.scale import write_texts

_PASSES, _LINES_OF_A_DOCUMENT = 3, 12


def write_documents(folder: Path, size: int) -> int:
    """Writes documents of about 1,200 characters, at least `size` bytes, and returns their bytes."""
    write_texts(folder / "texts.txt", size)
    with (folder / "texts.txt").open() as lines, (folder / "train.jsonl").open("w") as file:
        while document := "".join(line for line, _ in zip(lines, range(_LINES_OF_A_DOCUMENT), strict=False)):
            file.write(json.dumps({"text": document}) + "\n")
    (folder / "valid.jsonl").write_text('{"text": "a text"}\n')
    return (folder / "train.jsonl").stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams", description="Measure a stream.")
    parser.add_argument("bytes", nargs="?", type=float, default=1.2e8, help="the size of the file (1.2e8)")
    parser.add_argument("tokenizer", nargs="?", default="", help="a tokenizer.json; by default, tokens are bytes")
    parser.add_argument("words", nargs="?", type=int, default=253, help="its tokens")
    options = parser.parse_args()
    with TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place:
        folder = Path(place)
        size = write_documents(folder, int(options.bytes))
        task = Text(
            path=str(folder / "train.jsonl"), valid=str(folder / "valid.jsonl"), length=128, packed=True,
            stream=4_000_000, tokenizer=options.tokenizer, words=options.words,
        )  # fmt: skip
        base, begun, busy = peak_memory(), time.perf_counter(), time.process_time()
        print(f"{size / 1e6:,.0f} MB\n\n| parts | passes | seconds | CPU seconds | MB/s a core | peak |")
        print("| ---: | ---: | ---: | ---: | ---: | ---: |")
        part, read, parts = task.generate("train", 0), 0, 0
        while read < _PASSES * size:
            assert isinstance(part, StreamPart)
            part.stream.read_ahead(part.after)
            data = DeviceSplit(part, torch.device("cpu"))
            sampler = Sampler(data.lengths, 32, 1, parts)
            for _ in range(len(sampler)):
                data.batch(sampler.next())
            read, parts = read + int(part.notes["bytes"].values.sum()), parts + 1
            if parts % 15 == 1:
                seconds = time.process_time() - busy
                facts = f"{time.perf_counter() - begun:.1f} | {seconds:.1f} | {read / 1e6 / seconds:.1f}"
                peak = f"{(peak_memory() - base) / 1e6:,.0f} MB"
                print(f"| {parts} | {read / size:.2f} | {facts} | {peak} |", flush=True)
            part = part.stream.part(part.after)


if __name__ == "__main__":
    main()
