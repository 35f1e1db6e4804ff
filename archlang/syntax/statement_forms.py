"""Forms of other languages, and half forms, in statements and clauses, by an unexpected token in them."""

from __future__ import annotations

import re

from archlang.diagnostics import Diagnostic, Edit
from archlang.diagnostics.edits import closing_bracket, insertion
from archlang.syntax.form_place import LONGEST, Form, Place, are_binders, last_opener, with_remedy
from archlang.syntax.mistakes import quoted

# Words between the parts of a sentence, any of which may stand for another one.
_PREPOSITIONS = frozenset(("as", "at", "by", "for", "from", "in", "of", "over", "through", "using", "via", "with"))
_CALL = re.compile(r"(?:\[[^\[\]{}]*(?:\[[^\[\]{}]*\][^\[\]{}]*)*\])?[ \t]*(?P<inputs>\()")
_SPACE = re.compile(r"(?:\s|#[^\r\n]*)*+")
_ANNOTATION = re.compile(r":[ \t]*\w+[ \t]*(?:\[[^\[\]\r\n]*\])?(?=[ \t]*=(?!=))")
_BLOCK_COMMENT = re.compile(r"/\*([^*\r\n]*)\*/(?=[ \t]*(?:\r|\n|$))")
_NAMED_STEPS = re.compile(r"\b(repeat|stack)[ \t]+([A-Za-z_]\w*[ \t]*)\Z")
_EMITTING_BODY = re.compile(r"[^{}]*\{[^{}]*\bemit\b")
# What a body belongs to, at the end of a text, and the first input of a call.
_WORD_OF_BODY = re.compile(r"\b(repeat|stack|scan|experts|if|else)\b[^{}\r\n]*\Z")
_FIRST_INPUT = re.compile(r"\([ \t]*([A-Za-z_]\w*)[ \t]*[,)]")
_TRUNCATED_REPEAT = re.compile(r"\brepeat\b[^{}\r\n]*\btruncated\b[^{}\r\n]*\Z")
_STEPS_AND_BODY = re.compile(r"\w+[ \t]*\{")
_HALTING_BY = re.compile(r"\bhalting[ \t]+by[ \t]+\Z")
_UPDATE_IN_BODY = re.compile(r"[^{}]*\{\s*(?:[^{}\r\n]*[\r\n]+[ \t]*)*?([A-Za-z_]\w*)[ \t]*<-")
_AS_NAME = re.compile(r"as[ \t]+([A-Za-z_]\w*)(?=[ \t]*\{)")
_HALTING_STATE = re.compile(r"\bhalting[ \t]+(?P<state>[A-Za-z_]\w*)[ \t]+by[ \t]+(?P<block>[^{}\r\n]+)\Z")
_NOT_IN = re.compile(r"not[ \t]+in\b")
_LAST_NAME = re.compile(r"([A-Za-z_][\w.]*)[ \t]+\Z")


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


def _charge_without_name(place: Place) -> Diagnostic | None:
    """`charge mean(g)` in place of `charge name = mean(g)`."""
    word = re.search(r"\bcharge[ \t]+([A-Za-z_]\w*)[ \t]*\Z", place.before)
    if word is None or place.expected.phrases != ("`=`",):
        return None
    return place.unexpected(f"name the charge, as in `charge cost = {word[1]}…`")


def _call_as_statement(place: Place) -> Diagnostic | None:
    """`norm(h)` in place of a statement."""
    if not place.begins_statement or place.name is None or place.is_in_recipe or not are_binders(place.expected):
        return None
    call = _CALL.match(place.text, place.name.end, place.name.end + LONGEST)
    closer = None if call is None else closing_bracket(place.text, call.start("inputs"))
    if call is None or closer is None or place.text[closer] != ")":
        return None
    end = closer + 1
    called = place.text[place.name.start : end]
    short = called if len(called) < 40 and "\n" not in called else f"{place.name.text}(…)"
    message = f"the value of {quoted(short)} is neither bound nor returned"
    diagnostic = Diagnostic("E0101", message, place.span(place.name.start, end), "no statement")
    beginning = _beginning_of_statement(place, call.start("inputs"), end)
    if beginning is None:
        return with_remedy(diagnostic, f"bind it to a name, as in `y = {short}`, or delete it")
    edits = [] if "…" in beginning else [insertion(place.token.source, place.name.start, beginning)]
    return with_remedy(diagnostic, f"write `{beginning}{short}`", *edits)


def _beginning_of_statement(place: Place, inputs: int, end: int) -> str | None:
    """Returns what makes a statement of a call, by the body around it: an update in a loop with states, and at the end
    of other bodies `emit` or `return`; None in the middle of a body, and in a branch. `inputs` and `end` are places of
    the call."""
    opener = last_opener(place.before)
    around = None if opener is None else _WORD_OF_BODY.search(place.before[:opener])
    word = "" if around is None else around[1]
    if word in ("repeat", "stack"):
        state = _FIRST_INPUT.match(place.text, inputs)
        return f"{state[1]} <- " if state else "… <- "
    rest = _SPACE.match(place.text, end)
    if word in ("if", "else") or rest is None or not place.text.startswith("}", rest.end()):
        return None
    return "emit " if word else "return "


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
    if set(words) == {"as", "by"}:
        words = ["by"]  # in `halting h with token_halt`
    if len(words) != 1 or place.token.text not in _PREPOSITIONS or place.is_in_recipe:
        return None
    return place.unexpected(f"write `{words[0]}`", Edit(place.token, words[0]))


