"""A client speaks to `archlang lsp` over standard input and output, as editors do."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from archlang.editor.positions import offset
from archlang.editor.server import GRAPH_COMMAND
from archlang.errors import Edit, Source, Span
from archlang.errors.edits import apply_edits
from benchmarks.editor import LINES, texts

USED = "block twice(h: seq[n, d]) -> seq[n, d] {\n    return norm(norm(h))\n}\n"
MAIN = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    a = twice(h)\n    return a + h\n}\n'
NAMED = 'use "./used.arch" as mine\n\nblock c(h: seq[n, d]) -> seq[n, d] {\n    return mine.twice(mine.twice(h))\n}\n'


class Editor:
    """A client, and the diagnostics that it has received."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.encoding: lsp.PositionEncodingKind | str | None = None
        self._diagnostics: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        self._registrations: asyncio.Queue[lsp.RegistrationParams] = asyncio.Queue()
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda received: self._diagnostics.put_nowait(received))
        client.feature(lsp.CLIENT_REGISTER_CAPABILITY)(lambda received: self._registrations.put_nowait(received))

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> None:
        item = lsp.TextDocumentItem(self.uri(name), "arch", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str, version: int = 2) -> None:
        identifier = lsp.VersionedTextDocumentIdentifier(version, self.uri(name))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))

    def document(self, name: str) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri(name))

    async def registered(self) -> lsp.RegistrationParams:
        """Waits for the first request of the server to be told of something."""
        return await self._registrations.get()

    async def diagnostics(self, name: str) -> list[lsp.Diagnostic]:
        """Waits for the next diagnostics of a file."""
        return list((await self.published(name)).diagnostics)

    async def published(self, name: str) -> lsp.PublishDiagnosticsParams:
        """Waits for the next message with diagnostics of a file."""
        while True:
            received = await self._diagnostics.get()
            if received.uri == self.uri(name):
                return received


def edited(text: str, edits: Sequence[lsp.TextEdit]) -> str:
    """Returns a text with the edits that a server has sent."""
    source = Source("", text)
    places = [[offset(source, at.line, at.character) for at in (edit.range.start, edit.range.end)] for edit in edits]
    return apply_edits(
        text, [Edit(Span(source, *place), edit.new_text) for place, edit in zip(places, edits, strict=True)]
    )


def with_editor(folder: Path, session: Callable[[Editor], Awaitable[None]]) -> None:
    """Starts the server, runs a session, and ends the server."""

    async def run() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client, folder)
        await client.start_io(sys.executable, "-m", "archlang", "lsp")
        watching = lsp.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
        # As Neovim does.
        general = lsp.GeneralClientCapabilities(
            position_encodings=[lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16]
        )
        capabilities = lsp.ClientCapabilities(
            workspace=lsp.WorkspaceClientCapabilities(did_change_watched_files=watching), general=general
        )
        parameters = lsp.InitializeParams(capabilities=capabilities, root_uri=folder.as_uri())
        editor.encoding = (await client.initialize_async(parameters)).capabilities.position_encoding
        client.initialized(lsp.InitializedParams())
        await asyncio.wait_for(session(editor), 120)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()  # type: ignore[no-untyped-call]  # pygls
        process = client._server
        assert process is not None
        assert process.returncode == 0

    asyncio.run(run())


