"""The format `.onnx`: a graph for onnxruntime, in which loops are loops."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from pathlib import Path

import torch

from archlang.backend.architecture import Architecture
from archlang.export import mistakes
from archlang.export.places import place_of, reason_of, refused_node
from archlang.export.traced import axis_names, input_names, output_names, trace


def export_onnx(module: Architecture, path: Path) -> list[Path]:
    """Writes a module as a graph of ONNX. Returns the files that it wrote.

        session = onnxruntime.InferenceSession("model.onnx")
        (logits,) = session.run(["result"], {"x": tokens, "x_lengths": lengths})

    Its inputs are the fields and their lengths, its outputs `result`, and `steps` for a model that halts.

    Raises:
        ExportError: the packages of the extra `export` are missing, or torch cannot export the model."""
    if missing := [name for name in ("onnx", "onnxscript") if importlib.util.find_spec(name) is None]:
        raise mistakes.packages_missing(missing)
    program = trace(module)
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    try:
        logger.setLevel(logging.ERROR)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = torch.onnx.export(
                program, dynamo=True, verbose=False, input_names=input_names(module), output_names=output_names(module),
                dynamic_shapes=(tuple(axis_names(module)),),
            )  # fmt: skip
    except Exception as error:  # whatever torch raises
        place = place_of(module, refused_node(module, error))
        raise mistakes.not_translated(*place, reason_of(error)) from error
    finally:
        logger.setLevel(level)
    assert graph is not None
    graph.save(path, external_data=False)
    return [path]
