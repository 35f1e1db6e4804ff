"""Builds `use` lines, definitions and externs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archlang.source import Span
from archlang.syntax import tree
from archlang.syntax.builders.context import LineTaken, Section
from archlang.syntax.builders.parts import Clause, Group, Parts, clause_nodes, nodes_of_kind
from archlang.syntax.words import ITEM_WORDS

if TYPE_CHECKING:
    from lark import Token


class Items(Section):
    """Files, `use` lines, definitions and externs."""

    def start(self, parts: Parts) -> Parts:
        return parts

    def use(self, parts: Parts) -> tree.Use:
        """Raises:
        LineTaken: the path is the first word of the next item."""
        _, path, _, alias = parts
        is_file = path.type == "STRING"
        span = self._context.span(parts)
        if path in ITEM_WORDS and "\n" in span.text:
            raise LineTaken
        documentation, comment = self._context.item_comments(span)
        return tree.Use(
            path=path[1:-1] if is_file else str(path),
            is_file=is_file,
            path_span=self._context.token_span(path),
            alias=None if alias is None else str(alias),
            alias_span=None if alias is None else self._context.token_span(alias),
            span=span,
            **documentation,
            **comment,
        )

    def definition(self, parts: Parts) -> tree.Definition:
        word, name, statics, inputs, _, result, where, body = parts
        span = self._context.span(parts)
        signature = self._signature(name, statics, inputs, result, [where])
        documentation, comment = self._context.item_comments(span)
        return tree.Definition(
            word=str(word),
            name=str(name),
            name_span=self._context.token_span(name),
            signature=signature,
            body=body,
            span=span,
            **documentation,
            **comment,
        )

    def extern_block(self, parts: Parts) -> tree.Extern:
        _, word, name, statics, inputs, _, result, *clauses, _, python = parts
        return self._extern(parts, word, name, statics, inputs, result, clauses, python)

    extern_task = extern_block

    def extern_optimizer(self, parts: Parts) -> tree.Extern:
        _, word, name, statics, *clauses, _, python = parts
        return self._extern(parts, word, name, statics, None, None, clauses, python)

    def extern_settings(self, parts: Parts) -> tree.Extern:
        _, word, name, statics, *clauses = parts
        return self._extern(parts, word, name, statics, None, None, clauses, None)

    def _extern(
        self,
        parts: Parts,
        word: Token,
        name: Token,
        statics: Group | None,
        inputs: Group | None,
        result: tree.Node | None,
        read_clauses: Sequence[Clause | tree.Missing | None],
        python: Token | None,
    ) -> tree.Extern:
        span = self._context.span(parts)
        unread = tuple(clause for clause in read_clauses if isinstance(clause, tree.Missing))
        clauses = [clause for clause in read_clauses if isinstance(clause, Clause)]
        signature = self._signature(name, statics, inputs, result, clauses)
        documentation, comment = self._context.item_comments(span)
        words = {clause.word: clause.span for clause in clauses if clause is not None}
        return tree.Extern(
            word=str(word),
            name=str(name),
            name_span=self._context.token_span(name),
            signature=signature,
            reads=clause_nodes(clauses, "reads", tree.Reads),
            caveats=clause_nodes(clauses, "caveat", tree.Caveat),
            pure="pure" in words,
            pure_span=words.get("pure"),
            sizes=clause_nodes(clauses, "sizes", tree.StaticArgument),
            costs=clause_nodes(clauses, "costs", tree.Cost),
            maps=clause_nodes(clauses, "maps", tree.Maps),
            records=clause_nodes(clauses, "records", tree.Record),
            cuts=clause_nodes(clauses, "cuts", tree.Cut),
            gives=clause_nodes(clauses, "gives", tree.StaticArgument),
            causal="causal" in words,
            includes=clause_nodes(clauses, "with", tree.Name),
            unread=unread,
            python="" if python is None else python[1:-1],
            python_span=self._context.token_span(name if python is None else python),
            span=span,
            **documentation,
            **comment,
        )

    def _signature(
        self, name: Token, statics: Group | None, inputs: Group | None, result: Any, clauses: Sequence[Clause | None]
    ) -> tree.Signature:  # Any: a type expression
        where = tuple(node for clause in clauses if clause and clause.word == "where" for node in clause.nodes)
        places = [self._context.token_span(name)]
        places += [
            Span(self._context.source, group.start, group.end) for group in (statics, inputs) if group is not None
        ]
        places += [node.span for node in (result, *where) if node is not None]
        # Error recovery gives what it could not read an empty name.
        parameters = nodes_of_kind(tree.StaticParameter, statics)
        fields = nodes_of_kind(tree.InputParameter, inputs)
        unread = {
            # Further statics may follow a value that breaks off.
            "statics": not name or any(not each.name or isinstance(each.default, tree.Missing) for each in parameters),
            "inputs": not name or any(not field.name for field in fields),
            "result": isinstance(result, tree.TypeName) and not result.name,
        }
        named = self._context.with_comments(tuple(parameter for parameter in parameters if parameter.name))
        return tree.Signature(
            statics=named,
            closing=() if statics is None else self._context.closing_comments(named, statics.end),
            inputs=tuple(field for field in fields if field.name),
            result=None if unread["result"] else result,
            where=where,  # type: ignore[arg-type]  # the grammar has only expressions there
            unread=frozenset(part for part, is_unread in unread.items() if is_unread),
            span=Span(self._context.source, places[0].start, max(place.end for place in places)),
        )
