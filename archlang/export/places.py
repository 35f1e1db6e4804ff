"""Finds the place in a program at which torch refused to trace or to translate it."""

import logging
import re
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from torch import fx

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import all_codes
from archlang.errors import ProgramError, Source, Span
from archlang.graph.graph import Node
from archlang.resolve import library
from archlang.syntax.parser import parse
from archlang.syntax.tree import Definition

# A line of compiled code in a traceback, or in a message of torch.
_LINE = re.compile(r'File "(<archlang [^"]+>)", line (\d+)')
# What torch logs when the traced code asks for a length: `set_replacement s3 = 7 …`, `eval Eq(Mod(s3, 7), 0) [guard …`.
_RESTRICTION = re.compile(r"set_replacement \w+ = \d|eval ((Eq|Ne)\(.*\b\d+\)|.* <=? \d{1,9}\b|Ne\(Mod)")
# What torch.export says of a length that cannot be any number.
_FIXED = re.compile(r"You marked length_(\w+) as dynamic but your code specialized it to be a constant")
_GUARD = re.compile(
    r"values of length_(\w+) = (\S+) in the specified range satisfy the generated guard (.+?)\.(?:\s|$)"
)


def refused_node(module: Architecture, error: BaseException) -> Node | None:
    """Returns the node of the program that was being traced or translated when torch raised an error; None if torch
    does not say."""
    return first_node(module, _stacks(error))


def first_node(module: Architecture, stacks: Iterable[str]) -> Node | None:
    """Returns the innermost node of the first of some tracebacks that contains nodes of the program; None if none
    does."""
    lines = {code.function.__code__.co_filename: code.origins for code in all_codes(module.program.code)}
    for stack in stacks:
        for file, line in reversed(_LINE.findall(stack)):
            node = lines.get(file, {}).get(int(line))
            if node is not None:
                return node
    return None


def place_of(module: Architecture, node: Node | None) -> tuple[str, Span | None]:
    """Returns the name of the block that a node applies, and where the program uses it; the model's own name and place
    if the node is None. A saved model knows no places."""
    if node is not None:
        instance = node.instance
        if instance is not None:
            return module.program.graph.instances[instance].block, node.span
        return node.operation.mnemonic, node.span
    return module.program.graph.name, place_of_model(module)


def place_of_model(module: Architecture) -> Span | None:
    """Returns where the program names its model; None if there is no program."""
    definition = definition_of(module)
    return None if definition is None else definition.name_span


def place_of_field(module: Architecture, field: str) -> Span | None:
    """Returns where the program declares a field of its model; None if there is no program."""
    definition = definition_of(module)
    if definition is None:
        return None
    return next(entry.span for entry in definition.signature.inputs if entry.name == field)


@contextmanager
def restriction_stacks() -> Iterator[list[str]]:
    """Lists the traceback of each restriction of a length that torch makes inside of the `with` block."""
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    handler = _Restrictions()
    others, level, switches = logger.handlers, logger.level, (logger.propagate, logger.disabled)
    logger.handlers, logger.propagate, logger.disabled = [handler], False, False
    logger.setLevel(logging.INFO)
    try:
        yield handler.stacks
    finally:
        logger.handlers, (logger.propagate, logger.disabled) = others, switches
        logger.setLevel(level)


class _Restrictions(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.stacks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if _RESTRICTION.match(record.getMessage()):
            self.stacks.append("".join(traceback.format_stack()))


def _stacks(error: BaseException) -> Iterator[str]:
    """Yields the tracebacks of an error and of its causes, with the messages, causes first. If torch was translating a
    node of a graph, the traceback of this node comes before that of torch."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in reversed(chain):
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            node = frame.f_locals.get("node")
            if isinstance(node, fx.Node):
                yield str(node.meta.get("stack_trace") or "")
        yield "".join(traceback.format_exception(cause, chain=False))


def reason_of(error: BaseException) -> str:
    """Returns what torch says is wrong, in plain words for a length that is not free, and without its advice to
    developers of torch."""
    while error.__cause__ is not None:
        error = error.__cause__
    if fixed := _FIXED.search(str(error)):
        return f"its code fixes the length `{fixed[1]}`, as a Python loop over positions does"
    if guard := _GUARD.search(str(error)):
        return f"its code needs a length `{guard[1]}` with {guard[3].replace(guard[2], guard[1])}"
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    text = re.sub(r'For more information, run with TORCH_LOGS="[^"]*"\.?', "", text)
    text = re.split(r"Suggested fixes:|Caused by:|The error above occurred|consider using data-dependent", text)[0]
    return f"{type(error).__name__}: {' '.join(text.split())}"


def definition_of(module: Architecture) -> Definition | None:
    """Returns the definition of a module's model, in its program or in the library; None if neither has it."""
    origin = module.program.origin
    sources: dict[str, Source] = {}
    if origin is not None and origin.program is not None:
        sources.update((source.path, source) for source in (origin.program, *origin.used))
    for node in module.program.graph.region.walk():
        if node.span is not None and node.span.source.path.endswith(".arch"):
            sources.setdefault(node.span.source.path, node.span.source)
    for file in sorted((library.BLOCKS / "models").glob("*.arch")):
        sources.setdefault(str(file), Source(str(file), file.read_text(encoding="utf-8")))
    for source in sources.values():
        with suppress(ProgramError):
            for item in parse(source).items:
                if isinstance(item, Definition) and item.name == module.program.graph.name:
                    return item
    return None
