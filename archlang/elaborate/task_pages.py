"""The page of a task: what its statements mean, in the check of a program and in the machine that runs a page."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from archlang.elaborate import mistakes
from archlang.elaborate.binding import Binding, size_words, sizes_of_task
from archlang.errors import Diagnostic, Span, ignore
from archlang.errors.effort import spend
from archlang.errors.names import plural
from archlang.resolve import library
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import Declaration
from archlang.resolve.values import Bound, Unknown, Value, describe
from archlang.syntax import tree
from archlang.types import Dim
from archlang.types.statics import Symbol

NUMBER, WORD = "a number", "a word"
LENGTH = "length"
"""The name of the length that a split asks of an item."""
MOST_WORDS = 1 << 16
"""The largest vocabulary of a page."""
SCORED = "scored"
"""The name of the word that says which positions of an answer count."""

TABLE = Path(__file__).with_name("page_functions.tsv")
"""The functions of pages."""
_KINDS = {"n": NUMBER, "w": WORD, "number": NUMBER, "word": WORD}
DECODED = "sequence to sequence"
_LOGIC = ("==", "!=", "<", "<=", ">", ">=", "in", "and", "or")


@cache
def functions() -> Mapping[str, Mapping[int, tuple[str, str]]]:
    """What each function takes and returns, by its number of values, after which `*` allows more: for each value `n` a
    number, `w` a word or `a` either, and the kind of the result, empty if it is as of `+`."""
    forms_by_name: dict[str, dict[int, tuple[str, str]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]:
        name, kinds, result, _ = line.split("\t")
        forms_by_name.setdefault(name, {})[len(kinds.rstrip("*"))] = kinds, _KINDS.get(result, "")
    return forms_by_name


def meanings() -> Mapping[str, str]:
    """What each function does, in words."""
    lines = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:])
    return {name: meaning for name, _, _, meaning in lines}


class Page:
    """Reads the page of a task with bound statics from top to bottom.

    A value is a number or a word, a sequence of numbers. Here, where a program is checked, a value is its kind,
    `NUMBER` or `WORD`; a subclass computes with values. After a mistake, a value is None."""

    def __init__(self, binding: Binding, report: Callable[[Diagnostic], None]) -> None:
        item = binding.declaration.item
        assert isinstance(item, tree.Extern)
        self.item, self._binding, self.report = item, binding, report
        self.vocabulary = {word: number for number, word in enumerate(size_words(binding, "vocab"))}
        self.values: dict[str, Any] = {}  # Any: values, as the class says
        self._places: dict[str, Span] = {}

    def read(self) -> Any:  # Any: a value
        """Returns the answer."""
        assert self.item.body is not None, "it is a page"
        self.values |= {LENGTH: self.length()}
        self._places |= {LENGTH: self.item.name_span}
        answer = self._body(self.item.body)
        if answer is None:
            self.report(name_mistakes.no_return(self.item.name_span, self.item.name))
        for field in self.item.signature.inputs:
            if field.name != "target" and field.name not in self.values:
                self.report(mistakes.field_unbound(field.span, field.name, self.item.name))
        return answer

    # What a subclass computes

    def length(self) -> Any:
        return NUMBER

    def constant(self, number: int) -> Any:
        return NUMBER

    def table(self, numbers: Sequence[int]) -> Any:
        return WORD

    def kind(self, value: Any) -> str:
        """Whether a value is `NUMBER` or `WORD`."""
        return str(value)

    def binary(self, operator: str, left: Any, right: Callable[[], Any], node: tree.Syntax) -> Any:
        return self._joined(left, right())

    def select(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        first, second = then(), otherwise()
        return first if first is None else second and self._joined(test, first, second)

    def index(self, word: Any, place: Any, node: tree.Syntax) -> Any:
        return place

    def range(self, low: Any, high: Any, node: tree.Syntax) -> Any:
        return WORD

    def call(self, function: str, values: Sequence[Any], node: tree.CallExpression, target: str) -> Any:
        """Returns what a function computes; `target` is the name that an update gives it."""
        of_function = functions()[function]
        _, result = of_function.get(len(values)) or of_function[1]
        return result or self._joined(*values)

    def listed(self, values: Sequence[Any]) -> Any:
        """Returns the word of some numbers."""
        return WORD

    def updated(self, name: str, value: Any) -> Any:
        return value

    def branch(self, test: Any, then: Callable[[], object], otherwise: Callable[[], object]) -> None:
        then()
        otherwise()

    def repeat(self, count: Any, step: Callable[[], object], node: tree.Syntax) -> None:
        step()

    def scan(self, words: Sequence[Any], step: Callable[..., Any], node: tree.Syntax) -> Any:
        """Takes a step for each place of words of one length; returns the word of what the steps emit."""
        step(*(NUMBER for _ in words))
        return WORD

    def _joined(self, *values: Any) -> Any:
        return None if None in values else WORD if WORD in values else NUMBER

    # Statements

    def _body(self, body: tree.Body) -> Any:
        """Returns what a body returns; None if it has no `return`."""
        for index, statement in enumerate(body.statements):
            spend()
            answer = self._statement(statement)
            if answer is not None:
                if rest := body.statements[index + 1 :]:
                    place = rest[0].span.to(rest[-1].span)
                    self.report(name_mistakes.unreachable(rest[0].span, statement.span, place))
                return answer
        return None

    def _statement(self, statement: tree.Statement) -> Any:
        match statement:
            case tree.Assign(name=name, name_span=span, value=value):
                self._bind(name, span, self.value(value))
            case tree.Update():
                self._update(statement)
            case tree.Return(value=value):
                is_class = kind_of_page(self.item) == "classification"
                answer = self._of_kind(NUMBER, value) if is_class else self.value(value)
                return NUMBER if answer is None else answer  # a mistake in the value is no missing `return`
            case tree.If():
                return self._if(statement)
            case tree.RepeatStatement(count=count, target=None, drawn=None, truncated=None, settled=False):
                total = self._of_kind(NUMBER, count)
                if total is not None:
                    self.repeat(total, lambda: self._inner(statement.body), statement)
            case tree.ScanStatement(before=None, growing=(), truncated=None):
                self._scan(statement)
            case _:
                self.report(mistakes.not_in_page(statement.span, statement.span.text.split(None, 1)[0]))
        return None

    def _bind(self, name: str, span: Span, value: Any) -> None:
        if name in self._places:
            self.report(name_mistakes.bound_twice(span, name, self._places[name]))
            return
        self._places[name] = span
        self.values[name] = value

    def _update(self, statement: tree.Update) -> None:
        name, span = statement.name, statement.name_span
        value = self.value(statement.value, target=name)
        if name not in self.values:
            self.report(name_mistakes.update_of_unbound(span, name, self.values))
            return
        old = self.values[name]
        if value is not None and old is not None and self.kind(old) != self.kind(value):
            self.report(mistakes.wrong_value(statement.value.span, self.kind(value), self.kind(old)))
        elif value is not None:
            self.values[name] = self.updated(name, value)

    def _if(self, statement: tree.If) -> Any:
        truth = self._static_truth(statement.test)
        branches = statement.then, statement.otherwise
        if isinstance(truth, bool):
            chosen = branches[not truth]
            return None if chosen is None else self._body(chosen)
        test = self._of_kind(NUMBER, statement.test)
        if test is not None:
            then, otherwise = (lambda: self._inner(branches[0])), (lambda: self._inner(branches[1]))
            self.branch(test, then, otherwise)
        return None

    def _inner(self, body: tree.Body | None) -> None:
        """Runs a body that some items skip, or that runs several times; what it binds is known inside."""
        with self._scope():
            if body is not None and self._body(body) is not None:
                self.report(name_mistakes.return_in_loop(body.statements[-1].span))

    @contextmanager
    def _scope(self) -> Iterator[None]:
        places = dict(self._places)
        yield
        self._places = places
        self.values = {name: value for name, value in self.values.items() if name in places}

    def _scan(self, statement: tree.ScanStatement) -> None:
        words = [self._of_kind(WORD, each.over) for each in statement.scanned]
        emits = [each for each in statement.body.statements if isinstance(each, tree.Emit)]
        carried = {name.text for name in statement.carry}
        for update in (node for node in tree.walk(statement.body) if isinstance(node, tree.Update)):
            if update.name in self.values and update.name not in carried:
                self.report(name_mistakes.not_carried(update.name_span, update.name, statement.span, ()))
        for name in statement.carry:
            if name.text not in self.values:
                self.report(name_mistakes.update_of_unbound(name.span, name.text, self.values))
        if statement.target is not None and not emits:
            self.report(name_mistakes.emit_missing(statement.span, statement.target, sorted(carried)))
        if len(emits) > 1:
            self.report(name_mistakes.emit_twice(emits[1].span, emits[0].span))
        if any(word is None for word in words):
            return

        def step(*symbols: Any) -> Any:
            with self._scope():
                for scanned, symbol in zip(statement.scanned, symbols, strict=True):
                    self._bind(scanned.variable, scanned.variable_span, symbol)
                emitted = None
                for each in statement.body.statements:
                    if isinstance(each, tree.Emit):
                        emitted = self._of_kind(NUMBER, each.value)
                    elif self._statement(each) is not None:
                        self.report(name_mistakes.return_in_loop(each.span))
                return emitted

        emitted = self.scan(words, step, statement)
        if statement.target is not None and statement.target_span is not None:
            self._bind(statement.target, statement.target_span, emitted)

    # Expressions

    def value(self, node: tree.Expression, target: str = "") -> Any:
        """Returns the value of an expression; None after a mistake."""
        spend()
        match node:
            case tree.Number(value=int(number)) | tree.Boolean(value=number):
                return self.constant(int(number))
            case tree.String(value=word):
                if word not in self.vocabulary:
                    return self._refuse(mistakes.unknown_word(node.span, word, self.item.name, self.vocabulary))
                return self.constant(self.vocabulary[word])
            case tree.Name():
                return self._name(node)
            case tree.ListOf(items=items):
                values = [self._of_kind(NUMBER, item) for item in items]
                return None if _has_mistake(values) else self.listed(values)
            case tree.Range(low=low, high=high):
                ends = self._of_kind(NUMBER, low), self._of_kind(NUMBER, high)
                return None if _has_mistake(ends) else self.range(*ends, node)
            case tree.Unary(operator=operator, operand=operand):
                value = self.value(operand)
                zero = self.constant(0)
                if value is None:
                    return None
                left, right = (zero, value) if operator == "-" else (value, zero)
                return self.binary("-" if operator == "-" else "==", left, lambda: right, node)
            case tree.Binary(operator=operator, left=left, right=right):
                if operator in _LOGIC and isinstance(truth := self._static_truth(node), bool):
                    return self.constant(truth)
                if operator != "in":
                    first = self.value(left)
                    return None if first is None else self.binary(operator, first, lambda: self.value(right), node)
            case tree.Conditional(then=then, test=test, otherwise=otherwise):
                truth = self._static_truth(test)
                if isinstance(truth, bool):
                    return self.value(then if truth else otherwise)
                holds = self.value(test)
                if holds is None:
                    return None
                return self.select(holds, lambda: self.value(then), lambda: self.value(otherwise))
            case tree.CallExpression(callee=callee, statics=(place,), arguments=None) if place.name is None:
                word, at = self._of_kind(WORD, callee), self.value(place.value)
                return None if word is None or at is None else self.index(word, at, node)
            case tree.CallExpression(statics=(), arguments=tuple(arguments)):
                return self._call(node, arguments, target)
            case tree.Pipe(value=value, stage=stage):
                call = tree.as_call(stage)
                arguments = (value, *(call.arguments or ()))
                return self._call(tree.CallExpression(callee=call.callee, span=node.span), arguments, target)
        form = node.operator if isinstance(node, tree.Binary) else node.span.text.split(None, 1)[0]
        return self._refuse(mistakes.not_in_page(node.span, form))

    def _refuse(self, mistake: Diagnostic) -> None:
        self.report(mistake)

    def _of_kind(self, kind: str, node: tree.Expression) -> Any:
        value = self.value(node)
        if value is not None and self.kind(value) != kind:
            return self._refuse(mistakes.wrong_value(node.span, self.kind(value), kind))
        return value

    def _name(self, name: tree.Name) -> Any:
        if name.text in self._places:
            return self.values[name.text]
        bound = self._binding.lookup(name.text)
        if not isinstance(bound, Bound):
            possible = {*self._places, *self._binding.parameters}
            return self._refuse(name_mistakes.unknown_value(name.span, name.text, possible, name.text in functions()))
        static = bound.value
        if isinstance(static, Unknown):
            return WORD if static.kind == "list" else NUMBER
        numbers = [_whole(each) for each in (static if isinstance(static, tuple) else (static,))]
        if static is None or None in numbers:
            return None if static is None else self._refuse(mistakes.wrong_value(name.span, describe(static), NUMBER))
        integers = [number for number in numbers if number is not None]
        return self.table(integers) if isinstance(static, tuple) else self.constant(integers[0])

    def _call(self, node: tree.CallExpression, arguments: Sequence[tree.Expression], target: str) -> Any:
        function = node.callee.text
        if function not in functions():
            return self._refuse(mistakes.unknown_function(node.callee.span, function, functions()))
        of_function, count = functions()[function], len(arguments)
        taken = of_function.get(count) or (of_function.get(1, ("", "")) if count else ("", ""))
        if count not in of_function and "*" not in taken[0]:
            expected = " or ".join(plural(each, "value") for each in of_function)
            wrong = mistakes.wrong_number_of_arguments(node.span, function, expected, count, [], None)
            return self._refuse(wrong)
        values, kinds = [], taken[0]
        for index, argument in enumerate(arguments):
            kind = kinds[0] if "*" in kinds else kinds[index]
            values.append(self.value(argument) if kind == "a" else self._of_kind(_KINDS[kind], argument))
        return None if _has_mistake(values) else self.call(function, values, node, target)

    def _static_truth(self, test: tree.Expression) -> bool | None:
        """Whether a condition holds that only statics decide; None for another one."""
        for node in tree.walk(test):
            if isinstance(node, tree.String) or getattr(node, "arguments", None) is not None:
                return None
        names = [node.parts[0] for node in tree.walk(test) if isinstance(node, tree.Name)]
        bounds = [self._binding.lookup(name) for name in names]
        has_symbols = any(isinstance(bound, Bound) and isinstance(bound.value, Symbol) for bound in bounds)
        if not self._places.keys().isdisjoint(names) or (None in bounds and not has_symbols):
            return None
        # What statics cannot decide, as a number of a list, is computed, and its mistakes are found there.
        return replace(self._binding.evaluator, report=ignore, rounds_down=True).truth(test)


def _has_mistake(values: Sequence[Any]) -> bool:  # Any: values, as `Page` says
    return any(value is None for value in values)


def _whole(static: Value) -> int | None:
    if isinstance(static, bool):
        return int(static)
    return static.constant if isinstance(static, Dim) else None


def kind_of_page(item: tree.Extern) -> str:
    """Returns the kind of a task with these fields and this result; empty if a page cannot be of it."""
    fields, result = item.signature.inputs, item.signature.result
    read = fields[:-1] if any(field.name == "target" for field in fields[-1:]) else fields
    names = tuple(field.name for field in (*read[:1], *fields[len(read) :]) if field.type.name == "tokens")
    # Further fields, of tokens or of numbers, stand at the positions of the first.
    places = {(field.type.name in ("tokens", "seq"), field.type.dimensions[0].span.text) for field in read}
    if len(places) != 1 or not isinstance(result, tree.TypeName) or result.name != "logits":
        return ""
    sizes = tuple(size.text for size in result.dimensions if isinstance(size, tree.Name))
    if names == ("x",) and sizes == ("classes",):
        return "classification"
    if names == ("x",) and sizes[1:] == ("classes",):
        return "tagging"
    kinds = {("x",): "language model", ("source", "target"): DECODED}
    return kinds.get(names, "") if item.causal and sizes[1:] == ("vocab",) else ""


def check_declared_page(declaration: Declaration, report: Callable[[Diagnostic], None]) -> bool:
    """Reports the mistakes that a page has with the defaults of its statics; returns whether recipes can use it."""
    item = declaration.item
    assert isinstance(item, tree.Extern)
    if library.splits(item) is None:
        named = item.includes[0] if item.includes else None
        span, name = (item.name_span, "") if named is None else (named.span, named.text)
        report(mistakes.unknown_splits(span, name, sorted(library.splits_names())))
        return False
    if not kind_of_page(item):
        report(mistakes.page_of_no_kind(item.signature.span, item.name))
        return False
    with_splits = library.with_settings(item)
    if all(static.default is not None for static in with_splits.signature.statics):
        binding = Binding(replace(declaration, item=with_splits), item.name_span, {}, report)
        binding.finish()
        check_page(binding, binding.report)
    return True


def width(binding: Binding, field: tree.InputParameter) -> int:
    """The second size of a field: of its own vocabulary, or how many numbers stand at a position; 0 for no number."""
    written, given = field.type.dimensions[1], sizes_of_task(binding)
    if written.span.text in given:
        return given[written.span.text]
    size = binding.evaluator.value(written, "int")
    return (size.constant or 0) if isinstance(size, Dim) else 0


def check_page(binding: Binding, report: Callable[[Diagnostic], None]) -> None:
    """Reports the mistakes of a page with bound statics."""
    item, sizes = binding.declaration.item, sizes_of_task(binding)
    assert isinstance(item, tree.Extern)
    for field in item.signature.inputs:
        if len(field.type.dimensions) > 1 and not 0 < (number := width(binding, field)) <= MOST_WORDS:
            report(mistakes.size_out_of_range(field.span, field.name, number, MOST_WORDS))
            return
    has_classes = kind_of_page(item) in ("classification", "tagging")
    for size in ("vocab", "classes") if has_classes else ("vocab",):
        given = next((each for each in item.gives if each.name == size), None)
        if given is None:
            report(mistakes.size_not_given(item.name_span, item.name, size))
        elif not 0 < (number := sizes.get(size, 1)) <= MOST_WORDS:
            report(mistakes.size_out_of_range(given.span, size, number, MOST_WORDS))
        elif repeated := [word for word, count in Counter(size_words(binding, size)).items() if count > 1]:
            report(mistakes.repeated_word(given.span, repeated[0], size))
        elif size == "vocab" and kind_of_page(item) == DECODED and not {"[B]", "[E]"} <= {*size_words(binding, size)}:
            report(mistakes.no_marks(given.span, item.name))
        else:
            continue
        return
    Page(binding, report).read()
