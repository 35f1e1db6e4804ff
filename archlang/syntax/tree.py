"""The tree of a program and its documentation. Nodes are frozen, have a span, and are equal except for layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, TypeVar, dataclass_transform

from archlang.errors import Source, Span


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True)
class Syntax:
    """A node of the tree. Each subclass is a dataclass like this one."""

    span: Span = field(compare=False, repr=False)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


N = TypeVar("N", bound=Syntax)

# Expressions. One grammar serves statics (in brackets) and data (in parentheses and bodies).


class Number(Syntax):
    """`14`, `30_000`, `1.5e-4`: the value and the text in the program."""

    value: int | float
    text: str = field(compare=False)


class Boolean(Syntax):
    value: bool


class String(Syntax):
    value: str


class Name(Syntax):
    """`h`, `mine.layer`, `valid.accuracy`: one or more identifiers joined by dots."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        return ".".join(self.parts)


class ListOf(Syntax):
    items: tuple[Expression, ...]


class Range(Syntax):
    """`low..high`, both included."""

    low: Expression
    high: Expression


class Unary(Syntax):
    """`-x` or `not x`."""

    operator: str
    operand: Expression


class Binary(Syntax):
    """`+ - * / %`, `== != < <= > >= in`, `and or`."""

    operator: str
    left: Expression
    right: Expression


class Conditional(Syntax):
    """`then when test else otherwise`; `test` is static."""

    then: Expression
    test: Expression
    otherwise: Expression


class StaticArgument(Syntax):
    """`14` or `heads = 4` between brackets."""

    name: str | None = None
    value: Expression


class CallExpression(Syntax):
    """`callee[statics](arguments)`; without parentheses (`arguments` is None), a block with statics."""

    callee: Name
    statics: tuple[StaticArgument, ...] = ()
    arguments: tuple[Expression, ...] | None = None


def as_call(node: Name | CallExpression) -> CallExpression:
    """The name of a block, where a call may stand, is one without statics."""
    return node if isinstance(node, CallExpression) else CallExpression(callee=node, span=node.span)


class Pipe(Syntax):
    """`value |> stage`; a call as the stage takes the value before its own arguments."""

    value: Expression
    stage: Name | CallExpression


class Missing(Syntax):
    """A text that cannot be read, in place of a value."""


Expression = (
    Number | Boolean | String | Name | ListOf | Range | Unary | Binary | Conditional | CallExpression | Pipe | Missing
)


# Types and signatures.


class TypeName(Syntax):
    """`seq[n, d]`, `prob`."""

    name: str
    dimensions: tuple[Expression, ...] = ()


class ConditionalType(Syntax):
    """`then when test else otherwise`."""

    then: TypeExpression
    test: Expression
    otherwise: TypeExpression


TypeExpression = TypeName | ConditionalType


class StaticParameter(Syntax):
    """`heads: int = 4`; `kind` is None if the program gives only a default."""

    name: str
    kind: str | None = None
    default: Expression | None = None


class InputParameter(Syntax):
    """`kv: seq[m, e] = q`, whose default is another input; `xs: data[d]...`, which takes one or more values."""

    name: str
    type: TypeName
    default: str | None = None
    variadic: bool = False


class Reads(Syntax):
    """`kv causal when causal else full`: the positions of an input that position i of the result may depend on.
    `manner` is a Name, such as `causal`, a Call such as `grouped[k]`, or a Conditional of these."""

    input: str
    manner: Expression


class Caveat(Syntax):
    """`depends on padding when balanced`: a rule for blocks that this block breaks, always or where `test` holds.
    `kind` is `padding` or `batch` (on which the result of a sample depends), `random`, `training` (random in training
    only) or `gradients` (which the block stops)."""

    kind: str
    test: Expression | None = None


class CostClause(Syntax):
    """`parameters = d * d when gated`: a term of a cost; the terms of a `quantity` add up."""

    quantity: str
    value: Expression
    test: Expression | None = None


class MapName(Syntax):
    """`query(q)`: a linear map that a block applies to one of its inputs before anything else."""

    name: str
    input: str


