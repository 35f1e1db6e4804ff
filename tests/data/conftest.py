"""Fixtures: a folder for data, a separate cache for each test, and a server that can interrupt, corrupt and fail."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from archlang.data.registry import Digest, OfficialFile


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of data sets."""
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ARCHLANG_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@dataclass
class Served:
    """The behaviour of the server. `cuts` are the numbers of bytes after which it interrupts successive responses."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    ranges: bool = True
    asked: list[str] = field(default_factory=list)
    pause: threading.Event = field(default_factory=threading.Event)

    def file(
        self, name: str, digest: str | None = None, size: int | None = None, dataset: str = "words"
    ) -> OfficialFile:
        expected_digest = None if digest is None else Digest.parse(digest)
        return OfficialFile(dataset, name.removesuffix(".gz"), f"{self.url}/{name}", expected_digest, size, "none")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            served.asked.append(asked)
            served.pause.wait(10)
            if served.failures:
                self.send_error(served.failures.pop(0))
                return
            content = served.files.get(self.path.removeprefix("/"))
            if content is None:
                self.send_error(404)
                return
            start = int(match[1]) if (match := re.fullmatch(r"bytes=(\d+)-", asked)) and served.ranges else 0
            if start and start >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            stop = start + served.cuts.pop(0) if served.cuts else len(content)
            self.wfile.write(content[start:stop])

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Served(f"http://127.0.0.1:{running.server_port}")
    served.pause.set()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield served
    running.shutdown()
    running.server_close()
    thread.join()
