"""The signature of the call around the cursor, with the static or the input that is being written."""

import re
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.editor.open_brackets import callee_before, is_own_bracket, open_brackets
from archlang.editor.symbols import Item
from archlang.syntax.printer import unparse
from archlang.syntax.tokens import pieces
from archlang.syntax.tree import first_sentence

_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")


@dataclass(frozen=True)
class SignatureHelp:
    """A signature on one line. `parameters` are the places in it of the statics, or of the inputs, of which `active` is
    the number of the one at the cursor, None if there is none."""

    label: str
    documentation: str
    parameters: tuple[tuple[int, int], ...]
    active: int | None


def signature_help(document: Document, offset: int) -> SignatureHelp | None:
    """Returns the signature of the innermost call around an offset; None outside of calls, as in a signature."""
    text = document.text
    for bracket, place in reversed(open_brackets(text, offset)):
        if bracket == "{":
            return None
        end = _callee_end(text, place) if bracket == "(" else place
        if is_own_bracket(text, end):
            return None
        name, item = callee_before(document, end)
        if item is not None:
            is_piped = text[: end - len(name)].rstrip().endswith("|>")
            rest = _REST_OF_NAME.match(text, offset)
            return _help(item, bracket, text[place + 1 : offset] + (rest[0] if rest else ""), is_piped)
    return None


# The rest of the name of a static that is set.
_REST_OF_NAME = re.compile(r"\w*[ \t]*=(?!=)")


def _callee_end(text: str, parenthesis: int) -> int:
    before = text[:parenthesis].rstrip()
    opened = open_brackets(text, len(before) - 1) if before.endswith("]") else []
    return opened[-1][1] if opened else parenthesis


def _help(item: Item, bracket: str, written: str, is_piped: bool) -> SignatureHelp:
    signature = item.signature
    statics = [unparse(static) for static in signature.statics]
    inputs = [unparse(each) for each in signature.inputs]
    label, places = item.name, []
    for opener, closer, parameters in (("[", "]", statics), ("(", ")", inputs)):
        if parameters or opener == "(":
            label += opener
            for number, parameter in enumerate(parameters):
                label += ", " if number else ""
                if opener == bracket:
                    places.append((len(label), len(label) + len(parameter)))
                label += parameter
            label += closer
    if signature.result is not None:
        label += f" -> {unparse(signature.result)}"
    active = argument_number(item, bracket, written, is_piped)
    documentation = first_sentence(item.documentation)
    return SignatureHelp(label, documentation, tuple(places), active if active < len(places) else None)


def argument_number(item: Item, bracket: str, written: str, is_piped: bool = False) -> int:
    """Returns the number of the static, or of the input, that is written next after some text between brackets."""
    arguments = _arguments_so_far(written)
    number = len(arguments) - 1
    if bracket == "(":
        number += is_piped
        inputs = item.signature.inputs
        return min(number, len(inputs) - 1) if inputs and inputs[-1].variadic else number
    named = _NAMED.match(arguments[-1])
    names = [static.name for static in item.signature.statics]
    return names.index(named[1]) if named and named[1] in names else number


def _arguments_so_far(written: str) -> list[str]:
    arguments, depth, start = [], 0, 0
    for piece in pieces(written):
        if piece[0] == "," and depth == 0:
            arguments.append(written[start : piece.start()])
            start = piece.end()
        elif piece[0] in "([{":
            depth += 1
        elif piece[0] in ")]}":
            depth -= 1
    return [*arguments, written[start:]]
