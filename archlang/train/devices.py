"""The device and the precision that a command line names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies.ddp import DDPStrategy

from archlang.train import mistakes

PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
# What torch says when the memory of the host does not suffice.
_NO_HOST_MEMORY = "can't allocate memory"


def make_fabric(device: str = "auto", precision: str = "32", devices: int = 1, nodes: int = 1) -> Fabric:
    """One process for each device of each node; what `torchrun` or SLURM has started is found by itself.

    Raises:
        RunError: there is no such device here, or it has no such precision."""
    kind, numbered, index = device.partition(":")
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind not in ("cpu", "cuda", "mps") or (numbered and (kind != "cuda" or not index.isdecimal())):
        raise mistakes.unknown_device(device)
    if precision not in PRECISIONS:
        raise mistakes.unknown_precision(precision, PRECISIONS)
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if int(index or 0) >= there[kind]:
        raise mistakes.no_device(device)
    if kind != "cpu" and devices > there[kind]:
        raise mistakes.too_few_devices(kind, devices, there[kind])
    if precision == "16" and kind == "cpu":
        raise mistakes.no_such_precision_here(precision, kind)
    # It tells of each precision but 32, on the standard error.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    if devices * nodes == 1:
        chosen: list[int] | int = [int(index)] if index else 1
        return Fabric(accelerator=kind, devices=chosen, precision=PRECISIONS[precision])  # type: ignore[arg-type] # a name of Fabric's
    # A halting loop that ends early, or a dropped column, leaves weights without a gradient in some processes.
    strategy = DDPStrategy(find_unused_parameters=True)
    return Fabric(
        accelerator=kind,
        devices=devices,
        num_nodes=nodes,
        strategy=strategy,
        precision=PRECISIONS[precision],  # type: ignore[arg-type]
    )


def is_out_of_memory(error: Exception) -> bool:
    """Whether it says that the memory of the device, or of the host, does not suffice."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and _NO_HOST_MEMORY in str(error)
    )


@contextmanager
def explaining_out_of_memory(device: torch.device, batch: int) -> Iterator[None]:
    """Says what to do where the memory does not suffice."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise mistakes.out_of_memory(str(device), batch) from error


@contextmanager
def explaining_compiler_errors() -> Iterator[None]:
    """Says what to do where torch's compiler has failed."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
            raise
        raise mistakes.not_compiled(str(error).strip().partition("\n")[0]) from error
