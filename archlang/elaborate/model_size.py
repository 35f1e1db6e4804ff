"""How large a model becomes: limits on its operations, modules and parameters, and on the steps of its nested loops."""

from collections.abc import Iterator
from contextlib import contextmanager

from archlang.diagnostics import Diagnostic
from archlang.elaborate import mistakes
from archlang.source import Span

MOST_OPERATIONS = 20_000
"""Operations that a model unfolds to, and modules that it has."""
MOST_LOOP_STEPS = 1_000_000
"""Steps of nested loops together."""
MOST_PARAMETERS = 1_000_000_000_000
"""Parameters of a model: 4 TB of 32-bit weights, which every device of a run holds whole."""


class TooLarge(Exception):
    """A model exceeds a limit; `mistake` says which."""

    def __init__(self, mistake: Diagnostic) -> None:
        self.mistake = mistake
        super().__init__()


class ModelSize:
    """Counts the values, modules and loop steps of one model while it is elaborated, and numbers its values."""

    def __init__(self) -> None:
        self._values = 0
        self._modules = 0
        self._parameters = 0
        self._stack_counts: dict[str, int] = {}
        self._steps = 1

    def new_id(self) -> str:
        """Returns an id that no other value of the model has."""
        self._values += 1
        return f"%{self._values}"

    def check_operations(self, span: Span) -> None:
        """Raises:
        TooLarge: the model has more than `MOST_OPERATIONS` values."""
        if self._values > MOST_OPERATIONS:
            raise TooLarge(mistakes.too_large(span, MOST_OPERATIONS))

    def add_modules(self, path: str, span: Span, count: int = 1, parameters: int = 0) -> None:
        """Counts `count` modules at `path`, each with `parameters`, once for each step of the stacks around it.

        Raises:
            TooLarge: the model has more than `MOST_OPERATIONS` modules, or more than `MOST_PARAMETERS`."""
        for stack, steps in self._stack_counts.items():
            if path.startswith(f"{stack}.*"):
                count *= steps
        self._modules += count
        if self._modules > MOST_OPERATIONS:
            raise TooLarge(mistakes.too_large(span, MOST_OPERATIONS))
        self._parameters += count * parameters
        if self._parameters > MOST_PARAMETERS:
            raise TooLarge(mistakes.too_many_parameters(span, self._parameters, MOST_PARAMETERS))

    def add_stack(self, path: str, span: Span, count: int | None) -> None:
        """Counts the modules of a stack: one for each step. None is an unknown count.

        Raises:
            TooLarge: the model has more than `MOST_OPERATIONS` modules."""
        self.add_modules(path, span, count or 0)
        self._stack_counts[path] = 1 if count is None else count

    @contextmanager
    def inside_loop(self, count: int | None, span: Span) -> Iterator[None]:
        """Holds while the body of a loop of `count` steps is elaborated. None is an unknown count.

        Raises:
            TooLarge: the loop and those around it take more than `MOST_LOOP_STEPS` steps together."""
        steps_around = self._steps
        self._steps *= 1 if count is None else max(1, count)
        if self._steps > MOST_LOOP_STEPS:
            raise TooLarge(mistakes.too_many_steps(span, MOST_LOOP_STEPS))
        yield
        self._steps = steps_around
