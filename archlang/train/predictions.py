"""From the logits of a batch to predictions."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from archlang.tasks.kit.split import Form
from archlang.train.data import Batch


def forward(module: Callable[..., Tensor], batch: Batch) -> Float[Tensor, "b *_"]:
    """Returns the logits of a batch; those of padding that an answer cannot point at are the lowest number."""
    lengths = next(iter(batch.lengths.values())) if len(batch.lengths) == 1 else batch.lengths
    return answerable(module(*batch.fields, lengths=lengths), batch)


def answerable(logits: Float[Tensor, "b *_"], batch: Batch) -> Float[Tensor, "b *_"]:
    """Returns the result of a model as logits of the answers of a batch, as `forward` does."""
    choices = batch.choices
    if choices is None:
        return logits
    # Finite, because an item without positions would become NaN.
    logits = logits.squeeze(-1).float()
    return logits.masked_fill(~choices[:, None], torch.finfo(logits.dtype).min)


def span_logits(logits: Float[Tensor, "b n 2"], batch: Batch) -> Float[Tensor, "b n 2"]:
    """Masks the logits of begin and end at the positions that a span cannot have."""
    assert batch.scored is not None, "a split of spans marks the positions that a span can have"
    return logits.float().masked_fill(~batch.scored[..., None], -torch.inf)


def predict(logits: Float[Tensor, "b *_"], batch: Batch) -> Shaped[Tensor, "b *_"]:
    """Returns the most likely class, position or span, the members of a set with a probability of at least 0.5, or the
    numbers themselves."""
    match batch.form:
        case Form.NUMBERS:
            return logits.float()
        case Form.SETS:
            return logits >= 0
        case Form.SPANS:
            return best_span(span_logits(logits, batch))
    return logits.argmax(-1)


def exact_matches(logits: Float[Tensor, "b *_"], batch: Batch) -> Bool[Tensor, " b"]:
    """Returns whether the predictions of a model's `logits` are the targets in all scored positions of a sample."""
    matches = predict(answerable(logits, batch), batch) == batch.targets
    if batch.form is Form.SPANS or batch.scored is None:
        return matches.flatten(1).all(1) if matches.dim() > 1 else matches
    matches = matches.all(-1) if batch.form in (Form.SETS, Form.NUMBERS) else matches
    return (matches | ~batch.scored).all(1)


def best_span(logits: Float[Tensor, "b n 2"]) -> Int[Tensor, "b 2"]:
    """Returns the pair of positions with the largest sum of logits whose end is not before its begin."""
    best_begin_logit, best_begin = logits[..., 0].cummax(1)
    end = (best_begin_logit + logits[..., 1]).argmax(1)
    return torch.stack([best_begin.gather(1, end[:, None])[:, 0], end], 1)
