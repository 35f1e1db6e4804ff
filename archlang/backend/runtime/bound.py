"""Modules as the compiled body of a loop calls them, looked up once in a call of the model."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.loops import Body, ModuleGroup


class BoundModules:
    """Stands for a group of modules in compiled code. A module that nothing observes is its `forward`, if `calls`."""

    def __init__(self, module: nn.Module, calls: bool = True) -> None:
        self.__self__ = module
        self._calls = calls

    def __getattr__(self, name: str) -> Any:  # Any: a loop, or what computes a module
        value = getattr(self.__self__, name)
        if isinstance(value, ModuleGroup):
            value = BoundModules(value, self._calls)
        elif self._calls:
            value = direct(value)
        self.__dict__[name] = value
        return value


def direct(value: Any) -> Any:  # Any: as above
    """Returns the `forward` of a module without parts that nothing observes, and any other value unchanged."""
    is_plain = isinstance(value, nn.Module) and not value._modules and not is_observed(value)
    return value.forward if is_plain else value


def is_observed(module: nn.Module, kind: type | None = None, besides: type | tuple[()] = ()) -> bool:
    """Returns whether a call of a module does more than the `forward` of its class, besides hooks of a class, or if
    that class is not `kind`."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    is_hooked = any(not isinstance(hook, besides) for registered in hooks for hook in registered.values())
    is_hooked = is_hooked or bool(_has_any_global_hook())  # type: ignore[no-untyped-call]  # torch's own
    is_other = kind not in (None, type(module)) or "forward" in vars(module)
    return is_hooked or is_other or module._compiled_call_impl is not None


def bound(body: Body) -> Body:
    """Returns the body of a loop, which looks up modules once in a call of the model."""

    def run(owner: nn.Module, *values: Any) -> tuple[Any, ...]:  # Any: as in `Body`
        if torch.compiler.is_compiling():
            return body(owner, *values)
        return body(cached_in_call(("bound", id(owner)), partial(BoundModules, owner)), *values)

    return run
