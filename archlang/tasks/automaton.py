"""A finite automaton: tell the class of its state after each symbol, such as the parity of the ones so far.

>>> task = Automaton(length=8, train_size=10, valid_size=5, test_size=5)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), train.targets[0].tolist()
('1 1 0 1 0 0 1 0', [1, 0, 0, 1, 1, 1, 0, 0])
"""

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.automata import AutomatonTask
from archlang.tasks.kit.split import Integers


class Automaton(AutomatonTask):
    table: tuple[int, ...]
    symbols: int
    labels: int
    outputs: tuple[int, ...]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.symbols)))

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.labels)))

    @property
    def key(self) -> str:
        return str(self.symbols)

    @property
    def machine(self) -> tuple[Integers, Integers]:
        transitions = np.asarray(self.table, dtype=np.int64).reshape(-1, self.symbols)
        return transitions, np.asarray(self.outputs or range(len(transitions)), dtype=np.int64)

    def check(self) -> None:
        states, rest = divmod(len(self.table), self.symbols)
        if rest or not states:
            raise mistakes.no_table(self.name, len(self.table), self.symbols)
        if self.outputs and len(self.outputs) != states:
            raise mistakes.lists_differ("outputs", self.name, len(self.outputs), "table, by states,", states)
        for static, numbers, most in (
            ("table", self.table, states),
            ("outputs", self.outputs or range(states), self.labels),
        ):
            for number in numbers:
                if not number < most:
                    raise mistakes.outside(self.name, static, number, 0, most - 1)
