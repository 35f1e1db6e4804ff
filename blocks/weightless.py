"""Blocks without weights."""

from torch import nn


class Weightless(nn.Module):
    """A block without weights: its attributes are its statics and the sizes of its inputs."""

    def __init__(self, **statics: object) -> None:
        super().__init__()
        vars(self).update(statics)
