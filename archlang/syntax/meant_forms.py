"""Forms of other languages, and half forms, which the words around an unexpected token show."""

from archlang.diagnostics import Diagnostic
from archlang.syntax import bracket_forms, recipe_forms, statement_forms
from archlang.syntax.form_place import Place

# A form of a recipe may look like one of brackets.
_FORMS = (*recipe_forms.FORMS, *statement_forms.FORMS, *bracket_forms.FORMS)


def meant_form(place: Place) -> Diagnostic | None:
    """Returns the diagnostic of an unexpected token that is part of a form which the words around it show; None if they
    show none."""
    return next((mistake for read in _FORMS if (mistake := read(place)) is not None), None)
