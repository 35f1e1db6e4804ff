"""Tensors that are divided among processes, each of which holds some of their rows; and how checkpoints hold them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def is_divided(tensor: object) -> bool:
    """Returns whether a tensor is divided among processes, without importing torch's class of such tensors."""
    return hasattr(tensor, "to_local")


def own_rows(tensor: Tensor) -> Tensor:
    """Returns the rows of a tensor that this process holds; all, if it is not divided."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def divided_like(whole: Tensor, weight: Tensor) -> Tensor:
    """Returns a tensor that every process has, divided as a weight of its shape is."""
    if not is_divided(weight) or whole.shape != weight.shape:
        return whole
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(weight, DTensor)
    return distribute_tensor(whole.to(weight.device), weight.device_mesh, weight.placements, src_data_rank=None)


class Copies:
    """Copies of nested values in the memory of the host. `rows` has this process's rows of the divided tensors among
    them, by their paths. A later copy is made in the same memory: new memory takes five times as long."""

    def __init__(self) -> None:
        self.rows: dict[str, Tensor] = {}
        self._buffers: dict[str, Tensor] = {}

    def of(self, value: Any, path: str = "") -> Any:  # Any: the nested state of an optimizer
        """Returns a copy of a value without the divided tensors in it."""
        match value:
            case Tensor():
                buffer = self._buffers.get(path)
                if buffer is None or (buffer.shape, buffer.dtype) != (value.shape, value.dtype):
                    buffer = self._buffers[path] = torch.empty(value.shape, dtype=value.dtype)
                return buffer.copy_(value.detach())
            case Mapping():
                whole = {}
                for name, item in value.items():
                    if is_divided(item):
                        self.rows[f"{path}/{name}"] = self.of(own_rows(item), f"{path}/{name}")
                    else:
                        whole[name] = self.of(item, f"{path}/{name}")
                return whole
            case list() | tuple():
                return type(value)(self.of(item, f"{path}/{index}") for index, item in enumerate(value))
        return value


class Joined(Mapping[str, Tensor]):
    """Tensors by their names, of some of which each of several processes has stored its rows. These are joined each
    time that they are read: those that are not needed take no memory."""

    def __init__(self, whole: Mapping[str, Tensor], parts: Sequence[Mapping[str, Tensor]], path: str) -> None:
        """
        Raises:
            ValueError: The parts do not fit together."""
        self._whole = whole
        self._parts = parts
        prefix = f"{path}/"
        self._paths = {key.removeprefix(prefix): key for key in parts[0] if key.startswith(prefix)}
        for key in self._paths.values():
            rows = [part.get(key) for part in parts]
            if len({None if each is None else (each.dim() > 0, each.shape[1:], each.dtype) for each in rows}) > 1:
                raise ValueError(f"the rows of {key} do not fit together")

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._paths:
            return self._whole[name]
        return torch.cat([part[self._paths[name]] for part in self._parts])

    def __iter__(self) -> Iterator[str]:
        return iter({**self._whole, **self._paths})

    def __len__(self) -> int:
        return len({**self._whole, **self._paths})
