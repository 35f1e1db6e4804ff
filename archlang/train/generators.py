"""The random generators that a run draws from: of Python, numpy, torch and the device."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

_NUMPY_KEYS = 624


def random_state(device: torch.device) -> dict[str, Any]:  # Any: each generator's state has its own form
    """Returns the state of every generator, as plain tensors and numbers."""
    version, internal, gauss = random.getstate()
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": [version, list(internal), gauss],
        "numpy": [str(kind), [int(key) for key in keys], int(position), int(has_gauss), float(cached)],
        "torch": torch.get_rng_state(),
        device.type: _device_state(device),
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
        device_state = state.get(device.type)
        if device_state is not None and device.type == "cuda":
            torch.cuda.set_rng_state(device_state, device)
        elif device_state is not None and device.type == "mps":
            torch.mps.set_rng_state(device_state)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise ValueError(f"the state of the random generators: {error}") from error


def _device_state(device: torch.device) -> torch.Tensor | None:
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    if device.type == "mps":
        return torch.mps.get_rng_state()
    return None


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