class Maps(Syntax):
    """`key(kv), value(kv) = width when position != absolute`: linear maps of one `width` that may be joined."""

    names: tuple[MapName, ...]
    width: Expression
    test: Expression | None = None


class RecordClause(Syntax):
    """`gate = g when gated`: a kind of value that a recording keeps, and the `input` that holds the value."""

    kind: str
    input: str | None = None
    test: Expression | None = None


class Cut(Syntax):
    """`cuts evenly into count when count > 0`: a block cuts a sequence into equally long parts; without `parts`, into
    as few as their largest size allows."""

    parts: Expression | None = None
    test: Expression | None = None


class ActClause(Syntax):
    """`reflects[heads](k, beta) when gated`: what a block does to numbers, or to the state that it carries."""

    act: Expression
    test: Expression | None = None


class Demand(Syntax):
    """`parity when group == s3`, a part of `demands`."""

    problem: str
    test: Expression | None


class Signature(Syntax):
    statics: tuple[StaticParameter, ...] = ()
    inputs: tuple[InputParameter, ...] = ()
    result: TypeExpression | None = None
    where: tuple[Expression, ...] = ()


# Statements.


class Body(Syntax):
    """The statements between braces."""

    statements: tuple[Statement, ...]


class Let(Syntax):
    """`let f = feedforward[512]`: names an instance, whose calls share weights."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Name | CallExpression


class Assign(Syntax):
    """`a = norm(h)`: binds a new name."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expression


class Update(Syntax):
    """`h <- …`: updates a state that is bound outside this loop."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expression


class LossStatement(Syntax):
    """`loss balance = e`: training adds the value to the loss, under this name."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    value: Expression


class Return(Syntax):
    value: Expression


class Emit(Syntax):
    value: Expression


class If(Syntax):
    """`if test { … } else { … }` with a static `test`. For `else if`, `otherwise` contains one If."""

    test: Expression
    then: Body
    otherwise: Body | None = None


class RepeatStatement(Syntax):
    """`y = repeat 14 truncated 2 { … emit e }`: all steps share their weights. `target` is the `y`, and `truncated` the
    number of the last steps through which gradients flow; both can be None. `repeat 14 drawn by uniform_steps[8, 20]`
    has a `drawn` block, which draws the number of steps in training, and `repeat 14 settled` the gradient of a fixed
    point."""

    target: str | None = None
    target_span: Span | None = field(default=None, compare=False, repr=False)
    count: Expression
    drawn: Name | CallExpression | None = None
    truncated: Expression | None = None
    settled: bool = False
    body: Body


class StackStatement(Syntax):
    """`y = stack 6 as i { … emit e }`: each step has its own weights. `target` is the `y`, or None, and `index` the
    `i`, a static that numbers the steps, or None."""

    target: str | None = None
    target_span: Span | None = field(default=None, compare=False, repr=False)
    count: Expression
    index: str | None = None
    index_span: Span | None = field(default=None, compare=False, repr=False)
    body: Body


class HaltingStatement(Syntax):
    """`y = repeat 20 halting h as s by token_halt[0.999] { … emit e }`. `target` is the `y` and `mixture` the `s`, or
    None. `truncated` is an expression that this loop cannot have."""

    target: str | None = None
    target_span: Span | None = field(default=None, compare=False, repr=False)
    count: Expression
    state: str
    state_span: Span = field(compare=False, repr=False)
    mixture: str | None = None
    mixture_span: Span | None = field(default=None, compare=False, repr=False)
    by: Name | CallExpression
    truncated: Expression | None = None
    body: Body


class Scanned(Syntax):
    """`k in keys`, which a scan takes besides its first sequence."""

    variable: str
    variable_span: Span = field(compare=False, repr=False)
    over: Expression


class ScanStatement(Syntax):
    """`y = scan c after b[3] in chunks[10](h), k in keys carry m, k and v growing truncated 4 { … emit c }`. `target`
    is the `y`, or None; `truncated` is the number of parts after which the gradient of the carried states is cut, or
    None. `before` names the positions before the part; `reach` is how many they are at most, or None for all. `growing`
    has the names of the carried states that grow, those together that have one length."""

    target: str | None = None
    target_span: Span | None = field(default=None, compare=False, repr=False)
    variable: str
    variable_span: Span = field(compare=False, repr=False)
    before: str | None = None
    before_span: Span | None = field(default=None, compare=False, repr=False)
    reach: Expression | None = None
    over: Expression
    others: tuple[Scanned, ...] = ()
    carry: tuple[Name, ...] = ()
    growing: tuple[tuple[str, ...], ...] = ()
    truncated: Expression | None = None
    body: Body

    @property
    def scanned(self) -> tuple[ScanStatement | Scanned, ...]:
        """What it takes, with the names of its parts."""
        return self, *self.others


