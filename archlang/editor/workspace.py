"""The files that an editor has open, and those beside them."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

from archlang.editor.document import Document
from archlang.errors import ProgramError
from archlang.syntax.reading import read

# The largest number of files of a folder that are searched or listed.
_MOST_FILES = 1_000


def collect_rarely() -> None:
    """Raises the thresholds of the garbage collector for a process that answers an editor: the trees of large files
    live from answer to answer, and tracing them takes longer than an answer."""
    gc.set_threshold(50_000, 20, 50)


class Workspace:
    """The texts of the open files, and what is known about each as long as no text changes."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._documents: dict[str, Document] = {}

    def open(self, path: str, text: str) -> None:
        """Sets the text of a file, saved or not."""
        self._texts[os.path.realpath(path)] = text
        self._documents.clear()

    def close(self, path: str) -> None:
        """Returns to the text on the disk."""
        self._texts.pop(os.path.realpath(path), None)
        self._documents.clear()

    def reread(self) -> None:
        """Reads the files on the disk again: one of them may have changed."""
        self._documents.clear()

    def document(self, path: str) -> Document:
        """Returns a file, from the disk if it is not open.

        Raises:
            ProgramError: it cannot be read."""
        if path not in self._documents:
            text = self._texts.get(os.path.realpath(path))
            text = read(path).text if text is None else text
            self._documents[path] = Document(path, text, dict(self._texts))
        return self._documents[path]

    def usable_files(self, path: str) -> Iterator[str]:
        """Yields the other programs of a file's folder and below, also unsaved ones, as a `use` line of the file names
        them."""
        real_path = os.path.realpath(path)
        folder = Path(real_path).parent
        for file in sorted({*_programs_below(folder), *map(Path, self._texts)}):
            if file != Path(real_path) and file.is_relative_to(folder):
                yield f"./{file.relative_to(folder).as_posix()}"

    def documents_beside(self, path: str) -> Iterator[Document]:
        """Yields the programs of a file's folder and below, and the other open files, each once."""
        seen: set[str] = set()
        for each in (path, *map(str, _programs_below(Path(path).parent)), *self._texts):
            if os.path.realpath(each) not in seen:
                seen.add(os.path.realpath(each))
                try:
                    document = self.document(each)
                except ProgramError:
                    continue
                yield document


def _programs_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.arch"))[:_MOST_FILES]
