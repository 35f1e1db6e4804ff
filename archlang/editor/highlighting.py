"""The patterns by which editors colour a program without parsing it, made from the words of the grammar.

Most words of the language are keywords only in their place: `causal` is a clause, and a static. The patterns decide by
what is on the same line before and after a word, because editors colour line by line. They use only what Python's `re`
and Oniguruma, the engine of TextMate grammars, both understand."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from archlang import syntax
from archlang.syntax.tokens import RESERVED
from archlang.types.type import CONSTRUCTORS

_GRAMMAR = Path(syntax.__file__).with_name("arch.lark").read_text(encoding="utf-8")
# The patterns of the terminals, by their names.
_TERMINALS = dict(re.findall(r"^(\w+): /(.*)/$", _GRAMMAR, re.MULTILINE))
CONSTANTS = ("true", "false")
# Words that are keywords wherever the grammar accepts them, and can be names elsewhere.
CONTEXTUAL = tuple(sorted({*re.findall(r'"([a-z]+)"', _GRAMMAR)} - {*RESERVED}))
# Keywords that follow each other, such as `stops gradients`.
PAIRS = tuple(
    sorted({*re.findall(r'"([a-z]+)" "([a-z]+)"', _GRAMMAR)} & {(a, b) for a in CONTEXTUAL for b in CONTEXTUAL})
)
# The types of values.
TYPES = (*CONSTRUCTORS, "data", "logits")
# Keywords before the name of what an item defines or a part of a recipe names.
BEFORE_NAMES = ("block", "model", "optimizer", "recipe", "settings", "table", "task")
BEFORE_REFERENCES = ("from", "train", "use", "with")
# Keywords before an expression, in which a word is a name.
BEFORE_EXPRESSIONS = (
    "and", "else", "emit", "if", "in", "let", "loss", "not", "or", "repeat", "return", "stack", "when", "where",
)  # fmt: skip
# Keywords at the end of what they describe.
SUFFIXES = ("growing", "log")
# Loops whose value has a name: `y = scan c in x`.
LOOPS = ("scan", "experts")


@dataclass(frozen=True)
class Rule:
    """A pattern, and the kind of each of its groups, which cover all of the match."""

    pattern: str
    kinds: tuple[str, ...]


def any_of(words: tuple[str, ...]) -> str:
    """Returns a pattern that matches one of some words, but not the first part of a dotted name."""
    return rf"(?:{'|'.join(words)})\b(?!\.[A-Za-z_])"


@cache
def rules() -> tuple[Rule, ...]:
    """Returns the rules in order; at each place of a text, the first that matches is taken.

    The kinds are `documentation`, `comment`, `string`, `number`, `keyword`, `constant`, `type`, `definition`,
    `function`, `name`, `operator`, `punctuation` and `space`."""
    space = r"([ \t]+)"
    name, dotted = _TERMINALS["NAME"], _TERMINALS["DOTTED"]
    word, contextual = rf"(?:{dotted}|{name})", any_of(CONTEXTUAL)
    signs = r"==|!=|<=|>=|->|<-|\|>|\.\.\.?|\+-|[=<>+\-*/%±]"
    return (
        Rule(r"(##[^\r\n]*)", ("documentation",)),
        Rule(f"({_TERMINALS['COMMENT']})", ("comment",)),
        Rule(f"({_TERMINALS['STRING']})", ("string",)),
        Rule(f"({_TERMINALS['NUMBER']})", ("number",)),
        Rule(rf"(:|->)([ \t]*)({name})", ("operator", "space", "type")),
        # Clauses that consist of one word.
        Rule(rf"^([ \t]*)({contextual})(?=[ \t]*(?:#|$))", ("space", "keyword")),
        Rule(rf"(random){space}(in){space}(training)\b", ("keyword", "space", "keyword", "space", "keyword")),
        Rule(r"(random)\b(?=[ \t]+when\b)", ("keyword",)),
        Rule(rf"(=)([ \t]*)({any_of(LOOPS)})(?=[ \t]+{name})", ("operator", "space", "keyword")),
        Rule(r'(,)([ \t]*)(from)\b(?=[ \t]*")', ("punctuation", "space", "keyword")),
        # Names in expressions.
        Rule(rf"([(\[,])([ \t]*)({contextual})", ("punctuation", "space", "name")),
        Rule(rf"(\|>)([ \t]*)({word})", ("operator", "space", "function")),
        Rule(rf"({signs})([ \t]*)({contextual})(?![\[(])", ("operator", "space", "name")),
        Rule(rf"({any_of(BEFORE_EXPRESSIONS)}){space}({contextual})(?![\[(])", ("keyword", "space", "name")),
        Rule(
            rf"(row){space}({_TERMINALS['STRING']}){space}((?!absent\b|claims\b){name})",
            ("keyword", "space", "string", "space", "function"),
        ),
        # Names of items.
        *(
            Rule(rf"({first}){space}({second})\b", ("keyword", "space", "keyword"))
            for first, second in PAIRS
            if second not in BEFORE_NAMES
        ),
        Rule(rf"({any_of(BEFORE_NAMES)}){space}({name})", ("keyword", "space", "definition")),
        Rule(rf"({any_of(BEFORE_REFERENCES)}){space}({word})", ("keyword", "space", "function")),
        # Keywords in their places.
        Rule(rf'({contextual})(?=[ \t]+(?:{word}|["0-9]))', ("keyword",)),
        Rule(r"(where)\b(?=[ \t]+[^=:,\])\t ]|[ \t]*$)", ("keyword",)),
        Rule(r"(claims)\b(?=[ \t]+-)", ("keyword",)),
        Rule(rf"({any_of(SUFFIXES)})(?=[ \t]*(?:[,{{}}#]|$))", ("keyword",)),
        Rule(rf"({any_of(CONSTANTS)})", ("constant",)),
        Rule(rf"({any_of(tuple(word for word in RESERVED if word not in CONSTANTS))})", ("keyword",)),
        # `chunks` is a type and a block.
        Rule(rf"({any_of(TYPES)})(?=\[[^\[\]]*\](?!\())", ("type",)),
        Rule(rf"({word})(?=[\[(])", ("function",)),
        Rule(rf"({word})", ("name",)),
        Rule(rf"({signs})", ("operator",)),
        Rule(r"([()\[\]{},:])", ("punctuation",)),
        Rule(r"([ \t]+|[\r\n\f\ufeff]+)", ("space",)),
    )
