"""Devices, precisions, errors that depend on them, and the random generators that a run draws from."""

from __future__ import annotations

import gc
import logging
import os
import random
import re
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import torch

from archlang.disk import memory
from archlang.errors.machine import first_line, is_out_of_memory
from archlang.plan.plan import Plan
from archlang.train import mistakes
from archlang.train.refusals import PRECISIONS, refusal

if TYPE_CHECKING:
    from lightning_fabric import Fabric


# The numbers of matrix products, by precision.
DTYPES = {"32": torch.float32, "bf16": torch.bfloat16, "16": torch.float16}
_NUMPY_KEYS = 624


def random_state(device: torch.device) -> dict[str, Any]:  # Any: each generator's state has its own form
    """Returns the state of every generator, as plain tensors and numbers."""
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    on_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    if device.type == "mps":
        on_device = torch.mps.get_rng_state()
    return {
        "python": [version, list(internal), gauss],
        "numpy": [str(kind), [int(key) for key in keys], int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
        device.type: on_device,
    }


def restore_random_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Restores every generator. If the state is from another kind of device, the device's generator is unchanged.

    Raises:
        ValueError: it is not a state that `random_state` returned."""
    try:
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        kind, keys, position, has_gauss, cached = state["numpy"]
        # numpy does not check the position, and would read behind the keys.
        if kind != "MT19937" or len(keys) != _NUMPY_KEYS or not 0 <= position <= _NUMPY_KEYS:
            raise ValueError("the numbers of numpy's generator are out of range")
        np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
        torch.set_rng_state(state["torch"])
        if (on_device := state.get(device.type)) is not None:
            if device.type == "mps":
                torch.mps.set_rng_state(on_device)
            else:
                torch.cuda.set_rng_state(on_device, device)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"the state of the random generators: {error}") from error


@contextmanager
def fixed_randomness(device: torch.device) -> Iterator[None]:
    """Seeds every generator with 0 inside, and restores it afterwards."""
    state = random_state(device)
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    try:
        yield
    finally:
        restore_random_state(state, device)


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# What torch's backends say in errors when another process is lost.
_OF_PROCESSES = re.compile(r"(?i)gloo|nccl|connection (closed|reset|refused)|socket|timed out|pair closure")
# Its own errors, as where the processes do not find each other.
_GROUP_ERRORS = (torch.distributed.DistError,) if torch.distributed.is_available() else ()


def find_device(device: str = "auto", count: int = 1) -> torch.device:
    """Returns the device of this name, the first one where there must be `count` of them."""
    kind, numbered, index = device.partition(":")
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind not in ("cpu", "cuda", "mps") or (numbered and (kind != "cuda" or not index.isdecimal())):
        raise mistakes.unknown_device(device)
    if kind == "cpu":
        return torch.device(kind)
    available = torch.cuda.device_count() if kind == "cuda" else int(torch.backends.mps.is_available())
    if int(index or 0) >= available:
        raise mistakes.no_device(device)
    if count > available:
        raise mistakes.too_few_devices(count, kind, available)
    return torch.device(kind, int(index or 0))


def require_device(
    plan: Plan, device: str, precision: str = "32", devices: int = 1, nodes: int = 1, **options: bool
) -> torch.device:
    """Returns the device of this name.

    Raises:
        RunMachineError: there are not so many devices.
        RunError: a plan cannot be trained on them, with the `options` of `refusal`."""
    place = find_device(device, devices)
    if error := refusal(plan, place.type, precision, devices * nodes, **options):
        raise error
    return place


def select_device(device: str = "auto") -> torch.device:
    """Returns the device of this name. A GPU becomes torch's current one."""
    place = find_device(device)
    if place.type == "cuda":
        torch.cuda.set_device(place)
    return place


def reset_peak_memory(device: torch.device) -> None:
    """Lets `peak_memory` count from now on, where the system can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        memory.reset_peak_memory()


def peak_memory(device: torch.device) -> int | None:
    """Returns the largest number of bytes that this process has allocated on a GPU, or has had in memory; None where
    the system does not say."""
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else memory.peak_memory()


def peak_flops(device: torch.device, precision: str) -> float | None:
    """Returns the FLOPs that a GPU computes at most in a second; None if they are not known."""
    from lightning_fabric.utilities.throughput import get_available_flops

    if device.type != "cuda":
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it does not know the GPU
        return get_available_flops(device, DTYPES[precision])


def make_fabric(
    device: torch.device,
    precision: str = "32",
    devices: int = 1,
    nodes: int = 1,
    *,
    sharded: bool = False,
    leaves_weights_out: bool = True,
) -> Fabric:
    """Returns a Fabric with a process for each of `devices` of the kind of this one, of each node, whose models share
    their gradients or are already `sharded`. If a step `leaves_weights_out`, each step searches for them. Fabric finds
    processes that `torchrun` or SLURM started."""
    # Imported at the first training, because it imports torch's compiler, which takes more than a second.
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.ddp import DDPStrategy

    # It logs every precision except 32 to standard error.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    if devices * nodes == 1:
        selected: list[int] | int = 1 if device.index is None else [device.index]
        return Fabric(accelerator=device.type, devices=selected, precision=PRECISIONS[precision])  # type: ignore[arg-type] # a name of Fabric's
    strategy = DDPStrategy(find_unused_parameters=leaves_weights_out)
    if sharded:
        strategy.setup_module = lambda module: module  # type: ignore[method-assign, assignment, return-value]
    return Fabric(
        accelerator=device.type,
        devices=devices,
        num_nodes=nodes,
        strategy=strategy,
        precision=PRECISIONS[precision],  # type: ignore[arg-type]
    )


def leaving_process_group(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a function destroy the process group that it has joined after it has returned, and raise a RunMachineError
    if another process of the group is lost.

    Modules that share gradients hold the group. If the last holder is one of them, its destructor keeps Python's lock
    and waits for a thread of the group that needs this lock; so the function's frame must be gone before."""

    @wraps(function)
    def leaving(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        was_joined = _has_process_group()
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            is_of_processes = _has_process_group() and _OF_PROCESSES.search(str(error))
            if not (is_of_processes or isinstance(error, _GROUP_ERRORS)):
                raise
            line = first_line(error)
            reason = (line.partition("] ")[2] or line).partition(". ")[0]
            # Before they have met, the launcher alone knows the rank.
            rank = torch.distributed.get_rank() if _has_process_group() else os.environ.get("RANK", "0")
            raise mistakes.lost_process(rank, socket.gethostname(), reason) from error
        finally:
            if _has_process_group() and not was_joined:
                gc.collect()  # a trainer and its step hold each other
                torch.distributed.destroy_process_group()

    return leaving


def _has_process_group() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


@contextmanager
def explaining_out_of_memory(device: torch.device, batch: int) -> Iterator[None]:
    """Raises a RunError with a remedy in place of an out-of-memory error."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise mistakes.out_of_memory(str(device), batch) from error
