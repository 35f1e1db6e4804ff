"""Says what is wrong where the parser fails: at an unexpected token, or at the end of a unit that ends too early."""

from dataclasses import replace

from archlang.errors import Diagnostic, Edit, Span
from archlang.errors.edits import insertion
from archlang.errors.names import did_you_mean, meant_names, misspelt
from archlang.syntax import mistakes
from archlang.syntax.forms import meant_form
from archlang.syntax.grammar import spellings
from archlang.syntax.mistakes import ITEM, Expected, quoted, unknown_character
from archlang.syntax.place import Place
from archlang.syntax.stack import terminal
from archlang.syntax.tokens import BINDERS, OPENERS, PART_WORDS, RECIPE_WORDS, RESERVED, STATEMENT_WORDS, closers

# Signs and words that a value follows.
_UNFINISHED = frozenset(
    ("|>", "=", "==", "!=", "<", "<=", ">", ">=", "<-", "..", "+", "-", "*", "/", "%", "in", "and", "or", "not", "when")
) | {"return", "emit", "if", "repeat", "stack"}
# Operators whose left operand is no pipe without parentheses.
_AFTER_PIPE = frozenset((*"+-*/%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "when"))
# Signs that may stand for another one.
_OPERATORS = _AFTER_PIPE | {"=", ":", "<-", "->", "..", "in"}
_NO_BLOCKS = (
    *RESERVED, "scan", "experts", "after", "carry", "growing", "halting", "as", "by", "drawn", "truncated", "settled",
    "lambda",
)  # fmt: skip
_BEFORE_CALLS = ("=", "<-", "return", "emit", "(", ",", "|>", "+", "-", "*", "/")


def explain(place: Place) -> Diagnostic:
    """Returns the diagnostic of an unexpected token."""
    token, span = place.token_text, place.token_span
    if place.token is not None and place.token.type == "UNKNOWN":
        return _unknown(place)
    wanted = place.expected
    message, label = mistakes.unexpected(token, wanted)
    unapplied = _unapplied(place.back() if "`<-`" in wanted.phrases and place.before else place)
    if unapplied is not None:
        return unapplied
    form = (
        _line_mistake(place)
        or _misspelt_keyword(place)
        or _call_as_statement(place)
        or meant_form(place, message, label)
        or _bracket_mistake(place)
    )
    if form is not None:
        return form
    if token in _AFTER_PIPE and (pipe := _pipe_before(place)) is not None:
        return mistakes.operator_after_pipe(span, pipe)
    begins_line = place.before and place.token is not None and place.before[-1].line != place.token.line
    if begins_line and not (place.stack.accepts("MISSING_LINE") or place.stack.accepts("LBRACE")):
        return _ends_too_early(place, wanted)
    return _default(place, message, label)


def _unknown(place: Place) -> Diagnostic:
    span, text = place.token_span, place.token_text
    if text[0] == '"':
        if "\0" in text:
            zero = span.start + text.index("\0")
            return unknown_character(Span(span.source, zero, zero + 1))
        return mistakes.unterminated_string(span)
    if text[0].isdigit() and text[0].isascii():
        return mistakes.malformed_number(span)
    last = place.before[-1] if place.before else None
    if text == "." and last is not None and last.end_pos == span.start and last.type in ("NAME", "DOTTED"):
        return mistakes.name_missing(place.span(last).to(span))
    form = meant_form(place, *mistakes.unexpected(text, place.expected)) if text == "|" else None
    return form or unknown_character(span)


def _misspelt_keyword(place: Place) -> Diagnostic | None:
    first = place.before[0] if len(place.before) == 1 else None
    binds = set(place.expected.phrases) <= {"`=`", "`<-`"} and place.token_text not in ("(", ",")
    words = (*STATEMENT_WORDS, "else")
    is_near = first is not None and (first.startswith(("return", "emit")) or did_you_mean(first, words) is not None)
    if first is None or not is_near or not binds or place.is_in_recipe:
        return None
    message, span = f"no statement begins with {quoted(first)}", place.span(first)
    for keyword in ("return", "emit"):
        if first.startswith(keyword):  # the rest is a value, without a space before it
            remedy = f"write `{keyword} {first.removeprefix(keyword)}`"
            diagnostic = Diagnostic("E0101", message, span, "a space is missing", remedy=remedy)
            return diagnostic.with_edits(insertion(place.source, span.start + len(keyword), " "))
    return misspelt(Diagnostic("E0101", message, span, "unknown keyword"), first, words)


def _line_mistake(place: Place) -> Diagnostic | None:
    """A line of a recipe or a table that stands elsewhere."""
    first = place.before[0] if place.before else place.token
    code = place.before + place.rest
    if first is None or first not in PART_WORDS or (first == "model" and ("(" in code or "->" in code)):
        return None
    items = [
        str(value).lower() for value in place.stack.values if terminal(value) in ("BLOCK", "MODEL", "RECIPE", "TABLE")
    ]
    around = items[0] if items and place.stack.values else ""
    belongs = "recipe" if first in RECIPE_WORDS else "table"
    if around == belongs or (around and not place.stack.bracket_around()) or place.token_text in BINDERS:
        return None
    if code[1:2] in ([":"], ["="], ["<-"]):
        return None
    return mistakes.misplaced_line(place.span(first), belongs, around)


def _bracket_mistake(place: Place) -> Diagnostic | None:
    """A bracket without the other one, or a value that is not in brackets."""
    token, around = place.token_text, place.around
    if token not in (")", "]") or (around and OPENERS[around] == token):
        return None
    opener = next((value for value in reversed(place.stack.values) if value == around and terminal(value)), None)
    is_other = around in ("(", "[") and opener is not None and opener.start_pos != opener.end_pos
    return mistakes.unmatched_closer(place.token_span, place.span(opener) if is_other and opener else None)


def _call_as_statement(place: Place) -> Diagnostic | None:
    """`norm(h)` in place of a statement: at the end of a body, what to do with the value follows from the body."""
    code = place.before + place.rest
    if not place.is_in_body or len(place.before) != 1 or code[0].type not in ("NAME", "DOTTED") or code[-1] != ")":
        return None
    if place.token_text not in ("(", "[") or len(code) < 3:
        return None
    call = Span(place.source, place.unit_start, code[-1].end_pos or 0)
    bodies = sum(terminal(value) == "LBRACE" for value in place.stack.values)
    is_last = bodies == 1 and place.after is not None and place.after.type == "RBRACE"
    return mistakes.unbound_call(call, "return " if is_last else "")


def _pipe_before(place: Place) -> Span | None:
    values = place.stack.values
    for index in range(len(values) - 1, 0, -1):
        kind = terminal(values[index])
        if kind == "PIPE":
            last = place.before[-1]
            return Span(place.source, values[index - 1].span.start, last.end_pos or 0)
        if kind in ("LPAR", "LSQB", "LBRACE", "EQUAL", "UPDATE"):
            return None
    return None


def _unapplied(place: Place) -> Diagnostic | None:
    """A name after a block, as in `y = norm h`."""
    token, code = place.token, place.before
    if token is None or token.type != "NAME" or place.is_in_recipe or place.around == "[" or not code:
        return None
    index = len(code) - 1
    if code[-1] == "]":
        index = next((opener for opener, closer in closers(code).items() if closer == index), 0) - 1
    name = code[index]
    is_called = name.type in ("NAME", "DOTTED") and name not in _NO_BLOCKS and not place.is_bound(name)
    if index < 1 or not is_called or token.line != name.line or code[index - 1] not in _BEFORE_CALLS:
        return None
    around = [*code, *place.rest]
    closed = {*closers(around, ("LPAR", "LSQB")).values()}
    others = (each for number, each in enumerate(around) if number not in closed and number >= len(code))
    closer = next((str(each) for each in others if each in (")", "]")), "")
    block = Span(place.source, name.start_pos or 0, code[-1].end_pos or 0)
    return mistakes.application_without_brackets(block, place.token_span, closer)


def _default(place: Place, message: str, label: str) -> Diagnostic:
    token, span, wanted = place.token_text, place.token_span, place.expected
    if token == ":" and "`{`" in wanted.phrases:
        return mistakes.colon_for_brace(span)
    if token == "else" and not place.before:
        return mistakes.else_without_if(span)
    diagnostic = Diagnostic("E0101", message, span, label, remedy=_remedy(place))
    meant = "`=`" if token == "==" and "`=`" in wanted.phrases else str(wanted)
    if meant[0] == "`" and " " not in meant and token in _OPERATORS:
        before = "" if place.source.text[span.start - 1].isspace() else " "
        diagnostic = replace(diagnostic, remedy=f"write {meant} in place of {quoted(token)}")
        return diagnostic.with_edits(Edit(span, before + meant.strip("`")))
    possible = [word for word in wanted.words if len(word) > 2 or len(token) <= 3]
    if token.isidentifier() and token not in spellings().values() and meant_names(token, possible):
        return misspelt(diagnostic, token, possible)
    is_beside_comma = token in (",", "[") or (bool(place.before) and place.before[-1] == ",")
    if len(wanted.phrases) == 1 and diagnostic.remedy.startswith("put `") and not is_beside_comma:
        return diagnostic.with_edits(insertion(place.source, span.start, f"{str(wanted).strip('`')} "))
    return diagnostic


def _remedy(place: Place) -> str:
    token, wanted = place.token_text, place.expected
    binds = set(wanted.phrases) <= {"`=`", "`<-`"} and not place.is_in_recipe
    is_bound = place.rest[1:2] in (["="], ["<-"])
    if token in RESERVED and "a name" in wanted.phrases:
        return f"{quoted(token)} is a reserved word; choose another name"
    if (token in RESERVED or is_bound) and wanted.phrases[0] == ITEM:
        return "put statements between the braces of a block or a model"
    if token == "(" and "`[`" in wanted.phrases:
        return "put statics in square brackets: `name[static = value]`"
    if binds:
        return "begin a statement with `name =`, `name <-`, `return` or another keyword"
    if "." in token and token.replace(".", "").isidentifier() and {"a name", "a statement"} & set(wanted.phrases):
        return "bind a name without dots"
    if len(wanted.phrases) == 1:
        return f"delete {quoted(token)}" if str(wanted) == ITEM else f"put {wanted} before {quoted(token)}"
    if any(phrase.startswith("a part of") for phrase in wanted.phrases):
        return f"begin the line with one of these words in place of {quoted(token)}, or delete it"
    return f"put one of these before {quoted(token)}, or delete it"


def explain_end(place: Place, phrases: tuple[str, ...]) -> Diagnostic:
    """Returns the diagnostic of a unit that ends too early; `phrases` are what can follow, if the parser cannot say
    it."""
    wanted = Expected(phrases) if phrases else place.expected
    end = place.before[-1].end_pos or 0
    if place.token is None and end >= len(place.source.text.rstrip()):
        return mistakes.unexpected_end(Span(place.source, end, end), place.expected)
    return (
        _misspelt_keyword(place)
        or (_unapplied(place.back()) if "`<-`" in wanted.phrases else None)
        or _ends_too_early(place, wanted)
    )


def _ends_too_early(place: Place, wanted: Expected) -> Diagnostic:
    last = place.span(place.before[-1])
    following = None if place.token is None else place.token_span
    if last.text in _UNFINISHED and ("a value" in wanted.phrases or last.text == "|>"):
        return mistakes.value_missing(last, following)
    form = None if following is None else meant_form(place, *mistakes.unexpected("the next line", wanted))
    if form is not None and form.span.line == last.line and form.span.start < place.token_start:
        return form
    return mistakes.line_incomplete(last, wanted, following)
