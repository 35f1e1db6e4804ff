"""Multi-query associative recall with a mixture of lengths, with values that change, and with keys of two symbols.

The variants in the program of Arora et al. (2024), Zoology.

>>> sizes = {"test_length": (), "test_pairs": (), "more_length": (), "more_pairs": (), "train_size": 10}
>>> task = MqarVariants(words=24, length=16, pairs=3, updates=1, **sizes)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), train.targets[0][train.scored[0]].tolist()
('5 19 8 17 9 13 9 16 8 9 5 7 22 13 9 6', [17, 19, 16])
>>> task = MqarVariants(words=24, length=18, pairs=3, compound=True, **sizes)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), train.targets[0][train.scored[0]].tolist()
('4 15 17 5 15 16 4 8 23 4 15 22 5 15 6 4 8 4', [17, 16, 23])
"""

from archlang.tasks.mqar import Mqar


class MqarVariants(Mqar):
    """As `Mqar` writes them, by statics that it has not."""
