"""The optimizers that `optimizers.arch` declares, and their states from checkpoints."""

import inspect
import io
import math
import pickle
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from archlang.errors.machine import needs_extra
from archlang.plan.plan import BoundExtern
from archlang.plan.recipe import RATES
from archlang.plan.trust import is_shipped
from archlang.plugins import NO_PLUGINS, Plugins, failure_of
from archlang.plugins.plugins import PluginFunction
from archlang.train import mistakes
from archlang.train.muon import MuonWithAdamW, OptimizerParts, hidden_matrices
from archlang.train.record.divided import divided_like, is_divided
from archlang.train.refusals import INSTANCES, instance_names
from archlang.train.settings import Settings, is_setting, plain_value
from archlang.types.statics import StaticValue


class SignSGD(Optimizer):
    """w ← (1 - lr λ) w - lr sign(g), for the rows of a sparse gradient alone; g is the sum over all readings of a row.

    Bernstein et al., "signSGD: compressed optimisation for non-convex problems", 2018; the programs of HRM and TRM, for
    their embeddings of puzzles."""

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float = 0.0, lr_scale: float = 1.0) -> None:
        """`lr_scale` is the rate beside that of the other weights, which the schedule sets."""
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "lr_scale": lr_scale})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]  # without a closure
        assert closure is None
        for group in self.param_groups:
            rate, decay = group["lr"], 1 - group["lr"] * group["weight_decay"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if not weight.grad.is_sparse:
                    weight.mul_(decay).sub_(rate * weight.grad.sign())
                    continue
                gradient = weight.grad.coalesce()
                rows = gradient.indices()[0]
                weight[rows] = decay * weight[rows] - rate * gradient.values().sign()


def weights_named(weights: Mapping[str, nn.Parameter], names: Iterable[object]) -> list[nn.Parameter]:
    """Returns the trained weights of the instances with one of these names, and of those inside them."""
    chosen = set(map(str, names))
    trained = {path: weight for path, weight in weights.items() if weight.requires_grad}
    return [weight for path, weight in trained.items() if not chosen.isdisjoint(path.split(".")[:-1])]


def _read_rows(module: nn.Module, weights: Iterable[nn.Parameter]) -> None:
    """Lets the gradient of a table among weights, of a block that has `sparse_gradient`, have the rows that were read,
    also where it is zero."""
    chosen = set(map(id, weights))
    for block in module.modules():
        # Not a Protocol: since Python 3.12, `isinstance` of one finds no weights of a module.
        if hasattr(block, "sparse_gradient") and id(block.weight) in chosen:
            block.sparse_gradient = True  # type: ignore[assignment]  # nn.Module types its attributes as modules


# torch's names of statics; `beta1` and `beta2` are its `betas`.
_TORCH_NAMES = {"epsilon": "eps", "newton_schulz": "ns_steps"}


def make_optimizer(
    train: BoundExtern,
    module: nn.Module,
    precision: str = "32",
    plugins: Plugins = NO_PLUGINS,
    named: Mapping[str, nn.Parameter] | None = None,
    loaded: Collection[str] = (),
) -> Optimizer:
    """Constructs the optimizer of a recipe over all weights of a module that require gradients. `named` are its
    weights by their names in the model, if these are others. `loaded` are the names of those that the run began with.

    Uses torch's fused implementation where there is one, except with 16 bits: scaled gradients could not be clipped
    in it.

    Raises:
        RunError: the package of the optimizer is not installed, no weight requires gradients, or the optimizer cannot
            leave weights to sign SGD.
        PluginError: an optimizer of the user's own is in no plugin, fails, or is no optimizer."""
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    if not weights:
        raise mistakes.no_weights()
    names, undecayed = (instance_names(train, setting) for setting in INSTANCES)
    if (names or undecayed) and not is_shipped(train):
        raise mistakes.no_sign_sgd(train.name, INSTANCES[0] if names else INSTANCES[1])
    if not is_shipped(train):
        return _own_optimizer(train, weights, plugins)
    named = dict(module.named_parameters()) if named is None else named
    signed, fixed = weights_named(named, names), weights_named(named, undecayed)
    if "bias" in map(str, undecayed):
        fixed += [weight for path, weight in named.items() if path.rpartition(".")[2].startswith("bias")]
    scales = _scales(train, named, set(loaded))
    if not signed:
        return _shipped_optimizer(train, module, weights, fixed, scales, precision)
    _read_rows(module, signed)
    unsigned = _without(weights, signed)
    settings = Settings(train.statics)
    signs = SignSGD(signed, settings.sign_lr, settings.sign_decay, lr_scale=settings.sign_lr / settings.lr)
    return OptimizerParts(
        [*([_shipped_optimizer(train, module, unsigned, fixed, scales, precision)] if unsigned else ()), signs]
    )


def _scales(train: BoundExtern, named: Mapping[str, nn.Parameter], loaded: Collection[str]) -> dict[int, float]:
    """Returns by the identities of weights their own rates, as multiples of `lr`: those of the innermost instances."""
    rates = {
        name.removeprefix(RATES): value
        for name, value in train.statics.items()
        if name.startswith(RATES) and isinstance(value, float)
    }
    scales: dict[int, float] = {}
    for path, weight in named.items():
        words = ("loaded" if path in loaded else "", *path.split(".")[:-1])
        for word in words:
            if word in rates:
                scales[id(weight)] = rates[word] / Settings(train.statics).lr
    return scales


def _shipped_optimizer(
    train: BoundExtern,
    module: nn.Module,
    weights: list[nn.Parameter],
    undecayed: list[nn.Parameter],
    scales: Mapping[int, float],
    precision: str,
) -> Optimizer:
    arguments = _torch_arguments(train.statics)
    module_name, _, class_name = train.python.partition(":")
    with needs_extra("optimizers"):
        optimizer_class = getattr(import_module(module_name), class_name)
    fixed = set(map(id, undecayed))
    alike: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for weight in weights:
        alike.setdefault((scales.get(id(weight), 1.0), id(weight) in fixed), []).append(weight)
    groups: list[dict[str, Any]] = [  # Any: torch's options
        {"params": alike[scale, is_fixed]} | ({"lr": scale * arguments["lr"], "lr_scale": scale} if scale != 1 else {})
        | ({"weight_decay": 0.0} if is_fixed else {}) for scale, is_fixed in sorted(alike)
    ]  # fmt: skip
    if optimizer_class is MuonWithAdamW:
        parts = []
        for group in groups:
            own, scale = group.pop("params"), group.pop("lr_scale", 1.0)
            matrices = _without(own, _without(own, hidden_matrices(module)))
            parts.append(MuonWithAdamW(matrices, _without(own, matrices), **{**arguments, **group}))
            for part in parts[-1].param_groups if scale != 1 else ():
                part["lr_scale"] = scale
        return parts[0] if len(parts) == 1 else OptimizerParts(parts)
    if "fused" in inspect.signature(optimizer_class).parameters:
        # torch divides no weights in its fused SGD.
        arguments["fused"] = precision != "16" and not (optimizer_class is torch.optim.SGD and is_divided(weights[0]))
    optimizer: Optimizer = optimizer_class(groups, **arguments)
    if hasattr(optimizer, "train"):
        optimizer.train()
    return optimizer


def _own_optimizer(train: BoundExtern, weights: list[nn.Parameter], plugins: Plugins) -> Optimizer:
    own_class = PluginFunction.load(plugins, train.python, f"the optimizer `{train.name}`")
    statics = {name: value for name, value in train.statics.items() if name == "lr" or not is_setting(name)}
    optimizer = own_class(weights, **{name: plain_value(value) for name, value in statics.items()})
    if not isinstance(optimizer, Optimizer):
        raise own_class.wrong(f"is a {type(optimizer).__name__}", "return a torch.optim.Optimizer of the weights")
    if any("lr" not in group for group in optimizer.param_groups):
        raise own_class.wrong(
            "has a group of weights without `lr`", "pass `lr` among the defaults of torch's Optimizer"
        )
    try:
        inspect.signature(optimizer.step).bind()
    except TypeError:
        raise own_class.wrong(
            "has a `step` that needs an argument", "compute each step from the gradients alone"
        ) from None
    if fault := _why_not_stored(optimizer):
        raise own_class.wrong(
            f"has a `state_dict` that a checkpoint cannot hold ({fault})", "keep tensors, numbers and text in it"
        )
    if hasattr(optimizer, "train"):
        optimizer.train()
    return optimizer


def _why_not_stored(optimizer: Optimizer) -> str:
    file = io.BytesIO()
    try:
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        torch.load(file, weights_only=True)
    except (pickle.PickleError, AttributeError, TypeError, RuntimeError) as error:
        held = re.search(r"GLOBAL ([\w.]+)", str(error))
        return f"it holds {held[1]}" if held else type(error).__name__
    return ""


def _without(weights: Sequence[nn.Parameter], excluded: Sequence[nn.Parameter]) -> list[nn.Parameter]:
    identities = set(map(id, excluded))
    return [weight for weight in weights if id(weight) not in identities]


def _torch_arguments(statics: Mapping[str, StaticValue]) -> dict[str, Any]:  # Any: the arguments of many classes
    arguments: dict[str, Any] = {
        _TORCH_NAMES.get(name, name): value for name, value in statics.items() if name == "lr" or not is_setting(name)
    }
    if "beta1" in arguments:
        arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
    return arguments


def make_capturable(optimizer: Optimizer, device: torch.device, moves_first_beta: bool) -> None:
    """Prepares an optimizer for capture in CUDA graphs, before its first step: moves the scheduled numbers to the
    device as 32-bit tensors, where each launch of a graph reads them."""
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=device)
        if "capturable" in group:
            group["capturable"] = True
        if "alpha" in group:
            # RMSprop's single-tensor implementation synchronizes to read the learning rate; the foreach one does not.
            group["foreach"] = True
        if "betas" in group and moves_first_beta:
            # Only Adam's single-tensor implementation reads beta1 from the device.
            first, second = group["betas"]
            moved = torch.tensor(first, dtype=torch.float32, device=device)
            group.update(betas=(moved, second), fused=False, foreach=False)


