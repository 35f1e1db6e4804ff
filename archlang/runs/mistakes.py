"""The wording of errors about seeds, splits, metrics and engines."""

import difflib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from archlang.diagnostics.names import listed, plural
from archlang.record.mistakes import RunError, RunMachineError


def no_checkpoint(folder: Path) -> RunError:
    command = f"archlang train FILE --out {shlex.quote(str(folder))}"
    return RunError(f"{folder} has no checkpoint yet", f"train it first: `{command}`")


def without_task(folder: Path) -> RunError:
    message = f"{folder} was saved from a module, which knows neither its task nor the words of its tokens"
    return RunError(message, "save the run (`archlang.save(archlang.load_run(…), …)`), or call the module")


def stored_model_fails(path: Path, reason: str) -> RunError:
    message = f"the model of {path} cannot be computed: {reason}"
    return RunError(message, "restore the file from a copy; if nothing has changed it, please report a bug of archlang")


def study_fails(path: Path, reason: str) -> RunMachineError:
    message = f"{path} cannot be read or written: {reason}"
    return RunMachineError(message, "free space, or check the disk; then rerun the command: its trials resume")


def other_study(folder: Path, recipe: str, own: str) -> RunError:
    """`recipe` is that of the trials in the folder, and `own` the one to search for, each as text."""
    lines = [line for line in difflib.ndiff(recipe.splitlines(), own.splitlines()) if line.startswith(("- ", "+ "))]
    message = f"the trials in {folder} have other settings:\n" + "\n".join(lines)
    return RunError(message, "name another folder with `--out`, or search with the same settings")


def seed_out_of_bounds(seed: int, highest: int) -> RunError:
    return RunError(f"the seed is {seed}", f"choose a seed between 0 and {highest}")


def no_such_split(task: str, split: str, possible: Iterable[str]) -> RunError:
    return RunError(f"the task `{task}` has no split `{split}`", f"its splits are {', '.join(possible)}")


def statics_of_own_task(task: str) -> RunError:
    message = f"the task `{task}` is not one of archlang's, so its statics cannot change"
    return RunError(message, "evaluate without `--set`, or on other items by `archlang predict`")


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


def empty_split(task: str, split: str) -> RunError:
    return RunError(f"the split `{split}` of `{task}` has no items", "set a larger size of this split")


def unknown_engine(name: str, possible: Iterable[str]) -> RunError:
    return RunError(f"there is no engine `{name}`", f"the engines are {listed(possible)}")


def engine_option(name: str, option: str) -> RunError:
    message = f"the engine `{name}` does not take the option `{option}`"
    return RunError(message, "see the options of engines in `archlang table --help`")


def no_cluster(reason: str) -> RunError:
    return RunError(f"SLURM is not available: {reason}", "try `--engine-option cluster=local`, or `--engine local`")


# Inputs of a trained model


def no_tokens() -> RunError:
    return RunError("the input has no tokens", "type tokens separated by spaces")


def not_tokens(field: str) -> RunError:
    return RunError(f"`{field}` is neither a text nor token ids", "give a text, or a list of integers")


def not_a_token_id(token: int, field: str, vocabulary: int) -> RunError:
    return RunError(f"{token} is not a token of `{field}`", f"its tokens are 0 to {vocabulary - 1}")


def field_of_numbers(field: str, size: int) -> RunError:
    message = f"`{field}` is a field of numbers, with {plural(size, 'number')} for each position"
    return RunError(message, f"write a row for each position, as [{[0.5] * size}, …]")


def wrong_number_of_fields(expected: int, count: int, names: str) -> RunError:
    message = f"the model reads {plural(expected, 'field')}, and {count} were given"
    return RunError(message, f"give one value for each of {names}")


def length_missing(names: str) -> RunError:
    remedy = (
        f"give the number of tokens to write, `length=N` (`--length N` in the shell), or a value for each of {names}"
    )
    return RunError("the answers of the model have no end", remedy)


def less_than_one(name: str, size: int) -> RunError:
    return RunError(f"`{name}` is {size}", "give at least 1")


def no_such_field(field: str, possible: Iterable[str]) -> RunError:
    return RunError(f"the model has no field `{field}`", f"its fields are {', '.join(possible)}")


def field_missing(field: str, names: Iterable[str]) -> RunError:
    return RunError(f"the field `{field}` is missing", f"the model reads {', '.join(names)}")


def some_with_answers(field: str) -> RunError:
    return RunError(f"some inputs have the field `{field}`, and others do not", "give it for all inputs, or for none")


def spans_cannot_be_typed() -> RunError:
    message = "the inputs of this task cannot be typed: a typed text does not mark where the answer may be"
    return RunError(message, 'choose an item of a split: `--split test --index 0`, `run.predict(run.samples("test"))`')


def cannot_be_read(reason: str) -> RunError:
    return RunError(f"the model cannot read it: {reason}", "shorten the input, or see the sizes of the model's fields")


def not_an_input_list(value: object) -> RunError:
    message = f"the inputs are a {type(value).__name__}"
    return RunError(message, "give a list of inputs, or samples of the task")


def no_such_checkpoint(folder: Path, step: int, possible: Iterable[int]) -> RunError:
    steps = ", ".join(map(str, possible)) or "none"
    return RunError(f"{folder} has no checkpoint of step {step}", f"the steps with a checkpoint are {steps}")


def unknown_checkpoint(checkpoint: object) -> RunError:
    return RunError(f"`{checkpoint}` is not a checkpoint", "write best, last or a step")
