"""The wording of errors about saved models and the hub."""

from archlang.train.record.mistakes import RunError


class SavedModelError(RunError):
    """A saved model cannot be written, read or exchanged with a hub."""


not_a_model = SavedModelError.wording(
    "a {kind} is not a model of archlang", "give a module of `archlang.load`, or a run of `archlang.load_run`"
)
exists = SavedModelError.wording("{folder} exists and holds other files", "choose a new folder; nothing was changed")
not_written = SavedModelError.wording(
    "{path} cannot be written: {reason}", "free space or choose another folder; nothing was changed"
)
not_saved = SavedModelError.wording(
    "{folder} is neither a saved model nor a run folder",
    "name a folder that `archlang.save` or `archlang train` has written",
)
statics_of_folder = SavedModelError.wording(
    "{folder} holds a trained model, whose settings are fixed: {names}", "leave them out, or load its .arch file"
)
samples_need_a_run = SavedModelError.wording(
    "a module does not know the task of these samples", "pass the run of `archlang.load_run`"
)
hub_fails = SavedModelError.wording("the hub does not exchange `{name}`: {reason}", "see `hf auth login`, and the name")
