"""What a training run is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch.optim import Optimizer

from archlang.backend.architecture import Architecture
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import LossRule, Task, loss_rule
from archlang.train.data import Data
from archlang.train.run_functions import NO_FUNCTIONS, RunFunctions
from archlang.train.settings import Settings

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True, eq=False)
class Setup:
    """What computes a run: the device and its processes, the model that is trained, the model that is evaluated (the
    same one, or the one with the statics of test time), and the optimizer of the first, which may be of the user's
    own."""

    fabric: Fabric
    module: Architecture
    test_module: Architecture
    optimizer: Optimizer
    has_own_optimizer: bool = False


@dataclass(frozen=True, eq=False)
class Workload:
    """What a run trains on, and how. Runs that differ in their seeds alone share one, and its tensors on the device."""

    settings: Settings
    task: Task
    splits: Mapping[str, Split]
    device: torch.device
    functions: RunFunctions = NO_FUNCTIONS
    _resident: dict[str, Data] = field(default_factory=dict)

    @property
    def rule(self) -> LossRule:
        return loss_rule(self.task)

    def keep(self, split: str) -> Data:
        """Returns a split's tensors, and keeps them on the device."""
        if split not in self._resident:
            self._resident[split] = Data(self.splits[split], self.device)
        return self._resident[split]

    def load(self, split: str) -> Data:
        """Returns a split's tensors; those of a split that is not kept are freed after use."""
        return self._resident.get(split) or Data(self.splits[split], self.device)
