"""`archlang lsp`: the language server, which editors start."""

from archlang.diagnostics import ErrorWithRemedy


def lsp() -> None:
    """Answer an editor over standard input and output, by the Language Server Protocol.

    Needs the extra `lsp`. An editor starts it; docs/editors.md says how.

    Example: archlang lsp
    """
    try:
        from archlang.editor.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        message = "the packages of the extra `lsp` are not installed"
        raise ErrorWithRemedy(message, "run `pip install 'archlang[lsp]'`") from None
    make_server().start_io()
