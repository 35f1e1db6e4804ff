"""The language server: answers an editor over the Language Server Protocol. Needs the extra `lsp`."""

import asyncio
import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Protocol

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

import archlang
from archlang.diagnostics import Diagnostic, Edit, ErrorWithRemedy
from archlang.editor import positions
from archlang.editor.completion import completions
from archlang.editor.corrections import all_corrected, corrections
from archlang.editor.document import Document
from archlang.editor.formatting import formatted
from archlang.editor.hover import hints, hover
from archlang.editor.navigation import definition, references, renamable, rename
from archlang.editor.outline import Entry, folds, outline
from archlang.editor.workspace import Workspace
from archlang.source import Source, Span

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
}


def make_server() -> LanguageServer:
    """Returns the server, which is not started."""
    server = LanguageServer("archlang", f"v{archlang.__version__}")
    answers = _Answers(server)
    for method, handler in (
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
    triggers = lsp.CompletionOptions(trigger_characters=["[", "."])
    server.feature(lsp.TEXT_DOCUMENT_COMPLETION, triggers)(partial(answers.completions))
    server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))(partial(answers.rename))
    server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)(partial(answers.renamable))
    return server


class _HasPlace(Protocol):
    """The parameters of a request about a place."""

    @property
    def text_document(self) -> lsp.TextDocumentIdentifier: ...
    @property
    def position(self) -> lsp.Position: ...


class _Answers:
    """Answers the requests of one editor."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._workspace = Workspace()
        self._uris: dict[str, str] = {}
        self._versions: dict[str, int] = {}

    # Texts

    def opened(self, parameters: lsp.DidOpenTextDocumentParams) -> None:
        self._read(parameters.text_document.uri)
        self._publish()

    async def changed(self, parameters: lsp.DidChangeTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        self._read(uri)
        version = self._versions[uri] = self._versions.get(uri, 0) + 1
        await asyncio.sleep(_PAUSE)
        if self._versions.get(uri) == version:
            self._publish()

    def closed(self, parameters: lsp.DidCloseTextDocumentParams) -> None:
        uri = parameters.text_document.uri
        path = _path(uri)
        self._workspace.close(path)
        self._versions.pop(uri, None)
        self._uris.pop(path, None)
        self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))
        self._publish()

    def _read(self, uri: str) -> None:
        path = _path(uri)
        self._uris[path] = uri
        self._workspace.open(path, self._server.workspace.get_text_document(uri).source)

    def _publish(self) -> None:
        """Sends the mistakes of every open file, because a file may use the others."""
        for path, uri in list(self._uris.items()):
            document = self._workspace.document(path)
            diagnostics = [_diagnostic(each) for each in document.diagnostics if each.span.source.path == path]
            self._server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics))

    def _place(self, parameters: _HasPlace) -> tuple[Document, int]:
        document = self._document(parameters.text_document)
        place = parameters.position
        return document, positions.offset(document.source, place.line, place.character)

    def _document(self, identifier: lsp.TextDocumentIdentifier) -> Document:
        return self._workspace.document(_path(identifier.uri))

    # Requests

    def hover(self, parameters: lsp.HoverParams) -> lsp.Hover | None:
        description = hover(*self._place(parameters))
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
            for hint in hints(document)
        ]

    def formatting(self, parameters: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        document = self._document(parameters.text_document)
        text = formatted(document)
        if text is None or text == document.text:
            return []
        return [lsp.TextEdit(_range(Span(document.source, 0, len(document.text))), text)]

    def completions(self, parameters: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        return [
            lsp.CompletionItem(
                completion.word.strip(" ="),
                kind=_COMPLETIONS.get(completion.kind, lsp.CompletionItemKind.Value),
                detail=completion.detail,
                insert_text=completion.word,
                sort_text=f"{place:05}",
            )
            for place, completion in enumerate(completions(*self._place(parameters)))
        ]

    def actions(self, parameters: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document, only = self._document(parameters.text_document), parameters.context.only
        actions = []
        if _is_wanted(lsp.CodeActionKind.QuickFix, only):
            places = (parameters.range.start, parameters.range.end)
            start, end = (positions.offset(document.source, place.line, place.character) for place in places)
            actions += [
                lsp.CodeAction(
                    correction.title,
                    kind=lsp.CodeActionKind.QuickFix,
                    diagnostics=[_diagnostic(correction.diagnostic)],
                    is_preferred=True,
                    edit=self._workspace_edit(correction.edits),
                )
                for correction in corrections(document, start, end)
            ]
        if _is_wanted(lsp.CodeActionKind.SourceFixAll, only) and (text := all_corrected(document)) is not None:
            edit = Edit(Span(document.source, 0, len(document.text)), text)
            title = "Correct all mistakes that have one likely correction"
            kind = lsp.CodeActionKind.SourceFixAll
            actions.append(lsp.CodeAction(title, kind=kind, edit=self._workspace_edit([edit])))
        return actions

    def definition(self, parameters: lsp.DefinitionParams) -> lsp.Location | None:
        span = definition(*self._place(parameters))
        return None if span is None else self._location(span)

    def references(self, parameters: lsp.ReferenceParams) -> list[lsp.Location]:
        return [self._location(span) for span in references(self._workspace, *self._place(parameters))]

    def renamable(self, parameters: lsp.PrepareRenameParams) -> lsp.Range | None:
        span = renamable(*self._place(parameters))
        return None if span is None else _range(span)

    def rename(self, parameters: lsp.RenameParams) -> lsp.WorkspaceEdit:
        try:
            edits = rename(self._workspace, *self._place(parameters), parameters.new_name)
        except ErrorWithRemedy as error:
            raise JsonRpcInvalidParams(str(error)) from error
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


def _is_wanted(kind: lsp.CodeActionKind, only: Iterable[lsp.CodeActionKind | str] | None) -> bool:
    """Whether a client wants actions of a kind, which it names by the kind or its beginning; all if it names none."""
    name = str(kind.value)
    wanted = None if only is None else [str(getattr(each, "value", each)) for each in only]
    return wanted is None or any(name == each or name.startswith(f"{each}.") or not each for each in wanted)


def _path(uri: str) -> str:
    return uris.to_fs_path(uri) or f"{uri.rpartition(':')[2] or 'untitled'}.arch"


def _position(source: Source, offset: int) -> lsp.Position:
    return lsp.Position(*positions.position(source, offset))


def _range(span: Span) -> lsp.Range:
    return lsp.Range(*(lsp.Position(*place) for place in positions.bounds(span)))


def _location(span: Span) -> lsp.Location:
    return lsp.Location(uris.from_fs_path(str(Path(span.source.path).absolute())) or "", _range(span))


def _symbols(entries: Iterable[Entry]) -> list[lsp.DocumentSymbol]:
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
