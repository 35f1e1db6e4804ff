"""Resolves the names of a file, and loads the files that it uses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

from archlang.diagnostics import Diagnostic, ProgramError
from archlang.names import library, mistakes
from archlang.source import Source, Span
from archlang.syntax import tree
from archlang.syntax.parser import parse_tolerantly, read
from archlang.syntax.walk import walk
from archlang.syntax.words import MOST_WORDS, count_words


@dataclass(frozen=True, eq=False)
class ResolvedFile:
    """A file with its blocks and models by name: its own, and those that its `use` lines bring in."""

    program: tree.Program
    own: Mapping[str, Declaration] = field(default_factory=dict)
    used: Mapping[str, Declaration] = field(default_factory=dict)

    def find(self, name: str) -> Declaration | None:
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
        return frozenset(self.own) | frozenset(self.used) | library.block_names()

    @cached_property
    def recipes(self) -> Mapping[str, tree.Recipe]:
        return {item.name: item for item in self.program.items if isinstance(item, tree.Recipe)}

    @cached_property
    def tasks(self) -> Mapping[str, tree.Extern]:
        """The tasks that this file declares."""
        return {item.name: item for item in self.program.items if isinstance(item, tree.Extern) and item.word == "task"}

    @cached_property
    def tables(self) -> Mapping[str, tree.Table]:
        return {item.name: item for item in self.program.items if isinstance(item, tree.Table)}


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


def prelude(item: tree.Definition | tree.Extern) -> Declaration:
    """Returns the declaration of a library item, whose names the prelude resolves."""
    path = item.span.source.path
    if path not in _preludes:
        _preludes[path] = ResolvedFile(tree.Program(items=(), source=item.span.source))
    return Declaration(item, _preludes[path])


# The largest number of `use` lines in a program and the files that it uses, directly or not.
MOST_USES = 100


@dataclass
class Loader:
    """Reads files and the files that they use, each once, and collects the diagnostics."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    _resolved: dict[Path, ResolvedFile] = field(default_factory=dict)
    _open: dict[Path, str] = field(default_factory=dict)
    _words: int = 0
    _uses: int = 0

    def load(self, path: str | Path) -> ResolvedFile:
        """Reads and resolves a file and every file that it uses."""
        return self._load(Path(path), str(path))

    def load_source(self, source: Source) -> ResolvedFile:
        """Resolves a text; its path need not exist."""
        program, diagnostics = parse_tolerantly(source)
        self.diagnostics.extend(diagnostics)
        return self._resolve(program, Path(source.path))

    def _load(self, path: Path, shown: str) -> ResolvedFile:
        key = _place(path)
        if key not in self._resolved:
            self._open[key] = shown
            self._resolved[key] = self.load_source(read(shown))
            del self._open[key]
        return self._resolved[key]

    def _load_used(self, use: tree.Use, path: Path, shown: str) -> ResolvedFile:
        """Reads and resolves a file that another file uses.

        Raises:
            ProgramError: the file cannot be read, or the used files are too large in total."""
        key = Path(os.path.realpath(path))
        if key not in self._resolved:
            self._words += count_words(read(shown).text)
            if self._words > MOST_WORDS:
                raise ProgramError([mistakes.too_many_used_words(use.path_span, MOST_WORDS)])
        return self._load(path, shown)

    def _load_shipped(self, path: Path) -> ResolvedFile:
        if path not in _shipped:
            mistakes_before, uses = len(self.diagnostics), self._uses
            resolved = self._load(path, str(path))
            self._uses = uses  # `use` lines of the library do not count
            if len(self.diagnostics) > mistakes_before:
                return resolved
            _shipped[path] = resolved
        return _shipped[path]

    def _resolve(self, program: tree.Program, path: Path) -> ResolvedFile:
        own: dict[str, Declaration] = {}
        used: dict[str, Declaration] = {}
        resolved = ResolvedFile(program, own, used)
        first: dict[tuple[str, str], Span] = {}
        for item in program.items:
            if isinstance(item, tree.Use):
                self._uses += 1
                if self._uses <= MOST_USES:
                    self._use(item, path, used)
                elif self._uses == MOST_USES + 1:
                    self.diagnostics.append(mistakes.too_many_uses(item.path_span, MOST_USES))
                continue
            # A recipe may have the name of the model that it trains, and a table the name of either.
            kind = type(item).__name__ if isinstance(item, tree.Recipe | tree.Table) else ""
            first_span = first.setdefault((kind, item.name), item.name_span)
            if first_span is not item.name_span:
                self.diagnostics.append(mistakes.defined_twice(item.name_span, item.name, first_span))
            elif isinstance(item, tree.Definition) or (isinstance(item, tree.Extern) and item.word == "block"):
                own[item.name] = Declaration(item, resolved)
        self.diagnostics.extend(_block_circles(resolved))
        return resolved

    def _use(self, use: tree.Use, path: Path, used: dict[str, Declaration]) -> None:
        if use.is_file:
            target = path.parent / use.path
            shown = str(target)
        else:
            library_file = library.library_file(use.path)
            if library_file is None:
                self.diagnostics.append(mistakes.unknown_library_file(use.path_span, use.path, library.library_files()))
                return
            target, shown = library_file, str(library_file)
        # The functions of `os.path` accept any name; a name that is too long is a missing file.
        key = _place(target)
        # Errors show lines of used files, so a program from a stranger must not name other files.
        if use.is_file and not key.name.endswith(".arch"):
            self.diagnostics.append(mistakes.not_an_arch_file(use.path_span, use.path))
            return
        if key in self._open:
            open_files = list(self._open)
            circle = [self._open[file] for file in open_files[open_files.index(key) :]]
            self.diagnostics.append(mistakes.import_circle(use.path_span, [*circle, circle[0]]))
            return
        if use.is_file and not os.path.isfile(target):
            self.diagnostics.append(mistakes.file_not_found(use.path_span, use.path, os.path.lexists(target)))
            return
        try:
            resolved = self._load_used(use, target, shown) if use.is_file else self._load_shipped(target)
        except ProgramError as error:
            self.diagnostics.extend(error.diagnostics)
            return
        prefix = f"{use.alias}." if use.alias else ""
        for name, declaration in resolved.own.items():
            used[prefix + name] = declaration