def test_columns_are_counted_in_the_encoding_that_the_server_announces(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        assert editor.encoding == lsp.PositionEncodingKind.Utf16
        editor.open("minus.arch", "block b(h: seq[n, d]) -> seq[n, d] {\n    return h − nrom(h)\n}\n")
        (mistake, *_) = await editor.diagnostics("minus.arch")
        assert mistake.range == lsp.Range(lsp.Position(1, 13), lsp.Position(1, 14))

    with_editor(tmp_path, session)


def test_an_editor_gets_everything_about_unsaved_texts_of_several_files(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        client = editor.client
        editor.open("used.arch", USED.replace("twice", "thrice"))
        assert await editor.diagnostics("used.arch") == []
        editor.open("main.arch", MAIN)
        (unknown,) = await editor.diagnostics("main.arch")
        assert unknown.code == "E0202"
        assert unknown.range == lsp.Range(lsp.Position(3, 8), lsp.Position(3, 13))

        editor.change("used.arch", USED)
        assert await editor.diagnostics("main.arch") == []

        editor.change("main.arch", MAIN.replace("twice(h)", "twcie(h)"))
        (misspelt,) = await editor.diagnostics("main.arch")
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(editor.document("main.arch"), misspelt.range, lsp.CodeActionContext([misspelt]))
        )
        correction, everything = (action for action in actions or () if isinstance(action, lsp.CodeAction))
        assert (correction.title, correction.kind) == ("Replace `twcie` by `twice`", lsp.CodeActionKind.QuickFix)
        assert correction.edit is not None
        assert correction.edit.changes is not None
        (edit,) = correction.edit.changes[editor.uri("main.arch")]
        assert (edit.range, edit.new_text) == (misspelt.range, "twice")
        assert everything.kind == lsp.CodeActionKind.SourceFixAll
        assert everything.edit is not None
        assert everything.edit.changes is not None
        assert [edit.new_text for edit in everything.edit.changes[editor.uri("main.arch")]] == [MAIN]
        editor.change("main.arch", MAIN)
        assert await editor.diagnostics("main.arch") == []

        place = lsp.Position(3, 9)
        hover = await client.text_document_hover_async(lsp.HoverParams(editor.document("main.arch"), place))
        assert hover is not None
        assert isinstance(hover.contents, lsp.MarkupContent)
        assert "twice(…): seq[n, d]" in hover.contents.value

        symbols = await client.text_document_document_symbol_async(
            lsp.DocumentSymbolParams(editor.document("main.arch"))
        )
        assert symbols is not None
        assert [symbol.name for symbol in symbols] == ["b"]
        items = await client.text_document_completion_async(
            lsp.CompletionParams(editor.document("main.arch"), lsp.Position(4, 15))
        )
        assert isinstance(items, list)
        assert [item.label for item in items[:2]] == ["a", "d"]
        assert items[0].text_edit is not None
        begun = lsp.Range(lsp.Position(4, 15), lsp.Position(4, 15))
        assert items[0].text_edit == lsp.TextEdit(begun, "a")
        files = await client.text_document_completion_async(
            lsp.CompletionParams(editor.document("main.arch"), lsp.Position(0, 7))
        )
        assert isinstance(files, list)
        assert [item.label for item in files] == ["./used.arch"]
        folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(editor.document("main.arch")))
        assert [(fold.start_line, fold.end_line) for fold in folds or ()] == [(2, 5)]
        all_lines = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
        hints = await client.text_document_inlay_hint_async(
            lsp.InlayHintParams(editor.document("main.arch"), all_lines)
        )
        assert [hint.label for hint in hints or ()] == [": seq[n, d]"]

        signature = await client.text_document_signature_help_async(
            lsp.SignatureHelpParams(editor.document("main.arch"), lsp.Position(3, 14))
        )
        assert signature is not None
        assert signature.signatures[0].label == "twice(h: seq[n, d]) -> seq[n, d]"
        assert signature.active_parameter == 0
        tokens = await client.text_document_semantic_tokens_full_async(
            lsp.SemanticTokensParams(editor.document("main.arch"))
        )
        assert tokens is not None
        assert [*tokens.data[:10]] == [0, 0, 3, 0, 0, 0, 4, 13, 2, 0]
        picture = await client.workspace_execute_command_async(
            lsp.ExecuteCommandParams(GRAPH_COMMAND, [editor.uri("main.arch"), 3, 4, "svg"])
        )
        assert isinstance(picture, dict)
        assert picture["name"] == "block b"
        assert "<svg" in picture["picture"]

        editor.change("main.arch", MAIN.replace("a + h", "a+h"))
        await editor.diagnostics("main.arch")
        edits = await client.text_document_formatting_async(
            lsp.DocumentFormattingParams(editor.document("main.arch"), lsp.FormattingOptions(4, True))
        )
        assert [edit.new_text for edit in edits or ()] == [MAIN]

        editor.open("first.arch", 'use "./second.arch"\n')
        assert [each.code for each in await editor.diagnostics("first.arch")] == ["E0208"]
        editor.open("second.arch", 'use "./first.arch"\n')
        for name in ("first.arch", "second.arch"):
            assert [each.code for each in await editor.diagnostics(name)] == ["E0209"]

    with_editor(tmp_path, session)


