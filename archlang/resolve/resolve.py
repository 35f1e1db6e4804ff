"""Resolves the names of a file, and loads the files that it uses."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from pathlib import Path

from archlang.disk.readable import ReadableFolders
from archlang.errors import Diagnostic, Label, ProgramError, Source, Span
from archlang.errors.log import DiagnosticLog
from archlang.resolve import library, mistakes
from archlang.syntax import tree
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.reading import read, read_used
from archlang.syntax.tokens import MOST_WORDS, pieces

GRADIENT = "gradient"
"""the name of the form `gradient(loss, value)`, which a block or value of a program hides"""
Item = tree.Definition | tree.Extern | tree.Recipe | tree.Table
Parse = Callable[[Source], tuple[tree.Program, tuple[Diagnostic, ...]]]


@dataclass(frozen=True, eq=False)
class ResolvedFile:
    """A file with its blocks and models by name: its own, and those that its `use` lines bring in; and the folders
    whose files it may name."""

    program: tree.Program
    own: dict[str, Declaration] = field(default_factory=dict)
    used: dict[str, Declaration] = field(default_factory=dict)
    readable: ReadableFolders = field(default_factory=ReadableFolders)
    used_tables: dict[str, tuple[ResolvedFile, tree.Table]] = field(default_factory=dict)
    """the tables of the files that it uses, each with its file"""
    uses: list[tuple[tree.Use, frozenset[str]]] = field(default_factory=list)
    """its `use` lines, each with the names that it brings in"""

    def find(self, name: str) -> Declaration | None:
        """Returns the block or model of a name; None for an unknown one, and for one with syntax mistakes."""
        return None if name in self.unparsed else self.declared(name)

    @cached_property
    def unparsed(self) -> frozenset[str]:
        """The names of the blocks, models, tasks and optimizers with syntax mistakes. What they mean is unknown."""
        own = ((item.name, item) for item in self.program.items if isinstance(item, tree.Definition | tree.Extern))
        used = ((name, declaration.item) for name, declaration in self.used.items())
        return frozenset(name for name, item in (*own, *used) if not item.is_whole)

    def declared(self, name: str) -> Declaration | None:
        """Returns the block or model of a name, or None. The file's own names come before the prelude's."""
        declaration = self.own.get(name) or self.used.get(name)
        if declaration is None and "." not in name and (item := library.block(name)) is not None:
            return prelude(item)
        return declaration

    def names(self) -> frozenset[str]:
        """Returns the names of all blocks and models that this file can use."""
        return self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.own) | frozenset(self.used) | library.block_names() | {GRADIENT}

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The source of this file, then those of the files that it uses, directly or not."""
        by_path = {self.program.source.path: self.program.source}
        for declaration in self.used.values():
            by_path |= {source.path: source for source in declaration.file.sources if source.path not in by_path}
        return tuple(by_path.values())

    @cached_property
    def recipes(self) -> Mapping[str, tree.Recipe]:
        return {item.name: item for item in self.program.items if isinstance(item, tree.Recipe)}

    @cached_property
    def inherited(self) -> dict[str, tree.Recipe]:
        """Recipes with the lines of their bases, which `with_base` of `archlang.plan.recipe` adds."""
        return {}

    @cached_property
    def other_items(self) -> Mapping[str, str]:
        """What each item of the file is that is no recipe, as `a model`, by its name."""
        kinds = {tree.Definition: "a {}", tree.Extern: "an extern {}", tree.Table: "a table"}
        return {
            item.name: kinds[type(item)].format(getattr(item, "word", ""))
            for item in self.program.items
            if not isinstance(item, tree.Use | tree.Recipe)
        }

    @cached_property
    def tasks(self) -> Mapping[str, tree.Extern]:
        """The tasks that this file declares, a page with the statics of its splits."""
        items = (item for item in self.program.items if isinstance(item, tree.Extern) and item.word == "task")
        return {item.name: library.with_settings(item) for item in items}

    @cached_property
    def optimizers(self) -> Mapping[str, tree.Extern]:
        """The optimizers that this file declares."""
        items = (item for item in self.program.items if isinstance(item, tree.Extern) and item.word == "optimizer")
        return {item.name: item for item in items}

    def find_table(self, name: str) -> tuple[ResolvedFile, tree.Table] | None:
        """Returns a table of this file, or of one that it uses, with its file; None if there is no such table."""
        if (table := self.tables.get(name)) is not None:
            return self, table
        return self.used_tables.get(name)

    @cached_property
    def tables(self) -> Mapping[str, tree.Table]:
        """The tables of this file."""
        return {item.name: item for item in self.program.items if isinstance(item, tree.Table)}

    def content_of(self, item: Item, *, with_places: bool = False) -> Hashable:
        """What the check of an item of this file depends on: its text, those of the items that it may name, directly or
        not, and those of the files that this file uses; `with_places`, the text before them, too."""
        if id(item) not in self._contents:
            self._contents[id(item)] = self._new_content(item)
        content, end = self._contents[id(item)]
        return (content, self.program.source.text[:end]) if with_places else content

    @cached_property
    def _contents(self) -> dict[int, tuple[Hashable, int]]:
        return {}

    def _new_content(self, item: Item) -> tuple[Hashable, int]:
        reached, ids = [item], {id(item)}
        for user in reached:
            # Blocks and models name no recipes, which may have their names.
            names = self._blocks if isinstance(user, tree.Definition | tree.Extern) else self._named
            for name in _words_of(user.span.text):
                for named in names.get(name, ()):
                    if id(named) not in ids:
                        ids.add(id(named))
                        reached.append(named)
        texts = (sys.intern(each.span.text) for each in sorted(reached[1:], key=lambda each: each.span.start))
        content = self.program.source.path, sys.intern(item.span.text), tuple(texts), self._used_texts
        return content, max(each.span.end for each in reached)

    @cached_property
    def _named(self) -> Mapping[str, list[Item]]:
        named: dict[str, list[Item]] = {}
        for item in self.program.items:
            if not isinstance(item, tree.Use):
                named.setdefault(item.name, []).append(item)
        return named

    @cached_property
    def _blocks(self) -> Mapping[str, list[Item]]:
        # All items of a name that is declared twice: what calls one of them is checked differently.
        blocks = (tree.Definition, tree.Extern)
        return {name: [item for item in items if isinstance(item, blocks)] for name, items in self._named.items()}

    @cached_property
    def _used_texts(self) -> tuple[str, ...]:
        """The `use` lines of this file, and the texts of the files that they name, directly or not."""
        files = {id(each.file): each.file for each in self.used.values()}
        files |= {id(file): file for file, _ in self.used_tables.values()}
        texts = [(*file._used_texts, file.program.source.text) for file in files.values()]
        return (*(use.span.text for use, _ in self.uses), *chain.from_iterable(texts))


