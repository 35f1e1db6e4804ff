"""The node and the span of each construct."""

import pytest

from archlang.errors import ProgramError, Source
from archlang.syntax import tree
from archlang.syntax.parser import parse, parse_setting, parse_tolerantly
from archlang.syntax.printer import unparse


def program(text: str) -> tree.Program:
    return parse(Source("x.arch", text))


def statements(body: str) -> tuple[tree.Statement, ...]:
    (item,) = program(f"block b(h: seq[n, d]) -> seq[n, d] {{ {body}\n}}").items
    assert isinstance(item, tree.Definition)
    return item.body.statements


def expression(text: str) -> tree.Expression:
    (statement,) = statements(f"return {text}")
    assert isinstance(statement, tree.Return)
    return statement.value


def shape(node: tree.Expression) -> str:
    """An expression with all its parentheses."""
    match node:
        case tree.Binary(operator=operator, left=left, right=right):
            return f"({shape(left)} {operator} {shape(right)})"
        case tree.Unary(operator=operator, operand=operand):
            return f"({operator} {shape(operand)})"
        case tree.Range(low=low, high=high):
            return f"({shape(low)} .. {shape(high)})"
        case tree.Conditional(then=then, test=test, otherwise=otherwise):
            return f"({shape(then)} ? {shape(test)} : {shape(otherwise)})"
        case tree.Pipe(value=value, stage=stage):
            return f"({shape(value)} |> {shape(stage)})"
    return unparse(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a - b - c", "((a - b) - c)"),
        ("-a * b", "((- a) * b)"),
        ("a + -b", "(a + (- b))"),
        ("a+-b", "(a + (- b))"),
        ("f(a)+-2", "(f(a) + (- 2))"),
        ("a <-b", "(a < (- b))"),
        ("a + b |> f |> g[2]", "(((a + b) |> f) |> g[2])"),
        ("a when t else b when u else c", "(a ? t : (b ? u : c))"),
        ("a when t else b |> f", "((a ? t : b) |> f)"),
        ("a or b and not c == d", "(a or (b and (not (c == d))))"),
        ("not a in [1] and b", "((not (a in [1])) and b)"),
        ("1 + 2..n - 1", "((1 + 2) .. (n - 1))"),
        ("x in 1..3", "(x in (1 .. 3))"),
        ("1..5", "(1 .. 5)"),
        ("(a + b) % c", "((a + b) % c)"),
        ("- - - -a", "(- (- (- (- a))))"),
    ],
)
def test_operators_have_precedence_and_associativity(text: str, expected: str) -> None:
    assert shape(expression(text)) == expected


@pytest.mark.parametrize("text", ["a < b < c", "a == b == c", "1..2..3", "a in b in c"])
def test_comparisons_and_ranges_do_not_chain(text: str) -> None:
    with pytest.raises(ProgramError):
        expression(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("14", 14), ("30_000", 30_000), ("1.5e-4", 1.5e-4), ("1e3", 1000.0), ("007", 7), ("0.0", 0.0), ("1E+2", 100.0)],
)
def test_numbers_keep_their_value_kind_and_text(text: str, value: float) -> None:
    number = expression(text)
    assert isinstance(number, tree.Number)
    assert (number.value, type(number.value), number.text) == (value, type(value), text)


def test_calls_have_statics_in_brackets_and_values_in_parentheses() -> None:
    call = expression("mine.layer[4, ff = 2,](h, g(),)")
    assert isinstance(call, tree.CallExpression)
    assert call.callee.parts == ("mine", "layer")
    assert [(static.name, unparse(static.value)) for static in call.statics] == [(None, "4"), ("ff", "2")]
    assert call.arguments is not None
    assert [unparse(argument) for argument in call.arguments] == ["h", "g()"]


def test_a_call_without_parentheses_is_a_configured_block() -> None:
    configured = expression("attention[heads = 4]")
    assert isinstance(configured, tree.CallExpression)
    assert configured.arguments is None
    applied = expression("attention()")
    assert isinstance(applied, tree.CallExpression)
    assert applied.arguments == ()


def test_lists_may_be_empty_or_end_with_a_comma() -> None:
    assert expression("[]") == expression("[  ]")
    assert expression("[1, 2]") == expression("[1, 2,]")
    node = expression('["a b", xpos, true, [1..3]]')
    assert isinstance(node, tree.ListOf)
    assert isinstance(node.items[0], tree.String)
    assert node.items[0].value == "a b"


