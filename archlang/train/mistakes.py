"""The wording of errors during training."""

from archlang.train.record.mistakes import RunError, RunMachineError

# Devices

no_device = RunMachineError.wording(
    "there is no device `{device}` here", "use the device `cpu`, as by `--device cpu`, or a torch for your accelerator"
)
too_few_devices = RunMachineError.wording(
    "there are not {devices} devices `{kind}` here", "there are {count}; give `--devices {count}`"
)
unknown_device = RunError.wording("`{device}` is not a device", "write auto, cpu, cuda, cuda:1 or mps")
unknown_precision = RunError.wording("there is no precision `{precision}`", "choose one of {precisions}")
no_such_precision_here = RunError.wording(
    "the device `{device}` does not compute in precision {precision}", "use `--precision 32` or `bf16`"
)
model_too_large = RunMachineError.wording(
    "training needs {needed} of `{device}`, {memory}, which has {available:,.1f} GB of free memory",
    "use more devices with `--shard`, `--remat auto`, a lower `train.micro`, or smaller sizes; nothing was written",
)
lost_process = RunMachineError.wording(
    "the process of rank {rank} on {host} lost the others: {reason}",
    "look for the first error of another process, then start the command again: it resumes from the last checkpoint",
)
batch_too_small = RunError.wording(
    "a batch of {batch} cannot be shared by {processes} processes", "raise `train.batch`, or use fewer devices"
)
no_shard = RunError.wording("this run cannot divide its weights: {reason}", "{remedy}")
no_steps_to_repeat = RunError.wording(
    "`--remat` has no effect: `{model}` has no `stack` or `repeat` whose steps could be computed again",
    "omit `--remat`; to save memory, lower `train.micro`",
)
out_of_memory = RunMachineError.wording(
    "`{device}` has not enough memory for a step with a batch of {batch}",
    "pass `--remat auto`, which keeps less until the backward pass, or lower `train.batch`, or the sizes or lengths of "
    "the model",
)

# Losses

no_halting_probabilities = RunError.wording(
    "`supervise = every` weighs steps, but `{block}` has no probabilities of halting",
    "set `remaining` in the halting states of its class, or supervise the last step",
)
positions_halt_separately = RunError.wording(
    "`supervise = every` weighs the loss of an answer, but each position halts separately",
    "halt by a block that returns one probability for the sample, such as `global_halt`, or use `last` or `mean`",
)
not_deep_on_devices = RunError.wording(
    "`supervise = deep` keeps the states of a whole batch, and several devices would share it", "use one device"
)
no_epochs = RunError.wording(
    "nobody knows how many samples a stream has, so that `epochs` is no number of steps", "write `steps` in its place"
)
not_deep_on_streams = RunError.wording(
    "`supervise = deep` keeps samples from step to step, and those of a stream are read once", "omit `stream`"
)
not_selected_on_streams = RunError.wording(
    "weights cannot be selected on `train`, which is a stream and never measured", "select by a metric of `valid`"
)
no_stablemax = RunError.wording(
    "`loss = stablemax` is a loss of classes, and the answers of this task are sets or numbers",
    "delete the setting `loss`",
)


def not_finite(quantity: str, step: int, last_checkpoint: int | None, loss: str = "task") -> RunError:
    if last_checkpoint is None:
        checkpoint = "there is no checkpoint yet"
    else:
        checkpoint = f"the checkpoint of step {last_checkpoint} is kept"
    message = f"the {quantity} became NaN or infinite at step {step}"
    own_loss = "" if "." not in loss else f"check the results of `{loss}`, "
    return RunError(message, f"{own_loss}lower `train.lr` or clip gradients; {checkpoint}")


# Optimizers and functions of the user's own

no_weights = RunError.wording("the model has no weights to train", "use a block with weights, such as `linear`")
no_muon = RunError.wording("torch {version} has no Muon", "install torch 2.9 or later, or use `adamw`")
no_sign_sgd = RunError.wording(
    "`{optimizer}` moves all weights of a model, and cannot leave some to `{setting}`",
    "use another optimizer, such as `adamw`, or delete `{setting}`",
)
no_function = RunError.wording(
    "`{setting} = {name}` names no file", "write the file before the function, as in `mine.{name}`"
)
metric_twice = RunError.wording("`{metric}` is a metric of {task} already", "rename the function")
same_metrics = RunError.wording("`metrics` has two functions `{metric}`", "leave out or rename one")
