"""Diagnostics of an unexpected token in a statement or in brackets, by the form that the words around it show."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from archlang.diagnostics import Diagnostic, Edit
from archlang.diagnostics.edits import closing_bracket, insertion
from archlang.diagnostics.names import meant_names
from archlang.diagnostics.percent import share_of
from archlang.source import Span
from archlang.syntax.expected import Expected
from archlang.syntax.mistakes import quoted, unexpected
from archlang.syntax.outline import RESERVED

# A form is short, and a search through a long text takes time quadratic in its length.
_LONGEST = 1_000
_BINDERS = frozenset(("`=`", "`<-`"))
# Words between the parts of a sentence, any of which may stand for another one.
_PREPOSITIONS = frozenset(("as", "at", "by", "for", "from", "in", "of", "over", "through", "using", "via", "with"))
# The kinds of statics, by the words of other languages.
_KINDS = {"int": "int", "float": "float", "bool": "bool", "str": "symbol", "string": "symbol"}
_PERCENTAGE = re.compile(r"(?<![\w.])([0-9]+(?:\.[0-9]+)?)[ \t]*%\Z")
_CALL = re.compile(r"(?:\[[^\[\]{}]*(?:\[[^\[\]{}]*\][^\[\]{}]*)*\])?[ \t]*(?P<inputs>\()")
_SPACE = re.compile(r"(?:\s|#[^\r\n]*)*+")
_STATICS_IN_BRACES = re.compile(r"\{([^{}\r\n]+)\}(?=[ \t]*\()")
_INPUTS_AND_CLOSER = re.compile(r"(\([^()\[\]{}\r\n]*\))\)")
_TYPE_BEFORE_NAME = re.compile(r"[ \t]*(\[[^\[\]\r\n]*\])?[ \t]+([A-Za-z_]\w*)(?=[ \t]*[,)=\]])")
_WORD = re.compile(r"\w+")
# `and` between settings, and the name of the second.
_AND_BEFORE_SETTING = re.compile(r"(?P<sign>[ \t]+and)[ \t]+[A-Za-z_][\w.]*[ \t]*\Z")

_QUOTED_NAME = re.compile(r'"([A-Za-z_]\w*)"')
_REST_OF_LINE = re.compile(r"(?:[ \t,]+[\w.]+)*(?=[ \t]*(?:#|\r|\n|\}|$))")
_ANNOTATION = re.compile(r":[ \t]*\w+[ \t]*(?:\[[^\[\]\r\n]*\])?(?=[ \t]*=(?!=))")
_BLOCK_COMMENT = re.compile(r"/\*([^*\r\n]*)\*/(?=[ \t]*(?:\r|\n|$))")
_OPEN_BRACKET = re.compile(r"\w\[[ \t]*\Z")
_END_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r|\n)")
_ITEM_OF_ONE_NAME = re.compile(r"[\[,]\s*([A-Za-z_][\w.]*)[ \t]+\Z")
_PARAMETERS = re.compile(r"[ \t]*[:=](?:[^()\[\]{}\r\n]|\[[^()\[\]{}\r\n]*\])*(?P<closer>[\])])")
# What a body belongs to, at the end of a text, and the first input of a call.
_WORD_OF_BODY = re.compile(r"\b(repeat|stack|scan|experts|if|else)\b[^{}\r\n]*\Z")
_FIRST_INPUT = re.compile(r"\([ \t]*([A-Za-z_]\w*)[ \t]*[,)]")
_TEST_LINE = re.compile(r"\btest[ \t]+([A-Za-z_]\w*)[ \t]*\Z")
_ONE_STATIC = re.compile(r"\[([^\[\]{}\r\n,]+=[^\[\]{}\r\n,]+)\]")
_BODY = re.compile(r"\s*\{")
_TRUNCATED_REPEAT = re.compile(r"\brepeat\b[^{}\r\n]*\btruncated\b[^{}\r\n]*\Z")
_NAMED_ITEM = re.compile(r"[^\[\]\r\n=]*,[ \t]*[A-Za-z_][\w.]*[ \t]*=(?!=)")
_BINDS = re.compile(r"[ \t]*[=:](?!=)")
_IN = re.compile(r"\bin[ \t]*\Z")
_STATICS_IN_BRACES_OF_LIST = re.compile(r"\{([^{}\r\n]+)\}")
_NOT_IN = re.compile(r"not[ \t]+in\b")
_LAST_NAME = re.compile(r"([A-Za-z_][\w.]*)[ \t]+\Z")
_EXTENDS = ("extends", "inherits", "of", "on", "is")
_STATIC = re.compile(r"[A-Za-z_]\w*[ \t]*:[ \t]*(?:int|float|bool|symbol)[ \t]*=[ \t]*\Z")


@dataclass(frozen=True)
class Place:
    """An unexpected token: its place, the end of the word or sign before it, what was expected, the name before it that
    begins a statement or an item of brackets, and the innermost open bracket."""

    token: Span
    after: int
    expected: Expected
    name: Span | None
    begins_statement: bool
    around: str
    is_in_recipe: bool

    @property
    def text(self) -> str:
        return self.token.source.text

    @property
    def before(self) -> str:
        return self.text[max(0, self.token.start - _LONGEST) : self.token.start]

    def span(self, start: int, end: int) -> Span:
        return Span(self.token.source, start, end)

    def mistake(self, message: str, label: str, remedy: str, *edits: Edit, is_safe: bool = False) -> Diagnostic:
        diagnostic = Diagnostic("E0101", message, self.token, label, remedy=remedy)
        return diagnostic.with_edits(*edits, is_safe=is_safe) if edits else diagnostic

    def unexpected(self, remedy: str, *edits: Edit, is_safe: bool = False) -> Diagnostic:
        message, label = unexpected(self.token.text, self.expected)
        return self.mistake(message, label, remedy, *edits, is_safe=is_safe)


def meant_form(place: Place) -> Diagnostic | None:
    """Returns the diagnostic of an unexpected token that is part of a form which the words around it show; None if they
    show none."""
    return next((mistake for read in _FORMS if (mistake := read(place)) is not None), None)


def _call_as_statement(place: Place) -> Diagnostic | None:
    """`norm(h)` in place of a statement."""
    if not place.begins_statement or place.name is None or place.is_in_recipe or not _are_binders(place.expected):
        return None
    call = _CALL.match(place.text, place.name.end, place.name.end + _LONGEST)
    closer = None if call is None else closing_bracket(place.text, call.start("inputs"))
    if call is None or closer is None or place.text[closer] != ")":
        return None
    end = closer + 1
    called = place.text[place.name.start : end]
    short = called if len(called) < 40 and "\n" not in called else f"{place.name.text}(…)"
    message = f"the value of {quoted(short)} is neither bound nor returned"
    rest = _SPACE.match(place.text, end)
    is_last = rest is not None and place.text.startswith("}", rest.end())
    diagnostic = Diagnostic("E0101", message, place.span(place.name.start, end), "no statement")
    opener = _opener(place.before)
    around = None if opener is None else _WORD_OF_BODY.search(place.before[:opener])
    if around is not None and around[1] in ("repeat", "stack"):
        state = _FIRST_INPUT.match(place.text, call.start("inputs"))
        remedy = f"update a state: `{state[1] if state else '…'} <- {short}`"
        edits = [insertion(place.token.source, place.name.start, f"{state[1]} <- ")] if state else []
        return _with(diagnostic, remedy, *edits)
    if around is not None and around[1] in ("scan", "experts") and is_last:
        return _with(diagnostic, f"write `emit {short}`", insertion(place.token.source, place.name.start, "emit "))
    if is_last and around is None:
        return _with(diagnostic, f"write `return {short}`", insertion(place.token.source, place.name.start, "return "))
    return _with(diagnostic, f"bind it to a name, as in `y = {short}`, or delete it")


def _charge_without_name(place: Place) -> Diagnostic | None:
    """`charge mean(g)` in place of `charge name = mean(g)`."""
    word = re.search(r"\bcharge[ \t]+([A-Za-z_]\w*)[ \t]*\Z", place.before)
    if word is None or place.expected.phrases != ("`=`",):
        return None
    return place.unexpected(f"name the charge, as in `charge cost = {word[1]}…`")


def _word_for_operator(place: Place) -> Diagnostic | None:
    """`kind is relu`."""
    if place.token.text != "is" or place.is_in_recipe:
        return None
    negation = re.compile(r"[ \t]+not\b").match(place.text, place.token.end)
    operator, end = ("!=", negation.end()) if negation else ("==", place.token.end)
    remedy = f"compare with `{operator}`"
    return place.mistake(
        "there is no operator `is`", "no operator", remedy, Edit(place.span(place.token.start, end), operator)
    )


def _preposition(place: Place) -> Diagnostic | None:
    """`experts v in h with p`: another word between the parts than the one expected."""
    words = [word for word in place.expected.words if word in _PREPOSITIONS]
    if len(words) != 1 or place.token.text not in _PREPOSITIONS or place.is_in_recipe:
        return None
    return place.unexpected(f"write `{words[0]}`", Edit(place.token, words[0]))


def _equality_for_binder(place: Place) -> Diagnostic | None:
    """`at model.d == 64`."""
    if place.token.text != "==" or "`=`" not in place.expected.phrases:
        return None
    return place.unexpected("write `=`", Edit(place.token, "="), is_safe=True)


def _and_between_settings(place: Place) -> Diagnostic | None:
    """`at model.d = 64 and seed = 1`."""
    word = _AND_BEFORE_SETTING.search(place.before)
    if place.token.text != "=" or not place.is_in_recipe or place.around in ("(", "[") or word is None:
        return None
    begin = place.token.start - len(word[0])
    written = place.span(begin, begin + len(word["sign"]))
    diagnostic = Diagnostic("E0101", "`and` joins conditions, not settings", written, "between two settings")
    return _with(diagnostic, "write `,`", Edit(written, ","))


def _order_for_binder(place: Place) -> Diagnostic | None:
    """`claim test.accuracy > 0.9`, or `claim test.accuracy in 0.9..1.0`."""
    is_order = place.token.text in ("<", "<=", ">", ">=", "in") and {"`=`", "`[`"} <= set(place.expected.phrases)
    if not place.is_in_recipe or not is_order:
        return None
    return place.unexpected("write `=` and the number that was published", Edit(place.token, "="))


def _weights_of_experts_missing(place: Place) -> Diagnostic | None:
    """`experts v in h {`."""
    if place.token.text != "{" or place.expected.words != ("by",):
        return None
    return place.unexpected("write the weights of the experts after `by`, as in `by softmax(linear[8](h))`")


def _half_word(place: Place) -> Diagnostic | None:
    """`random in train`: the beginning of the only word that can follow."""
    (word, *others) = place.expected.words or ("",)
    token = place.token.text
    if others or len(token) < 3 or token == word or not word.startswith(token):
        return None
    return place.unexpected(f"did you mean `{word}`?", Edit(place.token, word), is_safe=True)


def _values_for_one(place: Place) -> Diagnostic | None:
    """`test task.length in [32, 64]`."""
    if place.token.text != "in" or not place.is_in_recipe or place.expected.phrases != ("`=`",):
        return None
    return place.unexpected("write `=` and one value: only `vary` and `search` take several")


def _percent(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 84%` or `lr = 0.1%,`, where the sign is that of a remainder without a second operand."""
    is_sign = place.token.text == "%"
    if not is_sign and ("a value" not in place.expected.phrases or place.token.text not in (",", ")", "]", "}")):
        return None
    end = place.token.end if is_sign else place.after
    number = _PERCENTAGE.search(place.text, max(0, end - _LONGEST), end)
    if number is None:
        return None
    share, written = share_of(number[1]), place.span(*number.span())
    return place.unexpected(f"write a fraction: `{share}`", Edit(written, share))