def test_every_statement_becomes_its_node() -> None:
    nodes = statements(
        """
        let f = layer[2]
        a = f(h)
        repeat 3 { h <- f(h) }
        stack 2 { h <- f(h) }
        repeat 9 halting h as s by token_halt[0.9] { h <- s }
        y = scan c in chunks[4](h) carry m, k { emit c }
        scan c in chunks(h) { emit c }
        if a { return a } else if b { return b } else { return h }
        """
    )
    kinds = [
        tree.Let, tree.Assign, tree.RepeatStatement, tree.StackStatement, tree.HaltingStatement, tree.ScanStatement,
        tree.ScanStatement, tree.If,
    ]  # fmt: skip
    assert [type(statement) for statement in nodes] == kinds
    halting, scan, branch = nodes[4], nodes[5], nodes[7]
    assert isinstance(halting, tree.HaltingStatement)
    assert (halting.state, halting.mixture, unparse(halting.by)) == ("h", "s", "token_halt[0.9]")
    assert isinstance(scan, tree.ScanStatement)
    assert (scan.target, scan.variable, [name.text for name in scan.carry]) == ("y", "c", ["m", "k"])
    assert isinstance(scan.body.statements[0], tree.Emit)
    assert isinstance(branch, tree.If)
    assert branch.otherwise is not None
    (inner,) = branch.otherwise.statements
    assert isinstance(inner, tree.If)
    assert inner.otherwise is not None
    assert isinstance(halting.body.statements[0], tree.Update)


def test_no_newlines_are_needed() -> None:
    assert statements("a = b c = d return e") == statements("a = b\nc = d\nreturn e")


def test_words_are_keywords_only_where_they_are_expected() -> None:
    (recipe,) = program(
        "recipe r { task scan[test = 1..2, train = block, from = task] test model.steps = at model m train train }"
    ).items
    assert isinstance(recipe, tree.Recipe)
    assert [type(part) for part in recipe.parts] == [tree.Choice, tree.AtTest, tree.Choice, tree.Choice]
    soft = [
        "use", "block", "model", "extern", "recipe", "task", "train", "test", "vary", "claim", "at", "from", "as", "by",
    ]  # fmt: skip
    soft += [
        "where", "reads", "gives", "pure", "causal", "python", "depends", "on", "random", "training", "stops",
        "gradients", "optimizer", "settings", "with", "halting", "carry", "sizes", "costs", "maps", "records", "cuts",
        "evenly", "into",
    ]  # fmt: skip
    nodes = statements(" ".join(f"{word} = {word}[{word}]({word}, {word} |> {word})" for word in soft))
    assert [statement.name for statement in nodes if isinstance(statement, tree.Assign)] == soft
    nodes = statements(" ".join(f"{word} <- {word}" for word in soft))
    assert [statement.name for statement in nodes if isinstance(statement, tree.Update)] == soft


def test_signatures_have_kinds_defaults_and_constraints() -> None:
    (block,) = program(
        "block b[heads: int, ff = 4, a: block = c](x: s[n], y: s = x) -> v[n + 1] where a, b < c {}"
    ).items
    assert isinstance(block, tree.Definition)
    signature = block.signature
    kinds = [(static.name, static.kind, static.default and unparse(static.default)) for static in signature.statics]
    assert kinds == [("heads", "int", None), ("ff", None, "4"), ("a", "block", "c")]
    assert [(parameter.name, unparse(parameter.type), parameter.default) for parameter in signature.inputs] == [
        ("x", "s[n]", None),
        ("y", "s", "x"),
    ]
    assert signature.result is not None
    assert unparse(signature.result) == "v[n + 1]"
    assert [unparse(condition) for condition in signature.where] == ["a", "b < c"]


def test_clauses_of_an_extern_block_have_any_order() -> None:
    first, second = (
        program(f'extern block b(x: s[n]) -> s[n] {clauses} python "m:C"').items[0]
        for clauses in (
            "pure records a costs b = c maps d(x) = e where a reads x causal when a else full sizes e = 1",
            "sizes e = 1 reads x causal when a else full where a costs b = c maps d(x) = e records a pure",
        )
    )
    assert first == second
    assert isinstance(first, tree.Extern)
    assert first.pure
    assert first.python == "m:C"


