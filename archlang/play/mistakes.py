"""Errors of the playground, worded for the person who asked for it."""

from collections.abc import Iterable, Mapping

from archlang.errors import ErrorWithRemedy, MachineError
from archlang.errors.names import suggest

_PASTE = "paste its blocks into the program: the page reads no files of yours"
# What to do in the page about mistakes whose own remedies are for files and the command line.
REMEDIES: Mapping[str, str] = {
    "E0208": _PASTE,
    "E0233": _PASTE,
    "E0316": "check the program as a file with `archlang check`: the page reads no files of yours",
}


class PlayError(ErrorWithRemedy):
    """The playground cannot be served or built."""


class RequestError(ErrorWithRemedy):
    """A request of a page that cannot be answered."""


is_missing = RequestError.wording("the request has no {kind} `{field}`", "reload the page")


is_too_large = RequestError.wording(
    "the text has {characters:_} characters; at most {most:_} are checked",
    "split the program into several files, and check them with `archlang check`",
)


def unknown_method(name: str, methods: Iterable[str]) -> RequestError:
    return RequestError(f"there is no method `{name}`", suggest(name, methods, "reload the page"))


def unknown_program(name: str, names: Iterable[str]) -> RequestError:
    return RequestError(f"no program `{name}` is shipped", suggest(name, names, "choose one from the list"))


already_trains = RequestError.wording("another recipe is being trained", "stop it first")
no_number_of_steps = RequestError.wording(
    "a recipe is trained for a whole number of steps", "write a number from 1 to {most:,}"
)
no_training = RequestError.wording("nothing has been trained", "start a training first")
trains_elsewhere = RequestError.wording(
    "a program that uses files beside it is not trained here",
    "run `archlang recipes {name} --copy .`, and then `archlang train`",
)
port_in_use = MachineError.wording(
    "port {port} cannot be used: {reason}", "choose another with `--port`, or leave it out"
)
npm_is_missing = PlayError.wording(
    "`npm` is not installed; it fetches Pyodide", "install Node.js, which has it, and run this again"
)


def npm_failed(package: str, output: str) -> PlayError:
    last = output.strip().splitlines()[-1:] or ["it printed nothing"]
    remedy = f"check the network, and that `npm view {package}` works"
    return PlayError(f"npm cannot fetch {package}: {last[0]}", remedy)


other_package = PlayError.wording(
    "the registry's {package} is not the package that archlang knows",
    "configure npm's official registry; nothing was written",
)
is_no_folder = PlayError.wording("`{folder}` is no folder", "name a new folder")
holds_other_files = PlayError.wording(
    "{folder} holds other files", "name a new folder, or one that holds an earlier build"
)