def _statics_in_braces(place: Place) -> Diagnostic | None:
    """`attention{4}(h)`."""
    if place.token.text != "{" or not place.text[place.after - 1 : place.after].isidentifier():
        return None
    statics = _STATICS_IN_BRACES.match(place.text, place.token.start)
    if statics is None or place.after != place.token.start:
        return None
    written = place.span(*statics.span())
    diagnostic = Diagnostic("E0101", "statics stand in square brackets, found `{`", written, "in braces")
    return _with(diagnostic, f"write `[{statics[1]}]`", Edit(written, f"[{statics[1]}]"))


def _inputs_in_statics(place: Place) -> Diagnostic | None:
    """`attention[4(h))`."""
    if place.token.text != "(" or place.around != "[" or "`]`" not in place.expected.phrases:
        return None
    inputs = _INPUTS_AND_CLOSER.match(place.text, place.token.start)
    if inputs is None:
        return None
    closer = place.span(inputs.end() - 1, inputs.end())
    edits = insertion(place.token.source, place.after, "]"), Edit(closer, "")
    return place.unexpected(f"write `]` before `(`, as in `]{inputs[1]}`", *edits)


def _type_before_name(place: Place) -> Diagnostic | None:
    """`(seq[n, d] h)` or `[int heads = 2]` in a signature."""
    name = place.name
    if name is None or "`:`" not in place.expected.phrases or place.around not in ("(", "["):
        return None
    match = _TYPE_BEFORE_NAME.match(place.text, name.end, name.end + _LONGEST)
    is_static = place.around == "["
    if match is None or match[2] in RESERVED or bool(match[1]) == is_static:
        return None
    if is_static and name.text not in _KINDS:
        return None
    what = "kind of a static" if is_static else "type of an input"
    written = place.span(name.start, match.end())
    correct = f"{match[2]}: {_KINDS[name.text] if is_static else name.text + match[1]}"
    diagnostic = Diagnostic("E0101", f"the {what} follows its name", written, "before its name")
    return _with(diagnostic, f"write `{correct}`", Edit(written, correct))


