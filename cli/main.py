"""The command `archlang`: runs the command line, and ends with the exit code of each kind of failure.

Imports little at first, so that Ctrl-C during the imports of the commands ends like Ctrl-C during a command."""

import os
import signal
import sys
from contextlib import suppress

MISTAKE = 1
"""of the user: a file, a setting or the data is wrong"""
COMMAND_LINE = 2
MACHINE = 71
"""memory, disk, permissions, devices, the network"""
INTERRUPTED = 128 + signal.SIGINT
CLOSED_PIPE = 141


def main() -> None:
    """Runs the command line. Every failure ends with a message and an exit code, never with a traceback."""
    try:
        code = _run() if _can_print() else MACHINE
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _can_print() -> bool:
    """Imports the modules that print errors. Returns false if that fails, after an error without them."""
    try:
        import archlang.cli.console
        import archlang.errors.machine  # noqa: F401
    except (ImportError, MemoryError, OSError) as error:
        sys.stderr.write(f"error: archlang cannot be imported: {type(error).__name__}: {error}\n")
        sys.stderr.write("  help: close other programs, or install archlang again, with pip\n")
        return False
    return True


def _run() -> int:
    from archlang.cli import console
    from archlang.errors import ArchlangError
    from archlang.train.stop import exit_code, terminating

    _open_streams()
    console.prepare()
    error: BaseException | None = None
    code = 0
    with terminating() as signals:
        try:
            from archlang.cli.app import app

            app()
        except SystemExit as end:
            from archlang.plugins import failure_of

            # typer has reported it, and ends with 1 where a pipe is closed.
            if isinstance(end.__context__, BrokenPipeError):
                error = end.__context__
            elif failure_of(end) is not None:
                error = end  # Python of the user's own has called `sys.exit`.
            else:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception as failure:
            if signals:
                return exit_code(signals[0])
            error = failure
    if os.environ.get("ARCHLANG_DEBUG") and error is not None and not isinstance(error, ArchlangError):
        raise error
    output_error = _output_error()
    try:
        if isinstance(error, BrokenPipeError) or isinstance(output_error, BrokenPipeError):
            # The reader has closed the pipe, as `head` does.
            _discard_output()
            return CLOSED_PIPE
        if output_error is not None:
            console.say(
                f"standard output cannot be written: {output_error.strerror}", "check where it is redirected to"
            )
            return MACHINE
        return code if error is None else _report(error)
    except OSError:
        return MACHINE  # Standard error cannot be written either.


def _report(error: BaseException) -> int:
    from archlang.cli import console
    from archlang.cli.internal_errors import report_bug
    from archlang.disk.mistakes import RefusedFile
    from archlang.errors import ArchlangError, ErrorWithRemedy, ProgramError
    from archlang.errors.machine import is_caused_by_machine, machine_error
    from archlang.plugins import failure_of

    if isinstance(error, ProgramError):
        console.show(error.diagnostics)
        return MISTAKE
    if isinstance(error, ErrorWithRemedy | RefusedFile):
        console.say(error.message, error.remedy)
        return MACHINE if isinstance(error, ArchlangError) and is_caused_by_machine(error) else MISTAKE
    if isinstance(error, ArchlangError):
        console.say(str(error))
        return MACHINE if is_caused_by_machine(error) else MISTAKE
    for known, code in ((machine_error(error), MACHINE), (failure_of(error), MISTAKE)):
        if known is not None:
            console.say(known.message, known.remedy)
            return code
    return report_bug(error)


def _open_streams() -> None:
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


def _output_error() -> OSError | None:
    """Writes what standard output still holds. Returns the error that this raises; the rest is discarded then, because
    Python would try again when the process ends."""
    if sys.stdout.closed:  # by the language server
        return None
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard_output()
        return error
    return None


def _discard_output() -> None:
    """Discards what standard output holds and what is still printed to it."""
    with suppress(OSError, ValueError):  # ValueError: a stream of a test without a number
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stdout.flush()