# Their states

# What optimizers count for all weights of a group: steps, and the weights of the average of a schedule-free one.
_COUNTS = ("k", "weight_sum", "lr_max")


def restore_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:  # Any: torch's own
    """Restores what an optimizer keeps of its weights, and what it counts. Its options stay those of this process,
    which may use other kernels.

    Raises:
        ValueError: the state is not one of this optimizer and its weights."""
    current = optimizer.state_dict()
    check_optimizer_state(optimizer, state.get("state"))
    groups = [
        group | _counts(group, state.get("param_groups"), index) for index, group in enumerate(current["param_groups"])
    ]
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    moments = {
        index: {name: divided_like(moment, weights[index]) for name, moment in stored.items()}
        for index, stored in state["state"].items()
    }
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def restore_own_optimizer_state(optimizer: Optimizer, state: Mapping[str, Any]) -> None:  # Any: torch's own
    """Restores everything that an optimizer of the user's own has saved.

    Raises:
        PluginError: the user's class fails.
        ValueError: the optimizer does not load it."""
    try:
        optimizer.load_state_dict(dict(state))
    except Exception as error:  # whatever the user's class does
        if (failure := failure_of(error)) is not None:
            raise failure from error
        raise ValueError(f"the optimizer does not load its state: {error}") from error


