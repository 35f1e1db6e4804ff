"""Classify the images of a user's own files.

>>> folder = getfixture("tmp_path")
>>> _ = (folder / "images").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, *range(250, 256)]))
>>> _ = (folder / "labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 9, 4]))
>>> task = FileImages(path=str(folder / "images"), columns=3, valid_share=0.0)
>>> train = task.generate("train", seed=0)
>>> train.inputs["x"][0].tolist(), task.class_names[train.targets[0]]
([[250], [251], [252]], '9')
>>> train.inputs["x"][1].tolist(), task.class_names[train.targets[1]]
([[253], [254], [255]], '4')
"""

import glob
import os
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import RandomStream, combine, in_share, table_fingerprints
from archlang.tasks.kit.image_files import check_form, images_of, labels_of
from archlang.tasks.kit.split import Ragged, Split, join_splits
from archlang.tasks.kit.streams import check_path
from archlang.tasks.kit.task import Kind, ShippedTask
from archlang.tasks.kit.user_files import SPLITS, files_of


class FileImages(ShippedTask):
    path: str
    test: str
    columns: int
    channels: int
    labels: int
    label_bytes: int
    valid_share: float

    kind = Kind.CLASSIFICATION
    vocabulary = ()
    in_distribution = SPLITS
    breakdown = "label"

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.labels)))

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {"label": self.class_names}

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"label": range(self.labels)}

    def split_names(self) -> tuple[str, ...]:
        exists = {"train": True, "valid": self.valid_share, "test": self.test}
        return tuple(split for split in SPLITS if exists[split] or not self.path)

    def check(self) -> None:
        for path in filter(None, (self.path, self.test)):
            check_path(self.name, path, streams=False)
            # Folders are listed when they are read.
            if not (os.path.isdir(path) or glob.has_magic(path)):
                check_form(path, self.columns, self.channels)

    def files(self) -> tuple[str, ...]:
        images = [file for path in (self.path, self.test) if path for file in files_of(path)]
        return tuple(dict.fromkeys(each for file in images for each in (file, labels_of(file)) if each))

    def make(self, split: str, seed: int) -> Split:
        return join_splits(list(self.pieces(split, seed)))

    def pieces(self, split: str, seed: int) -> Iterator[Split]:
        """Yields the items of a split in the order of the files, some at a time."""
        if split not in self.split_names():
            raise mistakes.unknown_split(self.name, split, self.split_names())
        salt = RandomStream(self.name, seed).words(1)
        for file in files_of(self.test if split == "test" else self.path):
            check_form(file, self.columns, self.channels)
            for pixels, classes in images_of(self.name, file, self.columns, self.label_bytes, self.labels):
                count, size, _ = pixels.shape
                targets = classes.astype(np.int64)
                chosen = np.ones(count, dtype=np.bool_)
                if split != "test":
                    prints = combine(table_fingerprints(pixels.reshape(count, -1)), salt)
                    chosen = in_share(prints, 0.0, self.valid_share) ^ (split == "train")
                x = Ragged(pixels[chosen].reshape(-1, self.channels), np.arange(chosen.sum() + 1) * size)
                yield Split({"x": x}, targets[chosen], groups={"label": targets[chosen]})