def test_diagnostics_have_the_version_of_the_text_that_they_are_of(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        editor.open("used.arch", USED)
        editor.open("main.arch", MAIN)
        assert (await editor.published("main.arch")).version == 1
        editor.change("main.arch", MAIN.replace("twice(h)", "thrice(h)"), version=7)
        changed = await editor.published("main.arch")
        assert (changed.version, [each.code for each in changed.diagnostics]) == (7, ["E0202"])
        editor.change("used.arch", USED.replace("twice", "thrice"), version=3)
        assert (await editor.published("used.arch")).version == 3
        corrected = await editor.published("main.arch")
        assert (corrected.version, list(corrected.diagnostics)) == (7, [])
        editor.client.text_document_did_close(lsp.DidCloseTextDocumentParams(editor.document("main.arch")))
        assert (await editor.published("main.arch")).version is None

    with_editor(tmp_path, session)


def test_a_used_file_that_changes_on_the_disk_is_read_again(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        used, uri = tmp_path / "used.arch", editor.uri("used.arch")
        (registration,) = (await editor.registered()).registrations
        assert registration.method == lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES
        editor.open("main.arch", MAIN)
        assert [each.code for each in await editor.diagnostics("main.arch")] == ["E0208"]

        used.write_text(USED)
        created = lsp.DidChangeWatchedFilesParams([lsp.FileEvent(uri, lsp.FileChangeType.Created)])
        editor.client.workspace_did_change_watched_files(created)
        assert await editor.diagnostics("main.arch") == []

        used.write_text(USED.replace("twice", "thrice"))
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(editor.document("main.arch")))
        assert [each.code for each in await editor.diagnostics("main.arch")] == ["E0202"]

    with_editor(tmp_path, session)


def test_a_mistake_of_a_used_file_is_shown_at_its_use_line_until_the_file_is_open(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        used = tmp_path / "used.arch"
        used.write_text(USED.replace("norm(norm", "nrom(norm"))
        editor.open("main.arch", "# A comment.\n" + MAIN)
        (mistake,) = await editor.diagnostics("main.arch")
        assert (mistake.code, mistake.severity) == ("E0202", lsp.DiagnosticSeverity.Error)
        assert mistake.range == lsp.Range(lsp.Position(1, 4), lsp.Position(1, 17))
        assert mistake.message.startswith("in `used.arch`, line 2: ")
        (related,) = mistake.related_information or ()
        place = lsp.Range(lsp.Position(1, 11), lsp.Position(1, 15))
        assert related.location == lsp.Location(editor.uri("used.arch"), place)

        editor.open("used.arch", used.read_text())
        assert await editor.diagnostics("main.arch") == []
        assert [each.range for each in await editor.diagnostics("used.arch")] == [place]

    with_editor(tmp_path, session)


def test_a_block_is_renamed_over_three_files(tmp_path: Path) -> None:
    async def session(editor: Editor) -> None:
        (tmp_path / "main.arch").write_text(MAIN, encoding="utf-8")
        (tmp_path / "named.arch").write_text(NAMED, encoding="utf-8")
        editor.open("used.arch", USED)
        document, place = editor.document("used.arch"), lsp.Position(0, 7)
        client = editor.client
        uses = await client.text_document_references_async(
            lsp.ReferenceParams(lsp.ReferenceContext(True), document, place)
        )
        names = [Path(location.uri).name for location in uses or ()]
        assert names == ["used.arch", "main.arch", "named.arch", "named.arch"]
        definition = await client.text_document_definition_async(
            lsp.DefinitionParams(editor.document("main.arch"), lsp.Position(3, 9))
        )
        assert isinstance(definition, lsp.Location)
        assert definition.uri == editor.uri("used.arch")
        edit = await client.text_document_rename_async(lsp.RenameParams(document, place, "doubled"))
        assert edit is not None
        assert edit.changes is not None
        for name, text in (("used.arch", USED), ("main.arch", MAIN), ("named.arch", NAMED)):
            assert edited(text, edit.changes[editor.uri(name)]) == text.replace("twice", "doubled")

    with_editor(tmp_path, session)


def test_a_refused_rename_says_why_and_leaves_no_traceback(tmp_path: Path) -> None:
    logged = b""

    async def session(editor: Editor) -> None:
        nonlocal logged
        editor.open("used.arch", USED)
        document, own, shipped = editor.document("used.arch"), lsp.Position(0, 7), lsp.Position(1, 12)
        with pytest.raises(JsonRpcException, match="`return` cannot be a name"):
            await editor.client.text_document_rename_async(lsp.RenameParams(document, own, "return"))
        for place, reason in ((shipped, "`norm` is not defined by this program"), (lsp.Position(0, 0), "no name here")):
            with pytest.raises(JsonRpcException, match=reason):
                await editor.client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document, place))
        server = editor.client._server
        assert server is not None
        assert server.stderr is not None
        with suppress(TimeoutError):
            logged = await asyncio.wait_for(server.stderr.read(100_000), 0.5)

    with_editor(tmp_path, session)
    assert logged == b""


@pytest.mark.slow
def test_every_key_typed_into_5000_lines_at_20_keys_a_second_is_answered(tmp_path: Path) -> None:
    """As editors do, each key is a change of one character and a request for completions."""
    text = texts()[f"{LINES:,} lines"]
    line = text[: text.index("return relu(h)", len(text) // 2)].count("\n")
    keys = "    b = attention[heads = 4](nrom(a))"

    async def session(editor: Editor) -> None:
        editor.open("long.arch", text)
        assert await editor.diagnostics("long.arch") == []
        identifier, answers = editor.document("long.arch"), []
        for column, key in enumerate("\n" + keys):
            at = lsp.Position(line - 1, 5) if key == "\n" else lsp.Position(line, column - 1)
            change = lsp.TextDocumentContentChangePartial(lsp.Range(at, at), key)
            version = lsp.VersionedTextDocumentIdentifier(column + 2, identifier.uri)
            editor.client.text_document_did_change(lsp.DidChangeTextDocumentParams(version, [change]))
            place = lsp.Position(line, column)
            answers.append(editor.client.text_document_completion_async(lsp.CompletionParams(identifier, place)))
            await asyncio.sleep(1 / 20)
        offered = [answer for answer in await asyncio.gather(*answers) if isinstance(answer, list)]
        assert len(offered) == len(keys) + 1
        assert "heads" in [item.label for item in offered[1 + keys.index("heads")]]
        while "E0202" not in [mistake.code for mistake in await editor.diagnostics("long.arch")]:
            pass  # diagnostics of a text with fewer keys

    with_editor(tmp_path, session)