def _place(path: Path) -> Path:
    """Resolves symbolic links. Unlike `Path.resolve`, it accepts circular links and invalid file names."""
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path


_BINDERS = (tree.StaticParameter, tree.InputParameter, tree.Let, tree.Assign, tree.Update)


def _mentions(definition: tree.Definition) -> Iterator[tree.Name]:
    """Yields the names in the body and the defaults of a definition that can be blocks. Types name only sizes."""
    defaults = [static.default for static in definition.signature.statics if static.default is not None]
    for part in (definition.body, *defaults):
        for node in walk(part):
            if isinstance(node, tree.Call):
                yield node.callee
            elif isinstance(node, tree.Name):
                yield node


def _block_circles(resolved: ResolvedFile) -> Iterator[Diagnostic]:
    """Yields a diagnostic for each circle of blocks. `use` has no circles, so a circle of blocks is within one file."""
    uses: dict[str, list[str]] = {}
    places: dict[tuple[str, str], Span] = {}
    for user, declaration in resolved.own.items():
        if not isinstance(declaration.item, tree.Definition):
            continue
        bound = {node.name for node in walk(declaration.item) if isinstance(node, _BINDERS)}
        for name in _mentions(declaration.item):
            used = name.text
            is_block = (
                used in resolved.own and used not in bound and isinstance(resolved.own[used].item, tree.Definition)
            )
            if is_block and (user, used) not in places:
                uses.setdefault(user, []).append(used)
                places[user, used] = name.span
    for circle in _circles(uses):
        spans = [places[pair] for pair in pairwise(circle)]
        yield mistakes.block_circle(spans[0], circle, spans)


def _circles(uses: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Yields one circle of each strongly connected component; its last block is its first."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError:
        # Imported late, because the import takes longer than checking most files.
        import networkx as nx

        graph = nx.DiGraph(uses)
        for component in nx.strongly_connected_components(graph):
            if len(component) > 1 or any(graph.has_edge(block, block) for block in component):
                edges = nx.find_cycle(graph.subgraph(component), min(component))
                yield [edges[0][0], *(edge[1] for edge in edges)]
