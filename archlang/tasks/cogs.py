"""COGS: translate a sentence into its logical form, with words in positions where training never has them.

Kim & Linzen (2020).

>>> sentence, form, category = read("Emma rolled a teacher .\\troll . agent ( x _ 1 , Emma )\\tin_distribution")
>>> sentence, form[:3], CATEGORIES[category]
(('Emma', 'rolled', 'a', 'teacher', '.'), ('roll', '.', 'agent'), 'in_distribution')
>>> CATEGORIES[read("Paula\\tPaula\\tprimitive")[2]], CATEGORIES[read("a\\tb\\tcp_recursion")[2]] in STRUCTURAL
('primitive', True)
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from archlang.tasks.kit import mistakes, published_files
from archlang.tasks.kit.lexicon import BEGIN, END, Lexicon
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PairTask

# In the order of the paper's Table 1, followed by the categories of the train set.
CATEGORIES = (
    *("subj_to_obj_common", "subj_to_obj_proper", "obj_to_subj_common", "obj_to_subj_proper"),
    *("prim_to_subj_common", "prim_to_subj_proper", "prim_to_obj_common", "prim_to_obj_proper", "prim_to_inf_arg"),
    *("obj_pp_to_subj_pp", "cp_recursion", "pp_recursion", "active_to_passive", "passive_to_active"),
    *("obj_omitted_transitive_to_transitive", "unacc_to_transitive"),
    *("do_dative_to_pp_dative", "pp_dative_to_do_dative", "only_seen_as_transitive_subj_as_unacc_subj"),
    *("only_seen_as_unacc_subj_as_obj_omitted_transitive_subj", "only_seen_as_unacc_subj_as_unerg_subj"),
    *("in_distribution", "primitive", "exposure_example"),
)
STRUCTURAL = frozenset({"obj_pp_to_subj_pp", "cp_recursion", "pp_recursion"})
PUBLISHED_WORDS = 871
FILES = {"train": "train", "valid": "dev", "test": "test", "gen": "gen"}
_NUMBERS = {category: number for number, category in enumerate(CATEGORIES)}
_EXPOSURE = "exposure_example"

Row = tuple[tuple[str, ...], tuple[str, ...], int]


def read(line: str) -> Row:
    """Returns the words, the logical form and the category of a line of the published files."""
    sentence, form, category = line.split("\t")
    # There are twelve exposure examples, each with a different construction.
    number = _NUMBERS[_EXPOSURE if category.startswith(_EXPOSURE) else category]
    return tuple(sentence.split()), tuple(form.split()), number


class Cogs(PairTask):
    breakdown = "category"
    groups = ("category", "structural", "length")
    splits = tuple(FILES)
    in_distribution = ("train", "valid", "test")

    @cached_property
    def _rows(self) -> Mapping[str, list[Row]]:
        return {split: published_files.parse_lines("cogs", f"{file}.tsv", read) for split, file in FILES.items()}

    @cached_property
    def _lexicon(self) -> Lexicon:
        """The words of all splits, as in Csordás et al. (2021), because the generalization set has words of its own."""
        sides = (side for rows in self._rows.values() for row in rows for side in row[:2])
        words = sorted({word for side in sides for word in side})
        if len(words) != PUBLISHED_WORDS:
            raise mistakes.vocabulary_not_published("cogs", len(words), PUBLISHED_WORDS)
        return Lexicon((*words, END, BEGIN))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self._lexicon.texts

    def reads(self) -> tuple[tuple[str, str], ...]:
        return tuple(("cogs", f"{file}.tsv") for file in FILES.values())

    def make(self, split: str, seed: int) -> Split:
        sentences, forms, categories = zip(*self._rows[split], strict=True)
        category = np.asarray(categories, dtype=np.int64)
        structural = np.isin(category, [_NUMBERS[name] for name in STRUCTURAL]).astype(np.int64)
        source, target = self._lexicon.encode(sentences), self._lexicon.encode(forms)
        groups = {"category": category, "structural": structural, "length": target.lengths}
        return self.pairs(source, target, groups)