def _counts(group: Mapping[str, object], stored: object, index: int) -> dict[str, object]:
    names = [name for name in _COUNTS if name in group]
    if not names:
        return {}
    stored_group = stored[index] if isinstance(stored, list) and index < len(stored) else None
    counts = {name: stored_group.get(name) for name in names} if isinstance(stored_group, Mapping) else {}
    for name in names:
        value = counts.get(name)
        if type(value) is not type(group[name]) or not math.isfinite(value):  # type: ignore[arg-type]  # a number
            raise ValueError(f"`{name}` of the optimizer is {value}")
    return counts


def check_optimizer_state(optimizer: Optimizer, state: object) -> None:
    """Checks the moments of each weight, by the index of the weight.

    Raises:
        ValueError: they are not those of the optimizer's weights, or not the same ones for all weights of a group."""
    groups = [group["params"] for group in optimizer.param_groups]
    weights = [(weight, number) for number, group in enumerate(groups) for weight in group]
    if not isinstance(state, Mapping):
        raise ValueError("the state of the optimizer is not a dictionary")
    kept: dict[int, set[str]] = {}  # the names of the moments, by group
    for index, moments in state.items():
        if type(index) is not int or not 0 <= index < len(weights):
            raise ValueError(f"the optimizer has {len(weights)} weights, and its state names another")
        weight, group = weights[index]
        if moments == {}:
            continue  # A weight that has not been moved yet.
        if not isinstance(moments, Mapping) or set(moments) != kept.setdefault(group, set(moments)):
            raise ValueError(f"the optimizer does not keep the same of weight {index} as of others")
        for name, moment in moments.items():
            _check_moment(f"`{name}` of weight {index}", moment, weight.shape)


def _check_moment(what: str, moment: object, shape: torch.Size) -> None:
    if not isinstance(moment, Tensor) or not moment.is_floating_point():
        raise ValueError(f"{what} is not a tensor of numbers")
    if moment.shape not in (shape, ()):
        raise ValueError(f"{what} has the shape {list(moment.shape)}, not {list(shape)}")
    if not moment.dim() and not (bool(moment.isfinite()) and float(moment) >= 0):
        raise ValueError(f"{what} is {float(moment)}")
