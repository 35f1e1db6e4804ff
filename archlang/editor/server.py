"""The language server: answers an editor over the Language Server Protocol. Needs the extra `lsp`."""

import asyncio
import logging
import os
import typing
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

from archlang.disk import package
from archlang.editor import positions
from archlang.editor.completion import completions, word_start
from archlang.editor.corrections import all_corrected, corrections
from archlang.editor.document import Document
from archlang.editor.graphs import graph_at
from archlang.editor.hover import hints, hover
from archlang.editor.navigation import definition, references, renamable, rename
from archlang.editor.outline import OutlineEntry, folds, outline
from archlang.editor.semantic_tokens import KINDS, MODIFIERS, semantic_tokens
from archlang.editor.signature_help import signature_help
from archlang.editor.workspace import Workspace
from archlang.errors import Diagnostic, Edit, ErrorWithRemedy, Label, ProgramError, Source, Span
from archlang.graph.graph import Graph

GRAPH_COMMAND = "archlang.graph"
# Seconds without a change before a text is checked.
_PAUSE = 0.1
_SYMBOLS = {
    "model": lsp.SymbolKind.Class,
    "block": lsp.SymbolKind.Function,
    "task": lsp.SymbolKind.Interface,
    "static": lsp.SymbolKind.Property,
    "recipe": lsp.SymbolKind.Event,
    "table": lsp.SymbolKind.Array,
}

_COMPLETIONS = {
    "block": lsp.CompletionItemKind.Function,
    "model": lsp.CompletionItemKind.Class,
    "task": lsp.CompletionItemKind.Interface,
    "optimizer": lsp.CompletionItemKind.Interface,
    "static": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.Variable,
    "input": lsp.CompletionItemKind.Variable,
    "instance": lsp.CompletionItemKind.Variable,
    "keyword": lsp.CompletionItemKind.Keyword,
    "file": lsp.CompletionItemKind.Module,
    "recipe": lsp.CompletionItemKind.Event,
    "table": lsp.CompletionItemKind.Struct,
    "metric": lsp.CompletionItemKind.Field,
    "group": lsp.CompletionItemKind.Field,
    "type": lsp.CompletionItemKind.TypeParameter,
}


Draw = Callable[[Graph], str]


class Refused(JsonRpcInvalidParams):
    """A request that cannot be fulfilled; the editor shows the reason."""


class _Protocol(LanguageServerProtocol):
    """Announces the columns of `positions`, which every editor knows; pygls announces those that the editor prefers."""

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[Any, Any, lsp.InitializeResult]:  # Any: pygls
        if params.capabilities.general is not None:
            params.capabilities.general.position_encodings = [lsp.PositionEncodingKind.Utf16]
        return (yield from super().lsp_initialize(params))


def make_server(draw: Draw) -> LanguageServer:
    """Returns the server, which is not started. `draw` returns the picture of a graph as SVG."""
    server = LanguageServer("archlang", f"v{package.VERSION}", protocol_cls=_Protocol)
    for name in ("pygls.protocol.json_rpc", "pygls.server"):
        # The reason of a refusal is in the answer.
        logging.getLogger(name).addFilter(lambda each: not (each.exc_info and isinstance(each.exc_info[1], Refused)))
    answers = _Answers(server, draw)
    for method, handler in (
        (lsp.INITIALIZED, answers.initialized),
        (lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, answers.disk_changed),
        (lsp.TEXT_DOCUMENT_DID_SAVE, answers.disk_changed),
        (lsp.TEXT_DOCUMENT_DID_OPEN, answers.opened),
        (lsp.TEXT_DOCUMENT_DID_CHANGE, answers.changed),
        (lsp.TEXT_DOCUMENT_DID_CLOSE, answers.closed),
        (lsp.TEXT_DOCUMENT_HOVER, answers.hover),
        (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, answers.outline),
        (lsp.TEXT_DOCUMENT_FOLDING_RANGE, answers.folds),
        (lsp.TEXT_DOCUMENT_INLAY_HINT, answers.hints),
        (lsp.TEXT_DOCUMENT_FORMATTING, answers.formatting),
        (lsp.TEXT_DOCUMENT_DEFINITION, answers.definition),
        (lsp.TEXT_DOCUMENT_REFERENCES, answers.references),
    ):
        server.feature(method)(partial(handler))  # pygls sets attributes, which a method cannot have
    kinds = lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll])
    server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, kinds)(partial(answers.actions))
    signs = lsp.SignatureHelpOptions(trigger_characters=["(", "[", ","])
    server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, signs)(partial(answers.signature))
    legend = lsp.SemanticTokensLegend([*KINDS], [*MODIFIERS])
    server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)(partial(answers.tokens))
    server.command(GRAPH_COMMAND)(partial(answers.graph))
    triggers = lsp.CompletionOptions(trigger_characters=["[", ".", "/"])
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)(partial(answers.completions))
    server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))(partial(answers.rename))
    server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)(partial(answers.renamable))
    return server


