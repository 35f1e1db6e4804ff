"""Refuses a training from its plan alone, and decides how its steps run, without torch and before it begins."""

import re
from importlib.metadata import version

from archlang.graph.graph import Graph, step_loops
from archlang.graph.operations import Experts, Gradient, Halting, Scan
from archlang.graph.prune import normalize
from archlang.graph.summary import FORWARD_AND_BACKWARD, summarize
from archlang.plan.plan import BoundExtern, Plan
from archlang.plan.trust import is_users_own
from archlang.train import mistakes
from archlang.train.record.mistakes import RunError
from archlang.types.statics import StaticValue

# The settings that name instances of a model.
INSTANCES = ("sign_sgd", "no_decay")
PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
# Optimizers that a CUDA graph can hold: they read their scheduled numbers from the device.
_CAPTURABLE = frozenset({"torch.optim:AdamW", "torch.optim:Adam", "torch.optim:RMSprop", "torch.optim:SGD"})
# Optimizers that treat each number separately, so that the weights of several seeds may share a tensor, and several
# processes a weight.
_ELEMENTWISE = _CAPTURABLE | {"lion_pytorch:Lion"}
# To compile GPT-2 takes minutes of a host; a GPU computes so much in some four minutes, at 400 TFLOP/s.
_FLOPS_THAT_REPAY = 1e17
# The first torch that reduces the gradients of weights that some processes have not used.
_TORCH_THAT_SHARDS = (2, 13)


def instance_names(train: BoundExtern, setting: str = "sign_sgd") -> tuple[StaticValue, ...]:
    """Returns what a setting of `INSTANCES` lists."""
    names = train.statics.get(setting, ())
    return names if isinstance(names, tuple) else ()


def is_elementwise(train: BoundExtern) -> bool:
    """Whether one optimizer can move the weights of several seeds, and several optimizers a weight."""
    return train.python in _ELEMENTWISE and not instance_names(train)


def is_capturable(train: BoundExtern) -> bool:
    """Whether a CUDA graph can hold the optimizer; others read a number on the host in each step."""
    return train.python in _CAPTURABLE


def is_streamed(plan: Plan) -> bool:
    """Whether a plan trains on a stream."""
    return not is_users_own(plan.task.python) and bool(plan.task.statics.get("stream"))


def why_eager(
    plan: Plan, device: str, precision: str = "32", count: int = 1, *, remat: bool = False, eager: bool = False
) -> str:
    """Returns why `count` processes run the operations of a step one by one on a `device`; empty if its steps are CUDA
    graphs."""
    train = plan.train
    if reason := why_evaluated_eagerly(plan.graph, train.statics.get("loss"), device, eager=eager):
        return reason
    reasons = {
        "several devices share each batch": count > 1,
        "batches pass through the model in parts": bool(train.statics.get("micro")),
        "in precision 16 the host looks for overflows": precision == "16",
        "with `--remat` the host saves the state of the random numbers": remat,
        "`sign_sgd` moves the rows that the step has read": bool(instance_names(train)),
    }  # fmt: skip
    return next((reason for reason, is_there in reasons.items() if is_there), "")


def why_evaluated_eagerly(graph: Graph, loss: StaticValue | None, device: str, *, eager: bool = False) -> str:
    """Returns why evaluations on a `device` run their operations one by one; empty if they are CUDA graphs."""
    kind = device.partition(":")[0]
    own = [instance.block for instance in graph.instances.values() if is_users_own(instance.python)]
    reasons = {
        f"`{kind}` has no CUDA graphs": kind != "cuda",
        "as `--eager` says": eager,
        f"a CUDA graph freezes what Python decides, and `{own[0] if own else ''}` is your own": bool(own),
        "the host reads which positions choose each of the experts":
            any(isinstance(node.operation, Experts) for node in graph.region.walk()),
        "a CUDA graph freezes what Python decides, and the loss is your own": "." in str(loss),
    }  # fmt: skip
    return next((reason for reason, is_there in reasons.items() if is_there), "")


