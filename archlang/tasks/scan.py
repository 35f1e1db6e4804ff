"""SCAN: translate commands such as `jump twice` into actions.

Lake & Baroni (2018). A grammar without recursion generates all 20,910 commands. Other cutoffs than 22 are those of
Newman et al. (2020) and Csordás et al. (2021).

>>> task = Scan(split="length", cutoff=22)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][27]), task.spell(train.inputs["target"][27]), task.spell(train.targets[27])
('[B] walk twice and jump [E]', '[B] I_WALK I_WALK I_JUMP', 'I_WALK I_WALK I_JUMP [E]')
>>> task.spell(train.inputs["source"][65]), task.spell(train.targets[65])
('[B] run and look opposite right [E]', 'I_RUN I_TURN_RIGHT I_TURN_RIGHT I_LOOK [E]')
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product

import numpy as np

from archlang.tasks.kit import published_files
from archlang.tasks.kit.drawing import fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, append, enclose, shift
from archlang.tasks.kit.task import PairTask

WORDS = (
    *("after", "and", "around", "jump", "left", "look", "opposite"),
    *("right", "run", "thrice", "turn", "twice", "walk"),
)
ACTIONS = ("I_JUMP", "I_LOOK", "I_RUN", "I_TURN_LEFT", "I_TURN_RIGHT", "I_WALK")
VOCABULARY = (*WORDS, *ACTIONS, "[E]", "[B]")
END, BEGIN = len(VOCABULARY) - 2, len(VOCABULARY) - 1
PRIMITIVES = {"jump": ("jump",), "turn_left": ("turn", "left")}
PUBLISHED_SIMPLE_TEST = 4_182
# One of ten lines of the published train sets of jump and turn_left is the primitive alone.
PRIMITIVE_SHARE = 10
_IDS = {text: token for token, text in enumerate(VOCABULARY)}

CommandActions = tuple[tuple[str, ...], tuple[str, ...]]


@cache
def commands() -> tuple[CommandActions, ...]:
    """Returns every command with its actions."""
    steps = {"walk": ("I_WALK",), "look": ("I_LOOK",), "run": ("I_RUN",), "jump": ("I_JUMP",), "turn": ()}
    phrases: list[CommandActions] = [((verb,), actions) for verb, actions in steps.items() if actions]
    for (verb, actions), side in product(steps.items(), ("left", "right")):
        turn = f"I_TURN_{side.upper()}"
        phrases.append(((verb, side), (turn, *actions)))
        phrases.append(((verb, "opposite", side), (turn, turn, *actions)))
        phrases.append(((verb, "around", side), (turn, *actions) * 4))
    sentences = list(phrases)
    for times, count in (("twice", 2), ("thrice", 3)):
        sentences += [((*words, times), actions * count) for words, actions in phrases]
    whole_commands = list(sentences)
    for (first, before), (second, behind) in product(sentences, sentences):
        whole_commands.append(((*first, "and", *second), before + behind))
        whole_commands.append(((*first, "after", *second), behind + before))
    return tuple(whole_commands)


def read(line: str) -> CommandActions:
    """Parses a line of the published files, `IN: jump twice OUT: I_JUMP I_JUMP`, into words and actions.

    Raises:
        ValueError: the line is malformed."""
    begin, words, actions = line.removeprefix("IN: "), *line.removeprefix("IN: ").split(" OUT: ")
    if begin == line or not set(words.split()) <= set(WORDS) or not set(actions.split()) <= set(ACTIONS):
        raise ValueError(line)
    return tuple(words.split()), tuple(actions.split())


def published_iid(lengths: Integers, cutoff: int) -> Integers:
    """Returns the indices of the commands of at most `cutoff` actions that Csordás et al. (2021) hold out. `lengths`
    are the numbers of actions in tasks.txt, in its order."""
    short = np.flatnonzero(lengths <= cutoff)
    return np.asarray(short[np.random.RandomState(1234).choice(len(short), _held_out(len(short)), replace=False)])


def _held_out(count: int) -> int:
    # 1 - 0.9 is less than 0.1 in floating point, so 10 % of 16,990 is 1,698, as in the published code.
    return int(count * (1 - 0.9))


class Scan(PairTask):
    split: str
    cutoff: int
    data: str
    joint: bool

    breakdown = "length"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of the actions, and of the words too if `joint`."""
        return VOCABULARY if self.joint else (*ACTIONS, "[B]")

    @property
    def source_vocabulary(self) -> tuple[str, ...]:
        """The text of the tokens of `source`."""
        return VOCABULARY if self.joint else (*WORDS, "[E]", "[B]")

    @property
    def end(self) -> int:
        return END if self.joint else self.begin

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return {"simple": ("train", "test"), "length": ("train", "iid")}.get(self.split, ("train",))

    def split_names(self) -> tuple[str, ...]:
        return ("train", "iid", "test") if self.split == "length" else ("train", "test")

    def reads(self) -> tuple[tuple[str, str], ...]:
        if self.data != "files":
            return ()
        simple = tuple(f"tasks_{split}_simple.txt" for split in ("train", "test"))
        return tuple(("scan", member) for member in (simple if self.split == "simple" else ("tasks.txt",)))

    def make(self, split: str, seed: int) -> Split:
        words, actions = self._files(split) if self.data == "files" else self._generated(split)
        if not self.joint:
            actions = Ragged(actions.values - np.uint8(len(WORDS)), actions.offsets)
        targets = append(actions, self.end)
        source_size = len(self.source_vocabulary)
        source = enclose(words, begin=source_size - 1, end=source_size - 2)
        fields = {"source": source, "target": shift(targets, self.begin)}
        return Split(fields, targets, groups={"length": actions.lengths})

    def _files(self, split: str) -> tuple[Ragged, Ragged]:
        if self.split == "simple":
            return _encoded(published_files.parse_lines("scan", f"tasks_{split}_simple.txt", read))
        lines = published_files.parse_lines("scan", "tasks.txt", read)
        words, actions = _encoded(lines)
        if self.split in PRIMITIVES:
            members = self._with_primitive(split, lines, np.arange(len(lines)))
        else:
            long, held_out = actions.lengths > self.cutoff, np.zeros(len(lines), dtype=np.bool_)
            held_out[published_iid(actions.lengths, self.cutoff)] = True
            members = np.flatnonzero({"train": ~long & ~held_out, "iid": held_out, "test": long}[split])
        return words.select(members), actions.select(members)

    def _generated(self, split: str) -> tuple[Ragged, Ragged]:
        words, actions = _encoded(commands())
        # Sorting by fingerprints is a fixed shuffle.
        order = np.argsort(fingerprints(words), kind="stable")
        members = self._members(split, order, actions.lengths)
        return words.select(members), actions.select(members)

    def _members(self, split: str, order: Integers, lengths: Integers) -> Integers:
        if self.split == "simple":
            return order[:PUBLISHED_SIMPLE_TEST] if split == "test" else order[PUBLISHED_SIMPLE_TEST:]
        if self.split in PRIMITIVES:
            return self._with_primitive(split, commands(), order)
        if split == "test":
            return order[lengths[order] > self.cutoff]
        short = order[lengths[order] <= self.cutoff]
        held_out = _held_out(len(short))
        return short[:held_out] if split == "iid" else short[held_out:]

    def _with_primitive(self, split: str, lines: Sequence[CommandActions], order: Integers) -> Integers:
        """Returns the indices of a split: commands with the primitive in test, repetitions of the primitive itself in
        train."""
        primitive = PRIMITIVES[self.split]
        holds = np.asarray([_contains_words(words, primitive) for words, _ in lines])
        alone = next(index for index, (words, _) in enumerate(lines) if words == primitive)
        if split == "test":
            return np.asarray(order[holds[order] & (order != alone)])
        others = np.asarray(order[~holds[order]])
        repeated = np.full(round(len(others) / (PRIMITIVE_SHARE - 1)), alone)
        return np.concatenate([others, repeated])


def _contains_words(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words)))


def _encoded(lines: Iterable[CommandActions]) -> tuple[Ragged, Ragged]:
    sides = list(zip(*lines, strict=True))
    words, actions = (Ragged.of([[_IDS[word] for word in text] for text in side]) for side in sides)
    return words, actions