def _halting_without_block(place: Place) -> Diagnostic | None:
    """`repeat 8 halting h {`."""
    if place.token.text != "{" or set(place.expected.words) != {"as", "by"}:
        return None
    edit = insertion(place.token.source, place.token.start, "by global_halt ")
    return place.unexpected("name the block that decides when to halt, as in `by global_halt`", edit)


def _equals_missing(place: Place) -> Diagnostic | None:
    """`adamw[steps 600]`."""
    name, opener = _ITEM_OF_ONE_NAME.search(place.before), _opener(place.before)
    if place.around != "[" or "`,`" not in place.expected.phrases or name is None or opener is None:
        return None
    if not place.before[opener - 1 : opener].isidentifier():
        return None  # a list
    token = place.token.text
    is_word = token.isidentifier() and token not in ("true", "false")
    has_names = "=" in place.before[opener:] or _NAMED_ITEM.match(place.text, place.token.end) is not None
    if is_word and (token in RESERVED or not has_names):
        return None
    if not (token[0].isalnum() or token[0] in '_"') or _BINDS.match(place.text, place.token.end):
        return None
    edit = insertion(place.token.source, place.after, " =")
    return place.unexpected(f"write `{name[1]} = {token}`", edit)


def _opener_missing(place: Place) -> Diagnostic | None:
    """`block layer heads: int](…) -> …` or `block layer h: seq[n, d]) -> …`."""
    phrases = place.expected.phrases
    if "`(`" not in phrases or "`->`" not in phrases or not place.token.text.isidentifier():
        return None
    rest = _PARAMETERS.match(place.text, place.token.end, place.token.end + _LONGEST)
    if rest is None or (rest["closer"] == "]" and "`[`" not in phrases):
        return None
    opener = "[" if rest["closer"] == "]" else "("
    edit = insertion(place.token.source, place.token.start, opener)
    return place.unexpected(f"write `{opener}` before `{place.token.text}`", edit)


