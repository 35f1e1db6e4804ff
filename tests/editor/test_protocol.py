"""Requests about documents of any name are answered, also those that cannot be fulfilled."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

TEXT = "block twice(h: seq[n, d]) -> seq[n, d] {\n    return norm(norm(h))\n}\n"
HOVER = "textDocument/hover"
UNKNOWN_METHOD, INVALID_PARAMS = -32601, -32602
PLACE = {"line": 1, "character": 12}


class Connection:
    """Sends messages to a server, and reads its answers."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._log = log
        self._input: IO[bytes] = process.stdin
        self._output: IO[bytes] = process.stdout

    def send(self, message: object) -> None:
        body = json.dumps(message).encode()
        self._input.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._input.flush()

    def notify(self, method: str, parameters: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": parameters})

    def request(self, method: object, **rest: object) -> dict[str, Any]:  # Any: JSON
        """Sends a request and returns its answer."""
        self.send({"jsonrpc": "2.0", "id": "asked", "method": method, **rest})
        return self.answer()

    def answer(self) -> dict[str, Any]:  # Any: JSON
        """Returns the next answer. A request that is right follows, so that a missing answer is not waited for."""
        self.send({"jsonrpc": "2.0", "id": "next", "method": "textDocument/documentSymbol", "params": document("open")})
        answers = [message for message in self._until("next") if "id" in message]
        assert len(answers) == 1, answers
        return answers[0]

    def _until(self, identity: str) -> Iterator[dict[str, Any]]:  # Any: JSON
        while (message := self._read()).get("id") != identity:
            yield message
        assert "result" in message

    def settled(self) -> str:
        """Sends a request that is right, and returns what the server has written into its log before the answer."""
        assert "norm" in str(self.request(HOVER, params={**document("open"), "position": PLACE})["result"])
        return self._log.read_text(encoding="utf-8")

    def _read(self) -> dict[str, Any]:  # Any: JSON
        length = 0
        while header := self._output.readline().strip():
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        content: dict[str, Any] = json.loads(self._output.read(length))
        return content


def document(name: str) -> Mapping[str, object]:
    return of_uri(f"untitled:{name}")


def of_uri(uri: str, **rest: object) -> Mapping[str, object]:
    return {"textDocument": {"uri": uri, **rest}}


@contextmanager
def connected(folder: Path) -> Iterator[Connection]:
    """A connection to a server with one open file, which logs no traceback."""
    command = [sys.executable, "-m", "archlang", "lsp"]
    log = folder / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder) as process,
    ):
        connection = Connection(process, log)
        item = {"uri": "untitled:open", "languageId": "arch", "version": 1, "text": TEXT}
        start = {"jsonrpc": "2.0", "id": "next", "method": "initialize"}
        connection.send({**start, "params": {"capabilities": {}, "processId": None, "rootUri": None}})
        assert list(connection._until("next")) == []
        connection.notify("initialized", {})
        connection.notify("textDocument/didOpen", {"textDocument": item})
        yield connection
        connection.send({"jsonrpc": "2.0", "id": 0, "method": "shutdown"})
        connection.notify("exit", None)
        assert process.wait(timeout=60) == 0
    assert "Traceback" not in log.read_text(encoding="utf-8")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Connection]:
    with connected(tmp_path) as connection:
        yield connection


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A connection that the tests share: none leaves another document open."""
    with connected(tmp_path_factory.mktemp("server")) as connection:
        yield connection


def test_an_unknown_method_is_answered(connection: Connection) -> None:
    assert connection.request("textDocument/unknown", params={})["error"]["code"] == UNKNOWN_METHOD


URIS = (
    "untitled:never", "untitled:", "file:///folder/never.arch", "file:///nul%00.arch", "", "no URI",
    "http://example.org/never.arch", "git:/folder/never.arch?ref=1", "file:///\ud800.arch",
)  # fmt: skip


def test_a_request_about_a_document_that_was_never_opened_is_answered(connection: Connection) -> None:
    for uri in URIS:
        answer = connection.request(HOVER, params={**of_uri(uri, version=2), "position": PLACE})
        assert answer["error"]["code"] == INVALID_PARAMS
        assert "cannot be read" in answer["error"]["message"]


def test_a_document_of_any_name_can_be_opened(fresh: Connection) -> None:
    for uri in URIS:
        fresh.notify("textDocument/didOpen", of_uri(uri, languageId="arch", version=1, text=TEXT))
        answer = fresh.request(HOVER, params={**of_uri(uri), "position": PLACE})
        assert "norm" in str(answer), uri


def test_a_change_of_any_version_or_outside_of_the_text_is_made(fresh: Connection) -> None:
    outside = {"start": {"line": 900, "character": 5}, "end": {"line": 2**31 - 1, "character": 0}}
    for version in (-5, 0, 2):
        change = {"text": "# end\n", "range": outside}
        fresh.notify("textDocument/didChange", {**of_uri("untitled:open", version=version), "contentChanges": [change]})
    assert fresh.settled() == ""
    for line, character in ((900, 0), (1, 10**6), (2**31 - 1, 2**31 - 1)):
        place = {"line": line, "character": character}
        assert fresh.request(HOVER, params={**document("open"), "position": place})["result"] is None
