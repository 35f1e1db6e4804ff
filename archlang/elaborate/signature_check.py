"""Checks a signature on its own, before any call."""

import re
from collections.abc import Iterable
from pathlib import Path

from archlang.elaborate import mistakes
from archlang.elaborate.binding import LARGEST_SIZE, TASK_SIZES, Binding
from archlang.elaborate.facts import Facts
from archlang.elaborate.static_arguments import parameter_kind
from archlang.errors import Report, Source, Span
from archlang.errors.log import DiagnosticLog
from archlang.graph.facts import POSITIONS, PROBLEMS
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve import resolve
from archlang.resolve.resolve import Declaration, ResolvedFile, is_shipped
from archlang.resolve.values import KINDS
from archlang.syntax import tree
from archlang.syntax.printer import unparse
from archlang.types import ISOLATED, Axis, Dim
from archlang.types.causality import COUNTED, MANNERS

# What a caveat may be about; the grammar has words of their own for the last three.
CAVEATS = ("padding", "batch", "targets", "random", "training", "gradients")

_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def check_signature(declaration: Declaration, report: Report) -> None:
    """Reports mistakes in the kinds, types, sizes and clauses of a signature."""
    item = declaration.item
    signature = item.signature
    binding = Binding(declaration, item.name_span, {}, report, generic=True)
    lengths, features = binding.named_sizes(Axis.LENGTH), binding.named_sizes(Axis.FEATURE)
    named = [(static.name, static.span) for static in signature.statics]
    named += [(parameter.name, parameter.span) for parameter in signature.inputs]
    if isinstance(item, tree.Extern):
        named += [(size.name or "", size.span) for size in item.sizes]
        for size in item.sizes:  # which would hide sizes of the inputs in the other clauses
            if size.name in {*lengths, *features, POSITIONS}:
                report(mistakes.reserved_size(size.span, size.name))
    first: dict[str, Span] = {}
    for name, span in named:
        if name in first:
            report(name_mistakes.declared_twice(span, name, first[name]))
        first.setdefault(name, span)
    for static in signature.statics:
        if static.kind is not None and static.kind not in KINDS:
            report(name_mistakes.unknown_kind(static.span, static.kind, KINDS))
        elif static.kind is None and parameter_kind(static, declaration.file) is None:
            report(name_mistakes.unclear_kind(static.span, static.name))
        if item.word == "model" and static.name in ("classes", "vocab"):
            report(mistakes.static_of_task_model(static.span, static.name, item.name))
    for parameter in signature.inputs:
        for written in binding.written_sizes(parameter.type) or ():
            number = binding.evaluator.value(written, "int") if isinstance(written, tree.Number | tree.Unary) else None
            if isinstance(number, Dim) and number.constant is not None and not 0 < number.constant <= LARGEST_SIZE:
                report(mistakes.size_out_of_range(written.span, unparse(written), number.constant, LARGEST_SIZE))
    of_task = dict.fromkeys(TASK_SIZES, item.name_span) if item.word == "model" else {}
    places = {**of_task, **{name: parameter.type.span for name, parameter in features.items()}}
    for name, parameter in lengths.items():
        if name in places:
            report(mistakes.length_and_feature(parameter.type.span, name, places[name]))
    if isinstance(item, tree.Extern):
        _check_extern(declaration, item, binding, report)


def _check_extern(declaration: Declaration, item: tree.Extern, binding: Binding, report: Report) -> None:
    if item.word == "block" and (not _CLASS.fullmatch(item.python) or ".py:" in item.python):
        report(mistakes.no_class(item.python_span or item.name_span, item.python))
    binding.bind_names()
    inputs = {parameter.name for parameter in item.signature.inputs}
    first: dict[str, Span] = {}
    for reads in item.reads:
        if reads.input not in inputs:
            report(mistakes.reads_unknown_input(reads.span, reads.input, item.name, inputs))
        if first.setdefault(reads.input, reads.span) is not reads.span:
            report(mistakes.read_twice(reads.span, reads.input, first[reads.input]))
        for manner in _manners(reads.manner):
            name = manner.callee if isinstance(manner, tree.CallExpression) else manner
            is_counted = isinstance(manner, tree.CallExpression) and len(manner.statics) == 1
            if not isinstance(name, tree.Name) or name.text not in MANNERS or is_counted != (name.text in COUNTED):
                word = manner.span.text.partition("[")[0]
                report(mistakes.unknown(manner.span, "manner of reading", word, MANNERS))
            elif isinstance(manner, tree.CallExpression):
                binding.evaluator.value(manner.statics[0].value, "int")
    for caveat in item.caveats:
        if caveat.kind not in CAVEATS:
            report(mistakes.unknown_caveat(caveat.span, caveat.kind, CAVEATS[:3]))
        if item.pure and caveat.kind in ("random", "training"):
            report(mistakes.pure_but_random(caveat.span, item.name, item.pure_span))
    for demand in item.demands:
        if demand.problem not in PROBLEMS:
            report(mistakes.unknown(demand.span, "problem", demand.problem, PROBLEMS))
    if any(parameter.type.name == "data" for parameter in item.signature.inputs):
        binding.family = ("seq", (Dim.of("n"),))
    # What a condition names must be there, and no length.
    conditions = [*item.signature.where, *(caveat.test for caveat in item.caveats if caveat.test is not None)]
    conditions += [demand.test for demand in item.demands if demand.test is not None]
    for reads in item.reads:
        conditions += [node.test for node in tree.walk(reads.manner) if isinstance(node, tree.Conditional)]
    for condition in conditions:
        binding.evaluator.truth(condition)
    Facts(binding, item, report).check()
    result = item.signature.result
    if result is not None and item.word == "block":
        for written in _types(result):
            binding.type(written, features=[Dim.of("d")])
        takes = any(parameter.type.name in ISOLATED for parameter in item.signature.inputs)
        gives = [written for written in _types(result) if written.name not in ISOLATED]
        if takes and gives and not item.python.startswith("archlang."):
            report(mistakes.address_escapes(gives[0].span, item.name, gives[0].span.text))


def _manners(manner: tree.Expression) -> list[tree.Expression]:
    if isinstance(manner, tree.Conditional):
        return [*_manners(manner.then), *_manners(manner.otherwise)]
    return [manner]


def _types(written: tree.TypeExpression) -> list[tree.TypeName]:
    return [node for node in tree.walk(written) if isinstance(node, tree.TypeName)]


def load_file(path: str | Path | Source, allow: Iterable[str | Path] = ()) -> ResolvedFile:
    """Loads a file as `load_file` of `archlang.resolve.resolve` does, and checks the signatures of its blocks and
    models, and of those of the user's files that it uses.

    Raises:
        ProgramError: a file cannot be read or has mistakes, or a signature has."""
    resolved = resolve.load_file(path, allow)
    report = DiagnosticLog()
    for declaration in (*resolved.own.values(), *resolved.used.values()):
        if not is_shipped(declaration.file):
            check_signature(declaration, report)
    report.stop_at_errors()
    return resolved
