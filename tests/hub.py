"""A server that answers as the Hugging Face Hub does, for the package `datasets`."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

COMMIT = "0123456789" * 4


class Hub:
    """A server that answers as the Hub does, for one data set."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.is_down = False
        hub = self

        class Handler(BaseHTTPRequestHandler):
            do_GET = do_HEAD = lambda self: hub.answer(self)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,)).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        base, _, name = request.path.partition("?")[0].partition(COMMIT)
        name = name.removeprefix("/")
        headers, status, content = {"ETag": f'"{hashlib.sha1(base.encode()).hexdigest()}"'}, 200, b""
        if self.is_down:
            status = 503
        elif base == "/api/datasets/owner/name/revision/":
            content = json.dumps({"id": "owner/name", "sha": COMMIT, "siblings": []}).encode()
        elif base == "/api/datasets/owner/name/tree/":
            content = json.dumps([
                {"type": "file", "oid": hashlib.sha1(file).hexdigest(), "size": len(file), "path": path}
                for path, file in self.files.items()
            ]).encode()  # fmt: skip
        elif base == "/datasets/owner/name/resolve/" and name in self.files:
            content, headers["X-Repo-Commit"] = self.files[name], COMMIT
            headers["ETag"] = f'"{hashlib.sha1(content).hexdigest()}"'
            if found := re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", "")):
                first, last = map(int, found.groups())
                headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
                status, content = 206, content[first : last + 1]
        else:
            status = 404
            headers["X-Error-Code"] = "EntryNotFound" if "owner/name" in base else "RepoNotFound"
        request.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            request.send_header(key, value)
        request.end_headers()
        if request.command == "GET":
            request.wfile.write(content)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    datasets = pytest.importorskip("datasets", reason="the extra `datasets` is not installed")
    import huggingface_hub

    hub = Hub()
    url = f"http://127.0.0.1:{hub.server.server_port}"
    for place, name, value in [
        (datasets.config, "HF_ENDPOINT", url), (datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", False),
        (datasets.config, "STREAMING_READ_MAX_RETRIES", 1),
        (huggingface_hub.constants, "ENDPOINT", url),
        (huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"),
        (huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub")),
    ]:  # fmt: skip
        monkeypatch.setattr(place, name, value)
    monkeypatch.chdir(tmp_path)
    yield hub
    hub.server.shutdown()
    hub.server.server_close()
