"""Operating-system errors reported with the path that they are about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def os_errors_as(report: Callable[[Path, str], Exception], path: Path) -> Iterator[None]:
    """Raises `report(path, reason)` in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise report(path, error.strerror or str(error)) from error
