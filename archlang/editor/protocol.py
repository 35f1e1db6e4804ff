"""The messages of the Language Server Protocol: each request gets an answer, also one that cannot be read."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from cattrs import transform_error
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, JsonRpcInvalidRequest, JsonRpcParseError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

_UNREADABLE_TEXT = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True)
class _UnreadableRequest:
    """A request that is no message of the protocol."""

    id: object
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
                raise
            return _UnreadableRequest(data["id"], _described(error))

    def handle_message(self, message: Any) -> None:  # Any: the client may send anything
        refused = self._refused(message)
        if refused is None:
            super().handle_message(message)
        else:
            self.refuse(refused.id, refused.error)

    def refuse(self, request: object, error: JsonRpcException) -> None:
        """Answers a request, which an id that can be read names, with an error."""
        content = {"code": error.code, "message": error.message}
        named = request if isinstance(request, int | str) else None  # which pygls would leave out
        self._send_data({"jsonrpc": self.VERSION, "id": named, "error": content})

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


class Server(LanguageServer):
    """A language server that answers also texts that are not JSON."""

    def report_server_error(self, error: Exception, source: Any) -> None:  # Any: a type that pygls does not export
        if isinstance(error, _UNREADABLE_TEXT) and isinstance(self.protocol, Protocol):
            self.protocol.refuse(None, JsonRpcParseError(f"the message is not JSON: {error}"))
        else:
            super().report_server_error(error, source)


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