def samples_of_batch(train: BoundExtern, length: int) -> int:
    """Returns how many samples of a length a batch has."""
    batch = train.statics.get("batch")
    assert isinstance(batch, int), "every optimizer has a batch"
    return max(1, batch // length) if str(train.statics.get("batch_of")) == "tokens" else batch


def is_compiled(
    plan: Plan, device: str, steps: int, longest: int, *, remat: bool = False, shard: bool = False, eager: bool = False
) -> bool:
    """Whether torch compiles a model, where its `steps` with samples of `longest` positions repay that: on a GPU, if
    each step computes the whole model. A loop over positions would become as many copies, and maps would be held."""
    train = plan.train
    computes_all = not any(
        isinstance(operation := node.operation, Halting | Scan | Experts | Gradient)
        or getattr(operation, "drawn", "") or getattr(operation, "settled", False)
        or any(len(kind.lengths) > 1 for kind in node.types)
        for node in plan.graph.region.walk()
    )  # fmt: skip
    if not computes_all or remat or shard or str(train.statics.get("supervise")) != "last":
        return False
    if why_evaluated_eagerly(plan.graph, train.statics.get("loss"), device, eager=eager):
        return False
    flops = FORWARD_AND_BACKWARD * summarize(plan.graph, longest).flops
    return flops * samples_of_batch(train, longest) * steps >= _FLOPS_THAT_REPAY


def describe_steps(kind: str, reason: str, compiled: bool = False) -> str:
    """Returns how steps run on a kind of device, by why they are eager; empty where there is no choice."""
    if kind != "cuda":
        return ""
    steps = f"one operation at a time: {reason}" if reason else "as CUDA graphs"
    return f"{steps}; torch compiles the model" if compiled else steps


def uses_every_weight(graph: Graph) -> bool:
    """Whether each training step gives each weight of a model a gradient. It may not where the number of steps depends
    on the data, where gradients stop, and in blocks of the user's own."""
    normal = normalize(graph)
    operations = (node.operation for node in normal.region.walk())
    return not any(isinstance(operation, Halting) for operation in operations) and not any(
        "gradients" in instance.caveats or is_users_own(instance.python) for instance in normal.instances.values()
    )


def refusal(
    plan: Plan, device: str = "auto", precision: str = "32", count: int = 1, *, shard: bool = False, remat: bool = False
) -> RunError | None:
    """Returns why a run cannot be computed on a `device`, in a precision, or by `count` processes; None if it can. What
    depends on a device is not known of `auto`."""
    train, kind, batch = plan.train, device.partition(":")[0], plan.train.statics.get("batch")
    region = normalize(plan.graph).region
    is_deep = str(train.statics.get("supervise")) == "deep"
    torch_version = version("torch")
    refusals = [
        (is_streamed(plan) and not train.statics.get("steps"), mistakes.no_epochs()),
        (is_streamed(plan) and is_deep, mistakes.not_deep_on_streams()),
        (is_streamed(plan) and str(train.statics.get("select")).startswith("train."),
         mistakes.not_selected_on_streams()),
        (precision not in PRECISIONS, mistakes.unknown_precision(precision, PRECISIONS)),
        (precision == "16" and kind == "cpu", mistakes.no_such_precision_here(kind, precision)),
        (remat and not any(step_loops(region)), mistakes.no_steps_to_repeat(plan.model)),
        (count > 1 and is_deep, mistakes.not_deep_on_devices()),
        (isinstance(batch, int) and str(train.statics.get("batch_of")) != "tokens" and count > batch,
         mistakes.batch_too_small(batch, count)),
    ]  # fmt: skip
    shard_obstacles = [
        (count == 1, "a single process holds all of them", "add `--devices 2` or more, or omit `--shard`"),
        (precision == "16", "in precision 16 gradients are scaled as a whole", "use `--precision 32` or `bf16`"),
        (bool(instance_names(train)), "`sign_sgd` moves the rows of a table that were read, in the process that holds "
         "the table", "delete `sign_sgd`, or omit `--shard`"),
        (not is_elementwise(train), f"`{train.name}` may need each weight as a whole",
         "use another optimizer, such as `adamw`, or omit `--shard`"),
        (tuple(map(int, re.findall(r"\d+", torch_version)[:2])) < _TORCH_THAT_SHARDS,
         f"torch {torch_version} cannot divide a model", "install torch 2.13 or later"),
    ]  # fmt: skip
    refusals += [(shard and is_there, mistakes.no_shard(*why)) for is_there, *why in shard_obstacles]
    return next((error for is_there, error in refusals if is_there), None)