def _opener(before: str) -> int | None:
    """Returns the place of the last bracket in a text that it does not close."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        if before[place] in ")]}":
            depth += 1
        elif before[place] in "([{":
            if depth == 0:
                return place
            depth -= 1
    return None


def _comma_missing(place: Place) -> Diagnostic | None:
    """`attention[heads causal = true]`."""
    token = place.token.text
    begins_value = token.replace(".", "").isidentifier() or token[0].isdigit() or token[0] == '"'
    if place.around not in ("(", "[") or "`,`" not in place.expected.phrases or not begins_value:
        return None
    if (token in RESERVED and token not in ("true", "false")) or meant_names(token, place.expected.words):
        return None
    rest = _WORD.match(place.text, place.token.end)
    is_named = rest is None and re.compile(r"[ \t]*[=:](?!=)").match(place.text, place.token.end) is not None
    edit = insertion(place.token.source, place.after, ",")
    # The words `drop out` may be one name.
    is_safe = is_named and not re.search(r"[A-Za-z_]\w*\Z", place.text[max(0, place.after - 40) : place.after])
    return place.unexpected(f"write `,` before {quoted(token)}", edit, is_safe=is_safe)


def _second_comma(place: Place) -> Diagnostic | None:
    """`attention[4,, causal = true]`."""
    if place.token.text != "," or place.text[place.after - 1 : place.after] != ",":
        return None
    # A value may be missing between them.
    return place.unexpected("delete the second `,`", Edit(place.span(place.after, place.token.end), ""))


def _list_in_braces(place: Place) -> Diagnostic | None:
    """`where kind in {relu, gelu}`."""
    if place.token.text != "{" or not _IN.search(place.before):
        return None
    items = _STATICS_IN_BRACES_OF_LIST.match(place.text, place.token.start)
    if items is None:
        return place.unexpected("write the list in square brackets")
    written = place.span(*items.span())
    diagnostic = Diagnostic("E0101", "a list stands in square brackets, found `{`", written, "in braces")
    return _with(diagnostic, f"write `[{items[1]}]`", Edit(written, f"[{items[1]}]"))


def _not_in(place: Place) -> Diagnostic | None:
    """`where kind not in [relu]`."""
    rest = _NOT_IN.match(place.text, place.token.start)
    name = _LAST_NAME.search(place.before)
    if rest is None or name is None:
        return None
    begin = place.token.start - len(name[0])
    edit = Edit(place.span(begin, place.token.start + len("not")), f"not {name[1]}")
    return place.unexpected(f"write `not {name[1]} in …`", edit)


def _recipe_that_extends(place: Place) -> Diagnostic | None:
    """`recipe b extends a {`."""
    if place.token.text not in _EXTENDS or "from" not in place.expected.words:
        return None
    return place.unexpected("write `from`", Edit(place.token, "from"), is_safe=True)


def _deviation(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 0.98 +/- 0.01`."""
    if "`±`" not in place.expected.phrases or not place.text.startswith("+/-", place.token.start):
        return None
    sign = Edit(place.span(place.token.start, place.token.start + 3), "±")
    return place.unexpected("write `±`, or `+-`", sign, is_safe=True)


