"""The wording of errors about weights from elsewhere, and to elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from archlang.train.record.mistakes import RunError


class WeightsError(RunError):
    """Weights cannot be imported or exported."""


_BY_HAND = "write the model as a page (docs/architectures.md), and load its weights in Python by name"
not_a_model = WeightsError.wording(
    "{folder} is not a model of Hugging Face: it has no {missing}",
    "name a folder with config.json and model.safetensors, such as one that `hf download` has written",
)
pickled = WeightsError.wording(
    "{path} is a pickle, which can run code when it is read",
    "convert it where you trust it: `model.save_pretrained(FOLDER)` in `transformers` writes safetensors",
)
link_outside = WeightsError.wording("{path} is a link that leads out of its folder", "copy the file into the folder")
damaged = WeightsError.wording("{path} is damaged: {reason}", "download or copy it again")
not_read = WeightsError.wording("{path} cannot be read: {reason}", "check its owner, its permissions and the disk")
unknown_family = WeightsError.wording(
    "there is no page for models of the type `{model_type}`", "the types are {possible}; or " + _BY_HAND
)
needs_code = WeightsError.wording("the model in {folder} brings Python of its own, `auto_map`", _BY_HAND)
not_the_family = WeightsError.wording(
    "{folder} has the weights of a `{architecture}`, and the page is that of a `{expected}`",
    "save the whole model by the other class of `transformers`",
)
folder_exists = WeightsError.wording("{folder} exists", "choose another folder, or add `--force` to replace it")
not_written = WeightsError.wording("{path} cannot be written: {reason}", "free space or choose another folder")
not_a_language_model = WeightsError.wording(
    "`{model}` does not predict the next token of the tokens that it reads",
    "export it as a file, with `-o model.py`, which needs only torch",
)


def names_differ(folder: Path, page: str, name: str, ours: list[int] | None, theirs: list[int] | None) -> WeightsError:
    """The shapes of a weight on the page and in the folder; None where it is missing."""
    fault = "left over" if ours is None else "missing" if theirs is None else f"{theirs}, not {ours}"
    return WeightsError(f"the weights in {folder} are not those of the page `{page}`: `{name}` is {fault}", _BY_HAND)


def not_on_page(model_type: str, key: str, value: object, page: str, has: Sequence[object] = ()) -> WeightsError:
    """What a config says and the page does not have; `has` is what it has instead."""
    text = json.dumps(value, default=str)
    says = f"`{key} = {text if len(text) <= 60 else text[:60] + '…'}`"
    only = "only " + ", ".join(json.dumps(each) for each in has) if has else "nothing of the kind"
    message = f"the config of this `{model_type}` says {says}, and the page `{page}` has {only}"
    return WeightsError(message, _BY_HAND)
