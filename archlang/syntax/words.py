"""The words of the language, by where they stand."""

ITEM_WORDS = ("use", "block", "model", "extern", "recipe", "table")
CHOICE_WORDS = ("task", "model", "train")
RECIPE_WORDS = (*CHOICE_WORDS, "test", "vary", "search", "claim")
TABLE_WORDS = ("row", "column", "columns")
PART_WORDS = (*RECIPE_WORDS, *TABLE_WORDS)
CLAUSE_WORDS = (
    *("where", "reads", "depends", "random", "stops", "sizes", "costs", "maps", "records", "cuts", "gives", "pure"),
    *("causal", "with", "python"),
)
STATEMENT_WORDS = ("let", "loss", "return", "emit", "if", "repeat", "stack")
# Words that cannot be names.
RESERVED = ("let", "return", "emit", "if", "repeat", "stack", "else", "in", "when", "and", "or", "not", "true", "false")
BINDERS = ("=", "<-")
OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {")": "(", "]": "[", "}": "{"}
