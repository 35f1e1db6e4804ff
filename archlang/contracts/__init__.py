"""Numerical tests of blocks against their signatures."""

from archlang.contracts.mistakes import ContractError, Verdict
from archlang.contracts.properties import PROPERTIES, hold, library_blocks, program_blocks

__all__ = ["PROPERTIES", "ContractError", "Verdict", "hold", "library_blocks", "program_blocks"]
