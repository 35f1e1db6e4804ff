"""Errors of the playground, worded for the person who asked for it."""

from collections.abc import Iterable

from archlang.diagnostics import ErrorWithRemedy, MachineError
from archlang.diagnostics.names import suggest


class PlayError(ErrorWithRemedy):
    """The playground cannot be served or built."""


class RequestError(ErrorWithRemedy):
    """A request of a page that cannot be answered."""


def is_missing(field: str, kind: str) -> RequestError:
    return RequestError(f"the request has no {kind} `{field}`", "reload the page")


def unknown_method(name: str, methods: Iterable[str]) -> RequestError:
    return RequestError(f"there is no method `{name}`", suggest(name, methods, "reload the page"))


def unknown_program(name: str, names: Iterable[str]) -> RequestError:
    return RequestError(f"no program `{name}` is shipped", suggest(name, names, "choose one from the list"))


def port_in_use(port: int, reason: str) -> MachineError:
    return MachineError(f"port {port} cannot be used: {reason}", "choose another with `--port`, or leave it out")
