"""The messages of the Language Server Protocol: each request gets an answer, also one that cannot be read."""

import json
import logging
import re
import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlparse

from cattrs import transform_error
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcParseError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

_log = logging.getLogger(__name__)
_LENGTH = re.compile(rb"(?i:content-length)[ \t]*:[ \t]*(.*?)\s*")
_LONGEST = 1 << 26
"""the longest message, in bytes"""
_UNREADABLE_TEXT = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)


class Refused(JsonRpcInvalidParams):
    """A request that cannot be fulfilled; the editor shows the reason."""


@dataclass(frozen=True)
class _UnreadableRequest:
    """A request that is no message of the protocol."""

    id: object
    error: JsonRpcException


@dataclass(frozen=True)
class _UnreadableNotification:
    """A notification, or an answer, that is no message of the protocol."""

    method: object
    error: JsonRpcException


class Protocol(LanguageServerProtocol):
    """Answers also requests that pygls only logs, with an error. Announces the columns of `positions`, which every
    editor knows; pygls announces those that the editor prefers."""

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[Any, Any, lsp.InitializeResult]:  # Any: pygls
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = [lsp.PositionEncodingKind.Utf16]
        return (yield from super().lsp_initialize(params))

    def structure_message(self, data: dict[str, Any]) -> Any:  # Any: of JSON, and of pygls
        """Returns the message of an object of JSON; the object itself if it is a part of a message."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if not _is_request(data):
                return _UnreadableNotification(data.get("method"), _described(error))
            return _UnreadableRequest(data["id"], _described(error))

    def handle_message(self, message: Any) -> None:  # Any: the client may send anything
        if (reason := self._ignored(message)) is not None:
            _log.warning("Ignoring %s", reason)
        elif (refused := self._refused(message)) is None:
            super().handle_message(message)
        else:
            self.refuse(refused.id, refused.error)

    def refuse(self, request: object, error: JsonRpcException) -> None:
        """Answers a request, which an id that can be read names, with an error."""
        content = {"code": error.code, "message": error.message}
        named = request if isinstance(request, int | str) else None  # which pygls would leave out
        self._send_data({"jsonrpc": self.VERSION, "id": named, "error": content})

    def _ignored(self, message: object) -> str | None:
        """Returns what a message is, and why it is ignored; None for other messages."""
        match message:
            case dict() if not _is_request(message):
                return "a message without `jsonrpc`, or without `id` and `method`"
            case _UnreadableNotification(method=method, error=error):
                return f"notification {method!r}: {error.message}"
            case lsp.DidOpenTextDocumentNotification(params=opened) if not _is_uri(opened.text_document.uri):
                return f"the text of {opened.text_document.uri!r}, which is not a URI"
            case lsp.DidOpenNotebookDocumentNotification() | lsp.DidChangeNotebookDocumentNotification():
                return "a notebook, which is not a program"
            case lsp.DidChangeTextDocumentNotification(params=change):
                uri = change.text_document.uri
                return (
                    None if unquote(uri) in self.workspace.text_documents else f"a change of {uri!r}, which is not open"
                )
        return None

    def _refused(self, message: object) -> _UnreadableRequest | None:
        """Returns a request that is no valid one; None for other messages."""
        if isinstance(message, _UnreadableRequest):
            return message
        content = message if isinstance(message, dict) else _attributes(message)
        if not content and not isinstance(message, dict):  # an array or a number
            return _UnreadableRequest(None, _invalid("a message is an object with `jsonrpc`, `id` and `method`"))
        if not _is_request(content):
            return None
        if content.get("jsonrpc") != self.VERSION:
            return _UnreadableRequest(content["id"], _invalid(f"`jsonrpc` is not `{self.VERSION}`"))
        if not isinstance(content["method"], str):
            return _UnreadableRequest(content["id"], _invalid("`method` is no string"))
        return _UnreadableRequest(content["id"], _invalid("the server is shutting down")) if self._shutdown else None


class _Input:
    """Standard input with headers as pygls knows them: only `Content-Length: 5`, in this case and with one space. A
    length that is none is answered and ends the connection: where the next message begins is unknown."""

    def __init__(self, stream: BinaryIO, protocol: Protocol) -> None:
        self.read = stream.read
        self._stream = stream
        self._protocol = protocol

    def readline(self) -> bytes:
        line = self._stream.readline()
        length = _LENGTH.fullmatch(line)
        if length is None:
            return line
        if length[1].isdigit() and len(length[1]) <= len(str(_LONGEST)) and int(length[1]) <= _LONGEST:
            return b"Content-Length: %d\r\n" % int(length[1])
        self._protocol.refuse(None, JsonRpcParseError(f"`Content-Length` is not a number of up to {_LONGEST:_} bytes"))
        return b""


class Server(LanguageServer):
    """A language server that answers also texts that are not JSON, and headers that are wrong."""

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Answers the messages of standard input until it ends."""
        assert isinstance(self.protocol, Protocol)
        reader = _Input(stdin or sys.stdin.buffer, self.protocol)
        super().start_io(cast(BinaryIO, reader), stdout)  # it only reads

    def report_server_error(self, error: Exception, source: Any) -> None:  # Any: a type that pygls does not export
        if isinstance(error, _UNREADABLE_TEXT) and isinstance(self.protocol, Protocol):
            self.protocol.refuse(None, JsonRpcParseError(f"the message is not JSON: {error}"))
        else:
            super().report_server_error(error, source)


def log_briefly() -> None:
    """Makes pygls log a mistake of the client in a line, without the traceback that it leaves in the server."""
    for name in ("pygls.protocol.json_rpc", "pygls.server"):
        logging.getLogger(name).addFilter(_without_traceback)


def _without_traceback(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, (JsonRpcException, *_UNREADABLE_TEXT)):
        record.msg, record.args, record.exc_info = f"{record.getMessage()}: {error}", None, None
    # The reasons are in the answers.
    return not isinstance(error, Refused) and not record.getMessage().startswith("Unable to deserialize message")


def _is_uri(text: str) -> bool:
    try:
        urlparse(text)
    except ValueError:
        return False
    return True


def _attributes(message: object) -> dict[str, Any]:
    return {name: getattr(message, name) for name in ("jsonrpc", "id", "method") if hasattr(message, name)}


def _is_request(content: dict[str, Any]) -> bool:
    return "id" in content and "method" in content


def _invalid(reason: str) -> JsonRpcInvalidRequest:
    return JsonRpcInvalidRequest(f"Invalid Request: {reason}")


def _described(error: JsonRpcException) -> JsonRpcException:
    """Returns the error of a request whose parts have not the types of the protocol, with what is wrong with them."""
    if error.__cause__ is None:
        return error
    return JsonRpcInvalidParams(f"Invalid Params: {'; '.join(transform_error(error.__cause__))}")
