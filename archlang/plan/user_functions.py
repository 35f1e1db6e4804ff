"""The settings `rate`, `loss` and `metrics`, which name functions in Python files of the user's own."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.names.values import BlockValue, Bound
from archlang.plan import mistakes
from archlang.source import Span
from archlang.types.statics import Symbol

# What else the settings can be.
SHIPPED: Mapping[str, tuple[str, ...]] = {"rate": ("none",), "loss": ("task", "stablemax"), "metrics": ()}


def check_user_functions(statics: Mapping[str, Bound], span: Span, report: Report) -> None:
    """Reports functions without the name of their file; `span` is the place of a setting without one."""
    for setting, shipped in SHIPPED.items():
        bound = statics.get(setting)
        if bound is None:
            continue
        for value in bound.value if isinstance(bound.value, tuple) else (bound.value,):
            name = str(value.declaration.name if isinstance(value, BlockValue) else value)
            is_function = isinstance(value, Symbol) and ("." in name or name in shipped)
            if value is not None and not is_function:
                report(mistakes.function_without_file(bound.span or span, setting, name, shipped))
