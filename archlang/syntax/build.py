"""What each rule of the grammar becomes in the tree; methods bear the names of the rules in `arch.lark`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, TypeVar

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.comments import Comments
from archlang.syntax.tree import (
    Assign,
    AtTest,
    Binary,
    Body,
    Boolean,
    Call,
    Caveat,
    Choice,
    Claim,
    Column,
    Conditional,
    ConditionalType,
    Cost,
    Definition,
    Emit,
    Expression,
    Extern,
    Halting,
    If,
    InputParameter,
    Let,
    ListOf,
    MapName,
    Maps,
    Move,
    Name,
    Node,
    Number,
    Pipe,
    Program,
    Range,
    Reads,
    Recipe,
    Record,
    Repeat,
    Return,
    Row,
    Scan,
    Search,
    Setting,
    Signature,
    Sought,
    Stack,
    Statement,
    StaticArgument,
    StaticParameter,
    String,
    Table,
    TypeName,
    Unary,
    Use,
    Variation,
    Vary,
)

if TYPE_CHECKING:
    from lark import Token

# What a rule is made of: the tokens and the nodes of its parts, and None for an optional part that is not there. The
# grammar, not Python, says which stands where.
Parts = list[Any]  # Any: see above
N = TypeVar("N", bound=Node)

# The deepest tree that the later stages, which recur, are handed.
DEEPEST = 64
_LARGEST = 2**63


class TooDeep(Exception):
    """A node would be deeper than any program needs."""

    def __init__(self, span: Span) -> None:
        self.span = span


class Group(NamedTuple):
    """What stands between two brackets."""

    nodes: tuple[Node, ...]
    start: int
    end: int


class Clause(NamedTuple):
    """A clause of a signature: the word that it begins with (`caveat` for a caveat), and its parts."""

    word: str
    nodes: tuple[Node, ...]
    span: Span


class _Comment(TypedDict):
    leading: tuple[str, ...]
    trailing: str
    blank: bool


class _Documentation(TypedDict):
    documentation: tuple[str, ...]
    apart: bool


class Build:
    """The tree of one text. The parser calls it with the parts of a rule as soon as they are complete."""

    def __init__(self, source: Source, comments: Comments) -> None:
        self.source = source
        self.comments = comments
        self.mistakes: list[Diagnostic] = []
        # The nodes are kept, so that no other one gets their id.
        self._depths: dict[int, tuple[int, Node]] = {}

    def program(self, items: Iterable[Node]) -> Program:
        """The whole, of the items that were understood."""
        kept = tuple(item for item in items if isinstance(item, Use | Definition | Extern | Recipe | Table))
        return Program(items=kept, source=self.source, closing=self.comments.within(0, len(self.source.text)))

    # Places

    def _span(self, parts: Parts) -> Span:
        first = next(part for part in parts if part is not None)
        last = next(part for part in reversed(parts) if part is not None)
        return Span(self.source, _start(first), _end(last))

    def _token_span(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)

    def _nested(self, node: N, *children: Node | None) -> N:
        """The node, unless it is too deep. Only nodes that can contain their like are counted."""
        depth = 1 + max((self._depth(child) for child in children), default=0)
        if depth > DEEPEST:
            raise TooDeep(node.span)
        self._depths[id(node)] = depth, node
        return node

    def _depth(self, node: Node | None) -> int:
        return self._depths[id(node)][0] if id(node) in self._depths else 0

    # Items

    def start(self, parts: Parts) -> Parts:
        return parts

    def use(self, parts: Parts) -> Use:
        _, path, _, alias = parts
        is_file = path.type == "STRING"
        span = self._span(parts)
        documentation, comment = self._item_comments(span)
        return Use(
            path=path[1:-1] if is_file else str(path),
            is_file=is_file,
            path_span=self._token_span(path),
            alias=None if alias is None else str(alias),
            span=span,
            **documentation,
            **comment,
        )

    def definition(self, parts: Parts) -> Definition:
        word, name, statics, inputs, _, result, where, body = parts
        span = self._span(parts)
        documentation, comment = self._item_comments(span)
        return Definition(
            word=str(word),
            name=str(name),
            name_span=self._token_span(name),
            signature=self._signature(name, statics, inputs, result, [where]),
            body=body,
            span=span,
            **documentation,
            **comment,
        )

    def extern_block(self, parts: Parts) -> Extern:
        _, word, name, statics, inputs, _, result, *clauses, _, python = parts
        return self._extern(parts, word, name, statics, inputs, result, clauses, python)

    extern_task = extern_block

    def extern_optimizer(self, parts: Parts) -> Extern:
        _, word, name, statics, *clauses, _, python = parts
        return self._extern(parts, word, name, statics, None, None, clauses, python)

    def _extern(
        self,
        parts: Parts,
        word: Token,
        name: Token,
        statics: Group | None,
        inputs: Group | None,
        result: Node | None,
        clauses: list[Clause | None],
        python: Token,
    ) -> Extern:
        span = self._span(parts)
        documentation, comment = self._item_comments(span)
        words = {clause.word: clause.span for clause in clauses if clause is not None}
        return Extern(
            word=str(word),
            name=str(name),
            name_span=self._token_span(name),
            signature=self._signature(name, statics, inputs, result, clauses),
            reads=_clause(clauses, "reads", Reads),
            caveats=_clause(clauses, "caveat", Caveat),
            pure="pure" in words,
            pure_span=words.get("pure"),
            sizes=_clause(clauses, "sizes", StaticArgument),
            costs=_clause(clauses, "costs", Cost),
            maps=_clause(clauses, "maps", Maps),
            records=_clause(clauses, "records", Record),
            gives=_clause(clauses, "gives", StaticArgument),
            causal="causal" in words,
            python=python[1:-1],
            python_span=self._token_span(python),
            span=span,
            **documentation,
            **comment,
        )

    def _signature(
        self, name: Token, statics: Group | None, inputs: Group | None, result: Any, clauses: list[Clause | None]
    ) -> Signature:  # Any: a type expression
        where = tuple(node for clause in clauses if clause and clause.word == "where" for node in clause.nodes)
        places = [self._token_span(name)]
        places += [Span(self.source, group.start, group.end) for group in (statics, inputs) if group is not None]
        places += [node.span for node in (result, *where) if node is not None]
        return Signature(
            statics=_only(StaticParameter, statics),
            inputs=_only(InputParameter, inputs),
            result=result,
            where=where,  # type: ignore[arg-type]  # the grammar has only expressions there
            span=Span(self.source, places[0].start, max(place.end for place in places)),
        )

    def _item_comments(self, span: Span) -> tuple[_Documentation, _Comment]:
        comment = self._comments(span, moved=False)
        lines = list(comment["leading"])
        apart = bool(lines) and lines[-1] == ""
        block = len(lines) - apart
        while block > 0 and lines[block - 1] != "":
            block -= 1
        group = lines[block : len(lines) - apart]
        docs = [line for line in group if line.startswith("##")]
        apart = apart and bool(docs) and len(docs) == len(group)
        if not docs or (lines[-1] == "" and not apart):
            docs, rest = [], lines
        else:
            rest = lines[:block] + [line for line in group if not line.startswith("##")]
        # Above the item a second mark would make documentation of them.
        moved = [f"# {line.lstrip('# ')}".rstrip() if line.startswith("##") else line for line in self._moved(span)]
        if moved:
            rest += moved + ([""] if apart else [])
        documentation: _Documentation = {
            "documentation": tuple(line[2:].removeprefix(" ") for line in docs),
            "apart": apart,
        }
        return documentation, {**comment, "leading": tuple(rest)}

    def where(self, parts: Parts) -> Clause:
        return Clause(parts[0], _nodes(parts), self._span(parts))

    reads = gives = pure = causal = sizes = costs = maps = records = where

    def read(self, parts: Parts) -> Reads:
        name, mode = parts
        return Reads(input=str(name), mode=mode, span=self._span(parts))

    def whole_cost(self, parts: Parts) -> Cost:
        quantity, _, value = parts
        return Cost(quantity=str(quantity), value=value, span=self._span(parts))

    def added_cost(self, parts: Parts) -> Cost:
        quantity, _, value, _, test = parts
        return Cost(quantity=str(quantity), value=value, test=test, span=self._span(parts))

    def whole_map(self, parts: Parts) -> Maps:
        names = tuple(part for part in parts if isinstance(part, MapName))
        return Maps(names=names, width=parts[-1], span=self._span(parts))

    def added_map(self, parts: Parts) -> Maps:
        names = tuple(part for part in parts if isinstance(part, MapName))
        *_, width, _, test = parts
        return Maps(names=names, width=width, test=test, span=self._span(parts))

    def map_name(self, parts: Parts) -> MapName:
        name, _, argument, _ = parts
        return MapName(name=str(name), input=str(argument), span=self._span(parts))

    def record(self, parts: Parts) -> Record:
        kind, _, argument, _, test = parts
        return Record(
            kind=str(kind), input=None if argument is None else str(argument), test=test, span=self._span(parts)
        )

    def depends(self, parts: Parts) -> Clause:
        _, _, kind, _, test = parts
        return self._caveat(str(kind), test, parts)

    def random(self, parts: Parts) -> Clause:
        _, _, training, _, test = parts
        return self._caveat("random" if training is None else "training", test, parts)

    def stops(self, parts: Parts) -> Clause:
        _, _, _, test = parts
        return self._caveat("gradients", test, parts)

    def _caveat(self, kind: str, test: Any, parts: Parts) -> Clause:  # Any: an expression, or None
        span = self._span(parts)
        return Clause("caveat", (Caveat(kind=kind, test=test, span=span),), span)

    def named_static(self, parts: Parts) -> StaticArgument:
        name, _, value = parts
        return StaticArgument(name=str(name), value=value, span=self._span(parts))

    # Signatures

    def static_parameters(self, parts: Parts) -> Group:
        return Group(_nodes(parts), _start(parts[0]), _end(parts[-1]))

    inputs = dimensions = statics = arguments = static_parameters

    def kind_parameter(self, parts: Parts) -> StaticParameter:
        name, _, kind, _, default = parts
        return StaticParameter(name=str(name), kind=str(kind), default=default, span=self._span(parts))

    def default_parameter(self, parts: Parts) -> StaticParameter:
        name, _, default = parts
        return StaticParameter(name=str(name), default=default, span=self._span(parts))

    def input(self, parts: Parts) -> InputParameter:
        name, _, type_, variadic, _, default = parts
        return InputParameter(
            name=str(name),
            type=type_,
            variadic=variadic is not None,
            default=None if default is None else str(default),
            span=self._span(parts),
        )

    def plain_type(self, parts: Parts) -> TypeName:
        name, dimensions = parts
        return TypeName(
            name=str(name),
            dimensions=() if dimensions is None else dimensions.nodes,
            span=self._span(parts),
        )

    def conditional_type(self, parts: Parts) -> ConditionalType:
        then, _, test, _, otherwise = parts
        node = ConditionalType(then=then, test=test, otherwise=otherwise, span=self._span(parts))
        return self._nested(node, then, test, otherwise)

    # Statements

    def body(self, parts: Parts) -> Body:
        statements: tuple[Statement, ...] = tuple(part for part in parts if isinstance(part, Node))  # type: ignore[misc]  # the grammar has only statements there
        span = self._span(parts)
        body = Body(
            statements=statements, closing=self.comments.within(span.start, span.end, bool(statements)), span=span
        )
        return self._nested(body, *statements)

    def let(self, parts: Parts) -> Let:
        _, name, _, value = parts
        span = self._span(parts)
        return Let(name=str(name), name_span=self._token_span(name), value=value, span=span, **self._comments(span))

    def assign(self, parts: Parts) -> Assign:
        name, _, value = parts
        span = self._span(parts)
        return Assign(name=str(name), name_span=self._token_span(name), value=value, span=span, **self._comments(span))

    def move(self, parts: Parts) -> Move:
        name, _, value = parts
        span = self._span(parts)
        return Move(name=str(name), name_span=self._token_span(name), value=value, span=span, **self._comments(span))

    def return_(self, parts: Parts) -> Return:
        span = self._span(parts)
        return Return(value=parts[1], span=span, **self._comments(span))

    def emit(self, parts: Parts) -> Emit:
        span = self._span(parts)
        return Emit(value=parts[1], span=span, **self._comments(span))

    def if_(self, parts: Parts) -> If:
        _, test, then, _, otherwise = parts
        span = self._span(parts)
        node = If(test=test, then=then, otherwise=otherwise, span=span, **self._comments(span))
        return self._nested(node, then, otherwise)

    def else_if(self, parts: Parts) -> Body:
        # Its comments stay for the `if` that it belongs to.
        _, test, then, _, otherwise = parts
        span = self._span(parts)
        node = self._nested(If(test=test, then=then, otherwise=otherwise, span=span), then, otherwise)
        return self._nested(Body(statements=(node,), span=span), node)

    def repeat(self, parts: Parts) -> Repeat:
        _, count, body = parts
        span = self._span(parts)
        return self._nested(Repeat(count=count, body=body, span=span, **self._comments(span)), body)

    def stack(self, parts: Parts) -> Stack:
        _, count, body = parts
        span = self._span(parts)
        return self._nested(Stack(count=count, body=body, span=span, **self._comments(span)), body)

    def halting(self, parts: Parts) -> Halting:
        _, count, _, state, _, mixture, _, by, body = parts
        span = self._span(parts)
        node = Halting(
            count=count,
            state=str(state),
            state_span=self._token_span(state),
            mixture=None if mixture is None else str(mixture),
            mixture_span=None if mixture is None else self._token_span(mixture),
            by=by,
            body=body,
            span=span,
            **self._comments(span),
        )
        return self._nested(node, body)

    def scan(self, parts: Parts) -> Scan:
        target, _, _, variable, _, over, carry, body = parts
        span = self._span(parts)
        node = Scan(
            target=None if target is None else str(target),
            target_span=None if target is None else self._token_span(target),
            variable=str(variable),
            variable_span=self._token_span(variable),
            over=over,
            carry=carry or (),
            body=body,
            span=span,
            **self._comments(span),
        )
        return self._nested(node, body)

    def carry(self, parts: Parts) -> tuple[Node, ...]:
        return _nodes(parts)

    def _comments(self, span: Span, moved: bool = True) -> _Comment:
        leading, blank = self.comments.above(span.start)
        if moved:
            leading += self._moved(span)
        return {"leading": leading, "trailing": self.comments.beside(span.end), "blank": blank}

    def _moved(self, span: Span) -> tuple[str, ...]:
        """Comments from inside a statement, which have no place of their own."""
        return tuple(line for line in self.comments.within(span.start, span.end) if line)

    # Recipes

    def recipe(self, parts: Parts) -> Recipe:
        _, name, opener, *rest = parts
        span = self._span(parts)
        closing = self.comments.within(opener.end_pos, span.end, follows=len(rest) > 1)
        documentation, comment = self._item_comments(span)
        return Recipe(
            name=str(name),
            name_span=self._token_span(name),
            parts=tuple(part for part in rest if isinstance(part, Choice | AtTest | Vary | Search | Claim)),
            closing=closing,
            span=span,
            **documentation,
            **comment,
        )

    def table(self, parts: Parts) -> Table:
        _, name, opener, *rest = parts
        span = self._span(parts)
        closing = self.comments.within(opener.end_pos, span.end, follows=len(rest) > 1)
        documentation, comment = self._item_comments(span)
        return Table(
            name=str(name),
            name_span=self._token_span(name),
            parts=tuple(part for part in rest if isinstance(part, Row | Column)),
            closing=closing,
            span=span,
            **documentation,
            **comment,
        )

    def row(self, parts: Parts) -> Row:
        _, title, *rest, _, at = parts
        span = self._row_span(parts)
        recipe, why = (rest[0], "") if len(rest) == 1 else (None, rest[1][1:-1])
        return Row(
            title=title[1:-1],
            recipe=None if recipe is None else str(recipe),
            recipe_span=None if recipe is None else self._token_span(recipe),
            why=why,
            at=at or (),
            span=span,
            **self._comments(span),
        )

    def column(self, parts: Parts) -> Column:
        _, title, metric, _, index, _, _, at = parts
        span = self._row_span(parts)
        return Column(title=title[1:-1], metric=metric, index=index, at=at or (), span=span, **self._comments(span))

    def _row_span(self, parts: Parts) -> Span:
        """From the first word to the last setting, which the parser hands over as a tuple."""
        *_, at = parts
        return Span(self.source, _start(parts[0]), at[-1].span.end) if at else self._span(parts)

    def choice(self, parts: Parts) -> Choice:
        word, value = parts
        span = self._span(parts)
        return Choice(word=str(word), value=value, span=span, **self._comments(span))

    def at_test(self, parts: Parts) -> AtTest:
        _, settings = parts
        span = Span(self.source, _start(parts[0]), settings[-1].span.end)
        return AtTest(settings=settings, span=span, **self._comments(span))

    def vary(self, parts: Parts) -> Vary:
        span = self._span(parts)
        variations = tuple(part for part in parts if isinstance(part, Variation))
        return Vary(variations=variations, span=span, **self._comments(span))

    def variation(self, parts: Parts) -> Variation:
        path, _, values = parts
        return Variation(path=path, values=values, span=self._span(parts))

    def search(self, parts: Parts) -> Search:
        span = self._span(parts)
        sought = tuple(part for part in parts if isinstance(part, Sought))
        return Search(sought=sought, span=span, **self._comments(span))

    def sought(self, parts: Parts) -> Sought:
        path, _, values, log = parts
        return Sought(path=path, values=values, log=log is not None, span=self._span(parts))

    def claim(self, parts: Parts) -> Claim:
        _, metric, _, index, _, _, value, _, deviation, _, at, *_, origin = parts
        span = self._span(parts)
        return Claim(
            metric=metric,
            index=index,
            value=value,
            deviation=deviation,
            at=at or (),
            origin=origin[1:-1],
            span=span,
            **self._comments(span),
        )

    def settings(self, parts: Parts) -> tuple[Node, ...]:
        first, *others = parts
        return _nodes(parts) if isinstance(first, Node) else first + _nodes(others)

    def setting(self, parts: Parts) -> Setting:
        path, _, value = parts
        return Setting(path=path, value=value, span=self._span(parts))

    # Expressions

    def pipe(self, parts: Parts) -> Pipe:
        value, _, stage = parts
        return self._nested(Pipe(value=value, stage=stage, span=self._span(parts)), value, stage)

    def conditional(self, parts: Parts) -> Conditional:
        then, _, test, _, otherwise = parts
        node = Conditional(then=then, test=test, otherwise=otherwise, span=self._span(parts))
        return self._nested(node, then, test, otherwise)

    def binary(self, parts: Parts) -> Binary:
        left, operator, right = parts
        node = Binary(
            operator=str(operator),
            left=left,
            right=right,
            operator_span=self._token_span(operator),
            span=self._span(parts),
        )
        return self._nested(node, left, right)

    def range(self, parts: Parts) -> Range:
        low, _, high = parts
        return self._nested(Range(low=low, high=high, span=self._span(parts)), low, high)

    def unary(self, parts: Parts) -> Unary:
        operator, operand = parts
        return self._nested(Unary(operator=str(operator), operand=operand, span=self._span(parts)), operand)

    def number(self, parts: Parts) -> Number:
        (token,) = parts
        text, span = str(token), self._span(parts)
        value: int | float = 0
        digits = text.replace("_", "")
        if set("eE.").isdisjoint(digits):
            # Python itself refuses to read integers of thousands of digits.
            digits = digits.lstrip("0") or "0"
            value = int(digits) if len(digits) < 20 else _LARGEST
            in_range = value < _LARGEST
        else:
            value = float(digits)
            mantissa = digits.lower().partition("e")[0]
            in_range = math.isfinite(value) and (value != 0 or not mantissa.strip("0."))
        if not in_range:
            self.mistakes.append(mistakes.number_out_of_range(span))
        return Number(value=value, text=text, span=span)

    def string(self, parts: Parts) -> String:
        return String(value=parts[0][1:-1], span=self._span(parts))

    def boolean(self, parts: Parts) -> Boolean:
        return Boolean(value=parts[0] == "true", span=self._span(parts))

    def list_of(self, parts: Parts) -> ListOf:
        items: tuple[Expression, ...] = _nodes(parts)  # type: ignore[assignment]  # the grammar has only expressions there
        return self._nested(ListOf(items=items, span=self._span(parts)), *items)

    def group(self, parts: Parts) -> Node:
        # The same node, at the place of its parentheses.
        inner = parts[1]
        node: Node = replace(inner, span=self._span(parts))
        self._depths[id(node)] = self._depth(inner), node
        return node

    def call(self, parts: Parts) -> Call:
        callee, statics, arguments = parts
        settled = _only(StaticArgument, statics)
        node = Call(callee=callee, statics=settled, arguments=arguments.nodes, span=self._span(parts))
        return self._nested(node, *(static.value for static in settled), *arguments.nodes)

    def configuration(self, parts: Parts) -> Call:
        callee, statics = parts
        settled = _only(StaticArgument, statics)
        return self._nested(
            Call(callee=callee, statics=settled, span=self._span(parts)), *(static.value for static in settled)
        )

    def positional_static(self, parts: Parts) -> StaticArgument:
        return StaticArgument(name=None, value=parts[0], span=self._span(parts))

    def name(self, parts: Parts) -> Name:
        return Name(parts=tuple(parts[0].split(".")), span=self._span(parts))


def _nodes(parts: Parts) -> tuple[Node, ...]:
    return tuple(part for part in parts if isinstance(part, Node))


def _only(kind: type[N], group: Group | None) -> tuple[N, ...]:
    return () if group is None else tuple(node for node in group.nodes if isinstance(node, kind))


def _clause(clauses: list[Clause | None], word: str, kind: type[N]) -> tuple[N, ...]:
    nodes = (node for clause in clauses if clause and clause.word == word for node in clause.nodes)
    return tuple(node for node in nodes if isinstance(node, kind))


def _start(part: Any) -> int:  # Any: a token, a node or a group
    if isinstance(part, Node):
        return part.span.start
    if isinstance(part, Group):
        return part.start
    place: int = part.start_pos
    return place


def _end(part: Any) -> int:  # Any: a token, a node or a group
    if isinstance(part, Node):
        return part.span.end
    if isinstance(part, Group):
        return part.end
    place: int = part.end_pos
    return place
