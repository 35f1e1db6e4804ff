"""The server gives each editor only what that editor can read: pytest-lsp has the abilities that real editors announce,
and reports an answer that goes beyond them."""

import asyncio
import sys

import pytest
from lsprotocol import types as lsp
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

CLIENTS = [
    "neovim@v0.11.0",
    "visual-studio-code@v1.65.2",
    pytest.param("neovim@v0.7.0", marks=pytest.mark.slow),
    pytest.param("emacs@v29.1", marks=pytest.mark.slow),
]
URI = "file:///page.arch"
TEXT = """block b(h: seq[n, d]) -> seq[n, d] {
    a = nrom(h)
    c = norm(h)
    repeat 2 { c <- norm(c) }
    return a+c
}
"""
DOCUMENT = lsp.TextDocumentIdentifier(URI)
WHOLE = lsp.Range(lsp.Position(0, 0), lsp.Position(6, 0))


@pytest.mark.parametrize("name", CLIENTS)
def test_every_answer_is_within_the_abilities_of_the_editor(name: str) -> None:
    async def run() -> None:
        client = make_test_lsp_client()
        await client.start_io(sys.executable, "-m", "archlang", "lsp")
        await client.initialize_session(lsp.InitializeParams(capabilities=client_capabilities(name)))
        await asyncio.wait_for(ask_everything(client), 120)
        await client.shutdown_session()
        await client.stop()  # type: ignore[no-untyped-call]  # pytest-lsp

    asyncio.run(run())


async def ask_everything(client: LanguageClient) -> None:
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(URI, "arch", 1, TEXT)))
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    (mistake,) = client.diagnostics[URI]
    assert mistake.code == "E0202"
    actions = await client.text_document_code_action_async(
        lsp.CodeActionParams(DOCUMENT, mistake.range, lsp.CodeActionContext([mistake]))
    )
    assert next(action.title for action in actions or ()) == "Replace `nrom` by `norm`"

    inside = lsp.Position(3, 22)
    hover = await client.text_document_hover_async(lsp.HoverParams(DOCUMENT, inside))
    assert hover is not None
    assert await client.text_document_completion_async(lsp.CompletionParams(DOCUMENT, inside))
    signature = await client.text_document_signature_help_async(lsp.SignatureHelpParams(DOCUMENT, lsp.Position(3, 25)))
    assert signature is not None
    assert signature.signatures[0].label.startswith("norm[")
    (symbol,) = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(DOCUMENT)) or ()
    assert symbol.name == "b"
    assert await client.text_document_folding_range_async(lsp.FoldingRangeParams(DOCUMENT))
    assert await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(DOCUMENT))
    assert await client.text_document_inlay_hint_async(lsp.InlayHintParams(DOCUMENT, WHOLE))
    parameter = lsp.Position(0, 8)
    assert await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(DOCUMENT, parameter))
    assert await client.text_document_rename_async(lsp.RenameParams(DOCUMENT, parameter, "states"))
    assert await client.text_document_definition_async(lsp.DefinitionParams(DOCUMENT, inside))
    assert await client.text_document_references_async(
        lsp.ReferenceParams(lsp.ReferenceContext(True), DOCUMENT, parameter)
    )
    assert await client.text_document_formatting_async(
        lsp.DocumentFormattingParams(DOCUMENT, lsp.FormattingOptions(4, True))
    )
