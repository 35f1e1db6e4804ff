"""Each request gets an answer, also one that breaks the protocol: a client waits for it."""

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
INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, NOT_JSON = -32600, -32601, -32602, -32700
PLACE = {"line": 1, "character": 12}


class Connection:
    """Sends any message to a server, also wrong ones, and reads its answers."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._log = log
        self._input: IO[bytes] = process.stdin
        self._output: IO[bytes] = process.stdout

    def send(self, message: object, header: bytes = b"Content-Length: %d\r\n\r\n") -> None:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._input.write((header % len(body) if b"%" in header else header) + body)
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
        assert "result" in message or message["error"]["code"] == INVALID_REQUEST  # after `shutdown`

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


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\ncontent-type: application/vscode-jsonrpc\r\n\r\n",
        b"Content-Length :  %d \n\n",
    ],
)
def test_a_header_may_be_written_in_any_case_and_with_any_spaces(connection: Connection, header: bytes) -> None:
    connection.send(
        {"jsonrpc": "2.0", "id": "next", "method": HOVER, "params": {**document("open"), "position": PLACE}}, header
    )
    assert all("id" not in message for message in connection._until("next"))


@pytest.mark.parametrize("length", [b"99999999999999999999", b"67108865", b"-5", b"five"])
def test_a_length_that_is_none_is_answered_and_ends_the_connection(tmp_path: Path, length: bytes) -> None:
    command = [sys.executable, "-m", "archlang", "lsp"]
    done = subprocess.run(
        command, input=b"Content-Length: %b\r\n\r\n{}" % length, capture_output=True, cwd=tmp_path, check=False
    )
    answer = json.loads(done.stdout.partition(b"\r\n\r\n")[2])
    assert answer["error"]["code"] == NOT_JSON
    assert "`Content-Length`" in answer["error"]["message"]
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_request_with_wrong_parameters_is_answered(connection: Connection) -> None:
    for parameters, reason in (
        (document("open"), "required field missing @ $.params.position"),
        (None, "expected HoverParams @ $.params"),
        ([1, 2], "$.params.position"),
        ("text", "$.params.position"),
        ({**document("open"), "position": {"line": "one", "character": 0}}, "expected int @ $.params.position.line"),
        ({**document("open"), "position": {"line": -1, "character": 0}}, "$.params.position"),
        ({"textDocument": {"uri": 5}, "position": PLACE}, "`5.arch` cannot be read"),
        ({"textDocument": {}, "position": PLACE}, "required field missing @ $.params.text_document.uri"),
        ({**document("closed"), "position": PLACE}, "`closed.arch` cannot be read"),
    ):
        answer = connection.request(HOVER, params=parameters)
        assert answer["id"] == "asked"
        assert answer["error"]["code"] == INVALID_PARAMS
        assert reason in answer["error"]["message"]
    assert "params" in connection.request(HOVER)["error"]["message"]
    assert "norm" in str(connection.request(HOVER, params={**document("open"), "position": PLACE})["result"])


def test_an_unknown_method_or_command_is_answered(connection: Connection) -> None:
    assert connection.request("textDocument/unknown", params={})["error"]["code"] == UNKNOWN_METHOD
    assert connection.request(5, params={})["error"]["code"] == INVALID_REQUEST
    for parameters in ({"command": "unknown"}, {"command": "archlang.graph", "arguments": [1]}, {}, None):
        answer = connection.request("workspace/executeCommand", params=parameters)
        assert answer["error"]["code"] == INVALID_PARAMS


def test_what_is_no_request_of_the_protocol_is_answered(connection: Connection) -> None:
    for message, identity, code in (
        (b"{", None, NOT_JSON),
        (b"\xff", None, NOT_JSON),
        ([1], None, INVALID_REQUEST),
        (5, None, INVALID_REQUEST),
        ({"id": 1, "method": HOVER}, 1, INVALID_REQUEST),
        ({"jsonrpc": "1.0", "id": 2, "method": "shutdown"}, 2, INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": None, "method": HOVER, "params": {}}, None, INVALID_PARAMS),
        ({"jsonrpc": "2.0", "id": [3], "method": HOVER, "params": {}}, None, INVALID_PARAMS),
    ):
        connection.send(message)
        answer = connection.answer()
        assert (answer["id"], answer["error"]["code"]) == (identity, code), message


def test_wrong_notifications_are_not_answered_and_the_server_goes_on(connection: Connection) -> None:
    connection.notify("$/cancelRequest", {"id": 999})
    connection.notify("$/cancelRequest", None)
    connection.notify("textDocument/didOpen", None)
    connection.notify("textDocument/didChange", {**of_uri("untitled:open", version=None), "contentChanges": []})
    connection.notify("textDocument/didChange", {**of_uri("untitled:open", version=2), "contentChanges": None})
    notebook = {"notebookDocument": {"uri": "untitled:book", "version": 1}, "change": {}}
    connection.notify("notebookDocument/didChange", notebook)
    connection.notify("unknown", {})
    connection.send({"method": "unknown"})
    connection.send({"jsonrpc": "2.0", "id": 7, "result": None})
    assert "Ignoring notification 'textDocument/didOpen'" in connection.settled()


URIS = (
    "untitled:never", "untitled:", "file:///folder/never.arch", "file:///nul%00.arch", "", "no URI",
    "http://example.org/never.arch", "git:/folder/never.arch?ref=1", "file:///\ud800.arch",
)  # fmt: skip


def test_a_document_that_was_never_opened_is_changed_saved_and_closed_without_effect(connection: Connection) -> None:
    start = {"line": 0, "character": 0}
    for uri in (*URIS, "file:///", "file://["):
        named = of_uri(uri, version=2)
        for change in ({"text": TEXT}, {"text": "x", "range": {"start": start, "end": start}}):
            connection.notify("textDocument/didChange", {**named, "contentChanges": [change]})
        connection.notify("textDocument/didSave", named)
        connection.notify("textDocument/didClose", named)
        connection.notify("textDocument/didClose", named)
        assert f"a change of {uri!r}, which is not open" in connection.settled()
        answer = connection.request(HOVER, params={**named, "position": PLACE})
        assert answer["error"]["code"] == INVALID_PARAMS
        assert "cannot be read" in answer["error"]["message"]


def test_a_document_of_any_name_can_be_opened(fresh: Connection) -> None:
    for uri in URIS:
        fresh.notify("textDocument/didOpen", of_uri(uri, languageId="arch", version=1, text=TEXT))
        answer = fresh.request(HOVER, params={**of_uri(uri), "position": PLACE})
        assert "norm" in str(answer), uri
    fresh.notify("textDocument/didOpen", of_uri("file://[", languageId="arch", version=1, text=TEXT))
    assert "Ignoring the text of 'file://['" in fresh.settled()


def test_a_change_of_any_version_or_outside_of_the_text_is_made(fresh: Connection) -> None:
    outside = {"start": {"line": 900, "character": 5}, "end": {"line": 2**31 - 1, "character": 0}}
    for version in (-5, 0, 2):
        change = {"text": "# end\n", "range": outside}
        fresh.notify("textDocument/didChange", {**of_uri("untitled:open", version=version), "contentChanges": [change]})
    assert fresh.settled() == ""
    for line, character in ((900, 0), (1, 10**6), (2**31 - 1, 2**31 - 1)):
        place = {"line": line, "character": character}
        assert fresh.request(HOVER, params={**document("open"), "position": place})["result"] is None


def test_a_request_after_the_last_one_is_answered(fresh: Connection) -> None:
    assert fresh.request("shutdown")["result"] is None
    answer = fresh.request(HOVER, params={**document("open"), "position": PLACE})
    assert answer["error"]["code"] == INVALID_REQUEST