@dataclass(frozen=True, eq=False)
class Declaration:
    """A block or model, with the file that resolves its names."""

    item: tree.Definition | tree.Extern
    file: ResolvedFile

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def span(self) -> Span:
        return self.item.name_span


_preludes: dict[str, ResolvedFile] = {}
# Library files without mistakes. They are read once for all programs, because the installation does not change.
_shipped: dict[Path, ResolvedFile] = {}


def is_shipped(file: ResolvedFile) -> bool:
    """Whether a file is one of the library, which does not change."""
    path = file.program.source.path
    return _preludes.get(path) is file or _shipped.get(Path(path)) is file


def prelude(item: tree.Definition | tree.Extern) -> Declaration:
    """Returns the declaration of a library item, whose names the prelude resolves."""
    path = item.span.source.path
    if path not in _preludes:
        _preludes[path] = ResolvedFile(tree.Program(items=(), source=item.span.source))
    return Declaration(item, _preludes[path])


# The largest number of `use` lines in a program and the files that it uses, directly or not.
MOST_USES = 100


@dataclass
class ProgramLoader:
    """Reads a program and the files that it uses, each once, and collects the diagnostics.

    The files are in the folder of the program and below, in the library, or in the folders of `allow`. `unsaved` are
    the texts of files that an editor has changed, by their real paths."""

    allow: Iterable[str | Path] = ()
    unsaved: Mapping[str, str] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    parse: Parse = parse_tolerantly
    _readable: ReadableFolders = field(default_factory=ReadableFolders)
    # The place of the first `use` of each file, by the path in messages.
    _first_uses: dict[str, Span] = field(default_factory=dict)
    _resolved: dict[Path, ResolvedFile] = field(default_factory=dict)
    _open: dict[Path, str] = field(default_factory=dict)
    _words: int = 0
    _uses: int = 0

    def load(self, path: str | Path) -> ResolvedFile:
        """Reads and resolves a program and every file that it uses."""
        self._readable = ReadableFolders.of_program(path, self.allow)
        return self._load(_place(Path(path)), str(path), lambda: read(path))

    def load_source(self, source: Source) -> ResolvedFile:
        """Resolves a program given as text; its path need not exist."""
        self._readable = ReadableFolders.of_program(source.path, self.allow)
        key = _place(Path(source.path))
        self._open[key] = source.path
        resolved = self._resolve(*self.parse(source))
        del self._open[key]
        return resolved

    def with_uses(self, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """Yields diagnostics; those about used files get a label at each `use` line that leads to the file."""
        for diagnostic in diagnostics:
            labels, path = list(diagnostic.labels), diagnostic.span.source.path
            while (use := self._first_uses.get(path)) is not None:
                labels.append(Label(use, "used here"))
                path = use.source.path
            yield replace(diagnostic, labels=tuple(labels))

    def texts(self) -> Mapping[str, str]:
        """Returns the texts of the loaded program and of the files that it uses, by their real paths."""
        return {str(path): resolved.program.source.text for path, resolved in self._resolved.items()}

    def _load(self, key: Path, shown: str, read_source: Callable[[], Source]) -> ResolvedFile:
        if key not in self._resolved:
            source = read_source()
            self._open[key] = shown
            self._resolved[key] = self._resolve(*self.parse(source))
            del self._open[key]
        return self._resolved[key]

    def _load_used(self, use: tree.Use, key: Path, shown: str) -> ResolvedFile:
        """Reads and resolves a file that another file uses.

        Raises:
            ProgramError: the file cannot be read, or the used files are too large in total."""

        def read_source() -> Source:
            unsaved = self.unsaved.get(str(key))
            source = Source(shown, unsaved) if unsaved is not None else read_used(shown, str(key), self._readable)
            self._words += sum(1 for _ in pieces(source.text))
            if self._words > MOST_WORDS:
                raise ProgramError([mistakes.too_many_used_words(use.path_span, MOST_WORDS)])
            return source

        self._first_uses.setdefault(shown, use.path_span)
        return self._load(key, shown, read_source)

    def _load_shipped(self, path: Path) -> ResolvedFile:
        if path not in _shipped:
            loader = ProgramLoader()  # `use` lines of the library do not count, and it has no files of the program
            resolved = loader.load(path)
            if loader.diagnostics:
                self.diagnostics.extend(loader.diagnostics)
                return resolved
            _shipped[path] = resolved
        return _shipped[path]

    def _resolve(self, program: tree.Program, diagnostics: Iterable[Diagnostic]) -> ResolvedFile:
        self.diagnostics.extend(diagnostics)
        resolved = ResolvedFile(program, readable=self._readable)
        first: dict[tuple[str, str], Item] = {}
        for item in program.items:
            if isinstance(item, tree.Use):
                self._uses += 1
                if self._uses <= MOST_USES:
                    self._use(item, resolved)
                elif self._uses == MOST_USES + 1:
                    self.diagnostics.append(mistakes.too_many_uses(item.path_span, MOST_USES))
                continue
            # A recipe may have the name of the model that it trains, and a table the name of either.
            kind = type(item).__name__ if isinstance(item, tree.Recipe | tree.Table) else ""
            earlier = first.setdefault((kind, item.name), item)
            if earlier is not item:
                is_recipe = isinstance(item, tree.Recipe)
                twice = mistakes.defined_twice(item.name_span, item.name, earlier.name_span, is_recipe)
                self.diagnostics.append(twice)
                continue
            if isinstance(item, tree.Definition) or (isinstance(item, tree.Extern) and item.word == "block"):
                resolved.own[item.name] = Declaration(item, resolved)
        self.diagnostics.extend(_block_cycles(resolved))
        return resolved

    def _use(self, use: tree.Use, user: ResolvedFile) -> None:
        """Adds what a `use` line brings in to the file that has it."""
        if use.is_file:
            target = Path(user.program.source.path).parent / use.path
            shown = str(target)
        else:
            library_file = library.library_file(use.path)
            if library_file is None:
                self.diagnostics.append(mistakes.unknown_library_file(use.path_span, use.path, library.library_files()))
                return
            target, shown = library_file, str(library_file)
        key = _place(target)
        # Errors show lines of used files, so a program from a stranger must not name other files.
        if use.is_file and self._readable.find(target) is None:
            self.diagnostics.append(mistakes.used_file_outside(use.path_span, use.path))
            return
        if use.is_file and not key.name.endswith(".arch"):
            self.diagnostics.append(mistakes.not_an_arch_file(use.path_span, use.path))
            return
        if key in self._open:
            open_files = list(self._open)
            cycle = [self._open[file] for file in open_files[open_files.index(key) :]]
            self.diagnostics.append(
                mistakes.import_cycle(use.path_span, [*cycle, cycle[0]], use.span if len(cycle) == 1 else None)
            )
            return
        # The functions of `os.path` accept any name; a name that is too long is a missing file.
        if use.is_file and str(key) not in self.unsaved and not os.path.isfile(key):
            self.diagnostics.append(mistakes.file_not_found(use.path_span, use.path, os.path.lexists(target)))
            return
        try:
            resolved = self._load_used(use, key, shown) if use.is_file else self._load_shipped(target)
        except ProgramError as error:
            self.diagnostics.extend(error.diagnostics)
            return
        prefix = f"{use.alias}." if use.alias else ""
        for name, declaration in resolved.own.items():
            user.used[prefix + name] = declaration
        for name, table in resolved.tables.items():
            user.used_tables[prefix + name] = resolved, table
        user.uses.append((use, frozenset(prefix + name for name in (*resolved.own, *resolved.tables))))


def _place(path: Path) -> Path:
    """Resolves symbolic links. Unlike `Path.resolve`, it accepts circular links and invalid file names."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path


_WORD = re.compile(r"\w+")


@lru_cache(maxsize=20_000)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def _mentions(definition: tree.Definition, resolved: ResolvedFile) -> Iterator[tree.Name]:
    """Yields the names in the body and the defaults of a definition that can be blocks. Types name only sizes."""
    statics = definition.signature.statics
    nodes = [node for part in (definition.body, *statics) for node in tree.walk(part)]
    symbols = {id(static.default) for static in statics if static.kind == "symbol"}
    for node in nodes:
        if isinstance(node, tree.CallExpression):
            symbols.update(map(id, _symbols(node, resolved.find(node.callee.text))))
        elif isinstance(node, tree.Binary) and node.operator in ("==", "!=", "in"):
            symbols.update(map(id, tree.walk(node)))  # blocks are not compared
    for node in nodes:
        if isinstance(node, tree.CallExpression):
            yield node.callee
        elif isinstance(node, tree.Name) and id(node) not in symbols:
            yield node


def _symbols(call: tree.CallExpression, called: Declaration | None) -> Iterator[tree.Expression]:
    """Yields the arguments of a call that are symbols."""
    statics = () if called is None else called.item.signature.statics
    by_name = {static.name: static for static in statics}
    for index, argument in enumerate(call.statics):
        place = statics[index] if index < len(statics) else None
        static = place if argument.name is None else by_name.get(argument.name)
        if static is not None and static.kind == "symbol":
            yield argument.value


def _block_cycles(resolved: ResolvedFile) -> Iterator[Diagnostic]:
    """Yields the diagnostic of a cycle of blocks. `use` has no cycles, so a cycle of blocks is within one file."""
    uses: dict[str, list[str]] = {}
    places: dict[tuple[str, str], Span] = {}
    for user, declaration in resolved.own.items():
        if not isinstance(declaration.item, tree.Definition):
            continue
        words = _WORD.findall(declaration.item.span.text)
        if [word for word in words if word in resolved.own] == [user]:
            continue  # it names itself only, in its header
        bound = tree.bound_names(declaration.item)
        for name in _mentions(declaration.item, resolved):
            used = name.text
            is_block = (
                used in resolved.own and used not in bound and isinstance(resolved.own[used].item, tree.Definition)
            )
            if is_block and (user, used) not in places:
                uses.setdefault(user, []).append(used)
                places[user, used] = name.span
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        used_first = error.args[1][1:]  # of the cycle, whose last block is its first
        start = used_first.index(min(used_first))
        cycle = [*used_first[start::-1], *used_first[:start:-1], used_first[start]]
        spans = [places[pair] for pair in pairwise(cycle)]
        yield mistakes.block_cycle(spans[0], cycle, spans)


def load_file(path: str | Path | Source, allow: Iterable[str | Path] = ()) -> ResolvedFile:
    """Parses a file, or the text of one, and everything that it uses, and resolves their names. It may use files of its
    own folder and below, of the library, and of the folders of `allow`.

    Raises:
        ProgramError: a file cannot be read, or has mistakes."""
    loader = ProgramLoader(allow)
    return _sound(loader.load_source(path) if isinstance(path, Source) else loader.load(path), loader)


def load_command_line(text: str) -> ResolvedFile:
    """Resolves a program that the user has written on the command line.

    Raises:
        ProgramError: the program has mistakes."""
    loader = ProgramLoader()
    return _sound(loader.load_source(Source("<command line>", text, is_command_line=True)), loader)


def _sound(resolved: ResolvedFile, loader: ProgramLoader) -> ResolvedFile:
    report = DiagnosticLog()
    report.add(loader.with_uses(loader.diagnostics))
    report.stop_at_errors()
    return resolved
