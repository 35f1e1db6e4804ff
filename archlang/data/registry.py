"""The registry of published data sets: their files, URLs and digests.

`official.tsv` lists the files. A digest is that of the content: for a file that is published compressed, such as
`train.en.gz`, the digest of `train.en`; for an archive, the digest of the archive."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from archlang.data.digests import Digest

_FILES = Path(__file__).with_name("official.tsv")
_GITHUB = "https://raw.githubusercontent.com"
_GOOGLE = "https://storage.googleapis.com"


@dataclass(frozen=True)
class OfficialFile:
    """A published file. `member` is its name in the folder of its data set; `size`, in bytes, and `digest` are None if
    they are not published."""

    dataset: str
    member: str
    url: str
    digest: Digest | None
    size: int | None
    licence: str

    @property
    def stored(self) -> str:
        """The file name of the download: compressed, if it is published compressed."""
        end = self.url.rpartition("/")[2]
        packing = Path(end).suffix if end == f"{Path(self.member).name}{Path(end).suffix}" else ""
        return f"{self.member}{packing}"


@dataclass(frozen=True)
class Held:
    """The members of a data set in an archive: files whose names, in any folder, begin with `inside` are members whose
    names begin with `member` instead."""

    inside: str
    member: str


@dataclass(frozen=True)
class Dataset:
    """A published data set. `tasks` are the tasks that read it. `archives` maps its archives to the members in each; an
    archive without members is read as a whole."""

    name: str
    about: str
    tasks: tuple[str, ...]
    base: str
    licence: str
    home: str
    archives: Mapping[str, tuple[Held, ...]]

    @cached_property
    def files(self) -> tuple[OfficialFile, ...]:
        return tuple(
            OfficialFile(
                self.name,
                member,
                f"{self.base}/{path}",
                Digest.parse(digest) if digest else None,
                int(size) if size else None,
                self.licence,
            )
            for dataset, member, size, digest, path in _lines()
            if dataset == self.name
        )

    def file(self, member: str) -> OfficialFile | None:
        """Returns the published file of this name, or None."""
        return next((file for file in self.files if file.member == member), None)

    def archive_of(self, member: str) -> OfficialFile | None:
        """Returns the archive that contains a member; None if it is published as a file, or not at all."""
        for name, holds in self.archives.items():
            if any(member.startswith(held.member) for held in holds) and self.file(member) is None:
                return self.file(name)
        return None

    @property
    def size(self) -> int | None:
        """The total of the known sizes of its files in bytes; None if no size is known."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if sizes else None


def _lines() -> list[tuple[str, str, str, str, str]]:
    rows = [line.split("\t") for line in _FILES.read_text(encoding="utf-8").splitlines()[1:]]
    return [(dataset, member, size, digest, path) for dataset, member, size, digest, path in rows]


def _each(*names: str) -> tuple[Held, ...]:
    return tuple(Held(name, name) for name in names)


# The modules of Csordás et al. (2021), which extrapolate to larger numbers.
_MODULES = ("arithmetic__add_or_sub", "numbers__place_value")
_MATHEMATICS = tuple(
    Held(f"{part}/{module}{end}.txt", f"{part}__{module}{end}.txt")
    for part, end in (
        *(("train-easy", ""), ("train-medium", ""), ("train-hard", "")),
        *(("interpolate", ""), ("extrapolate", "_big")),
    )
    for module in _MODULES
)

