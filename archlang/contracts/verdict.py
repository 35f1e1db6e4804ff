"""What comes of holding a block to one property."""

from dataclasses import dataclass

from archlang.diagnostics import Diagnostic


class Broken(Exception):
    """A block does not keep a property; `diagnostic` says where its signature promises it, and what shows that."""

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
    """Whether a block keeps a property. `mistake` is there if it does not, `skipped` if nothing was tested."""

    block: str
    property: str
    mistake: Diagnostic | None = None
    skipped: str = ""
