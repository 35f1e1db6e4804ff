"""A run as a language model of lm-eval, EleutherAI's harness of evaluations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from lm_eval.api.model import LM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from archlang.backend.decode.sampling import Sampling
from archlang.train.runs.evaluation import OpenedRun
from archlang.train.runs.prediction import Likelihood, language_field, likelihoods, predict_inputs

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance

# The tokens that are written for a request that names no number.
_LENGTH = 256


class HarnessModel(LM):  # type: ignore[misc, unused-ignore]  # Any, where lm-eval is not installed
    """Answers the three kinds of requests of the harness. A prompt or a document that is longer than `length` tokens is
    read in part: the end of a prompt, and windows of a document, each token of which is predicted once."""

    def __init__(self, run: OpenedRun, length: int | None, batch: int) -> None:
        super().__init__()
        self._run, self._batch = run, batch
        self._field = language_field(run.input_format)
        own = run.record.settings.get("task.length")
        self._length = length or (own if isinstance(own, int) else None)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        pairs: list[tuple[list[int], list[int]]] = []
        for prompt, continuation in (request.args for request in requests):
            tokens, prompt_length = self._tokens(prompt + continuation), len(self._tokens(prompt))
            first = max(0, len(tokens) - 1 - self._length) if self._length else 0
            # At least the token before the continuation is read.
            first = min(first, prompt_length - 1)
            pairs.append((tokens[first:prompt_length], tokens[prompt_length:]))
        return [(each.logarithm, each.is_likeliest) for each in self._likelihoods(pairs)]

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        windows: list[tuple[list[int], list[int]]] = []
        counts: list[int] = []
        for (text,) in (request.args for request in requests):
            first, *tokens = self._tokens(text)
            most = self._length or len(tokens)
            own = list(map(make_disjoint_window, get_rolling_token_windows(tokens, first, most, 1)))
            counts.append(len(own))
            windows += own
        logarithms = [each.logarithm for each in self._likelihoods(windows)]
        ends = np.cumsum(counts)
        return [sum(logarithms[end - count : end]) for count, end in zip(counts, ends, strict=True)]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        texts: list[str] = []
        for _, group in groupby(requests, lambda request: json.dumps(request.args[1], sort_keys=True, default=str)):
            alike = list(group)
            options: dict[str, Any] = alike[0].args[1]
            until = options.get("until") or []
            stops = [until] if isinstance(until, str) else list(until)
            count = int(options.get("max_gen_toks") or _LENGTH)
            prompts = [self._last(self._tokens(request.args[0]), count) for request in alike]
            predictions = predict_inputs(
                self._run.module, self._run.input_format, prompts, self._run.device, batch=self._batch, length=count,
                sampling=_sampling(options),
            )  # fmt: skip
            texts += [min((each.answer.partition(stop)[0] for stop in stops if stop), key=len, default=each.answer)
                      for each in predictions]  # fmt: skip
        return texts

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = self._field.encode(text).tolist()
        return tokens

    def _last(self, tokens: list[int], count: int) -> list[int]:
        return tokens[-max(1, self._length - count) :] if self._length else tokens

    def _likelihoods(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[Likelihood]:
        run = self._run
        return likelihoods(run.module, run.input_format, pairs, run.device, self._batch)


def _sampling(options: dict[str, Any]) -> Sampling | None:  # Any: as above
    temperature = float(options.get("temperature") or 0.0)
    if not options.get("do_sample") or not temperature:
        return None
    return Sampling(temperature, int(options.get("top_k") or 0), float(options.get("top_p") or 1.0))
