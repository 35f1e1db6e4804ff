"""What a training cannot be asked for, found without torch and before a run begins."""

from archlang.plan.plan import BoundExtern
from archlang.train import mistakes
from archlang.train.record.mistakes import RunError
from archlang.types.statics import StaticValue

# Optimizers whose scheduled numbers a CUDA graph can read from the device.
_CAPTURABLE = frozenset({"torch.optim:AdamW", "torch.optim:Adam", "torch.optim:RMSprop", "torch.optim:SGD"})
# Optimizers that treat each number separately, so that the weights of several seeds may share a tensor, and several
# processes a weight.
_ELEMENTWISE = _CAPTURABLE | {"lion_pytorch:Lion"}


def sign_names(train: BoundExtern) -> tuple[StaticValue, ...]:
    names = train.statics.get("sign_sgd", ())
    return names if isinstance(names, tuple) else ()


def is_elementwise(train: BoundExtern) -> bool:
    """Whether one optimizer can move the weights of several seeds, and several optimizers a weight."""
    return train.python in _ELEMENTWISE and not sign_names(train)


def why_not_shardable(train: BoundExtern, precision: str = "32") -> RunError | None:
    """Returns the error of a training whose weights cannot be divided, because of its optimizer or its precision."""
    if precision == "16":
        return mistakes.no_shard("in precision 16 gradients are scaled as a whole", "use `--precision 32` or `bf16`")
    if sign_names(train):
        reason = "`sign_sgd` moves the rows of a table that were read, in the process that holds the table"
        return mistakes.no_shard(reason, "delete `sign_sgd`, or omit `--shard`")
    if not is_elementwise(train):
        reason = f"`{train.name}` may need each weight as a whole"
        return mistakes.no_shard(reason, "use another optimizer, such as `adamw`, or omit `--shard`")
    return None


def require_trainable(
    train: BoundExtern, precision: str, count: int, *, shard: bool = False, graphs: bool = False, remat: bool = False
) -> None:
    """Raises a RunError if a training cannot be shared by `count` processes, divided among them, or captured."""
    batch, is_deep = train.statics.get("batch"), str(train.statics.get("supervise")) == "deep"
    if shard and count == 1:
        raise mistakes.no_shard("a single process holds all of them", "add `--devices 2` or more, or omit `--shard`")
    if shard and (refusal := why_not_shardable(train, precision)):
        raise refusal
    if count > 1 and is_deep:
        raise mistakes.not_deep_on_devices()
    if str(train.statics.get("batch_of")) != "tokens" and isinstance(batch, int) and count > batch:
        raise mistakes.batch_too_small(batch, count)
    obstacles = {
        "they need one device and precision 32": precision != "32" or count > 1,
        f"the optimizer `{train.name}` reads its learning rate on the host":
            train.python not in _CAPTURABLE or bool(sign_names(train)),
        "with `supervise = deep`, the host chooses the examples of each step": is_deep,
        "with `--remat`, the host saves the state of the random numbers in each step": remat,
    }  # fmt: skip
    for reason, is_there in obstacles.items():
        if graphs and is_there:
            raise mistakes.no_graphs(reason)
