"""Whether a model and its optimizer fit into memory, before anything is built or written."""

import torch

from archlang.files.memory import available_memory
from archlang.graph.summary import summarize
from archlang.plan.plan import Plan
from archlang.train import mistakes

_WEIGHT_BYTES = 4
# By optimizer, the numbers that it keeps for each weight; the momentum of rmsprop, sgd and muon is one more.
_MOMENTS = {"adamw": 2, "adam": 2, "rmsprop": 1, "sgd": 0, "lion": 1, "muon": 0, "schedule_free": 2}


def require_memory(plan: Plan, device: torch.device) -> None:
    """
    Raises:
        RunMachineError: The weights, their gradients and the state of the optimizer alone need more memory than there
            is. Activations come on top, so a run that is not refused may still need too much."""
    weights = _WEIGHT_BYTES * summarize(plan.graph, 1).unique
    at_test = 0 if plan.at_test is plan.graph else _WEIGHT_BYTES * summarize(plan.at_test, 1).unique
    statics = plan.train.statics
    moments = _MOMENTS.get(plan.train.name, 0) + bool(statics.get("momentum")) + bool(statics.get("ema"))
    training = weights * (2 + moments) + at_test
    # A model is built on the host, and then moved to its device.
    _require(training if device.type == "cpu" else weights + at_test, "cpu", available_memory())
    if device.type == "cuda":
        _require(training, str(device), torch.cuda.mem_get_info(device)[0])


def _require(needed: int, device: str, available: int | None) -> None:
    if available is not None and needed > available:
        raise mistakes.model_too_large(device, needed, max(available, 0))