def test_costs_maps_and_records_have_conditions_of_their_own() -> None:
    (block,) = program(
        "extern block b(x: s[n]) -> s[n] sizes w = 2 * d, v = w when a else d"
        " costs parameters = w when a, parameters = v, flops = n when a else w"
        " maps key(x), value(x) = w when a, query(x) = v when a else d"
        ' records attention, gate = x when a python "m:C"'
    ).items
    assert isinstance(block, tree.Extern)
    assert [unparse(size) for size in block.sizes] == ["w = 2 * d", "v = w when a else d"]
    assert [(cost.quantity, unparse(cost.value), cost.test is not None) for cost in block.costs] == [
        ("parameters", "w", True), ("parameters", "v", False), ("flops", "n when a else w", False),
    ]  # fmt: skip
    maps = [([(name.name, name.input) for name in map_.names], unparse(map_.width), map_.test) for map_ in block.maps]
    assert [names for names, _, _ in maps] == [[("key", "x"), ("value", "x")], [("query", "x")]]
    assert [(width, test is not None) for _, width, test in maps] == [("w", True), ("v when a else d", False)]
    assert [(record.kind, record.input, record.test is not None) for record in block.records] == [
        ("attention", None, False), ("gate", "x", True),
    ]  # fmt: skip


def test_extern_tasks_set_sizes_and_can_be_causal() -> None:
    (task,) = program(
        'extern task t(x: tokens[n]) -> logits[n, v] gives vocab = 21, classes = 8 causal python "m:C"'
    ).items
    assert isinstance(task, tree.Extern)
    assert task.causal
    assert [(size.name, unparse(size.value)) for size in task.gives] == [("vocab", "21"), ("classes", "8")]


def test_variadic_inputs_and_conditional_types() -> None:
    (block,) = program('extern block b(xs: data[d]...) -> prob[n] when c else prob when d else x python "m:C"').items
    assert isinstance(block, tree.Extern)
    assert block.signature.inputs[0].variadic
    assert isinstance(block.signature.result, tree.ConditionalType)
    assert isinstance(block.signature.result.otherwise, tree.ConditionalType)


def test_recipes_have_claims_with_all_their_parts() -> None:
    (recipe,) = program(
        'recipe r { claim a.b[20] = -1 +- 2 at c.d = 3, e = f, from "X" vary x in 1..2, y in [1] }'
    ).items
    assert isinstance(recipe, tree.Recipe)
    claim, vary = recipe.parts
    assert isinstance(claim, tree.Claim)
    assert claim.metric.text == "a.b"
    assert [unparse(part) for part in (claim.index, claim.value, claim.deviation) if part] == ["20", "-1", "2"]
    assert [unparse(setting) for setting in claim.at] == ["c.d = 3", "e = f"]
    assert claim.origin == "X"
    assert isinstance(vary, tree.Vary)
    assert [unparse(variation) for variation in vary.variations] == ["x in 1..2", "y in [1]"]


def test_a_row_has_claims_for_the_columns_and_a_recipe_has_a_base() -> None:
    recipe, table = program(
        'recipe b from a { claim median x.y = 1 from "S" } '
        'table t from "T" { row "r" median best of claims claims -, -1 }'
    ).items
    assert isinstance(recipe, tree.Recipe)
    assert isinstance(recipe.parts[0], tree.Claim)
    assert (recipe.base, recipe.parts[0].median) == ("a", True)
    assert isinstance(table, tree.Table)
    (row,) = table.parts
    assert isinstance(row, tree.Row)
    assert (table.origin, row.recipe, [path.text for path in row.best_of]) == ("T", "median", ["claims"])
    assert row.published is not None
    assert [unparse(number) for number in row.published.cells] == ["-", "-1"]
    assert row.span.text.endswith("-1")


def test_both_spellings_of_a_deviation_are_equal() -> None:
    assert program('recipe r { claim a = 1 ± 2 from "X" }') == program('recipe r { claim a = 1 +- 2 from "X" }')


def test_use_names_a_library_file_or_a_path() -> None:
    module, file = program('use archlang.models.panm use "./mine.arch" as mine').items
    assert isinstance(module, tree.Use)
    assert (module.path, module.is_file, module.alias) == ("archlang.models.panm", False, None)
    assert isinstance(file, tree.Use)
    assert (file.path, file.is_file, file.alias) == ("./mine.arch", True, "mine")
    assert file.path_span.text == '"./mine.arch"'


@pytest.mark.parametrize(
    ("above", "documentation"),
    [
        ("## The file.\n\n# why\n## One.\n##\n##Two.\n", ("One.", "", "Two.")),
        ("## The file.\n\n", ("The file.",)),
        ("## The file.\n# why\n\n", ()),
        ("# why\n", ()),
        ("use b ## One.\n", ()),
        ("## One.\nuse b ", ()),
    ],
)
def test_documentation_is_the_block_of_marked_lines_before_an_item(above: str, documentation: tuple[str, ...]) -> None:
    assert program(f"{above}use a  ## beside\n").items[-1].documentation == documentation


