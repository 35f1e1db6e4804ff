"""The wording of errors while a run trains."""

from __future__ import annotations

from collections.abc import Iterable

from archlang.record.mistakes import RunError


def no_device(wanted: str) -> RunError:
    return RunError(
        f"there is no device `{wanted}` here", "use `--device cpu`, or a torch that was built for your accelerator"
    )


def too_few_devices(kind: str, wanted: int, there: int) -> RunError:
    return RunError(f"there are not {wanted} devices `{kind}` here", f"there are {there}; give `--devices {there}`")


def batch_too_small(batch: int, processes: int) -> RunError:
    return RunError(
        f"a batch of {batch} cannot be shared by {processes} processes", "raise `train.batch`, or use fewer devices"
    )


def unknown_device(wanted: str) -> RunError:
    return RunError(f"`{wanted}` names no device", "write auto, cpu, cuda, cuda:1 or mps")


def unknown_precision(wanted: str, known: Iterable[str]) -> RunError:
    return RunError(f"there is no precision `{wanted}`", f"choose one of {', '.join(known)}")


def no_such_precision_here(wanted: str, device: str) -> RunError:
    return RunError(f"the device `{device}` does not compute in precision {wanted}", "use `--precision 32` or `bf16`")


def out_of_memory(device: str, batch: int) -> RunError:
    return RunError(
        f"the memory of `{device}` does not hold a step with a batch of {batch}",
        "lower `train.batch`, or the sizes of the model",
    )


def no_weights() -> RunError:
    return RunError("the model has no weights to train", "use a block with weights, such as `linear`")


def foreign_optimizer(optimizer: str) -> RunError:
    return RunError(f"the optimizer `{optimizer}` is not one of archlang's", "use adamw, adam, rmsprop or sgd")


def not_finite(what: str, step: int, last: int | None) -> RunError:
    checkpoint = "there is no checkpoint yet" if last is None else f"the checkpoint of step {last} is kept"
    return RunError(
        f"the {what} became NaN or infinite at step {step}", f"lower `train.lr` or clip gradients; {checkpoint}"
    )


def no_graphs(reason: str) -> RunError:
    return RunError(f"there are no CUDA graphs of this run: {reason}", "leave `--graphs` out")


def not_captured(reason: str) -> RunError:
    return RunError(
        f"a step of this run cannot become a CUDA graph: {reason}",
        "leave `--graphs` out: the run goes on from its last checkpoint",
    )


def not_compiled(reason: str) -> RunError:
    return RunError(
        f"torch's compiler has failed: {reason}", "leave `--compile` out; on the CPU it needs a C++ compiler"
    )
