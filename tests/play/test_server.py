"""The server of the playground answers its own page, on this machine, and nobody else."""

import http.client
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest

from archlang.errors import MachineError
from archlang.errors.bugs import kept_bug
from archlang.play.server import Server


def echo(fields: Mapping[str, object]) -> Mapping[str, object]:
    if fields.get("method") == "crash":
        raise ZeroDivisionError("oh")
    return {"result": dict(fields)}


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Serves in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running(Server(echo)) as started:
        yield started


Changes = Mapping[str, str | None]


def request(
    server: Server,
    method: str = "POST",
    path: str = "/api",
    body: str | bytes = '{"method": "x"}',
    changes: Changes = MappingProxyType({}),
) -> tuple[int, str, http.client.HTTPResponse]:
    """Sends a request as the page does; `changes` replace its headers, and None leaves one out."""
    port = server.server_port
    content = body.encode() if isinstance(body, str) else body
    headers: dict[str, str | None] = {
        "Host": f"127.0.0.1:{port}", "Origin": f"http://127.0.0.1:{port}", "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json", "Content-Length": str(len(content)), **changes,
    }  # fmt: skip
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(content)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text, response


def test_the_page_is_answered(server: Server) -> None:
    status, text, _ = request(server, body=json.dumps({"method": "check", "text": "🙂"}))
    assert (status, json.loads(text)) == (200, {"result": {"method": "check", "text": "🙂"}})


def test_a_request_that_is_too_large_gets_its_answer_after_it_is_sent(server: Server) -> None:
    status, text, _ = request(server, body=b" " * (9 << 20))
    assert (status, text) == (413, "the request is too large; at most 8_388_608 bytes are read\n")


def test_the_server_listens_on_the_loopback_address_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        ({"Authorization": None}, 401, "the request has no token; open the address that `archlang play` printed"),
        ({"Authorization": "Bearer "}, 401, "the token is wrong; open the address that `archlang play` printed"),
        ({"Authorization": "Bearer ü"}, 401, "the token is wrong; open the address that `archlang play` printed"),
        ({"Origin": None}, 403, "the request has no header `Origin`, which the page sends"),
        ({"Origin": "null"}, 403, "the request comes from another page"),
        ({"Origin": "http://evil.example"}, 403, "the request comes from another page"),
        ({"Origin": "http://127.0.0.1:1"}, 403, "the request comes from another page"),
        ({"Host": "evil.example"}, 403, "the request names another host"),
        ({"Host": "127.0.0.1"}, 403, "the request names another host"),
        ({"Host": None}, 403, "the request has no header `Host`"),
        ({"Content-Type": "text/plain"}, 415, "the request is no JSON"),
        ({"Content-Length": None}, 411, "the request has no length"),
        ({"Content-Length": "x"}, 411, "the length of the request is no number of bytes"),
        ({"Content-Length": "-1"}, 411, "the length of the request is no number of bytes"),
        ({"Content-Length": "99999999"}, 413, "the request is too large; at most 8_388_608 bytes are read"),
        ({"Content-Length": "9999999999"}, 413, "the request is too large; at most 8_388_608 bytes are read"),
    ],
    ids=str,
)
def test_a_request_from_elsewhere_is_refused_with_its_reason(
    server: Server, headers: Changes, status: int, reason: str
) -> None:
    answered, text, _ = request(server, changes=headers)
    assert (answered, text) == (status, f"{reason}\n")


@pytest.mark.parametrize("name", ["Host", "Origin"])
def test_the_name_localhost_is_the_server_too(server: Server, name: str) -> None:
    scheme = "http://" if name == "Origin" else ""
    assert request(server, changes={name: f"{scheme}localhost:{server.server_port}"})[0] == 200


@pytest.mark.parametrize("body", ["", "[]", "{", "3", "[" * 100_000, b"\xff"], ids=lambda body: repr(body[:9]))
def test_a_request_that_is_no_object_is_refused(server: Server, body: str | bytes) -> None:
    assert request(server, body=body)[0] == 400


def test_a_bug_is_an_answer_and_not_the_end(server: Server) -> None:
    status, text, _ = request(server, body='{"method": "crash", "text": "model m"}')
    assert status == 200
    assert json.loads(text)["error"]["message"] == "internal error: ZeroDivisionError: oh"
    assert all(part in (kept_bug() or "") for part in ("model m", "ZeroDivisionError"))
    assert request(server)[0] == 200


def test_no_method_but_get_and_post_is_answered(server: Server) -> None:
    for method in ("PUT", "OPTIONS", "TRACE", "DELETE"):
        status, _, response = request(server, method)
        assert status == 501
        assert response.headers.get("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize("path", ["/", "/index.html", "/playground.js", "/playground.css", "/picture.js", "/?a=b"])
def test_the_files_of_the_page_allow_no_script_but_its_own(server: Server, path: str) -> None:
    status, text, response = request(server, "GET", path, "", {"Origin": None, "Authorization": None})
    assert status == 200
    assert text
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert server.token not in text


@pytest.mark.parametrize("path", ["/etc/passwd", "/../server.py", "/%2e%2e/server.py", "/picture.js/", "/api"])
def test_no_other_file_is_served(server: Server, path: str) -> None:
    assert request(server, "GET", path, "")[0] == 404


def test_a_page_under_a_foreign_name_gets_no_file(server: Server) -> None:
    assert request(server, "GET", "/", "", {"Host": "evil.example"})[0] == 403


def test_the_page_has_no_script_and_no_style_of_its_own(server: Server) -> None:
    page = server.files["index.html"]
    assert "<style" not in page
    assert " style=" not in page
    assert "<script>" not in page
    assert not re.search(r"\son\w+=", page)


def test_a_port_in_use_is_an_error_with_a_remedy(server: Server) -> None:
    with pytest.raises(MachineError, match=f"port {server.server_port} cannot be used"):
        Server(echo, server.server_port)
