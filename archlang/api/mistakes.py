"""The wording of errors about saved models and the hub."""

from archlang.record.mistakes import RunError, Wording


class SavedModelError(RunError):
    """A saved model cannot be written, read or exchanged with a hub."""


not_a_model = Wording(
    "a {kind} is not a model of archlang",
    "give a module of `archlang.load`, or a run of `archlang.load_run`",
    SavedModelError,
)
exists = Wording("{folder} exists and holds other files", "choose a new folder; nothing was changed", SavedModelError)
not_written = Wording(
    "{path} cannot be written: {reason}", "free space or choose another folder; nothing was changed", SavedModelError
)
not_saved = Wording(
    "{folder} is neither a saved model nor a run folder",
    "name a folder that `archlang.save` or `archlang train` has written",
    SavedModelError,
)
statics_of_folder = Wording(
    "{folder} holds a trained model, whose settings are fixed: {names}",
    "leave them out, or load its .arch file",
    SavedModelError,
)
samples_need_a_run = Wording(
    "a module does not know the task of these samples", "pass the run of `archlang.load_run`", SavedModelError
)
hub_fails = Wording(
    "the hub does not exchange `{name}`: {reason}", "see `hf auth login`, and the name", SavedModelError
)
