"""Builds the tree of a program: when the parser completes a rule, its parts become the fields of a node."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple, TypeVar

from archlang.errors import Diagnostic, Source, Span
from archlang.syntax import mistakes, tree
from archlang.syntax.tokens import ITEM_WORDS, LINE_WORDS
from archlang.syntax.tree import documentation_above

# The tokens and nodes of a rule, with None for each optional part that is missing. The grammar, not Python, says which
# part has which type.
Parts = list[Any]  # Any: see above
N = TypeVar("N", bound=tree.Syntax)
ItemT = TypeVar("ItemT", bound=tree.Item)

# The deepest tree that the later stages, which are recursive, accept.
DEEPEST = 64

# The node of each rule, and the field of each part of the rule in order: `_` is a part without a field, and a field
# with `*` before it has the nodes of several parts.
_NODES: dict[str, tuple[type[tree.Syntax], str]] = {
    "pipe": (tree.Pipe, "value _ stage"),
    "conditional": (tree.Conditional, "then _ test _ otherwise"),
    "binary": (tree.Binary, "left operator right"),
    "range": (tree.Range, "low _ high"),
    "string": (tree.String, "value"),
    "list_of": (tree.ListOf, "*items"),
    "call": (tree.CallExpression, "callee statics arguments"),
    "configuration": (tree.CallExpression, "callee statics"),
    "positional_static": (tree.StaticArgument, "value"),
    "named_static": (tree.StaticArgument, "name _ value"),
    "missing": (tree.Missing, "_"),
    "plain_type": (tree.TypeName, "name dimensions"),
    "conditional_type": (tree.ConditionalType, "then _ test _ otherwise"),
    "kind_parameter": (tree.StaticParameter, "name _ kind _ default"),
    "default_parameter": (tree.StaticParameter, "name _ default"),
    "input": (tree.InputParameter, "name _ type variadic _ default"),
    "read": (tree.Reads, "input manner"),
    "whole_cost": (tree.CostClause, "quantity _ value"),
    "added_cost": (tree.CostClause, "quantity _ value _ test"),
    "whole_map": (tree.Maps, "*names _ width"),
    "added_map": (tree.Maps, "*names _ width _ test"),
    "map_name": (tree.MapName, "name _ input _"),
    "record": (tree.RecordClause, "kind _ input _ test"),
    "act": (tree.ActClause, "act _ test"),
    "demand": (tree.Demand, "problem _ test"),
    "setting": (tree.Setting, "path _ value"),
    "variation": (tree.Variation, "path _ values"),
    "sought": (tree.Sought, "path _ values log"),
    "bound_of_cost": (tree.CostBound, "cost _ length _ _ limit"),
    "published": (tree.Published, "_ median *cells _ origin"),
    "number_of_cell": (tree.CellNumber, "value _ deviation"),
    "no_number": (tree.CellNumber, "_"),
    # Statements, and lines of recipes and tables.
    "let": (tree.Let, "_ name _ value"),
    "assign": (tree.Assign, "name _ value"),
    "update": (tree.Update, "name _ value"),
    "loss": (tree.LossStatement, "_ name _ value"),
    "return_": (tree.Return, "_ value"),
    "emit": (tree.Emit, "_ value"),
    "if_": (tree.If, "_ test then _ otherwise"),
    "repeat": (tree.RepeatStatement, "target _ _ count _ _ drawn _ truncated settled body"),
    "stack": (tree.StackStatement, "target _ _ count _ index body"),
    "halting": (tree.HaltingStatement, "target _ _ count _ state _ mixture _ by _ truncated body"),
    "scan": (tree.ScanStatement, "target _ _ variable _ before _ reach _ _ over others carry _ truncated body"),
    "scanned": (tree.Scanned, "variable _ over"),
    "experts": (tree.ExpertsStatement, "target _ _ variable _ over _ by body"),
    "choice": (tree.Choice, "word value"),
    "at_test": (tree.AtTest, "_ settings"),
    "vary": (tree.Vary, "_ *variations"),
    "search": (tree.Search, "_ *sought"),
    "bounds": (tree.CostBounds, "_ *bounds"),
    "claim": (tree.Claim, "_ median metric _ index _ _ value _ deviation _ at *_ origin"),
    "row": (tree.Row, "_ title recipe _ at best_of _ best_by published"),
    "absent_row": (tree.Row, "_ title _ why published"),
    "column": (tree.Column, "_ title metric _ index _ _ at best_of _ best_by"),
    "average_column": (tree.Column, "_ title average _ metric _ at"),
    "columns": (tree.Columns, "_ title metric _ *at best_of _ best_by"),
}
# Nodes that can contain their own kind: each is a level.
_Level = (
    tree.Pipe | tree.Conditional | tree.Binary | tree.Range | tree.Unary | tree.ListOf | tree.CallExpression
    | tree.ConditionalType | tree.Body | tree.If | tree.Loop
)  # fmt: skip
_SETTINGS = (tree.Setting, tree.Variation, tree.Sought)
_GROUPS = ("static_parameters", "inputs", "dimensions", "statics", "arguments", "best_of", "others")
_CLAUSES = (
    *("where", "reads", "gives", "includes", "pure", "causal", "sizes", "costs", "maps", "records", "acts"),
    "demands",
)
_LARGEST = 2**63

_PART_ON_NEW_LINE = re.compile(rf"[\r\n][ \t]*({'|'.join(LINE_WORDS)})\Z")


def too_deep(nodes: Iterable[tree.Syntax]) -> Span | None:
    """Returns the place of the first node that is more than `DEEPEST` levels deep; None if there is none."""
    pending = [(node, 0) for node in nodes]
    while pending:
        node, depth = pending.pop()
        depth += isinstance(node, _Level)
        if depth > DEEPEST:
            return node.span
        pending += [(child, depth) for child in tree.children(node)]
    return None


class LineTaken(Exception):
    """The value of a line without one is the first word of the next line."""


class NodeList(NamedTuple):
    """The nodes of a list, with the offsets of its ends, such as its brackets. `growing` are the names of the states of
    a scan that grow together."""

    nodes: tuple[Any, ...]  # Any: of the type that the rule has
    start: int
    end: int
    growing: tuple[tuple[str, ...], ...] = ()


class Clause(NamedTuple):
    """A clause of a signature: the field of its parts, such as `reads`, and the parts."""

    field: str
    nodes: tuple[Any, ...]  # Any: as above
    span: Span


def _nodes_of(parts: Sequence[object]) -> tuple[Any, ...]:  # Any: as above
    return tuple(part for part in parts if isinstance(part, tree.Syntax))


def _place(part: Any) -> tuple[int, int]:  # Any: a token, a node, a group or a clause
    if isinstance(part, NodeList):
        return part.start, part.end
    span = getattr(part, "span", None)
    return (part.start_pos, part.end_pos) if span is None else (span.start, span.end)


def _with_fields(fields: str, parts: Parts) -> Iterator[tuple[str, Any]]:
    """Yields each field of a rule with its part, or with the nodes of its parts."""
    before, star, after = fields.partition("*")
    names = before.split()
    yield from zip(names, parts, strict=not star)
    if star:
        name, *others = after.split()
        end = len(parts) - len(others)
        yield name, _nodes_of(parts[len(names) : end])
        yield from zip(others, parts[end:], strict=True)


class TreeBuilder:
    """Builds the tree of one text. When a rule is complete, the parser calls its function in `rules` with its parts."""

    def __init__(self, source: Source) -> None:
        self.mistakes: list[Diagnostic] = []
        self._source = source
        self.rules: Mapping[str, Callable[[Parts], object]] = {
            **{rule: partial(self._node, kind, fields) for rule, (kind, fields) in _NODES.items()},
            **{rule: partial(self._clause, rule) for rule in _CLAUSES},
            **dict.fromkeys(_GROUPS, self._group),
            **dict.fromkeys(("extern_block", "extern_task", "extern_optimizer", "extern_settings"), self._extern),
            "start": lambda parts: parts,
            "use": self._use,
            "definition": self._definition,
            "page": self._page,
            "recipe": partial(self._recipe_or_table, tree.Recipe, "base"),
            "table": partial(self._recipe_or_table, tree.Table, "origin"),
            "depends": partial(self._clause_of, "caveats", tree.Caveat, "_ _ kind _ test"),
            "random": partial(self._clause_of, "caveats", tree.Caveat, "kind _ test"),
            "random_in_training": partial(self._clause_of, "caveats", tree.Caveat, "_ _ kind _ test"),
            "stops": partial(self._clause_of, "caveats", tree.Caveat, "_ kind _ test"),
            "cuts": partial(self._clause_of, "cuts", tree.Cut, "_ _ _ parts _ test"),
            "missing_line": lambda parts: parts[0],
            "unclear": lambda parts: NodeList(parts[1].statements, _place(parts[0])[0], _place(parts[1])[1]),
            "body": self._body,
            "else_if": self._else_if,
            "carry": self._carry,
            "settings": self._settings,
            "unary": self._unary,
            "number": self._number,
            "boolean": lambda parts: tree.Boolean(value=parts[0] == "true", span=self._span(parts)),
            "group": self._in_parentheses,
            "name": lambda parts: tree.Name(parts=tuple(parts[0].split(".")), span=self._span(parts)),
        }

    def _span(self, parts: Sequence[object]) -> Span:
        present = [part for part in parts if part is not None]
        return Span(self._source, _place(present[0])[0], _place(present[-1])[1])

    # Nodes

    def _node(self, kind: type[N], fields: str, parts: Parts) -> N:
        """Raises:
        LineTaken: the first word of the next line was taken for the name or the value that a line lacks."""
        span = self._span(parts)
        if (kind in _SETTINGS and _PART_ON_NEW_LINE.search(span.text)) or self._has_taken_name(kind, parts):
            raise LineTaken
        return kind(**self._fields(kind, fields, parts), span=span)

    def _fields(self, kind: type[tree.Syntax], fields: str, parts: Parts) -> dict[str, Any]:  # Any: of each field
        """Returns the fields of a node: a token is a text with its place, or says that something holds."""
        declared, values = kind.__dataclass_fields__, dict[str, Any]()
        for name, part in _with_fields(fields, parts):
            if name == "_" or (part is None and declared[name].default is not MISSING):
                continue
            values[name] = part
            if isinstance(part, NodeList):
                values[name] = part.nodes
                if part.growing:
                    values["growing"] = part.growing
            elif isinstance(part, str):
                text = part[1:-1] if self._is_string(part) else str(part)
                values[name] = True if declared[name].default is False else text
                if f"{name}_span" in declared:
                    values[f"{name}_span"] = self._span([part])
        return values

    def _is_string(self, token: Any) -> bool:  # Any: a token
        return bool(token.type == "STRING")

    def _unary(self, parts: Parts) -> tree.Unary:
        node = self._node(tree.Unary, "operator operand", parts)
        if node.operator == "-" and self._source.text.endswith("-", 0, node.span.start):
            self.mistakes.append(mistakes.doubled_minus(node.span))
        return node

    def _number(self, parts: Parts) -> tree.Number:
        text, span = str(parts[0]), self._span(parts)
        value: int | float = 0
        digits = text.replace("_", "")
        if set("eE.").isdisjoint(digits):
            value = int(digits)
            in_range = value < _LARGEST
        else:
            value = float(digits)
            mantissa = digits.lower().partition("e")[0]
            in_range = math.isfinite(value) and (value != 0 or not mantissa.strip("0."))
        if not in_range:
            self.mistakes.append(mistakes.number_out_of_range(span))
        return tree.Number(value=value, text=text, span=span)

    def _in_parentheses(self, parts: Parts) -> tree.Syntax:
        node: tree.Syntax = replace(parts[1], span=self._span(parts))
        return node

    # Lists

    def _group(self, parts: Parts) -> NodeList:
        return NodeList(_nodes_of(parts), _place(parts[0])[0], _place(parts[-1])[1])

    def _settings(self, parts: Parts) -> NodeList:
        first, *others = parts
        nodes = first.nodes if isinstance(first, NodeList) else (first,)
        return NodeList((*nodes, *_nodes_of(others)), _place(first)[0], _place(parts[-1])[1])

    def _carry(self, parts: Parts) -> NodeList:
        together = [list(group) for is_end, group in groupby(parts, lambda part: part == ",") if not is_end]
        growing = tuple(tuple(name.text for name in _nodes_of(group)) for group in together if "growing" in group)
        return NodeList(_nodes_of(parts), _place(parts[0])[0], self._span(parts).end, growing)

    # Signatures

    def _clause(self, field: str, parts: Parts) -> Clause:
        return Clause(field, _nodes_of(parts), self._span(parts))

    def _clause_of(self, field: str, kind: type[tree.Syntax], fields: str, parts: Parts) -> Clause:
        clause = self._clause(field, parts)
        return clause._replace(nodes=(kind(**self._fields(kind, fields, parts), span=clause.span),))

    def _signature(self, parts: Parts) -> tree.Signature:
        """`parts` are the name, the statics, the inputs and the result of a signature, and clauses."""
        name, statics, inputs, result, *clauses = parts
        where = tuple(node for clause in clauses if clause.field == "where" for node in clause.nodes)
        # Error recovery gives what it could not read an empty name.
        parameters = () if statics is None else statics.nodes
        fields = () if inputs is None else inputs.nodes
        return tree.Signature(
            statics=tuple(parameter for parameter in parameters if parameter.name),
            inputs=tuple(field for field in fields if field.name),
            result=None if isinstance(result, tree.TypeName) and not result.name else result,
            where=where,
            span=self._span([name, statics, inputs, result, *where]),
        )

    # Items

    def _use(self, parts: Parts) -> tree.Use:
        """Raises:
        LineTaken: the path is the first word of the next item."""
        if parts[1] in ITEM_WORDS and "\n" in self._span(parts).text:
            raise LineTaken
        return self._item(tree.Use, "_ path _ alias", parts, is_file=self._is_string(parts[1]))

    def _definition(self, parts: Parts) -> tree.Definition:
        _, name, statics, inputs, _, result, where, _ = parts
        signature = self._signature([name, statics, inputs, result, *([where] if where else [])])
        return self._item(tree.Definition, "word name _ _ _ _ _ body", parts, signature=signature)

    def _page(self, parts: Parts) -> tree.Extern:
        *header, body = parts
        item, span = self._extern([header[0], *header, None]), self._span(parts)
        return replace(item, body=body, span=span, python=span.text)

    def _extern(self, parts: Parts) -> tree.Extern:
        _, word, name, statics, *rest = parts
        inputs, result = (rest[0], rest[2]) if word in ("block", "task") else (None, None)
        clauses = [part for part in rest if isinstance(part, Clause)]
        places = {clause.field: clause.span for clause in clauses}
        lists: dict[str, tuple[Any, ...]] = dict.fromkeys(places.keys() - {"where", "pure", "causal"}, ())
        for clause in clauses:
            if clause.field in lists:
                lists[clause.field] += clause.nodes
        python = rest[-1] if word != "settings" else None
        return self._item(
            tree.Extern,
            "_ word name *_",
            parts,
            signature=self._signature([name, statics, inputs, result, *clauses]),
            **lists,
            pure="pure" in places,
            pure_span=places.get("pure"),
            causal="causal" in places,
            python="" if python is None else python[1:-1],
            python_span=self._span([name if python is None else python]),
        )

    def _recipe_or_table(self, kind: type[ItemT], origin: str, parts: Parts) -> ItemT:
        return self._item(kind, f"_ name _ {origin} _ *parts _", parts)

    def _item(self, kind: type[ItemT], fields: str, parts: Parts, **more: Any) -> ItemT:  # Any: further fields
        span = self._span(parts)
        documentation = documentation_above(span)
        return kind(**self._fields(kind, fields, parts), **more, span=span, documentation=documentation)

    # Lines

    def _has_taken_name(self, kind: type[tree.Syntax], parts: Parts) -> bool:
        """Whether the name of a statement stands on another line than the keyword beside it."""
        if kind in (tree.Let, tree.LossStatement):
            word, name, _, value = parts
            is_bound = kind is tree.LossStatement or getattr(value, "arguments", None) is not None
        else:
            name, _, word = parts[:3] if issubclass(kind, tree.Loop) else (None, None, None)
            is_bound = name is not None
        return is_bound and self._span([name]).line != self._span([word]).line

    def _body(self, parts: Parts) -> tree.Body:
        # The statements of a body whose header cannot be read are those of the body around it.
        lists = (part.nodes if isinstance(part, NodeList) else _nodes_of([part]) for part in parts)
        return tree.Body(statements=tuple(chain.from_iterable(lists)), span=self._span(parts))

    def _else_if(self, parts: Parts) -> tree.Body:
        node = self._node(tree.If, "_ test then _ otherwise", parts)
        return tree.Body(statements=(node,), span=node.span)
