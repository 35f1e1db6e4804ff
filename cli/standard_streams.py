"""Standard input, output and error that are closed or full."""

import os
import sys
from contextlib import suppress


def prepare() -> None:
    """Opens the streams that the caller has closed (`<&-`, `>&-`): otherwise the first file that a command opens would
    get their number, and what libraries print would be written into it.

    Input is empty then, output raises OSError where something is printed, and errors are discarded."""
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 # until the process ends
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def output_error() -> OSError | None:
    """Writes what standard output still holds. Returns the error that this raises; the rest is discarded then, because
    Python would try again when the process ends."""
    if sys.stdout.closed:  # by the language server
        return None
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        return error
    return None


def discard_output() -> None:
    """Discards what standard output holds and what is still printed to it."""
    with suppress(OSError, ValueError):  # ValueError: a stream of a test without a number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stdout.flush()
