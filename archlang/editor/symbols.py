"""The names of a program: what each means, and where that is defined."""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from weakref import WeakKeyDictionary

from archlang.editor.document import Document
from archlang.editor.recipe_choices import choices, chosen, recipes_of_rows
from archlang.elaborate.static_arguments import parameter_kind
from archlang.errors import Source, Span
from archlang.resolve import library
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.syntax import tree


@dataclass(frozen=True)
class Meaning:
    """What a name means. `kind` is a keyword such as `block`, or one of `value`, `instance`, `input`, `static`, `size`,
    `loss`, `alias` (of a `use` line) and `file`; `span` is the place of the name in the definition. `item` is a
    definition, `static` a parameter."""

    kind: str
    name: str
    span: Span
    item: tree.Definition | tree.Extern | None = field(default=None, compare=False)
    static: tree.StaticParameter | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, int]:
        """The real path of the file of the definition, and its offset."""
        return os.path.realpath(self.span.source.path), self.span.start

    @property
    def is_of_library(self) -> bool:
        return library.has(self.span.source.path)


@dataclass(frozen=True)
class Occurrence:
    """A place where a symbol is named."""

    span: Span
    symbol: Meaning


@dataclass(frozen=True, eq=False)
class DocumentNames:
    """The names of a document."""

    document: Document

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every place that names a symbol, in order."""
        of_items = chain.from_iterable(map(self.within, self.document.program.items))
        return tuple(sorted(of_items, key=lambda each: each.span.start))

    def at(self, offset: int) -> Occurrence | None:
        """Returns the name at an offset, or that ends there; None if there is none."""
        items = [item for item in self.document.program.items if item.span.start <= offset <= item.span.end]
        of_items = chain.from_iterable(map(self.within, items))
        places = [place for place in of_items if place.span.start <= offset <= place.span.end]
        return max(places, key=lambda place: place.span.start, default=None)

    def within(self, item: tree.Use | tree.Definition | tree.Extern | tree.Recipe | tree.Table) -> Sequence[Occurrence]:
        """Returns the places of an item that name a symbol, in order."""
        of_items = _occurrences.setdefault(self.document, {})
        if id(item) not in of_items:
            by_place = {
                (each.span.start, each.span.end, each.symbol.span.source.path, each.symbol.span.start): each
                for each in self._reader.occurrences_of(item)
            }
            of_items[id(item)] = sorted(by_place.values(), key=lambda each: each.span.start)
        return of_items[id(item)]

    @cached_property
    def _reader(self) -> _OccurrenceReader:
        return _OccurrenceReader(self.document)

    def of(self, symbol: Meaning) -> tuple[Span, ...]:
        """Returns the places of the document that name a symbol, its definition included."""
        start, key = symbol.span.start, symbol.key
        places = (place for place in self.occurrences if place.symbol.span.start == start)  # resolves few paths
        return tuple(place.span for place in places if place.symbol.key == key)


# Of each item, by its id.
_occurrences: WeakKeyDictionary[Document, dict[int, Sequence[Occurrence]]] = WeakKeyDictionary()

Scope = MutableMapping[str, Meaning]
Item = tree.Definition | tree.Extern
Choices = Mapping[str, Item]


class _OccurrenceReader:
    """Collects the occurrences of a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._resolved = document.resolved
        self._occurrences: list[Occurrence] = []
        self._chosen: dict[tuple[int, str], Choices] = {}
        self._blocks: dict[Meaning, Item] = {}  # those of the instances
        self._losses: Scope = ChainMap()  # those of the item that is read
        self._is_page = False  # the page of a task calls functions of its own

    def occurrences_of(self, item: tree.Use | Item | tree.Recipe | tree.Table) -> Sequence[Occurrence]:
        """Returns the occurrences in an item of the document."""
        self._occurrences = []
        match item:
            case tree.Use():
                self._use(item)
            case tree.Definition() | tree.Extern():
                self._item(item)
            case tree.Recipe():
                self._recipe(item)
            case tree.Table():
                self._table(item)
        return self._occurrences

    @cached_property
    def _recipes(self) -> Scope:
        recipes = (item for item in reversed(self._document.program.items) if isinstance(item, tree.Recipe))
        return {item.name: Meaning("recipe", item.name, item.name_span) for item in recipes}

    @cached_property
    def _tables(self) -> Scope:
        tables = (item for item in reversed(self._document.program.items) if isinstance(item, tree.Table))
        return {item.name: Meaning("table", item.name, item.name_span) for item in tables}

    @cached_property
    def _aliases(self) -> Scope:
        uses = (item for item in reversed(self._document.program.items) if isinstance(item, tree.Use))
        return {use.alias: Meaning("alias", use.alias, use.alias_span) for use in uses if use.alias and use.alias_span}

    # Scopes

    def _add(self, span: Span, symbol: Meaning) -> None:
        self._occurrences.append(Occurrence(span, symbol))

    def _define(
        self, kind: str, name: str, span: Span, scope: Scope, static: tree.StaticParameter | None = None
    ) -> None:
        """Defines a name; both branches of an `if` may bind the same one."""
        own = scope.maps[0] if isinstance(scope, ChainMap) else scope
        symbol = own.get(name)
        if symbol is None:
            symbol = scope[name] = Meaning(kind, name, span, static=static)
        self._add(span, symbol)

    def _refer(self, name: str, span: Span, scope: Scope) -> None:
        if name in scope:
            self._add(span, scope[name])

    def _word(self, name: str | None, node: tree.Syntax, scope: Scope, behind: str = r"\b") -> None:
        """Refers to a name that a node holds as text, behind a pattern."""
        match = re.search(rf"{behind}({re.escape(name)})\b(?!\s*:)", node.span.text) if name else None
        if name and match:
            start = node.span.start + match.start(1)
            self._refer(name, Span(node.span.source, start, start + len(name)), scope)

    def _name(self, name: tree.Name, scope: Scope, kind: str | None = None) -> Declaration | None:
        """Refers to a name in an expression, of a static of a kind; returns the block that it names."""
        first = name.parts[0]
        if first in scope and self._may_refer(name, scope[first], kind):
            self._add(_head(name.span, first), scope[first])
            self._attribute(name, scope[first])
            return None
        declaration = self._resolved.declared(name.text) if kind in (None, "block") else None
        if declaration is None:
            return None
        self._add_item(name, declaration.item)
        return declaration

    def _may_refer(self, name: tree.Name, symbol: Meaning, kind: str | None) -> bool:
        """Whether a name in the value of a static of a kind means a symbol in scope: another name of a symbol, a path
        or a file is the value itself."""
        if kind not in ("symbol", "path", "file"):
            return True
        own_kind = parameter_kind(symbol.static, self._resolved) if symbol.static is not None else ""
        return own_kind in (kind, None) and kind != "path" and (kind == "symbol" or len(name.parts) == 1)

    def _attribute(self, name: tree.Name, owner: Meaning) -> None:
        """Refers to the static, or the size, of the block whose instance a name begins with, as in `table.vocab`."""
        block = self._blocks.get(owner)
        if block is not None and len(name.parts) == 2:
            scope: Scope = ChainMap()
            _OccurrenceReader(self._document)._signature(block.signature, scope)
            self._refer(name.parts[1], _tail(name), scope)

    def _add_item(self, name: tree.Name, item: Item) -> None:
        """Refers to an item, and to the alias of its file if the name begins with one."""
        self._alias(name)
        self._add(_tail(name), _symbol(item))

    def _alias(self, name: tree.Name) -> None:
        if len(name.parts) > 1:
            self._refer(name.parts[0], _head(name.span, name.parts[0]), self._aliases)

    # Items

    def _use(self, use: tree.Use) -> None:
        if use.is_file:
            path = os.path.normpath(os.path.join(os.path.dirname(self._document.path), use.path))
        else:
            path = str(library.library_file(use.path) or "")
        if path and os.path.isfile(path):
            self._add(use.path_span, Meaning("file", use.path, Span(Source(path, ""), 0, 0)))
        if use.alias and use.alias_span:
            self._refer(use.alias, use.alias_span, self._aliases)

    def _item(self, item: Item) -> None:
        self._add(item.name_span, _symbol(item))
        scope: Scope = ChainMap()
        self._losses = ChainMap()
        self._signature(item.signature, scope)
        if isinstance(item, tree.Definition):
            self._statements(item.body.statements, scope)
            return
        for size in item.sizes:
            self._define("size", size.name or "", _head(size.span, size.name or ""), scope)
        for part in tree.children(item):
            if part is not item.signature and part is not item.body:
                self._clause(part, scope)
        if item.body is not None:
            self._is_page = True
            self._statements(item.body.statements, scope)
            self._is_page = False

    def _clause(self, part: tree.Syntax, scope: Scope) -> None:
        match part:
            case tree.Reads(input=name, manner=manner):
                self._word(name, part, scope)
                for node in tree.walk(manner):
                    if isinstance(node, tree.Conditional):
                        self._expression(node.test, scope)
            case tree.StaticArgument(value=value):
                self._expression(value, scope)
            case tree.MapName(input=name):
                self._word(name, part, scope, r"\(\s*")
            case tree.RecordClause(input=name, test=test):
                self._word(name, part, scope, r"=\s*")
                if test is not None:
                    self._expression(test, scope)
            case tree.Name() | tree.CallExpression():
                self._expression(part, scope)
            case _:
                for child in tree.children(part):
                    self._clause(child, scope)

    def _signature(self, signature: tree.Signature, scope: Scope) -> None:
        for static in signature.statics:
            self._define("static", static.name, _head(static.span, static.name), scope, static)
            if static.default is not None:
                self._expression(static.default, scope, parameter_kind(static, self._resolved))
        for parameter in signature.inputs:
            self._define("input", parameter.name, _head(parameter.span, parameter.name), scope)
        for parameter in signature.inputs:
            self._sizes(parameter.type, scope)
            self._word(parameter.default, parameter, scope, r"=\s*")
        if signature.result is not None:
            for node in tree.walk(signature.result):
                if isinstance(node, tree.TypeName):
                    self._sizes(node, scope)
                elif isinstance(node, tree.ConditionalType):
                    self._expression(node.test, scope)
        for condition in signature.where:
            self._expression(condition, scope)

    def _sizes(self, kind: tree.TypeName, scope: Scope) -> None:
        """The sizes of a type; the first mention of a size defines it."""
        for dimension in kind.dimensions:
            callees = [node.callee for node in tree.walk(dimension) if isinstance(node, tree.CallExpression)]
            for node in tree.walk(dimension):
                if not isinstance(node, tree.Name) or any(node is callee for callee in callees):
                    continue  # `sum` in `data[sum(d)]`
                if node.parts[0] in scope:
                    self._name(node, scope)
                else:
                    self._define("size", node.text, node.span, scope)

    # Expressions and statements

    def _expression(self, node: tree.Syntax, scope: Scope, kind: str | None = None) -> None:
        """Refers to the names of an expression; `kind` is that of the static that it sets, None for other values."""
        match node:
            case tree.Name():
                self._name(node, scope, kind)
            case tree.Conditional(then=then, test=test, otherwise=otherwise):
                self._expression(then, scope, kind)
                self._expression(test, scope)
                self._expression(otherwise, scope, kind)
            case tree.ListOf(items=items):
                for item in items:
                    self._expression(item, scope, kind)
            case tree.CallExpression(callee=callee, statics=statics, arguments=arguments):
                if not self._is_page:
                    self._statics(self._name(callee, scope), statics, scope)
                for argument in arguments or ():
                    self._expression(argument, scope)
            case _:
                for child in tree.children(node):
                    self._expression(child, scope)

    def _statics(self, block: Declaration | None, statics: Iterable[tree.StaticArgument], scope: Scope) -> None:
        parameters = block.item.signature.statics if block is not None else ()
        for place, argument in enumerate(statics):
            static = next((each for each in parameters if each.name == argument.name), None)
            if argument.name is None and place < len(parameters):
                static = parameters[place]
            if argument.name is not None and static is not None:
                self._add(_head(argument.span, argument.name), _static_symbol(static))
            kind = parameter_kind(static, block.file) if static is not None and block is not None else None
            self._expression(argument.value, scope, kind)

    def _statements(self, statements: Sequence[tree.Statement], scope: Scope) -> None:
        for statement in statements:
            self._statement(statement, scope)

    def _statement(self, statement: tree.Statement, scope: Scope) -> None:
        assert isinstance(scope, ChainMap)
        match statement:
            case tree.If(test=test, then=then, otherwise=otherwise):
                self._expression(test, scope)
                self._statements(then.statements, scope)
                if otherwise is not None:
                    self._statements(otherwise.statements, scope)
                return
            case _ if isinstance(statement, tree.Loop):
                inner = scope.new_child()
                self._loop_head(statement, scope, inner)
                self._statements(statement.body.statements, inner)
                if statement.target is not None and statement.target_span is not None:
                    self._define("value", statement.target, statement.target_span, scope)
                return
        if isinstance(statement, tree.Let):
            self._let(statement, scope)
            return
        self._expression(statement.value, scope)
        if isinstance(statement, tree.Update):
            self._refer(statement.name, statement.name_span, scope)
        elif isinstance(statement, tree.Assign):
            self._define("value", statement.name, statement.name_span, scope)
        elif isinstance(statement, tree.LossStatement):
            self._define("loss", statement.name, statement.name_span, self._losses)

    def _let(self, let: tree.Let, scope: Scope) -> None:
        callee = let.value.callee if isinstance(let.value, tree.CallExpression) else let.value
        is_block = isinstance(callee, tree.Name) and callee.parts[0] not in scope  # it may be `Missing`
        block = self._resolved.declared(callee.text) if is_block else None
        self._expression(let.value, scope)
        self._define("instance", let.name, let.name_span, scope)
        if block is not None:
            self._blocks[scope[let.name]] = block.item

    def _loop_head(self, loop: tree.Loop, scope: Scope, inner: Scope) -> None:
        for child in tree.children(loop):
            if child is not loop.body:
                self._expression(child, scope)
        if isinstance(loop, tree.HaltingStatement):
            self._refer(loop.state, loop.state_span, scope)
            if loop.mixture and loop.mixture_span:
                self._define("value", loop.mixture, loop.mixture_span, inner)
        if isinstance(loop, tree.StackStatement) and loop.index and loop.index_span:
            self._define("static", loop.index, loop.index_span, inner)
        if isinstance(loop, tree.ExpertsStatement):
            self._define("value", loop.variable, loop.variable_span, inner)
        for scanned in loop.scanned if isinstance(loop, tree.ScanStatement) else ():
            self._define("value", scanned.variable, scanned.variable_span, inner)
        if isinstance(loop, tree.ScanStatement) and loop.before and loop.before_span:
            self._define("value", loop.before, loop.before_span, inner)

    # Recipes and tables

    def _recipe(self, recipe: tree.Recipe) -> None:
        self._add(recipe.name_span, self._recipes[recipe.name])
        if recipe.base and recipe.base_span:
            self._refer(recipe.base, recipe.base_span, self._recipes)
        items = self._choices(self._resolved, recipe.name)
        for part in recipe.parts:
            match part:
                case tree.Choice():
                    self._choice(part, items)
                case tree.AtTest(settings=settings) | tree.Claim(at=settings):
                    self._settings(settings, [items])
                case tree.Vary(variations=variations):
                    self._settings(variations, [items])
                case tree.Search(sought=sought):
                    self._settings(sought, [items])

    def _choice(self, choice: tree.Choice, items: Choices) -> None:
        value = choice.value
        name = value.callee if isinstance(value, tree.CallExpression) else value
        item = chosen(self._resolved, choice.word, name.text)
        if item is not None:
            self._add_item(name, item)
        if isinstance(value, tree.CallExpression):
            item = item or items.get(choice.word)
            self._statics(Declaration(item, self._resolved) if item is not None else None, value.statics, ChainMap())

    def _settings(
        self, settings: Iterable[tree.Setting | tree.Variation | tree.Sought], items: Sequence[Choices]
    ) -> None:
        """Refers to the statics that settings name of what one or more recipes choose."""
        for setting in settings:
            statics = self._path(setting.path, items)
            value: tree.Expression = setting.value if isinstance(setting, tree.Setting) else setting.values
            self._expression(value, ChainMap(), statics[0].kind if statics else None)

    def _path(self, path: tree.Name, items: Sequence[Choices]) -> list[tree.StaticParameter]:
        """Refers to each static that a path names, and returns them."""
        if len(path.parts) != 2:
            return []
        word, name = path.parts
        named = [each[word] for each in items if word in each]
        statics = [static for item in named for static in item.signature.statics if static.name == name]
        for static in statics:
            self._add(_tail(path), _static_symbol(static))
        return statics

    def _table(self, table: tree.Table) -> None:
        self._add(table.name_span, self._tables[table.name])
        items = self._choices_of_rows(self._resolved, table)
        for part in table.parts:
            match part:
                case tree.Row(recipe=str(recipe), recipe_span=Span() as span, at=at, best_of=paths):
                    self._refer(recipe, span, self._recipes)
                    self._places(at, paths, (self._choices(self._resolved, recipe),))
                case tree.Column(average=True, metric=metric, at=at):
                    self._average(metric, at)
                case (
                    tree.Column(metric=metric, at=at, best_of=paths) | tree.Columns(metric=metric, at=at, best_of=paths)
                ):
                    if len(metric.parts) == 3:
                        self._word(metric.parts[0], metric, self._recipes, r"^")
                    self._places(at, paths, items)

    def _places(
        self, at: Iterable[tree.Setting | tree.Variation], best_of: Iterable[tree.Name], items: Sequence[Choices]
    ) -> None:
        self._settings(at, items)
        for path in best_of:
            self._path(path, items)

    def _choices(self, file: ResolvedFile, recipe: str) -> Choices:
        key = id(file), recipe
        if key not in self._chosen:
            self._chosen[key] = choices(file, recipe)
        return self._chosen[key]

    def _choices_of_rows(self, file: ResolvedFile, table: tree.Table) -> list[Choices]:
        return [self._choices(file, recipe) for recipe in recipes_of_rows(table)]

    def _average(self, name: tree.Name, at: Iterable[tree.Setting]) -> None:
        """Refers to a table that is averaged, of this file or of one that it uses, and to the statics of its rows."""
        averaged = self._resolved.find_table(name.text)
        if averaged is not None:
            file, table = averaged
            self._alias(name)
            self._add(_tail(name), Meaning("table", table.name, table.name_span))
            self._settings(at, self._choices_of_rows(file, table))


def _symbol(item: Item) -> Meaning:
    return Meaning(item.word, item.name, item.name_span, item)


def _static_symbol(static: tree.StaticParameter) -> Meaning:
    return Meaning("static", static.name, _head(static.span, static.name), static=static)


def _head(span: Span, name: str) -> Span:
    return Span(span.source, span.start, span.start + len(name))


def _tail(name: tree.Name) -> Span:
    return Span(name.span.source, name.span.end - len(name.parts[-1]), name.span.end)