class ExpertsStatement(Syntax):
    """`y = experts v in h by w { … emit e }`; `target` is the `y`, and `variable` the `v`."""

    target: str
    target_span: Span = field(compare=False, repr=False)
    variable: str
    variable_span: Span = field(compare=False, repr=False)
    over: Expression
    by: Expression
    body: Body


Loop = RepeatStatement | StackStatement | HaltingStatement | ScanStatement | ExpertsStatement
Statement = Let | Assign | Update | LossStatement | Return | Emit | If | Loop


# Items.


class Item(Syntax):
    """An item of a file. `documentation` are its `##` lines without the marks. `is_whole` is False if its text has
    syntax mistakes."""

    documentation: tuple[str, ...] = field(default=(), compare=False)
    is_whole: bool = field(default=True, compare=False, repr=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """A field that `moved` has left is moved when it is first read."""
            if "_unmoved" not in self.__dict__ or name not in self.__dataclass_fields__:
                raise AttributeError(name)
            item, source, distance = self._unmoved
            value = _moved_value(getattr(item, name), source, distance)
            object.__setattr__(self, name, value)
            return value


class Use(Item):
    """`use archlang.attention` (`path` dotted) or `use "./mine.arch" as mine` (`is_file`)."""

    path: str
    is_file: bool = False
    path_span: Span = field(compare=False, repr=False)
    alias: str | None = None
    alias_span: Span | None = field(default=None, compare=False, repr=False)


class Definition(Item):
    """`block …` or `model …` with a body; `word` is the keyword."""

    word: str
    name: str
    name_span: Span = field(compare=False, repr=False)
    signature: Signature
    body: Body


class Extern(Item):
    """`extern block …`, `extern task …`, `extern optimizer …`: the signature of a Python class; or
    `extern settings …`, whose statics and conditions an optimizer includes by `with`; or a task that is a page, whose
    `body` generates its items, `task … { … }`.

    `reads`, `caveats`, `sizes`, `costs`, `maps`, `records`, `cuts` and `acts` belong to blocks, `pure` too (no weights,
    no randomness); `gives` (`vocab = 21, classes = 8`), `demands` (what its models must compute) and `causal` (they
    must not see the future) belong to tasks; `includes` (the names behind `with`) to optimizers and pages. `python` is
    "module:Class", or the text of a page; settings have none."""

    word: str
    name: str
    name_span: Span = field(compare=False, repr=False)
    signature: Signature
    reads: tuple[Reads, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    pure: bool = False
    pure_span: Span | None = field(default=None, compare=False, repr=False)
    sizes: tuple[StaticArgument, ...] = ()
    costs: tuple[CostClause, ...] = ()
    maps: tuple[Maps, ...] = ()
    records: tuple[RecordClause, ...] = ()
    cuts: tuple[Cut, ...] = ()
    acts: tuple[ActClause, ...] = ()
    gives: tuple[StaticArgument, ...] = ()
    demands: tuple[Demand, ...] = ()
    causal: bool = False
    includes: tuple[Name, ...] = ()
    body: Body | None = None
    python: str = ""
    python_span: Span = field(compare=False, repr=False)


PAGE = "task "
"""With what the text of a task that is a page begins."""


class Choice(Syntax):
    """`task ctl[…]`, `model ndr[…]`, `train adamw[…]`; `word` is the keyword."""

    word: str
    value: Name | CallExpression


class Setting(Syntax):
    """`model.steps = 24`."""

    path: Name
    value: Expression


class AtTest(Syntax):
    """`test model.steps = 24, …`: statics that differ at test time."""

    settings: tuple[Setting, ...]


class Variation(Syntax):
    """`seed in 1..5`, `model.gated in [true, false]`."""

    path: Name
    values: Expression


class Vary(Syntax):
    variations: tuple[Variation, ...]


class Sought(Syntax):
    """`train.lr in 1e-4..1e-2 log`, `model.heads in [1, 2, 4]`: where `tune` looks for a static."""

    path: Name
    values: Expression
    log: bool = False


class Search(Syntax):
    sought: tuple[Sought, ...]


class CostBound(Syntax):
    """`flops[512] <= 2e9`: the most that a sample of a length may cost."""

    cost: Name
    length: Expression | None = None
    limit: Expression


class CostBounds(Syntax):
    bounds: tuple[CostBound, ...]


class Claim(Syntax):
    """`claim test.accuracy[20] = 0.84 ± 0.01 at task.order = forward from "PANM, Table 7"`; `claim median …` claims the
    median over seeds, another claim the mean."""

    metric: Name
    median: bool = False
    index: Expression | None = None
    value: Expression
    deviation: Expression | None = None
    at: tuple[Setting, ...] = ()
    origin: str = ""


class Recipe(Item):
    """`recipe trial { … }`, or `recipe wide from trial { … }`, which takes what it does not say from its `base`."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    base: str | None = None
    base_span: Span | None = field(default=None, compare=False, repr=False)
    parts: tuple[Choice | AtTest | Vary | Search | CostBounds | Claim, ...]


class CellNumber(Syntax):
    """`0.84 ± 0.01` of a row's claims; `-`, a cell without a number, has no value."""

    value: Expression | None = None
    deviation: Expression | None = None


class Published(Syntax):
    """`claims 1.00 ± 0.00, -, 0.13 ± 0.01 from "NDR, Table 1"`: the published numbers of a row in the order of the
    columns, medians after `claims median`. Without an origin, they are from the table's."""

    cells: tuple[CellNumber, ...]
    median: bool = False
    origin: str | None = None


class Row(Syntax):
    """`row "NDR" ndr at model.steps = 14 best of model.scaling by valid.accuracy claims …`: a recipe, statics of it,
    varied statics whose best value counts, by a metric or in each column, and published numbers. `row "DNC" absent
    "why"` and `row "Prior work" claims …` run nothing; another row without a recipe runs those of the columns."""

    title: str
    recipe: str | None = None
    recipe_span: Span | None = field(default=None, compare=False, repr=False)
    why: str = ""
    at: tuple[Setting, ...] = ()
    best_of: tuple[Name, ...] = ()
    best_by: Name | None = None
    published: Published | None = None

    @property
    def runs(self) -> bool:
        return self.recipe is not None or (not self.why and bool(self.at or self.best_of or not self.published))


class Column(Syntax):
    """`column "Longer" test.accuracy[10] at task.order = forward best of model.scaling`: a metric, statics of the
    recipes, and varied statics whose best value counts. The metric of `column "S3" s3.test.accuracy` begins with the
    `recipe` of rows that have none. `column "Copy" average of copy at test.length = 20` is an
    `average`: its `metric` is the name of a table, of which it averages the rows of the same titles over the columns
    with these settings."""

    title: str
    metric: Name
    recipe: Name | None = None
    average: bool = False
    index: Expression | None = None
    at: tuple[Setting, ...] = ()
    best_of: tuple[Name, ...] = ()
    best_by: Name | None = None


class Columns(Syntax):
    """`columns "Longer" test.accuracy at task.order in [forward, backward]`: a column for each combination of
    the values after `in`, which stand in its title, as in “Longer, forward”."""

    title: str = ""
    metric: Name
    at: tuple[Setting | Variation, ...]
    best_of: tuple[Name, ...] = ()
    best_by: Name | None = None


class Table(Item):
    """`table results from "NDR, Table 1" { row … column … }`: recipes beside one another; `origin` is the source of the
    rows' claims."""

    name: str
    name_span: Span = field(compare=False, repr=False)
    origin: str = ""
    parts: tuple[Row | Column | Columns, ...]


@dataclass(frozen=True)
class Program:
    """One file: its items in order. `unnamed` are the items whose name could not be read."""

    items: tuple[Use | Definition | Extern | Recipe | Table, ...]
    source: Source = field(compare=False, repr=False)
    unnamed: tuple[Definition | Recipe | Table, ...] = ()

    @staticmethod
    def of(nodes: Iterable[Syntax], source: Source) -> Program:
        """Returns the program that consists of some items, with and without names."""
        items: list[Use | Definition | Extern | Recipe | Table] = []
        unnamed: list[Definition | Recipe | Table] = []
        for node in nodes:
            if isinstance(node, Use) or (isinstance(node, Definition | Extern | Recipe | Table) and node.name):
                items.append(node)
            elif isinstance(node, Definition | Recipe | Table):
                unnamed.append(node)
        return Program(items=tuple(items), source=source, unnamed=tuple(unnamed))

    @property
    def all_items(self) -> tuple[Use | Definition | Extern | Recipe | Table, ...]:
        """The items with and without names, in order."""
        return tuple(sorted((*self.items, *self.unnamed), key=lambda item: item.span.start))


# Visits


def walk(node: Syntax) -> Iterator[Syntax]:
    """Yields the node and all nodes below it, in the order of the text."""
    # A stack, because nested generators take time for each level above each node.
    stack: list[Syntax] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def bound_names(definition: Definition) -> set[str]:
    """Returns the names that a definition binds: its parameters, and those of its statements and loops."""
    nodes = (node for part in (definition.signature, definition.body) for node in walk(part))
    binders = [node for node in nodes if not isinstance(node, StaticArgument)]
    fields = ("name", "target", "variable", "before", "mixture", "index")
    return {str(name) for node in binders for field in fields if (name := getattr(node, field, None))}


def children(node: Syntax) -> list[Syntax]:
    """Returns the nodes directly below a node, in the order of its fields."""
    nodes: list[Syntax] = []
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, Syntax):
            nodes.append(value)
        elif isinstance(value, tuple):
            nodes += [part for part in value if isinstance(part, Syntax)]
    return nodes


def moved(node: N, source: Source, distance: int) -> N:
    """Returns a node with all places moved to another source, by a distance. What is inside an item is moved when it is
    read: after a change, few items of a text are."""
    copy: N = object.__new__(type(node))
    if isinstance(node, Item):
        object.__setattr__(copy, "_unmoved", (node, source, distance))
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        # A field that is missing is read from the class if it has a default.
        if isinstance(node, Item) and isinstance(value, Syntax | tuple) and not hasattr(type(node), name):
            continue
        object.__setattr__(copy, name, _moved_value(value, source, distance))
    return copy


def _moved_value(value: object, source: Source, distance: int) -> object:
    if isinstance(value, Span):
        return Span(source, value.start + distance, value.end + distance)
    if isinstance(value, Syntax):
        return moved(value, source, distance)
    return tuple([_moved_value(each, source, distance) for each in value]) if isinstance(value, tuple) else value


_SENTENCE = re.compile(r".*?[.?!](?= [A-Z`]|$)")


def documentation_above(item: Span) -> tuple[str, ...]:
    """Returns the `##` lines directly above an item, without the marks. An empty line may follow if there are no other
    comments among them."""
    source, number = item.source, item.line - 1
    lines: list[str] = []
    has_gap = number > 0 and not source.line(number).strip()
    while has_gap and number > 1 and not source.line(number).strip():
        number -= 1
    while number > 0 and (line := source.line(number).strip(" \t\f\ufeff")).startswith("#"):
        lines.insert(0, line)
        number -= 1
    documentation = [line for line in lines if line.startswith("##")]
    is_first = not source.line(item.line)[: item.column - 1].strip(" \t\f\ufeff")
    if not is_first or (has_gap and len(documentation) < len(lines)):
        return ()
    return tuple(line[2:].removeprefix(" ") for line in documentation)


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text."""
    return [sentence[0].strip() for sentence in _SENTENCE.finditer(text)]


def first_sentence(documentation: Sequence[str]) -> str:
    """Returns the first sentence of a documentation, which may take several lines; empty if there is none."""
    paragraph = " ".join(takewhile(str.strip, documentation))
    sentence = _SENTENCE.match(paragraph)
    return paragraph if sentence is None else sentence[0]
