"""SCAN: translate commands such as `jump twice` into the actions that they stand for.

Lake & Baroni (2018). A grammar without recursion gives all 20,910 commands, and each has one row of actions.
`split = length` trains on at most `cutoff` actions: 22 as published, others as in Newman et al. (2020) and Csordás et
al. (2021).

>>> task = Scan(split="length", cutoff=22)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["source"][27]), spell(task, train.inputs["target"][27]), spell(task, train.targets[27])
('[B] walk twice and jump [E]', '[B] I_WALK I_WALK I_JUMP', 'I_WALK I_WALK I_JUMP [E]')
>>> spell(task, train.inputs["source"][65]), spell(task, train.targets[65])
('[B] run and look opposite right [E]', 'I_RUN I_TURN_RIGHT I_TURN_RIGHT I_LOOK [E]')
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from archlang.tasks import mistakes
from archlang.tasks.base import Integers, Ragged, Split, Unit, append, enclose, shift, spell
from archlang.tasks.distinct import fingerprints

__all__ = ["Scan", "commands", "spell"]

WORDS = (
    *("after", "and", "around", "jump", "left", "look", "opposite"),
    *("right", "run", "thrice", "turn", "twice", "walk"),
)
ACTIONS = ("I_JUMP", "I_LOOK", "I_RUN", "I_TURN_LEFT", "I_TURN_RIGHT", "I_WALK")
VOCABULARY = (*WORDS, *ACTIONS, "[E]", "[B]")
END, BEGIN = len(VOCABULARY) - 2, len(VOCABULARY) - 1
PUBLISHED_CUTOFF = 22
PUBLISHED_SIMPLE_TEST = 4_182
LONGEST = 48

Meaning = tuple[tuple[str, ...], tuple[str, ...]]


@cache
def commands() -> tuple[Meaning, ...]:
    """Every command with its actions."""
    steps = {"walk": ("I_WALK",), "look": ("I_LOOK",), "run": ("I_RUN",), "jump": ("I_JUMP",), "turn": ()}
    phrases: list[Meaning] = [((verb,), actions) for verb, actions in steps.items() if actions]
    for (verb, actions), side in product(steps.items(), ("left", "right")):
        turn = f"I_TURN_{side.upper()}"
        phrases.append(((verb, side), (turn, *actions)))
        phrases.append(((verb, "opposite", side), (turn, turn, *actions)))
        phrases.append(((verb, "around", side), (turn, *actions) * 4))
    sentences = list(phrases)
    for times, count in (("twice", 2), ("thrice", 3)):
        sentences += [((*words, times), actions * count) for words, actions in phrases]
    whole = list(sentences)
    for (first, before), (second, behind) in product(sentences, sentences):
        whole.append(((*first, "and", *second), before + behind))
        whole.append(((*first, "after", *second), behind + before))
    return tuple(whole)


@dataclass(frozen=True, kw_only=True)
class Scan:
    """The task. Its splits have the same members for every seed."""

    split: str = "simple"
    cutoff: int = PUBLISHED_CUTOFF

    vocabulary = VOCABULARY
    breakdown = "length"
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")
    version = 1

    def __post_init__(self) -> None:
        if self.split not in ("simple", "length"):
            raise mistakes.unknown_choice("scan", "split", self.split, ("simple", "length"))
        if not 1 <= self.cutoff < LONGEST:
            raise mistakes.outside("scan", "cutoff", self.cutoff, 1, LONGEST - 1)

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test") if self.split == "simple" else ("train", "iid", "test")

    def generate(self, split: str, seed: int) -> Split:
        """The items of a split do not depend on the seed, as those of the published splits do not."""
        if split not in self.split_names():
            raise mistakes.unknown_split("scan", split, self.split_names())
        ids = {text: token for token, text in enumerate(VOCABULARY)}
        words = Ragged.of([[ids[word] for word in words] for words, _ in commands()])
        actions = Ragged.of([[ids[action] for action in actions] for _, actions in commands()])
        chosen = self._members(split, words, actions.lengths)
        words, actions = words.select(chosen), actions.select(chosen)
        targets = append(actions, END)
        fields = {"source": enclose(words, begin=BEGIN, end=END), "target": shift(targets, BEGIN)}
        return Split(fields, targets, groups={"length": actions.lengths})

    def _members(self, split: str, words: Ragged, lengths: Integers) -> Integers:
        """Which commands belong to a split. Fingerprints shuffle them, the same way for ever."""
        order = np.argsort(fingerprints(words), kind="stable")
        if self.split == "simple":
            return order[:PUBLISHED_SIMPLE_TEST] if split == "test" else order[PUBLISHED_SIMPLE_TEST:]
        if split == "test":
            return order[lengths[order] > self.cutoff]
        short = order[lengths[order] <= self.cutoff]
        # 1 - 0.9 falls short of a tenth, so that 10 % of 16,990 come to 1,698 as in the published code.
        held_out = int(len(short) * (1 - 0.9))
        return short[:held_out] if split == "iid" else short[held_out:]
