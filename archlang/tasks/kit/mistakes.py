"""The errors of tasks: their statics, their files, and users' own classes."""

from collections.abc import Iterable, Mapping, Sequence

from archlang.errors import ErrorWithRemedy, MachineError
from archlang.errors.names import suggest


class TaskError(ErrorWithRemedy):
    """A task that cannot be generated."""


class CacheWarning(UserWarning):
    """The cache of generated splits failed; the returned split is correct."""


unknown_split = TaskError.wording("{task} has no split `{split}`", "its splits are {possible}")
negative_seed = TaskError.wording("the seed is {seed}", "choose a seed of 0 or more")
ranges_overlap = TaskError.wording(
    "{first} = {first_range} and {second} = {second_range} of {task} overlap, so splits could share items",
    "choose disjoint ranges",
)
lengths_overlap = TaskError.wording(
    "the page of {task} changes `length`: train has items of length {train}, and test of {test}",
    "keep the lengths of both splits apart",
)
items_shared = TaskError.wording(
    "{shared:,} of the {count:,} items of {split} of {task} are in train too, although their lengths differ",
    "let the page make longer items of a larger `length`, or write `with distinct_items`",
)
range_out_of_bounds = TaskError.wording(
    "{static} = {interval} is out of bounds for {task}", "choose a range inside {low}..{high}"
)
no_even_number = TaskError.wording("{static} = {interval} has no even number", "choose a range with an even number")
too_few_for_singles = TaskError.wording(
    "train_size = {size} is less than the {required} single applications that {task} always trains on",
    "write train_size = {required} or more, or begin `train` at 2",
)
items_too_rare = TaskError.wording(
    "{static} = {size} is more than {task} can draw: it stopped at {drawn} distinct items",
    "choose a smaller {static}, or {remedy}",
)
odd_length = TaskError.wording(
    "{static} has the odd length {length}, and a flip-flop sequence consists of pairs", "choose an even length"
)
not_whole_percent = TaskError.wording(
    "{static} has {value}, and results are reported by whole per cent", "round it to two decimals"
)
repeated_value = TaskError.wording("{static} names {value} twice", "name each value once")
not_of_kind = TaskError.wording("{static} has {value}, which is not a {kind}", "write a {kind}")
lists_differ = TaskError.wording(
    "{first} of {task} has {first_count} values, and {second} has {second_count}",
    "write the same number of values in both",
)
page_fails = TaskError.wording("`{text}` in line {line} of the page of `{task}`: {reason}", "{remedy}")
outside_vocabulary = TaskError.wording(
    "`{name}` of the page of `{task}` has the number {number}, and there are {size} of them", "use numbers from 0"
)
damaged_page = TaskError.wording(
    "the page of the task `{task}` cannot be read", "correct the page; that of a run is in its `run.json`"
)
empty_word = TaskError.wording(
    "`{name}` of the page of `{task}` has no symbol in some items", "append a symbol, such as a mark of the end"
)
answer_too_long = TaskError.wording(
    "the answer of `{task}` has {answer} symbols, and `x` has {length}",
    "an answer stands at the end of `x`: append a symbol for each of its symbols, as `fill` does",
)
no_paths = TaskError.wording("{static} of {task} has no path, or an empty one", 'write `["a.txt", "b.txt"]`')
no_weight = TaskError.wording(
    "{static} of {task} has zeros only, so that nothing is drawn", "write a number above 0 for a corpus"
)
stream_of_mixture = TaskError.wording(
    "{task} reads no list of paths as a stream", "remove `stream`, or name files by a pattern, such as `data/*.jsonl`"
)
vocabulary_too_small = TaskError.wording(
    "{static} = {size} is too small for {task}, whose files have {required} different words",
    "write {static} = {required} or more",
)
vocabulary_not_published = TaskError.wording(
    "the files of {task} have {size} different words, and the published files have {published}",
    "fetch the files again; the task `file` reads other files of the same format",
)
damaged_file = TaskError.wording(
    "{member} of {dataset} is malformed ({reason})",
    "remove the file, and fetch it again with `archlang data get {dataset}`",
)
uneven_files = TaskError.wording(
    "{first} of {dataset} has {first_count} lines and {second} has {second_count}; expected one line in {second} for "
    "each line in {first}",
    "remove both files, and fetch them again with `archlang data get {dataset}`",
)
no_class = TaskError.wording(
    "the task `{task}` names `{python}`, which is not the class of a task", "correct `python` of its signature"
)
incomplete = TaskError.wording(
    "the class `{python}` of the task `{task}` lacks {missing}",
    "see `archlang.tasks.kit.task.Task` for the attributes of a task",
)
wrong_part = TaskError.wording(
    "the class `{python}` of the task `{task}` cannot be used: {fault}",
    "see `archlang.tasks.kit.task.Task` for the attributes of a task",
)
wrong_split = TaskError.wording(
    "`{generator}` of the task `{task}` returns no {split} split: {fault}",
    "correct the class; `archlang.tasks.kit.split.Split` says what a split holds",
)
vocabulary_differs = TaskError.wording(
    "the signature of `{task}` gives vocab = {stated}, and its class has {size} tokens", "write `gives vocab = {size}`"
)
no_file = TaskError.wording(
    "{path} is missing, or is not a regular file",
    "put the file of `{task}` there; a path is relative to the folder of the program",
)
no_tokenizer = TaskError.wording(
    "{path} is no tokenizer of {task}: {reason}",
    "name a `tokenizer.json`; for `squad` that of a BERT, such as google-bert/bert-base-uncased",
)
no_match = TaskError.wording(
    "no file matches {path}", "put the files of `{task}` there; a pattern is relative to the folder of the program"
)
empty_folder = TaskError.wording("the folder {path} has no files", "put the files there, or name another folder")
link_outside = TaskError.wording(
    "{path} is a link that leads out of {folder}", "name the folder of the file that it leads to"
)
different_forms = TaskError.wording(
    "the files of {folder} are {forms}", "name those of one form by a pattern, such as `{folder}/*{suffix}`"
)
several_datasets = TaskError.wording(
    "{path} has several data sets of the package datasets",
    'name a folder in it for each split, such as path = "{path}/train", valid = "{path}/validation"',
)
unknown_form = TaskError.wording(
    "{path} is neither CSV, TSV, JSONL, Parquet nor Arrow, from which `{task}` reads its columns",
    "save it as .csv, .tsv or .jsonl, optionally followed by .gz, .xz or .zst, or as .parquet, .arrow or .feather",
)
bad_images = TaskError.wording("{path}: {reason}", "{remedy}")
no_rows = TaskError.wording(
    "{path} has no row for the split `{split}`", "choose a smaller train_size, or 0 for {split}_size"
)
bad_line = TaskError.wording(
    "line {number} of {path}: {reason}", "correct the line; `archlang tasks` describes the format of each task"
)
splits_twice = TaskError.wording(
    "{path} has a column `split`, and the recipe names further files or shares",
    "remove them from the recipe, or the column from the file",
)
no_training_lines = TaskError.wording(
    "no line of {path} is in the split `train`", "write `train` in the column `split` of the training lines"
)
too_many_labels = TaskError.wording(
    "labels = {size} is too small for {task}, whose training split has {required} different labels",
    "write labels = {required} or more",
)

