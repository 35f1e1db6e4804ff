"""An ablation of a recipe: a switch for each branch, gate, norm and loop of its model, and a table that turns off one
after another.

A switch is a boolean static of every definition that leads to its place. What can be off follows from the syntax tree
and from the clauses `acts` and `records` of signatures; a switch stays if the model without its place has no mistake,
and is another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from archlang.errors import ProgramError, Source
from archlang.errors.edits import apply_edits, insertion, last_element
from archlang.plan.plan import Plan
from archlang.plan.recipe import call_of
from archlang.plan.table_writer import RecipePage, TableDraft, TableLine
from archlang.syntax import tree
from archlang.syntax.tokens import tokens

_PREFIX = "with_"
_COUNTED = tree.RepeatStatement | tree.StackStatement | tree.HaltingStatement


@dataclass(frozen=True, eq=False)
class _Switch:
    """A static that replaces what stands at a node by `off`: a number, or an argument."""

    name: str
    node: tree.Expression
    off: str | tree.Expression
    is_loop: bool = False

    @property
    def title(self) -> str:
        word = self.name.removeprefix(_PREFIX)
        return f"One turn of {word}" if self.is_loop else f"Without {word}"


def ablation(page: RecipePage, seeds: Sequence[int] | None = None) -> TableDraft:
    """Returns the ablation of a recipe; `seeds` as of `RecipePage.text`."""
    switches = _Switches(page)
    whole, left_out = TableLine(page.recipe.name, {}), list[str]()
    rows = {switch: TableLine(switch.title, switches.settings(switch)) for switch in switches.all}
    plans = page.planned(switches.program(switches.all, seeds, [whole]), [whole, *rows.values()])
    base = plans[whole.title]
    if isinstance(base, ProgramError):
        raise base
    for switch, row in list(rows.items()):
        plan = plans[row.title]
        if isinstance(plan, ProgramError) or plan.graph == base.graph:
            if isinstance(plan, ProgramError):
                left_out.append(f"{switch.node.span}: {switch.name}: {plan.diagnostics[0].message}")
            del rows[switch]
    lines = (whole, *rows.values(), *_losses(page))
    return TableDraft(switches.program(list(rows), seeds, lines), lines, tuple(left_out))


def _losses(page: RecipePage) -> Iterator[TableLine]:
    """Rows without the auxiliary losses of a recipe, whose weights are settings."""
    losses = {node.name for item in page.items for node in tree.walk(item) if isinstance(node, tree.LossStatement)}
    rows = [TableLine(f"Without loss {name}", {f"train.losses.{name}": "0.0"}) for name in sorted(losses)]
    if page.plan.settings.get("train.ponder"):
        rows.append(TableLine("Without ponder loss", {"train.ponder": "0.0"}))
    plans = page.planned(page.file.program.source.text, rows)
    return (row for row in rows if isinstance(plans[row.title], Plan))


class _Switches:
    """The switches of the definitions that a recipe leads to, and the program that has them."""

    def __init__(self, page: RecipePage) -> None:
        self._page = page
        self._definitions = {item.name: item for item in page.items if isinstance(item, tree.Definition)}
        self._words = {str(token) for item in page.items for token in tokens(Source("", item.span.text))[0]}
        self._own = {name: list(self._found(definition)) for name, definition in self._definitions.items()}
        self._carried: dict[str, list[_Switch]] = {}
        self.all = [switch for switches in self._own.values() for switch in switches]
        # A value that no operator reads needs no brackets.
        self._free: set[int] = set()
        for node in (node for definition in self._definitions.values() for node in tree.walk(definition.body)):
            if isinstance(node, tree.Assign | tree.Update | tree.Return | tree.Emit):
                self._free.add(id(node.value))
            elif isinstance(node, tree.CallExpression):
                self._free.update(map(id, node.arguments or ()))

    def settings(self, switch: _Switch) -> dict[str, str]:
        """The settings of a recipe that turn off a switch: of its model, and of blocks that the recipe gives it."""
        call, model = call_of(self._page.joined.parts.choices["model"]), self._page.joined.declarations["model"]
        settings = {f"model.{switch.name}": "false"} if switch in self._carried_by(call.callee.text) else {}
        for index, argument in enumerate(call.statics):
            text = self._text(
                argument.value, [], lambda name: f"{switch.name} = false" * (switch in self._carried_by(name))
            )
            if text != argument.value.span.text and model is not None:
                settings[f"model.{argument.name or model.item.signature.statics[index].name}"] = text
        return settings

    def program(self, chosen: Sequence[_Switch], seeds: Sequence[int] | None, rows: Sequence[TableLine]) -> str:
        """Returns the program with some of the switches, and a table of some rows."""

        def statics(name: str, value: str = "") -> str:
            carried = self._carried_by(name)
            return ", ".join(f"{each.name} = {value or each.name}" for each in chosen if each in carried)

        texts = {}
        for name, definition in self._definitions.items():
            place = definition.name_span.end - definition.span.start
            texts[name] = _with_statics(self._text(definition, chosen, statics), place, statics(name, "true"))
        columns = [f'column "{metric}" {metric}' for metric in self._page.metrics()]
        about = f"The recipe `{self._page.recipe.name}`, and with one part of its model off in each row."
        return self._page.text("ablation", about, rows, columns, seeds, texts)

    def _carried_by(self, name: str) -> list[_Switch]:
        """The switches of a definition, and of those that it names, directly or not."""
        definition = self._definitions.get(name)
        if definition is not None and name not in self._carried:
            named = {other for _, other in _named_blocks(definition)}
            inner = (switch for other in self._definitions if other in named for switch in self._carried_by(other))
            self._carried[name] = [*self._own[name], *inner]
        return self._carried.get(name, [])

    def _text(self, node: tree.Syntax, chosen: Sequence[_Switch], statics: Callable[[str], str]) -> str:
        """Returns the text of a node with its switches; `statics` are those that a block by a name is given."""
        blocks = {id(named): name for named, name in _named_blocks(node)}
        switches: dict[int, list[_Switch]] = {}
        for switch in chosen:
            switches.setdefault(id(switch.node), []).append(switch)

        def text(node: tree.Syntax, copies: int = 0) -> str:
            source, end, pieces = node.span.source.text, node.span.start, list[str]()
            for child in sorted(tree.children(node), key=lambda child: child.span.start):
                pieces += [source[end : child.span.start], text(child, copies)]
                end = child.span.end
            written = "".join([*pieces, source[end : node.span.end]])
            if (name := blocks.get(id(node))) is not None:
                written = _with_statics(written, len(name), statics(name))
            # What stands in place of a norm is a copy. Copies of copies have no switches, so that chains stay short.
            own = switches.get(id(node), []) if copies < 2 else []
            for switch in own:
                off = switch.off if isinstance(switch.off, str) else grouped(switch.off, text(switch.off, copies + 1))
                written = f"{grouped(node, written)} when {switch.name} else {off}"
                written = written if id(node) in self._free and switch is own[-1] else f"({written})"
            return written

        def grouped(node: tree.Syntax, text: str) -> str:
            return f"({text})" if isinstance(node, tree.Pipe | tree.Conditional) else text

        return text(node)

    # What can be off

    def _found(self, definition: tree.Definition) -> Iterator[_Switch]:
        for node in tree.walk(definition.body):
            if isinstance(node, tree.Assign | tree.Update | tree.Return | tree.Emit):
                yield from self._in_value(node.value, isinstance(node, tree.Assign))
            elif isinstance(node, _COUNTED):
                word = "stack" if isinstance(node, tree.StackStatement) else "repeat"
                yield _Switch(self._new_name(word), node.count, "1", is_loop=True)

    def _in_value(self, node: tree.Expression, may_be_number: bool) -> Iterator[_Switch]:
        """Yields the switches in a value, which `may_be_number` where the switch is off."""
        match node:
            case tree.Binary(operator=operator, left=left, right=right):
                operands = _terms(node) if operator in "+-" else [left, right]
                may_be_number |= sum(not isinstance(operand, tree.Number) for operand in operands) > 1
                for operand in operands:
                    yield from self._in_value(operand, may_be_number)
                    word = "" if self._is_gate(operand) else _word(operand)
                    if operator in "+-" and may_be_number and word:
                        yield _Switch(self._new_name(word), operand, "0")
            case tree.Conditional(then=then, otherwise=otherwise):
                yield from self._in_value(then, may_be_number)
                yield from self._in_value(otherwise, may_be_number)
            case tree.Unary(operand=operand):
                yield from self._in_value(operand, may_be_number)
            case tree.Pipe(value=value, stage=stage):
                call = tree.as_call(stage)
                yield from self._in_call(node, call, (value, *(call.arguments or ())), may_be_number)
            case tree.CallExpression(arguments=arguments):
                yield from self._in_call(node, node, arguments or (), may_be_number)

    def _in_call(
        self,
        node: tree.Expression,
        call: tree.CallExpression,
        arguments: Sequence[tree.Expression],
        may_be_number: bool,
    ) -> Iterator[_Switch]:
        for argument in arguments:
            yield from self._in_value(argument, may_be_number=False)
        item = self._extern(call)
        if item is None:
            return
        gates = [record.input for record in item.records if record.kind == "gate"]
        inputs = [each.name for each in item.signature.inputs]
        updates = [value for name, value in zip(inputs, arguments, strict=False) if name not in gates]
        is_norm = len(arguments) == 1 and not _acts(item).keys().isdisjoint(("normalises", "unit"))
        if updates and (is_norm or (gates and len(updates) < len(arguments))):
            yield _Switch(self._new_name(call.callee.parts[-1]), node, updates[0])
        elif may_be_number and self._is_gate(node):
            yield _Switch(self._new_name(_word(node)), node, "1")

    def _is_gate(self, node: tree.Expression) -> bool:
        """Whether a value lies between 0 and 1, or has the numbers of one that does."""
        call = tree.as_call(node.stage) if isinstance(node, tree.Pipe) else node
        item = self._extern(call) if isinstance(call, tree.CallExpression) else None
        if item is None or not isinstance(call, tree.CallExpression):
            return False
        acts = _acts(item)
        if "bounded" in acts:
            ends = [getattr(static.value, "value", None) for static in acts["bounded"].statics]
            return ends == [0, 1] and "choice" not in acts
        first = node.value if isinstance(node, tree.Pipe) else next(iter(call.arguments or ()), None)
        return "moves" in acts and first is not None and self._is_gate(first)

    def _extern(self, call: tree.CallExpression) -> tree.Extern | None:
        declared = self._page.find(call.callee.text)
        return declared.item if declared is not None and isinstance(declared.item, tree.Extern) else None

    def _new_name(self, word: str) -> str:
        name, number = f"{_PREFIX}{word}", 1
        while name in self._words:
            number += 1
            name = f"{_PREFIX}{word}_{number}"
        self._words.add(name)
        return name


def _acts(item: tree.Extern) -> dict[str, tree.CallExpression]:
    """What a block does, by the words of `acts`, whatever their conditions."""
    acts = (clause.act for clause in item.acts)
    calls = [tree.as_call(act) for act in acts if isinstance(act, tree.Name | tree.CallExpression)]
    return {call.callee.text: call for call in calls}


def _terms(node: tree.Expression) -> list[tree.Expression]:
    """The operands of sums and differences inside one another."""
    if isinstance(node, tree.Binary) and node.operator in "+-":
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _word(node: tree.Expression) -> str:
    """The name of the block that gives a value, of the first in it, or of the factors; empty if there is none."""
    if isinstance(node, tree.Pipe):
        return tree.as_call(node.stage).callee.parts[-1]
    calls = [each.callee.parts[-1] for each in tree.walk(node) if isinstance(each, tree.CallExpression)]
    if calls and isinstance(node, tree.Binary) and node.operator == "*":
        factors = (each.parts[-1] if isinstance(each, tree.Name) else _word(each) for each in (node.left, node.right))
        return "_times_".join(filter(None, factors))
    return next(iter(calls), "")


def _named_blocks(node: tree.Syntax) -> Iterator[tuple[tree.Syntax, str]]:
    """Yields the places in a node that name blocks, each with the name; not those of its statics and instances."""
    hidden = {each.name for each in tree.walk(node) if isinstance(each, tree.StaticParameter | tree.Let)}
    for each in tree.walk(node):
        match each:
            case tree.CallExpression(callee=callee) if callee.text not in hidden:
                yield each, callee.text
            case (
                tree.Pipe(stage=tree.Name() as name)
                | tree.Let(value=tree.Name() as name)
                | tree.StaticArgument(value=tree.Name() as name)
                | tree.StaticParameter(default=tree.Name() as name)
            ) if name.text not in hidden:
                yield name, name.text
    if isinstance(node, tree.Name):
        yield node, node.text


def _with_statics(text: str, place: int, statics: str) -> str:
    """Returns the text of a call or a signature with more statics behind its name, which ends at a place."""
    source = Source("", text)
    is_first = text[place : place + 1] != "["
    edit = insertion(source, place, f"[{statics}]") if is_first else last_element(source, place, statics)
    return apply_edits(text, [edit]) if statics and edit is not None else text
