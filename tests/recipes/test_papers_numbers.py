"""The claims of the papers' tables are the papers' numbers, which `papers_numbers.tsv` has with their table and place.

The file was written from the texts of the papers, with a program that reads their tables, and not from the recipes. The
text of two tables lacks numbers, which other tables repeat: Table 1 of NDR (Tables 5 and 6), and the last row of Table
1 of The Devil is in the Detail (Table 2 of PANM). Numbers that a text prints in per cent are shares here."""

import csv
from pathlib import Path

import archlang
from archlang.plan.from_file import plan_table
from archlang.resolve.resolve import load_file

PAPERS = Path(archlang.__file__).parent / "recipes" / "papers"
NUMBERS = Path(__file__).with_name("papers_numbers.tsv")
FOUR_PAPERS = ("ndr", "devil", "panm", "dynamic_halt")

Number = tuple[str, str, str, str]


def published() -> list[Number]:
    """Returns the source, the row, the column and the number of each published number."""
    with NUMBERS.open(encoding="utf-8") as file:
        return [
            (line["from"], line["row"], line["column"], line["number"]) for line in csv.DictReader(file, delimiter="\t")
        ]


def claimed() -> list[Number]:
    numbers = []
    for page in sorted(page for folder in FOUR_PAPERS for page in (PAPERS / folder).glob("*.arch")):
        for name in load_file(page).tables:
            for cell in plan_table(page, name, seeds=[1]).cells:
                if cell.claim is not None:
                    claim = cell.claim
                    numbers.append((claim.origin, cell.row.title, cell.column.title, claim.text))
    return numbers


def test_every_claim_is_a_number_of_the_papers_and_every_number_is_claimed() -> None:
    numbers, claims = published(), claimed()
    assert len(set(numbers)) == len(numbers)
    assert sorted(set(claims) - set(numbers)) == []
    assert sorted(set(numbers) - set(claims)) == []