DATASETS: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            "babi",
            "bAbI: twenty tasks of questions about short stories (Weston et al. 2015)",
            ("babi",),
            "http://www.thespermwhale.com/jaseweston/babi",
            "CC BY 3.0",
            "https://github.com/facebookarchive/bAbI-tasks",
            {"tasks_1-20_v1-2.tar.gz": (Held("en-10k/", ""),)},
        ),
        Dataset(
            "cfq",
            "CFQ: questions about films as SPARQL queries (Keysers et al. 2020)",
            ("cfq",),
            f"{_GOOGLE}/cfq_dataset",
            "CC BY 4.0",
            "https://github.com/google-research/google-research/tree/master/cfq",
            {"cfq.tar.gz": (Held("cfq/dataset.json", "dataset.json"), Held("cfq/splits/", "splits/"))},
        ),
        Dataset(
            "cifar10",
            "CIFAR-10: small pictures of ten kinds, for Image of the Long Range Arena (Krizhevsky 2009)",
            ("lra_image",),
            "https://www.cs.toronto.edu/~kriz",
            "none stated",
            "https://www.cs.toronto.edu/~kriz/cifar.html",
            {"cifar-10-python.tar.gz": ()},
        ),
        Dataset(
            "cogs",
            "COGS: sentences and their logical forms (Kim & Linzen 2020; gen.tsv of September 2022)",
            ("cogs",),
            f"{_GITHUB}/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data",
            "MIT",
            "https://github.com/najoungkim/COGS",
            {},
        ),
        Dataset(
            "dm_math",
            "DeepMind Mathematics v1.0: school mathematics, letter by letter (Saxton et al. 2019)",
            ("mathematics",),
            f"{_GOOGLE}/mathematics-dataset",
            "Apache-2.0",
            "https://github.com/google-deepmind/mathematics_dataset",
            {"mathematics_dataset-v1.0.tar.gz": _MATHEMATICS},
        ),
        Dataset(
            "imdb",
            "IMDB: reviews of films, for Text of the Long Range Arena (Maas et al. 2011)",
            ("lra_text",),
            "http://ai.stanford.edu/~amaas/data/sentiment",
            "research use",
            "https://ai.stanford.edu/~amaas/data/sentiment/",
            {"aclImdb_v1.tar.gz": ()},
        ),
        Dataset(
            "listops",
            "ListOps: nested lists of operations on digits (Nangia & Bowman 2018)",
            ("listops",),
            f"{_GITHUB}/nyu-mll/spinn/1e2805c7b0b327db5d9d78e9b7792ad31678edfa/python/spinn/data/listops",
            "MIT",
            "https://github.com/nyu-mll/spinn/tree/listops-release/python/spinn/data/listops",
            {},
        ),
        Dataset(
            "logical_inference",
            "Logical inference: how two formulas of logic are related (Bowman et al. 2015, files of Shen et al. 2019)",
            ("logical_inference",),
            f"{_GITHUB}/yikangshen/Ordered-Memory/2a0d3a22fb70216993a7faf25de3515f42e10431/data/propositionallogic",
            "MIT",
            "https://github.com/yikangshen/Ordered-Memory",
            {},
        ),
        Dataset(
            "lra",
            "Long Range Arena: its ListOps, Retrieval and Pathfinder (Tay et al. 2021)",
            ("lra_pathfinder", "lra_retrieval", "listops"),
            f"{_GOOGLE}/long-range-arena",
            "unclear",
            "https://github.com/google-research/long-range-arena",
            {
                "lra_release.gz": (
                    *_each("listops-1000/", "tsv_data/"),
                    Held("pathfinder32/curv_contour_length_14/", "pathfinder32/curv_contour_length_14/"),
                )
            },
        ),
        Dataset(
            "multi30k",
            "Multi30k, task 1: descriptions of pictures in English and German (Elliott et al. 2016)",
            ("multi30k",),
            f"{_GITHUB}/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw",
            "none stated; research only",
            "https://github.com/multi30k/dataset",
            {},
        ),
        Dataset(
            "pcfg_set",
            "PCFG SET: the values of expressions of string functions (Hupkes et al. 2020)",
            ("pcfg",),
            f"{_GITHUB}/i-machine-think/am-i-compositional/4f75bdd78889150dd78e90bbb7ddec840204c159/data/pcfgset",
            "MIT",
            "https://github.com/i-machine-think/am-i-compositional",
            {},
        ),
        Dataset(
            "scan",
            "SCAN: commands and the actions that they stand for (Lake & Baroni 2018)",
            ("scan",),
            f"{_GITHUB}/brendenlake/SCAN/c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f",
            "BSD",
            "https://github.com/brendenlake/SCAN",
            {},
        ),
        Dataset(
            "squad",
            "SQuAD 1.1: questions whose answers stand in a paragraph (Rajpurkar et al. 2016)",
            ("squad",),
            "https://rajpurkar.github.io/SQuAD-explorer/dataset",
            "CC BY-SA 4.0",
            "https://rajpurkar.github.io/SQuAD-explorer/",
            {},
        ),
    )
}


def official(dataset: str, member: str) -> OfficialFile | None:
    """Returns a published file by the names of its data set and of the file; None if there is none."""
    published = DATASETS.get(dataset)
    return published.file(member) if published is not None else None
