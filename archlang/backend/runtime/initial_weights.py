"""Whether blocks read their initial weights from the files that their statics name."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_READ: ContextVar[bool] = ContextVar("reads_initial_weights", default=True)


@contextmanager
def weights_loaded_later() -> Iterator[None]:
    """Constructs blocks without their files; enter it where the weights of a run or of a saved model replace the
    initial ones, so that these files may be missing and are not read for a stranger."""
    token = _READ.set(False)
    try:
        yield
    finally:
        _READ.reset(token)


def reads_initial_weights() -> bool:
    """Returns whether a block that is constructed reads its files."""
    return _READ.get()
