"""Numerical tests of blocks against their signatures."""

from archlang.contracts.mistakes import ContractError
from archlang.contracts.properties import PROPERTIES, hold
from archlang.contracts.targets import library_blocks, program_blocks
from archlang.contracts.verdict import Verdict

__all__ = ["PROPERTIES", "ContractError", "Verdict", "hold", "library_blocks", "program_blocks"]