def _halting_without_block(place: Place) -> Diagnostic | None:
    """`repeat 8 halting h {`."""
    if place.token.text != "{" or set(place.expected.words) != {"as", "by"}:
        return None
    edit = insertion(place.token.source, place.token.start, "by global_halt ")
    return place.unexpected("name the block that decides when to halt, as in `by global_halt`", edit)


def _for_steps(place: Place) -> Diagnostic | None:
    """`for steps {`."""
    name = place.name
    if name is None or name.text != "for" or not place.begins_statement or not are_binders(place.expected):
        return None
    if not _STEPS_AND_BODY.match(place.text, place.token.start):
        return None
    return place.unexpected("write `repeat`", Edit(name, "repeat"))


def _halting_without_state(place: Place) -> Diagnostic | None:
    """`repeat 8 halting by token_halt { h <- … }`."""
    if not _HALTING_BY.search(place.before) or set(place.expected.words) != {"as", "by"}:
        return None
    state = _UPDATE_IN_BODY.match(place.text, place.token.end, place.token.end + LONGEST)
    name = "h" if state is None else state[1]
    edits = [] if state is None else [insertion(place.token.source, place.after - len("by"), f"{name} ")]
    return place.unexpected(f"name the state that halts: `halting {name} by {place.token.text}`", *edits)


def _name_after_halting_block(place: Place) -> Diagnostic | None:
    """`repeat 8 halting h by token_halt as mix {`."""
    rest = _AS_NAME.match(place.text, place.token.start)
    halting = _HALTING_STATE.search(place.before)
    if rest is None or halting is None:
        return None
    state = place.token.start - len(halting[0]) + halting.end("state") - halting.start()
    edits = insertion(place.token.source, state, f" as {rest[1]}"), Edit(place.span(place.after, rest.end()), "")
    return place.unexpected(f"write `halting {halting['state']} as {rest[1]} by {halting['block'].strip()}`", *edits)


def _annotated_value(place: Place) -> Diagnostic | None:
    """`y: seq[n, d] = norm(h)`."""
    if place.token.text != ":" or not place.begins_statement or place.name is None or not are_binders(place.expected):
        return None
    annotation = _ANNOTATION.match(place.text, place.token.start)
    if annotation is None:
        return None
    written = place.span(place.name.end, annotation.end())
    diagnostic = Diagnostic("E0101", "the type of a value follows from what it is bound to", written, "not written")
    return with_remedy(diagnostic, "delete the type", Edit(written, ""))


def _item_in_body(place: Place) -> Diagnostic | None:
    """`block inner(…) -> … { … }` in the body of another item."""
    word = place.name
    if word is None or word.text not in ("block", "model", "recipe") or not place.begins_statement:
        return None
    if place.is_in_recipe or not are_binders(place.expected) or not place.token.text.isidentifier():
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
    return with_remedy(diagnostic, "state conditions on statics after the result type, as in `where d > 2`")


def _block_comment(place: Place) -> Diagnostic | None:
    """`/* … */`."""
    if place.token.text != "*" or place.text[place.after - 1 : place.after] != "/" or place.after != place.token.start:
        return None
    comment = _BLOCK_COMMENT.match(place.text, place.token.start - 1)
    written = place.span(place.token.start - 1, place.token.end if comment is None else comment.end())
    diagnostic = Diagnostic("E0101", "there is no sign `/*`", written, "neither a comment nor an operator")
    edits = [] if comment is None else [Edit(written, f"# {comment[1].strip()}")]
    return with_remedy(diagnostic, "begin a comment with `#`", *edits)


def _clauses_in_other_order(place: Place) -> Diagnostic | None:
    """`repeat 4 truncated 2 drawn by evenly {`."""
    if place.token.text != "drawn" or not _TRUNCATED_REPEAT.search(place.before):
        return None
    return place.unexpected("write `drawn by …` before `truncated`")


def _experts_without_name(place: Place) -> Diagnostic | None:
    """`experts v in h by w { … }`."""
    name = place.name
    if name is None or name.text != "experts" or not place.begins_statement or not are_binders(place.expected):
        return None
    emits = _EMITTING_BODY.match(place.text, place.token.end, place.token.end + LONGEST) is not None
    edits = [insertion(place.token.source, name.start, "y = ")] if emits else []
    return place.unexpected("bind its result: `y = experts … { … emit … }`", *edits)


def _named_steps(place: Place) -> Diagnostic | None:
    """`repeat steps=3 {`."""
    written = _NAMED_STEPS.search(place.before)
    if place.token.text != "=" or written is None:
        return None
    name = place.span(place.token.start - len(written[2]), place.token.end)
    return place.unexpected(f"write the number alone, as in `{written[1]} 3`", Edit(name, ""))


def _not_in(place: Place) -> Diagnostic | None:
    """`where kind not in [relu]`."""
    rest = _NOT_IN.match(place.text, place.token.start)
    name = _LAST_NAME.search(place.before)
    if rest is None or name is None:
        return None
    begin = place.token.start - len(name[0])
    edit = Edit(place.span(begin, place.token.start + len("not")), f"not {name[1]}")
    return place.unexpected(f"write `not {name[1]} in …`", edit)


FORMS: tuple[Form, ...] = (
    _weights_of_experts_missing,
    _half_word,
    _charge_without_name,
    _call_as_statement,
    _word_for_operator,
    _preposition,
    _for_steps,
    _halting_without_state,
    _name_after_halting_block,
    _halting_without_block,
    _annotated_value,
    _item_in_body,
    _assertion,
    _block_comment,
    _clauses_in_other_order,
    _experts_without_name,
    _named_steps,
    _not_in,
)
