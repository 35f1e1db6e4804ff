"""The properties that a program violates."""

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass

from tests.semantics.compiled import PATH, Compiled, Refused, compile_text
from tests.semantics.properties import PROPERTIES


@dataclass(frozen=True)
class Failure:
    """A property that a program violates: its name, and the type and message of the error."""

    name: str
    error: str
    message: str

    @property
    def signature(self) -> tuple[str, str, str]:
        """Equal for failures with probably the same cause: the message without numbers and names."""
        words = re.sub(r"`[^`]*`|\[[^]]*\]|\([^)]*\)|\S*[\d_.]\S*", "", self.message.partition("\n")[0])
        return self.name, self.error, words[:60]

    def __str__(self) -> str:
        return f"{self.name}: {self.error}: {self.message}"


def failures(text: str, seed: int, names: Collection[str] = tuple(PROPERTIES)) -> list[Failure]:
    """Returns the properties that a program violates. A program that `check` rejects has none of them, but its errors
    must be in the program, not in the library."""
    try:
        program = compile_text(text)
    except Exception as error:
        return [_failure("check", error)]
    if isinstance(program, Refused):
        elsewhere = [error for error in program.errors if error.span.source.path.rpartition("/")[2] != PATH]
        return [Failure("check", "Elsewhere", f"{error.code} is reported at {error.span}") for error in elsewhere]
    return [failure for name in names if (failure := _check(program, seed, name)) is not None]


def _check(program: Compiled, seed: int, name: str) -> Failure | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            PROPERTIES[name](program, seed)
        except Exception as error:
            return _failure(name, error)
    return None


def _failure(name: str, error: Exception) -> Failure:
    return Failure(name, type(error).__name__, str(error))
