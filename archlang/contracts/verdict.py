"""The outcome of testing a block for one property."""

from dataclasses import dataclass

from archlang.diagnostics import Diagnostic


class Broken(Exception):
    """A block violates a property. `diagnostic` shows the clause of the signature and the failing input."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Skipped(Exception):
    """A property does not apply to a block, or its signature exempts the block from it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Verdict:
    """Whether a block has a property: `mistake` is set if it violates the property, `skipped` if no case tests it."""

    block: str
    property: str
    mistake: Diagnostic | None = None
    skipped: str = ""