def test_comment_signs_inside_strings_are_text() -> None:
    node = expression('"a # b"  # c')
    assert isinstance(node, tree.String)
    assert node.value == "a # b"


@pytest.mark.parametrize("text", ["", " \n\t\r\n ", "\ufeff", "# only a comment"])
def test_a_text_without_items_is_an_empty_program(text: str) -> None:
    assert parse_tolerantly(Source("x.arch", text)) == (tree.Program(items=(), source=Source("x.arch", text)), ())


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_system_are_read(everything: str, ending: str) -> None:
    assert program(everything.replace("\n", ending)) == program(everything)


def test_a_byte_order_mark_is_skipped() -> None:
    assert program("\ufeffuse a") == program("use a")


def test_spans_are_exact() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    a = (h + g[2](h)) * 2   # c\n}"
    (item,) = program(text).items
    assert isinstance(item, tree.Definition)
    assert item.span.text == text
    assert item.name_span.text == "b"
    assert item.signature.span.text == "b(h: seq[n, d]) -> seq[n, d]"
    assert item.signature.inputs[0].span.text == "h: seq[n, d]"
    (assign,) = item.body.statements
    assert isinstance(assign, tree.Assign)
    assert assign.span.text == "a = (h + g[2](h)) * 2"
    assert assign.name_span.text == "a"
    product = assign.value
    assert isinstance(product, tree.Binary)
    assert product.span.text == "(h + g[2](h)) * 2"
    assert product.left.span.text == "(h + g[2](h))"


def test_every_node_is_inside_its_parent(everything: str) -> None:
    def check(node: tree.Syntax) -> None:
        for below in tree.walk(node):
            assert node.span.start <= below.span.start <= below.span.end <= node.span.end, (node, below)
            if isinstance(below, tree.Name):
                assert below.span.text.strip("()") == below.text

    for item in program(everything).items:
        for node in tree.walk(item):
            check(node)


def test_settings_of_a_command_line_are_expressions() -> None:
    setting, diagnostics = parse_setting("model.steps", "1..3")
    assert diagnostics == ()
    assert setting is not None
    assert (setting.path.parts, unparse(setting.value)) == (("model", "steps"), "1..3")
    setting, diagnostics = parse_setting("model.steps", "1 2 3 )")
    assert setting is None
    assert [mistake.code for mistake in diagnostics] == ["E0101"]
    assert str(diagnostics[0].span) == "<setting>:1:15"
    assert "`model.steps=64`" in (diagnostics[0].remedy or "")


@pytest.mark.parametrize("text", ["{8}", "a{b}", "{", "}", "8 }", "{ # }", '"a" {'])
def test_a_setting_has_no_braces(text: str) -> None:
    setting, (diagnostic, *_) = parse_setting("model.d", text)
    assert setting is None
    assert diagnostic.code in ("E0101", "E0103", "E0104")


@pytest.mark.parametrize(("text", "remedy"), [("1e999", "integers go up to 2^63"), ("attention[1", "add `]`")])
def test_a_remedy_about_the_value_of_a_setting_stays(text: str, remedy: str) -> None:
    _, (diagnostic,) = parse_setting("model.d", text)
    assert diagnostic.remedy.startswith(remedy)


def test_parse_raises_every_mistake_at_once() -> None:
    with pytest.raises(ProgramError) as caught:
        program("use 1\nuse 2")
    assert len(caught.value.diagnostics) == 2


@pytest.mark.parametrize(
    ("clause", "kind", "has_test"),
    [
        ("depends on padding when a", "padding", True),
        ("depends on batch", "batch", False),
        ("random", "random", False),
        ("random when a", "random", True),
        ("random in training", "training", False),
        ("random in training when a > 0", "training", True),
        ("stops gradients when a", "gradients", True),
    ],
)
def test_a_caveat_is_a_kind_and_a_condition(clause: str, kind: str, has_test: bool) -> None:
    (extern,) = parse(Source("x.arch", f'extern block b(x: t) -> t {clause} pure python "m:B"')).items
    assert isinstance(extern, tree.Extern)
    (caveat,) = extern.caveats
    assert caveat.kind == kind
    assert (caveat.test is not None) is has_test
    assert caveat.span.text == clause
    assert extern.pure_span is not None
    assert extern.pure_span.text == "pure"
