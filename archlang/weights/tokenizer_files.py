"""The tokenizer of a run for `transformers`: it cuts texts as the run does, and begins each with the run's mark."""

import json
from itertools import count
from typing import Any

from archlang.tasks.kit.lexicon import UNUSED
from archlang.train.runs.inputs import FieldFormat, InputFormat

TOKENIZER, CONFIG = "tokenizer.json", "tokenizer_config.json"
OF_A_FILE = {
    "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
    "model_input_names": ["input_ids", "attention_mask"],
}  # fmt: skip
Json = dict[str, Any]  # Any: JSON

# The characters that stand for bytes in byte-level encodings.
_PRINTED = {*range(33, 127), *range(161, 173), *range(174, 256)}
_OTHERS = count(256)
_BYTE_LEVEL = tuple(chr(byte if byte in _PRINTED else next(_OTHERS)) for byte in range(256))
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
# `str.split` also splits at the four separators of ASCII.
_SPACE = {"type": "Split", "pattern": {"Regex": r"[\s\x1c-\x1f]+"}, "behavior": "Removed", "invert": False}
# Of each cut of texts: the model, what cuts a text before, and what joins tokens; None joins them with spaces.
_CUTS: dict[str, tuple[Json, Json | None, Json | None]] = {
    "bytes": ({"type": "BPE", "merges": []}, _BYTES, _BYTES),
    "characters": ({"type": "BPE", "merges": []}, None, {"type": "Fuse"}),
    "words": ({"type": "WordLevel"}, _SPACE, None),
}


def tokenizer_files(run: InputFormat) -> dict[str, str]:
    """Returns the files of a run's tokenizer by their names; none if the run has no texts."""
    field = run.answer
    texts = _distinct(field)
    if field.tokenizer:
        tokenizer: Json = json.loads(field.tokenizer)
    elif field.cut in _CUTS:
        tokenizer = _cutting(field, texts)
    else:
        return {}
    _add_marks(tokenizer, texts)
    marks = {"bos_token": field.first, "eos_token": run.end}
    config = OF_A_FILE | {mark: texts[int(token)] for mark, token in marks.items() if token is not None}
    if field.first is not None:
        tokenizer["post_processor"] = _begun_with(texts[int(field.first)], int(field.first))
    return {
        name: json.dumps(value, ensure_ascii=False) + "\n" for name, value in ((TOKENIZER, tokenizer), (CONFIG, config))
    }


def _distinct(field: FieldFormat) -> list[str]:
    """Returns the text of each token. A word that is spelled like one before, such as `<unk>`, gets its number."""
    tokens: dict[str, int] = {}
    for token, word in enumerate(field.words):
        text = _BYTE_LEVEL[token] if field.cut == "bytes" and token < (field.known or 0) else word
        tokens[f"{text}{token}" if text in tokens else text] = token
    return list(tokens)


def _cutting(field: FieldFormat, texts: list[str]) -> Json:
    model, before, joined = _CUTS[field.cut]
    last = len(texts) - 1 if field.unknown is None else field.unknown
    vocab = {text: token for token, text in enumerate(texts[: last + 1])}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": before, "post_processor": None, "decoder": joined,
        "model": {**model, "unk_token": texts[last], "vocab": vocab},
    }  # fmt: skip


def _add_marks(tokenizer: Json, texts: list[str]) -> None:
    """Adds the tokens after those of a tokenizer, unless they are unused."""
    vocab, added = tokenizer["model"]["vocab"], tokenizer["added_tokens"]
    own = vocab.values() if isinstance(vocab, dict) else range(len(vocab))
    size = 1 + max(*own, *(each["id"] for each in added))
    if texts[-1].startswith(UNUSED):
        return
    if isinstance(vocab, dict):  # else the package numbers added tokens in their order
        vocab |= {text: token for token, text in enumerate(texts) if token >= size}
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added += [{"id": token, "content": texts[token], **plain, "special": True} for token in range(size, len(texts))]


def _begun_with(text: str, token: int) -> Json:
    mark = {"SpecialToken": {"id": text, "type_id": 0}}
    parts = [[mark, {"Sequence": {"id": name, "type_id": 0}}] for name in "AB"]
    return {
        "type": "TemplateProcessing", "single": parts[0], "pair": parts[0] + parts[1],
        "special_tokens": {text: {"id": text, "ids": [token], "tokens": [text]}},
    }  # fmt: skip
