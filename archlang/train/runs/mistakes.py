"""The wording of errors about seeds, splits, metrics, engines, and inputs of trained models."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from archlang.errors.names import plural
from archlang.train.record.mistakes import FolderInUse, RunError, RunMachineError

# Checkpoints and stored models

without_task = RunError.wording(
    "{folder} was saved from a module, which knows neither its task nor the words of its tokens",
    "save the run (`archlang.save(archlang.load_run(…), …)`), or call the module",
)
stored_model_fails = RunError.wording(
    "the model of {path} cannot be computed: {reason}",
    "restore the file from a copy; if nothing has changed it, please report a bug of archlang",
)
no_weights_in = RunError.wording(
    "{folder} is neither a run nor a saved model", "name such a folder; `archlang import` makes one of Hugging Face's"
)
no_weight_fits = RunError.wording(
    "no weight of {folder} has a name and a shape of the model",
    "its weights are {weights}, and those of the model {own}: `let` gives a weight its name",
)
other_weights = RunError.wording(
    "{folder} holds other weights than those with which the run began",
    "name a new folder with `--out`, or restore the weights",
)
nothing_to_freeze = RunError.wording(
    "`frozen` names `{name}`, where the model has no weights", "delete it from `frozen`"
)
all_frozen = RunError.wording("`frozen = [{names}]` leaves no weight to train", "leave a part of the model out of it")
unknown_checkpoint = RunError.wording("`{checkpoint}` is not a checkpoint", "write best, last or a step")
no_checkpoint = RunError.wording(
    "{folder} has no checkpoint yet", "train it first: `archlang train FILE --out {shell_word}`"
)
no_such_checkpoint = RunError.wording(
    "{folder} has no checkpoint of step {step}", "the steps with a checkpoint are {possible}"
)

# Seeds, splits and metrics

seed_out_of_bounds = RunError.wording("the seed is {seed}", "choose a seed between 0 and {highest}")
no_such_split = RunError.wording("the task `{task}` has no split `{split}`", "its splits are {possible}")
statics_of_own_task = RunError.wording(
    "the task `{task}` is not one of archlang's, so its statics cannot change",
    "evaluate without `--set`, or on other items by `archlang predict`",
)


def empty_split(split: str, task: str, has_shares: bool) -> RunError:
    shares = "give more data, or change the share of the split or name a file of its own, where the task can"
    remedy = shares if has_shares else "set a larger size of this split"
    return RunError(f"the split `{split}` of `{task}` has no items", remedy)


def changed_sizes(task: str, before: Mapping[str, int], after: Mapping[str, int]) -> RunError:
    name = next(name for name in {**before, **after} if before.get(name) != after.get(name))
    message = (
        f"with these statics, `{task}` has {name} = {after.get(name)}, and the model was made for {before.get(name)}"
    )
    return RunError(message, "change statics that leave the sizes as they are, such as the lengths of `task.test`")


def no_selecting_split(task: str, split: str, metric: str, possible: Sequence[str], has_shares: bool) -> RunError:
    message = f"the task `{task}` has no split `{split}`, on which the weights are selected"
    own = f"set `{split}_share = 0.1`" if has_shares else f"give it a split `{split}`"
    choices = f"{own}, or set `select = {possible[-1]}.{metric}`"
    return RunError(message, f"its splits are {', '.join(possible)}: {choices}")


def no_such_metric(task: str, metric: str, possible: Iterable[str]) -> RunError:
    if metric in ("exact_match", "oracle_match"):
        message = f"`{metric}` is measured only at the end of a run, because generating answers is slow"
        return RunError(message, f"select by one of {', '.join(possible)}")
    return RunError(f"the task `{task}` has no metric `{metric}`", f"its metrics are {', '.join(possible)}")


# Engines and searches

engine_option = RunError.wording(
    "the engine `{name}` does not take the option `{option}`", "see the options of engines in `archlang table --help`"
)
engine_value = RunError.wording(
    "the option `{option}` of the engine `{name}` cannot be `{text}`",
    "give {expected}: `--engine-option {option}={example}`",
)
refused_by_engine = RunError.wording(
    "the engine `{name}` does not take `{option}={value}`: {reason}", "give another value with `--engine-option`"
)
no_room = RunMachineError.wording(
    "a run needs {needs}, which Ray on this machine does not have",
    "lower `--devices` or an option of the engine, or name a cluster: `--engine-option address=auto`",
)
no_cluster = RunError.wording(
    "SLURM is not available: {reason}", "try `--engine-option cluster=local`, or `--engine local`"
)
no_study = RunError.wording(
    "{folder} has no search of this recipe", "name the folder of one with `--out`, or begin one with `--trials N`"
)
no_point = RunError.wording(
    "{count} points in a row are beyond the bounds of the recipe, or have values that contradict each other",
    "lower the ranges after `search`, or raise the bounds after `where`",
)
study_fails = RunMachineError.wording(
    "{path} cannot be read or written: {reason}",
    "free space, or check the disk; then rerun the command: its trials resume",
)


def other_study(folder: Path, recipe: str, own: str) -> RunError:
    """`recipe` is that of the trials in the folder, and `own` the one to search for, each as text."""
    lines = [line for line in difflib.ndiff(recipe.splitlines(), own.splitlines()) if line.startswith(("- ", "+ "))]
    message = f"the trials in {folder} have other settings:\n" + "\n".join(lines)
    return RunError(message, "name another folder with `--out`, or search with the same settings")


searched = FolderInUse.wording(
    "another process searches in {folder}", "wait for it, name another folder with `--out`, or look with `--trials 0`"
)


# Inputs of a trained model

no_tokens = RunError.wording("the input has no tokens", "type tokens separated by spaces")
not_tokens = RunError.wording("`{field}` is neither a text nor token ids", "give a text, or a list of integers")
not_a_token_id = RunError.wording("{token} is not a token of `{field}`", "its tokens are 0 to {last}")
length_missing = RunError.wording(
    "the answers of the model have no end",
    "give the number of tokens to write, `length=N` (`--length N` in the shell), or a value for each of {names}",
)
less_than_one = RunError.wording("`{name}` is {size}", "give at least 1")
continues_nothing = RunError.wording(
    "the model predicts no next tokens of a text",
    "take a run of a language model, or `predict` with samples of the task",
)
draws_nothing = RunError.wording(
    "nothing can be drawn: this model does not write its answers token by token",
    "omit the settings of sampling{or_else}",
)
no_such_field = RunError.wording("the model has no field `{field}`", "its fields are {possible}")
field_missing = RunError.wording("the field `{field}` is missing", "the model reads {names}")
some_with_answers = RunError.wording(
    "some inputs have the field `{field}`, and others do not", "give it for all inputs, or for none"
)
spans_cannot_be_typed = RunError.wording(
    "the inputs of this task cannot be typed: a typed text does not mark where the answer may be",
    'choose an item of a split: `--split test --index 0`, `run.predict(run.samples("test"))`',
)
cannot_be_read = RunError.wording(
    "the model cannot read it: {reason}", "shorten the input, or see the sizes of the model's fields"
)
not_an_input_list = RunError.wording("the inputs are a {kind}", "give a list of inputs, or samples of the task")


def field_of_numbers(field: str, size: int) -> RunError:
    message = f"`{field}` is a field of numbers, with {plural(size, 'number')} for each position"
    return RunError(message, f"write a row for each position, as [{[0.5] * size}, …]")


def wrong_number_of_fields(expected: int, count: int, names: str) -> RunError:
    message = f"the model reads {plural(expected, 'field')}, and {count} were given"
    return RunError(message, f"give one value for each of {names}")
