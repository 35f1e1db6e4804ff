"""The Pygments lexer, which colours programs in documents, notebooks and terminals."""

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace, _TokenType

from archlang.editor.highlighting import rules

_TOKENS: dict[str, _TokenType] = {
    "documentation": String.Doc,
    "comment": Comment.Single,
    "string": String.Double,
    "number": Number,
    "keyword": Keyword,
    "constant": Keyword.Constant,
    "type": Keyword.Type,
    "definition": Name.Class,
    "function": Name.Function,
    "name": Name,
    "operator": Operator,
    "punctuation": Punctuation,
    "space": Whitespace,
}


class ArchLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no annotations
    """Colours programs in archlang. Pygments finds it by the name `arch`, and by files that end in `.arch`."""

    name = "archlang"
    aliases = ("arch", "archlang")
    filenames = ("*.arch",)
    mimetypes = ("text/x-archlang",)
    tokens = {  # noqa: RUF012  # as Pygments declares it
        "root": [(rule.pattern, bygroups(*(_TOKENS[kind] for kind in rule.kinds))) for rule in rules()]
    }
