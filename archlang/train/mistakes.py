"""The wording of errors during training."""

from collections.abc import Iterable

from archlang.record.mistakes import RunError, RunMachineError


def no_device(device: str) -> RunMachineError:
    message = f"there is no device `{device}` here"
    return RunMachineError(message, "use the device `cpu`, as by `--device cpu`, or a torch for your accelerator")


def too_few_devices(kind: str, devices: int, count: int) -> RunMachineError:
    return RunMachineError(
        f"there are not {devices} devices `{kind}` here", f"there are {count}; give `--devices {count}`"
    )


def batch_too_small(batch: int, processes: int) -> RunError:
    message = f"a batch of {batch} cannot be shared by {processes} processes"
    return RunError(message, "raise `train.batch`, or use fewer devices")


def no_halting_probabilities(supervise: str, block: str) -> RunError:
    message = f"`supervise = {supervise}` weighs steps, but `{block}` has no probabilities of halting"
    return RunError(message, "set `remaining` in the tallies of its class, or supervise the last step")


def positions_halt_separately() -> RunError:
    message = "`supervise = every` weighs the loss of an answer, but each position halts separately"
    remedy = (
        "halt by a block that returns one probability for the sample, such as `global_halt`, or use `last` or `mean`"
    )
    return RunError(message, remedy)


def no_sign_sgd(optimizer: str) -> RunError:
    message = f"`{optimizer}` moves all weights of a model, and cannot leave some to `sign_sgd`"
    return RunError(message, "use another optimizer, such as `adamw`, or delete `sign_sgd`")


def not_carried_by_processes() -> RunError:
    message = "`supervise = carried` keeps the states of a whole batch, and several devices would share it"
    return RunError(message, "use one device")


def no_stablemax() -> RunError:
    message = "`loss = stablemax` is a loss of classes, and the answers of this task are sets or numbers"
    return RunError(message, "delete the setting `loss`")


def unknown_device(device: str) -> RunError:
    return RunError(f"`{device}` is not a device", "write auto, cpu, cuda, cuda:1 or mps")


def unknown_precision(precision: str, precisions: Iterable[str]) -> RunError:
    return RunError(f"there is no precision `{precision}`", f"choose one of {', '.join(precisions)}")


def no_such_precision_here(precision: str, device: str) -> RunError:
    message = f"the device `{device}` does not compute in precision {precision}"
    return RunError(message, "use `--precision 32` or `bf16`")


def out_of_memory(device: str, batch: int) -> RunMachineError:
    message = f"`{device}` has not enough memory for a step with a batch of {batch}"
    lower = "lower `train.batch`, or the sizes of the model" if batch > 1 else "lower the sizes or lengths of the model"
    return RunMachineError(message, lower)


def model_too_large(device: str, needed: int, available: int) -> RunMachineError:
    contents = "the model, its gradients and the state of the optimizer"
    message = f"{contents} need {needed / 1e9:,.1f} GB, and `{device}` has {available / 1e9:,.1f} GB of free memory"
    return RunMachineError(message, "use smaller sizes, or a larger machine; nothing was written")


def no_weights() -> RunError:
    return RunError("the model has no weights to train", "use a block with weights, such as `linear`")


def no_muon(version: str) -> RunError:
    return RunError(f"torch {version} has no Muon", "install torch 2.9 or later, or use `adamw`")


def not_finite(quantity: str, step: int, last_checkpoint: int | None, loss: str = "task") -> RunError:
    if last_checkpoint is None:
        checkpoint = "there is no checkpoint yet"
    else:
        checkpoint = f"the checkpoint of step {last_checkpoint} is kept"
    message = f"the {quantity} became NaN or infinite at step {step}"
    own_loss = "" if "." not in loss else f"check the results of `{loss}`, "
    return RunError(message, f"{own_loss}lower `train.lr` or clip gradients; {checkpoint}")


def no_function(setting: str, name: str) -> RunError:
    return RunError(f"`{setting} = {name}` names no file", f"write the file before the function, as in `mine.{name}`")


def metric_twice(metric: str, task: str) -> RunError:
    return RunError(f"`{metric}` is a metric of {task} already", "rename the function")


def same_metrics(metric: str) -> RunError:
    return RunError(f"`metrics` has two functions `{metric}`", "leave out or rename one")


def no_graphs(reason: str) -> RunError:
    return RunError(f"this run cannot use CUDA graphs: {reason}", "omit `--graphs`")


def not_captured(reason: str) -> RunError:
    message = f"a step of this run cannot be captured as a CUDA graph: {reason}"
    return RunError(message, "omit `--graphs`: the run resumes from its last checkpoint")


def not_compiled(reason: str) -> RunError:
    return RunError(f"torch's compiler failed: {reason}", "omit `--compile`; on the CPU it needs a C++ compiler")