class _HasPlace(typing.Protocol):
    """The parameters of a request about a place."""

    @property
    def text_document(self) -> lsp.TextDocumentIdentifier: ...
    @property
    def position(self) -> lsp.Position: ...


class _Answers:
    """Answers the requests of one editor."""

    def __init__(self, server: LanguageServer, draw: Draw) -> None:
        self._server, self._draw = server, draw
        self._workspace = Workspace()
        self._uris: dict[str, str] = {}
        self._versions: dict[str, int | None] = {}  # those that the editor gives to the texts
        self._changes: dict[str, int] = {}

    # Texts

    def initialized(self, parameters: lsp.InitializedParams) -> None:
        """Asks the editor to report changes on the disk, if it can: open files may use those that change."""
        workspace = self._server.client_capabilities.workspace
        watched = workspace and workspace.did_change_watched_files
        if watched and watched.dynamic_registration:
            options = lsp.DidChangeWatchedFilesRegistrationOptions([lsp.FileSystemWatcher("**/*.arch")])
            method = lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
            self._server.client_register_capability(lsp.RegistrationParams([lsp.Registration(method, method, options)]))

    def disk_changed(self, parameters: lsp.DidSaveTextDocumentParams | lsp.DidChangeWatchedFilesParams) -> None:
        self._workspace.reread()
        self._publish()

    def opened(self, parameters: lsp.DidOpenTextDocumentParams) -> None:
        self._read(parameters.text_document.uri)
        self._publish()

    async def changed(self, parameters: lsp.DidChangeTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        self._read(uri)
        change = self._changes[uri] = self._changes.get(uri, 0) + 1
        await asyncio.sleep(_PAUSE)
        if self._changes.get(uri) == change:
            self._publish()

    def closed(self, parameters: lsp.DidCloseTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        path = _path(uri)
        self._workspace.close(path)
        self._versions.pop(uri, None)
        self._changes.pop(uri, None)
        self._uris.pop(path, None)
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))
        self._publish()

    def _read(self, uri: str) -> None:
        path = _path(uri)
        document = self._server.workspace.get_text_document(uri)
        self._uris[path], self._versions[uri] = uri, document.version
        self._workspace.open(path, document.source)

    def _publish(self) -> None:
        """Sends the mistakes of every open file, because a file may use the others. Files that use each other have a
        mistake in the other one."""
        mistakes: dict[str, list[Diagnostic]] = {path: [] for path in self._uris}
        for path in self._uris:
            for each in _shown_diagnostics(self._workspace.document(path), mistakes):
                mistakes[os.path.normpath(each.span.source.path)].append(each)
        for path, uri in list(self._uris.items()):
            places = {(each.code, each.span.start, each.message): each for each in mistakes[path]}
            diagnostics = [_diagnostic(each) for each in places.values()]
            published = lsp.PublishDiagnosticsParams(uri, diagnostics, self._versions.get(uri))
            self._server.text_document_publish_diagnostics(published)

    def _place(self, parameters: _HasPlace) -> tuple[Document, int]:
        document = self._document(parameters.text_document)
        place = parameters.position
        return document, positions.offset(document.source, place.line, place.character)

    def _document(self, identifier: lsp.TextDocumentIdentifier) -> Document:
        return self._document_at(identifier.uri)

    def _document_at(self, uri: str) -> Document:
        try:
            return self._workspace.document(_path(uri))
        except ProgramError as error:  # it is not open, and cannot be read
            raise Refused(error.diagnostics[0].message) from error

    # Requests

    def hover(self, parameters: lsp.HoverParams) -> lsp.Hover | None:
        document, offset = self._place(parameters)
        description = hover(document, offset)
        if description is None:
            return None
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, description.text), _range(description.span))

    def outline(self, parameters: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return _symbols(outline(self._document(parameters.text_document)))

    def folds(self, parameters: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        return [lsp.FoldingRange(first, last) for first, last in folds(self._document(parameters.text_document))]

    def hints(self, parameters: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        document = self._document(parameters.text_document)
        return [
            lsp.InlayHint(_position(document.source, hint.offset), hint.text, kind=lsp.InlayHintKind.Type)
            for hint in hints(document, *_bounds(document, parameters.range))
        ]

    def formatting(self, parameters: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = self._document(parameters.text_document)
        text = document.formatted
        if text is None or text == document.text:
            return []
        return [lsp.TextEdit(_range(Span(document.source, 0, len(document.text))), text)]

    def completions(self, parameters: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        document, offset = self._place(parameters)
        files = partial(self._workspace.usable_files, document.path)
        # Editors take a word to end at a dot.
        begun = _range(Span(document.source, word_start(document.text, offset), offset))
        return [
            lsp.CompletionItem(
                completion.word.rstrip(" =<-"),
                kind=_COMPLETIONS.get(completion.kind, lsp.CompletionItemKind.Value),
                detail=completion.detail,
                text_edit=lsp.TextEdit(begun, completion.word),
                sort_text=f"{place:05}",
            )
            for place, completion in enumerate(completions(document, offset, files))
        ]

    def actions(self, parameters: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document, only = self._document(parameters.text_document), parameters.context.only
        actions = []
        if _is_wanted(lsp.CodeActionKind.QuickFix, only):
            actions += [
                lsp.CodeAction(
                    correction.title,
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[_diagnostic(correction.diagnostic)],
                    is_preferred=correction.edits == correction.diagnostic.edits,
                    edit=self._workspace_edit(correction.edits),
                )
                for correction in corrections(document, *_bounds(document, parameters.range))
            ]
        if _is_wanted(lsp.CodeActionKind.SourceFixAll, only) and (text := all_corrected(document)) is not None:
            edit = Edit(Span(document.source, 0, len(document.text)), text)
            title = "Correct all errors that have one likely correction"
            kind = lsp.CodeActionKind.SourceFixAll
            actions.append(lsp.CodeAction(title, kind=kind, edit=self._workspace_edit([edit])))
        return actions

    def signature(self, parameters: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        description = signature_help(*self._place(parameters))
        if description is None:
            return None
        label = description.label
        places = (
            (positions.units(label[:start]), positions.units(label[:end])) for start, end in description.parameters
        )
        inner = [lsp.ParameterInformation(place) for place in places]
        signature = lsp.SignatureInformation(label, description.documentation or None, inner)
        return lsp.SignatureHelp([signature], 0, description.active)

    def tokens(self, parameters: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        data: list[int] = []
        line, column = 0, 0
        for token in semantic_tokens(self._document(parameters.text_document)):
            (start_line, start), (_, end) = positions.bounds(token.span)
            modifiers = token.is_declaration | token.is_of_library << 1
            distance = start if start_line > line else start - column
            data += [start_line - line, distance, end - start, KINDS.index(token.kind), modifiers]
            line, column = start_line, start
        return lsp.SemanticTokens(data)

    def graph(self, uri: str, line: int, column: int, picture_format: str) -> dict[str, str]:
        """Returns the name and the picture of what is under the cursor, as `name` and `picture`; or why there is none,
        as `reason`."""
        document = self._document_at(uri)
        described = graph_at(document, positions.offset(document.source, line, column))
        if isinstance(described, str):
            return {"reason": described}
        if picture_format != "svg":
            return {"reason": f"`{picture_format}` is not a format of pictures; ask for `svg`."}
        name, graph = described
        return {"name": name, "picture": self._draw(graph)}

    def definition(self, parameters: lsp.DefinitionParams) -> lsp.Location | None:
        span = definition(*self._place(parameters))
        return None if span is None else self._location(span)

    def references(self, parameters: lsp.ReferenceParams) -> list[lsp.Location]:
        return [self._location(span) for span in references(self._workspace, *self._place(parameters))]

    def renamable(self, parameters: lsp.PrepareRenameParams) -> lsp.Range:
        try:
            return _range(renamable(*self._place(parameters)))
        except ErrorWithRemedy as error:
            raise Refused(str(error)) from error

    def rename(self, parameters: lsp.RenameParams) -> lsp.WorkspaceEdit:
        try:
            edits = rename(self._workspace, *self._place(parameters), parameters.new_name)
        except ErrorWithRemedy as error:
            raise Refused(str(error)) from error
        return self._workspace_edit(edits)

    def _workspace_edit(self, edits: Iterable[Edit]) -> lsp.WorkspaceEdit:
        changes: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            change = lsp.TextEdit(_range(edit.span), edit.text)
            changes.setdefault(self._location(edit.span).uri, []).append(change)
        return lsp.WorkspaceEdit(changes=changes)

    def _location(self, span: Span) -> lsp.Location:
        """Returns a place in another file; an open file keeps the name that the editor has given it."""
        uri = self._uris.get(os.path.normpath(span.source.path))
        return _location(span) if uri is None else lsp.Location(uri, _range(span))


def _bounds(document: Document, place: lsp.Range) -> tuple[int, int]:
    start, end = (positions.offset(document.source, each.line, each.character) for each in (place.start, place.end))
    return start, end


def _is_wanted(kind: lsp.CodeActionKind, only: Iterable[lsp.CodeActionKind | str] | None) -> bool:
    """Whether a client wants actions of a kind, which it names by the kind or its beginning; all if it names none."""
    name = str(kind.value)
    wanted = None if only is None else [str(getattr(each, "value", each)) for each in only]
    return wanted is None or any(name == each or name.startswith(f"{each}.") or not each for each in wanted)


def _path(uri: str) -> str:
    """Returns the path of a file; for a document without a file, a path that a file may have."""
    with suppress(ValueError):  # `file://[` is no URI
        if path := uris.to_fs_path(uri):
            return _possible(path)
    return _possible(f"{uri.rpartition(':')[2] or 'untitled'}.arch")


def _possible(path: str) -> str:
    return path.replace("\0", "?").encode("utf-8", "replace").decode()


def _position(source: Source, offset: int) -> lsp.Position:
    return lsp.Position(*positions.position(source, offset))


def _range(span: Span) -> lsp.Range:
    return lsp.Range(*(lsp.Position(*place) for place in positions.bounds(span)))


def _location(span: Span) -> lsp.Location:
    return lsp.Location(uris.from_fs_path(str(Path(span.source.path).absolute())) or "", _range(span))


def _symbols(entries: Iterable[OutlineEntry]) -> list[lsp.DocumentSymbol]:
    return [
        lsp.DocumentSymbol(
            entry.name,
            _SYMBOLS.get(entry.kind, lsp.SymbolKind.Object),
            _range(entry.span),
            _range(entry.name_span),
            detail=entry.kind,
            children=_symbols(entry.inner),
        )
        for entry in entries
    ]


def _diagnostic(diagnostic: Diagnostic) -> lsp.Diagnostic:
    text = f"{diagnostic.message}\n{diagnostic.remedy}" if diagnostic.remedy else diagnostic.message
    related = [lsp.DiagnosticRelatedInformation(_location(label.span), label.text) for label in diagnostic.labels]
    severity = lsp.DiagnosticSeverity.Error if diagnostic.is_error else lsp.DiagnosticSeverity.Warning
    tags = [lsp.DiagnosticTag.Unnecessary] if diagnostic.code == "W0201" else None
    return lsp.Diagnostic(
        _range(diagnostic.span),
        text,
        severity=severity,
        code=diagnostic.code,
        source="archlang",
        tags=tags,
        related_information=related,
    )


# Mistakes of used files


def _shown_diagnostics(document: Document, open_paths: Container[str]) -> Iterator[Diagnostic]:
    """Yields the diagnostics of a document and of the open files that it uses. Those of other files become one at each
    `use` line that leads to them."""
    by_use: dict[Span, list[Diagnostic]] = {}
    for each in document.diagnostics:
        if os.path.normpath(each.span.source.path) in open_paths:
            yield each
        else:
            by_use.setdefault(_use(document, each), []).append(each)
    for use, mistakes in by_use.items():
        yield _at_use(document, use, sorted(mistakes, key=lambda each: not each.is_error))


def _use(document: Document, diagnostic: Diagnostic) -> Span:
    """Returns the place of a document that leads to a mistake of another file: that of the last label, as `use` lines
    follow the other labels; the start of the document if there is none."""
    labels = [label.span for label in diagnostic.labels if label.span.source.path == document.path]
    return labels[-1] if labels else Span(document.source, 0, 0)


def _at_use(document: Document, use: Span, mistakes: list[Diagnostic]) -> Diagnostic:
    first = mistakes[0]
    file = os.path.relpath(first.span.source.path, os.path.dirname(document.path) or ".")
    message = f"in `{file}`, line {first.span.line}: {first.message}"
    if len(mistakes) > 1:
        message = f"{len(mistakes)} errors of used files, the first {message}"
    labels = tuple(Label(each.span, each.message) for each in mistakes)
    return replace(first, message=message, span=use, label="used here", labels=labels, edits=(), alternatives=())
