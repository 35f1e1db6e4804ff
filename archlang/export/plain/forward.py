"""The method `forward` of a model's class, with the loops of its graph as Python loops."""

from __future__ import annotations

import ast

from archlang.backend.lower.lengths import needed_lengths
from archlang.export.plain.expressions import function_of, mean_of, parsed_expression, parsed_statement
from archlang.export.plain.loop_helpers import FILLED_PADDING, REAL_POSITIONS
from archlang.export.plain.loops import Loops
from archlang.export.plain.places import length_words, placed
from archlang.types import Dim


class Forward(Loops):
    """Writes `forward`: the masks of its fields, its nodes, and its result."""

    def function(self) -> ast.FunctionDef:
        region = self._graph.region
        values: dict[str, ast.expr] = {}
        fields = []
        for value in region.inputs:
            name = self._name(value.name or "x")
            fields.append(name)
            values[value.id] = ast.Name(name, ast.Load())
        self._batch = parsed_expression(f"{fields[0]}.shape[0]")
        lengths = needed_lengths(region, self._graph.instances)
        body: list[ast.stmt] = []
        masks: dict[Dim, ast.expr] = {}
        with_lengths = {name: kind.lengths[0] for name, kind in
                        zip(fields, (value.type for value in region.inputs), strict=True) if kind.lengths}  # fmt: skip
        if lengths:
            real_positions, filled_padding = (self._helper(name).id for name in (REAL_POSITIONS, FILLED_PADDING))
        is_shared = len(set(with_lengths.values())) == 1
        if lengths and len(fields) > 1:
            by_field = "lengths or {}"
            if is_shared:
                keys = [value.name for value in region.inputs if value.type.lengths]
                by_field = f"dict.fromkeys({keys!r}, lengths) if isinstance(lengths, Tensor) else {by_field}"
            body.append(parsed_statement(f"lengths = {by_field}"))
        for length in lengths:
            candidates = [name for name, own in with_lengths.items() if own == length]
            name = self._name(f"mask_{length_words(length)}")
            source = "lengths"
            if len(fields) > 1:
                keys = [region.inputs[fields.index(candidate)].name for candidate in candidates]
                source = f'lengths.get("{keys[-1]}")'
                for key in reversed(keys[:-1]):
                    source = f'lengths.get("{key}", {source})'
            body.append(parsed_statement(f"{name} = {real_positions}({candidates[0]}, {source})"))
            body += [parsed_statement(f"{field} = {filled_padding}({field}, {name})") for field in candidates]
            masks[length] = ast.Name(name, ast.Load())
        scope = self._region(region, values, masks, True, set(values))
        result = self._take_pending(scope, region.results[0])
        self._flush(scope)
        body += scope.body
        ponders = self._ponder(scope)
        if ponders is not None:
            body.append(parsed_statement(f"self.ponder = ({ast.unparse(ponders)}).mean()"))
            if scope.depths:
                depth = ast.unparse(mean_of(scope.depths))
                body.append(parsed_statement(f"self.sample_depth = ({depth}).detach()"))
        last = region.results[0]
        returned: ast.stmt = ast.Return(result)
        final = next((node for node in region.nodes if node.id == last), None)
        body.append(returned if final is None else placed(returned, final))
        arguments = ", ".join(f"{name}: Tensor" for name in fields)
        if with_lengths:  # the module takes them even if nothing reads them
            kind = "Tensor" if len(fields) == 1 else "Tensor | dict[str, Tensor]" if is_shared else "dict[str, Tensor]"
            arguments += f", lengths: {kind} | None = None"
        return function_of(f"def forward(self, {arguments}) -> Tensor:", body)
