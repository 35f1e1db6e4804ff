"""The format `.pt2`: a program of torch.export, which runs with torch alone."""

from __future__ import annotations

from pathlib import Path

import torch

from archlang.backend.architecture import Architecture
from archlang.export.traced import trace


def export_pt2(module: Architecture, path: Path) -> list[Path]:
    """Writes a module as a program of torch.export. Returns the files that it wrote.

        program = torch.export.load("model.pt2").module()
        with torch.no_grad():
            logits = program(tokens, lengths)

    The program takes the fields, then the lengths of each, Int64[b]; a model that halts also returns the steps of each
    sample, [b].

    Raises:
        ExportError: torch cannot export the model."""
    torch.export.save(trace(module), path)
    return [path]
