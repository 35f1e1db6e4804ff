"""Models of `transformers` that are imported have their results."""

from pathlib import Path

import pytest
import torch

import archlang
from archlang.weights.importing import import_folder
from tests.closeness import close
from tests.weights.models import CAUSAL, written


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_has_the_same_logits_and_continues_alike(tmp_path: Path, name: str) -> None:
    theirs = written(tmp_path / "theirs", *CAUSAL[name])
    import_folder(tmp_path / "theirs", tmp_path / "ours")
    ours = archlang.load(tmp_path / "ours")
    tokens, lengths = torch.randint(50, (3, 20)), [20, 7, 1]
    with torch.no_grad():
        padded = ours(tokens, lengths=lengths)
        for row, length in enumerate(lengths):
            # Except for GPT-2, they compute norms and angles in 32 bits.
            kind = torch.float64 if name.startswith("gpt2") else torch.float32
            close(padded[row, :length].to(kind), theirs(tokens[row : row + 1, :length]).logits[0].to(kind))
        prompt = tokens[:, :5]
        continued = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=9, do_sample=False, eos_token_id=None
        )
    assert torch.equal(ours.decode(begin=prompt, limit=9).tokens, continued[:, 5:])