no_commit = TaskError.wording(
    "{path} names no commit of a data set of the Hub, so that no run could resume",
    "write `hf://OWNER/NAME@COMMIT` or `hf://OWNER/NAME/SUBSET@COMMIT`; "
    "`git ls-remote https://huggingface.co/datasets/OWNER/NAME HEAD` prints a commit of 40 digits",
)
not_streamed = TaskError.wording(
    "`{task}` reads no files from {path}",
    "name it as the `path` of `text` with `stream = 4_000_000`, or save the data set and name its files",
)
no_documents = TaskError.wording(
    "there is no document for training in {path}",
    "name another column by `text = …` or other files; if there is a column `split`, write `train` in it",
)
no_column_in_stream = TaskError.wording(
    "{source} has no column `{column}`", "its columns are {columns}: name one by `text = …`"
)
not_texts = TaskError.wording(
    "`{column}` of {source} has values that are no texts", "name another column by `text = …`"
)
folder_in_the_way = TaskError.wording(
    "there is a folder {folder} here, which would be read in place of {source}", "run the command in another folder"
)
bad_stream = TaskError.wording(
    "{source} is no data set of texts: {reason}",
    "name one with files such as Parquet or JSONL, and its subset if need be",
)
stream_broken = MachineError.wording(
    "{source} cannot be reached: {reason}",
    "check the connection and the name, and run the command again: a run resumes from its last checkpoint",
)
part_of_stream = TaskError.wording(
    "`{split}` of `{task}` is a stream, of which `loader` reads no more than a part", "train by `archlang train`"
)


def unreadable_file(path: str, line: int) -> TaskError:
    place = f" after line {line}" if line else ""
    return TaskError(
        f"{path} cannot be read or decompressed{place}", "check its permissions, and whether it is complete"
    )


def no_column(task: str, path: str, number: int, column: str, names: Iterable[str]) -> TaskError:
    remedy = f"name the columns of the file in the recipe, as `archlang tasks {task}` describes"
    return TaskError(f"line {number} of {path}: there is no column `{column}`", suggest(column, names, remedy))


def outside(task: str, static: str, value: int | float, low: int | float, high: int | float | None) -> TaskError:
    bounds = f"of at least {low}" if high is None else f"between {low} and {high}"
    return TaskError(f"{static} = {value} is out of bounds for {task}", f"choose a number {bounds}")


def too_many_items(task: str, sizes: Mapping[str, tuple[int, int]], remedy: str) -> TaskError:
    """`sizes` are the statics that are too large, each with its value and the number of items that there are."""
    written = _joined([f"{static} = {size}" for static, (size, _) in sizes.items()])
    possible = _joined([f"{static} = {most}" for static, (_, most) in sizes.items()])
    (_, first), *others = sizes.values()
    message = f"{written} are more than the" if others else f"{written} is more than the {first}"
    return TaskError(f"{message} distinct items of {task}", f"write {possible} or less, or {remedy}")


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def damaged_line(dataset: str, member: str, number: int, text: str) -> TaskError:
    excerpt = text if len(text) <= 80 else f"{text[:77]}..."
    message = f"line {number} of {dataset}/{member} is malformed: {excerpt!r}"
    return TaskError(message, f"remove the file, and fetch it again with `archlang data get {dataset}`")


constructor_fails = TaskError.wording(
    "the class `{python}` of the task `{task}` fails: {error.__class__.__name__}: {error}",
    "correct the class, or the statics of its signature",
)
