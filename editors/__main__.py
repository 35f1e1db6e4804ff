"""`python -m editors` writes the files of the editors that come from the grammar."""

from pathlib import Path

from editors.textmate import textmate_grammar
from editors.vim_syntax import vim_syntax

FOLDER = Path(__file__).parent


def files() -> dict[Path, str]:
    """Returns the text of each file."""
    return {
        FOLDER / "vim" / "syntax" / "arch.vim": vim_syntax(),
        FOLDER / "vscode" / "syntaxes" / "arch.tmLanguage.json": textmate_grammar(),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
