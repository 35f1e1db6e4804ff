"""Serves the playground on this machine, to nobody but the page that it serves.

The server listens on the loopback address only. A request must carry the token, which only the printed address has. The
headers `Host` and `Origin` must name the server itself: pages from elsewhere cannot call it, nor read its answers."""

import hmac
import json
import os
import secrets
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from archlang.errors.bugs import REMEDY, keep_bug
from archlang.play.mistakes import port_in_use
from archlang.play.page import FRAMED_POLICY, HEADER_POLICY, content_type, page_files, policy

_ADDRESS = "127.0.0.1"
_LARGEST_REQUEST = 8 << 20  # bytes
_PART = 1 << 20  # bytes
_SECONDS = 30.0
"""without a byte before a connection is closed"""

Answer = Callable[[Mapping[str, object]], Mapping[str, object]]
# Returns a page that the playground shows in a frame, by a name that nobody can guess; None if there is none.
FramedPage = Callable[[str], bytes | None]
_FRAMED = "framed/"


class Server(ThreadingHTTPServer):
    """Serves the page's files, and answers its requests, one after another.

    Args:
        answer: Answers the JSON object of a request with another.
        port: 0 takes a free one.
        framed: The pages for frames, which have scripts of their own, and no access to this one."""

    daemon_threads = True
    # Elsewhere, another program could then listen on the same port.
    allow_reuse_address = os.name == "posix"

    def __init__(self, answer: Answer, port: int = 0, framed: FramedPage = lambda name: None) -> None:
        self.token = secrets.token_urlsafe(32)
        self.lock = threading.Lock()
        self.answer = answer
        self.framed = framed
        self.files = page_files("server", policy(frame_src="'self'"))
        try:
            super().__init__((_ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise port_in_use(port, getattr(error, "strerror", None) or str(error)) from None

    def server_bind(self) -> None:
        """Binds without looking up the name of this machine."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _ADDRESS, self.server_address[1]

    @property
    def origins(self) -> tuple[str, ...]:
        return (f"http://{_ADDRESS}:{self.server_port}", f"http://localhost:{self.server_port}")

    @property
    def url(self) -> str:
        """The address of the page. The part behind `#` is not sent, and the page removes it from its address."""
        return f"{self.origins[0]}/#token={self.token}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    server: Server

    def do_GET(self) -> None:
        if not self._names_the_server():
            return
        name = self.path.partition("?")[0].removeprefix("/") or "index.html"
        page = self.server.framed(name.removeprefix(_FRAMED)) if name.startswith(_FRAMED) else None
        if page is not None:
            self._send(HTTPStatus.OK, content_type(".html"), page, FRAMED_POLICY)
        elif name not in self.server.files:
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such file")
        else:
            self._send(HTTPStatus.OK, content_type(name), self.server.files[name].encode("utf-8"))

    def do_POST(self) -> None:
        # What is not read would be taken for the next request.
        self.close_connection = True
        if not self._names_the_server():
            return
        origin, token = self.headers.get("Origin"), self.headers.get("Authorization")
        if origin is None:
            self._refuse(HTTPStatus.FORBIDDEN, "the request has no header `Origin`, which the page sends")
        elif origin not in self.server.origins:
            self._refuse(HTTPStatus.FORBIDDEN, "the request comes from another page")
        elif token is None or not hmac.compare_digest(token.encode(), self._expected.encode()):
            fault = "the request has no token" if token is None else "the token is wrong"
            self._refuse(HTTPStatus.UNAUTHORIZED, f"{fault}; open the address that `archlang play` printed")
        elif self.path != "/api":
            self._refuse(HTTPStatus.NOT_FOUND, "there is no such address")
        elif self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the request is no JSON")
        else:
            self._answer()

    @property
    def _expected(self) -> str:
        return f"Bearer {self.server.token}"

    def _answer(self) -> None:
        written = self.headers.get("Content-Length")
        if written is None or not written.isascii() or not written.isdecimal():
            fault = "the request has no length"
            if written is not None:
                fault = "the length of the request is no number of bytes"
            self._refuse(HTTPStatus.LENGTH_REQUIRED, fault)
            return
        length = int(written) if len(written) < 19 else sys.maxsize
        if length > _LARGEST_REQUEST:
            reason = f"the request is too large; at most {_LARGEST_REQUEST:_} bytes are read"
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
            # A browser that cannot send all of a request does not read the answer.
            while length > 0 and (part := self.rfile.read(min(length, _PART))):
                length -= len(part)
            return
        try:
            fields = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            self._refuse(HTTPStatus.BAD_REQUEST, "the request is no JSON object")
            return
        self.close_connection = False
        try:
            with self.server.lock:
                answer = self.server.answer(fields)
        except Exception as error:  # a bug of archlang: the page shows it
            message = f"internal error: {type(error).__name__}: {error}"
            keep_bug(error, text=str(fields.get("text", "")))
            answer = {"error": {"message": message, "remedy": REMEDY}}
        self._send(HTTPStatus.OK, "application/json", json.dumps(answer).encode("utf-8"))

    def _names_the_server(self) -> bool:
        """Whether the request was sent to this server by its own name: a foreign name may lead to this address."""
        hosts = {origin.removeprefix("http://") for origin in self.server.origins}
        named = self.headers.get_all("Host", [])
        if named in [[host] for host in hosts]:
            return True
        fault = "the request names another host" if named else "the request has no header `Host`"
        self._refuse(HTTPStatus.FORBIDDEN, fault)
        return False

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", f"{reason}\n".encode())

    def _send(self, status: HTTPStatus, content_type: str, content: bytes, content_policy: str = HEADER_POLICY) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", content_type),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", content_policy),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Frame-Options", "SAMEORIGIN"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        return "archlang"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal shows the address only."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuses what is no request that this server knows, without quoting it."""
        self._refuse(HTTPStatus(code), "the request is not understood")


def serve(server: Server) -> None:
    """Serves until Ctrl-C."""
    with server:
        server.serve_forever(poll_interval=0.2)
