"""Learning rates as functions of the step, without state.

The formulas are those of the papers' programs; `extern settings training` in `optimizers.arch` lists them."""

import math

from archlang.train.settings import Settings


def learning_rate(settings: Settings, step: int, total: int) -> float:
    """The learning rate of step `step` (from 0) of `total`."""
    peak, warmup = settings.lr, settings.warmup
    rising = min(1.0, (step + 1) / warmup) if warmup else 1.0
    match settings.schedule:
        case "warmup":
            return peak * rising
        case "root":
            return peak * rising / math.sqrt(max(step + 1, warmup, 1))
        case "cosine":
            fraction = (step - warmup) / max(total - warmup, 1)
            return peak * rising * 0.5 * (1 + math.cos(math.pi * (max(fraction, 0.0) % 1.0)))
        case "wsd":
            cooldown = settings.cooldown * total
            return peak * rising * min(1.0, (total - step) / max(cooldown, 1.0))
        case "onecycle":
            return _cycle(step, warmup, total, peak / 25, peak, peak / 250_000)
    return peak


def moves_first_beta(settings: Settings) -> bool:
    """Whether Adam's beta1 changes from step to step."""
    return settings.schedule == "onecycle"


def first_beta(settings: Settings, step: int, total: int) -> float:
    """Adam's beta1 of a step under `onecycle`, which moves it against the learning rate as torch's OneCycleLR does."""
    return _cycle(step, settings.warmup, total, 0.95, 0.85, 0.95)


def _cycle(step: int, warmup: int, total: int, start: float, middle: float, end: float) -> float:
    """Linear from `start` to `middle` at the end of the warm-up, then to `end` at the last step."""
    top, last = max(warmup - 1, 0), max(total - 1, 1)
    if step <= top and top > 0:
        return start + (middle - start) * step / top
    return middle + (end - middle) * min((step - top) / max(last - top, 1), 1.0)