def _static_in_parentheses(place: Place) -> Diagnostic | None:
    """`(h: seq[n, d], heads: int = 4)`."""
    static = _STATIC.search(place.before)
    if place.around != "(" or static is None or place.expected.phrases != ("a name",):
        return None
    written = " ".join(f"{static[0]}{place.token.text}".split())
    return place.unexpected(f"a static stands in square brackets, before the inputs: `[{written}]`")


def _static_without_kind(place: Place) -> Diagnostic | None:
    """`block layer[heads](h: seq[n, d])`."""
    name = place.name
    if name is None or place.around != "[" or place.token.text not in ("]", ","):
        return None
    if set(place.expected.phrases) != {"`:`", "`=`"}:
        return None
    remedy = f"declare its kind, as in `{name.text}: int`, or its default, as in `{name.text} = 4`"
    return place.unexpected(remedy, insertion(place.token.source, name.end, ": int"))


def _name_in_quotes(place: Place) -> Diagnostic | None:
    """`task "ctl"`."""
    name = _QUOTED_NAME.fullmatch(place.token.text)
    if name is None or place.expected.phrases != ("a name",):
        return None
    return place.unexpected(f"write `{name[1]}` without quotes", Edit(place.token, name[1]), is_safe=True)


def _text_without_quotes(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 0.9 from paper`."""
    if place.expected.phrases != ("a string",) or not place.token.text.isidentifier():
        return None
    rest = _REST_OF_LINE.match(place.text, place.token.end)
    words = place.token if rest is None else place.span(place.token.start, rest.end())
    written = f'"{words.text.rstrip()}"'
    return place.unexpected(f"write it in quotes: `{written}`", Edit(words, written))


def _annotated_value(place: Place) -> Diagnostic | None:
    """`y: seq[n, d] = norm(h)`."""
    if place.token.text != ":" or not place.begins_statement or place.name is None or not _are_binders(place.expected):
        return None
    annotation = _ANNOTATION.match(place.text, place.token.start)
    if annotation is None:
        return None
    written = place.span(place.name.end, annotation.end())
    diagnostic = Diagnostic("E0101", "the type of a value follows from what it is bound to", written, "not written")
    return _with(diagnostic, "delete the type", Edit(written, ""))


def _item_in_body(place: Place) -> Diagnostic | None:
    """`block inner(…) -> … { … }` in the body of another item."""
    word = place.name
    if word is None or word.text not in ("block", "model", "recipe") or not place.begins_statement:
        return None
    if place.is_in_recipe or not _are_binders(place.expected) or not place.token.text.isidentifier():
        return None
    if word.start == word.source.line_bounds(word.line)[0]:
        return None  # the end of the body before it is missing
    message = f"a {word.text} stands outside other items"
    remedy = f"move `{word.text} {place.token.text}` before this item"
    return Diagnostic("E0101", message, word.to(place.token), "in a body", remedy=remedy)


def _assertion(place: Place) -> Diagnostic | None:
    """`assert d > 2`."""
    if place.name is None or place.name.text != "assert" or not place.begins_statement:
        return None
    diagnostic = Diagnostic("E0101", "a body has no assertions", place.name, "no statement")
    return _with(diagnostic, "state conditions on statics after the result type, as in `where d > 2`")


def _block_comment(place: Place) -> Diagnostic | None:
    """`/* … */`."""
    if place.token.text != "*" or place.text[place.after - 1 : place.after] != "/" or place.after != place.token.start:
        return None
    comment = _BLOCK_COMMENT.match(place.text, place.token.start - 1)
    written = place.span(place.token.start - 1, place.token.end if comment is None else comment.end())
    diagnostic = Diagnostic("E0101", "there is no sign `/*`", written, "neither a comment nor an operator")
    edits = [] if comment is None else [Edit(written, f"# {comment[1].strip()}")]
    return _with(diagnostic, "begin a comment with `#`", *edits)


def _model_in_brackets(place: Place) -> Diagnostic | None:
    """`test model[steps = 8]`."""
    written = _TEST_LINE.search(place.before)
    statics = _ONE_STATIC.match(place.text, place.token.start)
    if place.token.text != "[" or not place.is_in_recipe or written is None or statics is None:
        return None
    name = place.span(place.token.start - len(written[1]), statics.end())
    correct = f"model.{statics[1].strip()}"
    return place.unexpected(f"write `test {correct}`", Edit(name, correct))


def _second_claim(place: Place) -> Diagnostic | None:
    """`claim test.accuracy = 0.9, iid.accuracy = 0.8 from "p"`."""
    is_path = place.token.text.replace(".", "").isidentifier() and "." in place.token.text
    if not place.is_in_recipe or not is_path or "from" not in place.expected.words:
        return None
    if place.text[place.after - 1 : place.after] != ",":
        return None
    return place.unexpected("write a line `claim` for each metric, each with its source")


def _comma_before_body(place: Place) -> Diagnostic | None:
    """`recipe b from a, {`."""
    if place.token.text != "," or "`{`" not in place.expected.phrases:
        return None
    if _SPACE.match(place.text, place.token.end) is None or not _BODY.match(place.text, place.token.end):
        return None
    return place.unexpected("delete it", Edit(place.token, ""), is_safe=True)


def _paths_together(place: Place) -> Diagnostic | None:
    """`vary model.d, model.heads in [[16, 2], [32, 4]]`."""
    if place.token.text != "," or not place.is_in_recipe or place.expected.phrases != ("`in`",):
        return None
    return place.unexpected("write the values after each path, as in `model.d in [16, 32], model.heads in [2, 4]`")


def _clauses_in_other_order(place: Place) -> Diagnostic | None:
    """`repeat 4 truncated 2 drawn by evenly {`."""
    if place.token.text != "drawn" or not _TRUNCATED_REPEAT.search(place.before):
        return None
    return place.unexpected("write `drawn by …` before `truncated`")


def _experts_without_name(place: Place) -> Diagnostic | None:
    """`experts v in h by w { … }`."""
    name = place.name
    if name is None or name.text != "experts" or not place.begins_statement or not _are_binders(place.expected):
        return None
    edit = insertion(place.token.source, name.start, "y = ")
    return place.unexpected("bind its result: `y = experts …`", edit)


def _positions_in_brackets(place: Place) -> Diagnostic | None:
    """`h[:, -1]`."""
    if place.token.text != ":" or place.around != "[" or not _OPEN_BRACKET.search(place.before):
        return None
    return place.unexpected("a block reads positions, such as `last(h)` or `slice[start = 0, length = 4](h)`")


def _comma_after_line(place: Place) -> Diagnostic | None:
    """`task ctl,` in a recipe."""
    if place.token.text != "," or not place.is_in_recipe or place.around != "{":
        return None
    if _END_OF_LINE.match(place.text, place.token.end) is None:
        return None
    return place.unexpected("delete it: a line of its own ends without a comma", Edit(place.token, ""), is_safe=True)


_FORMS: tuple[Callable[[Place], Diagnostic | None], ...] = (
    _and_between_settings,
    _order_for_binder,
    _weights_of_experts_missing,
    _half_word,
    _charge_without_name,
    _call_as_statement,
    _word_for_operator,
    _preposition,
    _equality_for_binder,
    _values_for_one,
    _percent,
    _statics_in_braces,
    _inputs_in_statics,
    _type_before_name,
    _halting_without_block,
    _name_in_quotes,
    _text_without_quotes,
    _annotated_value,
    _item_in_body,
    _assertion,
    _block_comment,
    _positions_in_brackets,
    _model_in_brackets,
    _second_claim,
    _comma_before_body,
    _paths_together,
    _clauses_in_other_order,
    _experts_without_name,
    _comma_after_line,
    _second_comma,
    _list_in_braces,
    _not_in,
    _recipe_that_extends,
    _deviation,
    _static_in_parentheses,
    _static_without_kind,
    _equals_missing,
    _opener_missing,
    _comma_missing,
)


def _are_binders(expected: Expected) -> bool:
    return set(expected.phrases) <= _BINDERS


def _with(diagnostic: Diagnostic, remedy: str, *edits: Edit) -> Diagnostic:
    diagnostic = replace(diagnostic, remedy=remedy)
    return diagnostic.with_edits(*edits) if edits else diagnostic
