"""The door to a folder on disk: everything inside is reached from the open folder, and no link inside is followed.

The user names the folder, which may itself be reached through links. Its contents may come from a stranger: a link, a
pipe, a socket or a device in place of a file or folder is refused. Where the system cannot open files relative to a
folder (Windows), each name is checked before it is used."""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedReader, BufferedWriter
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import BinaryIO

from archlang.disk import mistakes
from archlang.disk.os_errors import is_current_folder_deleted

_RELATIVE = (
    {os.open, os.stat, os.mkdir, os.rename, os.unlink} <= os.supports_dir_fd
    and os.listdir in os.supports_fd
    and shutil.rmtree.avoids_symlink_attacks
)
# O_NONBLOCK: opening a pipe would wait for its other end. O_BINARY: Windows would translate line ends.
_SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
# Deeper folders are not measured: archlang makes none.
_DEEPEST = 32


class Folder:
    """An open folder. Names are those of its own files and folders, without `/`, unless a method says otherwise."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> Folder:
        """Opens a folder that the user names.

        Raises:
            OSError: It is missing or is not a folder."""
        if _RELATIVE:
            return cls(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY))
        os.scandir(path).close()
        return cls(path, None)

    @classmethod
    def create(cls, path: Path) -> Folder:
        """Opens a folder that the user names; creates it and the folders above it if they are missing.

        Raises:
            OSError: It cannot be created."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileNotFoundError as error:
            if is_current_folder_deleted():
                raise
            raise OSError(errno.EROFS, "its file system creates no folders", str(path)) from error  # as /proc
        return cls.open(path)

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the folder. Files that were opened in it stay open."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def folder(self, name: str, *, create: bool = False) -> Folder:
        """Opens a folder of this folder. Its name may be a path, with `/` between the names.

        Args:
            create: Create what is missing.

        Raises:
            OSError: It is missing, refused, or cannot be created."""
        first, *others = PurePosixPath(name).parts
        if create and not self.has_folder(first):
            with suppress(FileExistsError):  # another process was first
                os.mkdir(self._at(first), dir_fd=self._descriptor)
        folder = self._folder(first)
        if not others:
            return folder
        with folder:
            return folder.folder("/".join(others), create=create)

    def _folder(self, name: str) -> Folder:
        path = self.path / name
        if not self.has_folder(name):
            kind = errno.ENOTDIR if self.has(name) else errno.ENOENT
            raise OSError(kind, os.strerror(kind), str(path))
        if self._descriptor is None:
            return Folder(path, None)
        return Folder(path, os.open(name, os.O_RDONLY | os.O_DIRECTORY | _SAFE, dir_fd=self._descriptor))

    @contextmanager
    def holding(self, path: str, *, create: bool = False) -> Iterator[tuple[Folder, str]]:
        """Yields the folder that holds a file, and the file's name in it. The path has `/` between the names.

        Args:
            create: Create the folders that are missing.

        Raises:
            OSError: A folder is missing, refused, or cannot be created."""
        parents, _, name = path.rpartition("/")
        with self.folder(parents, create=create) if parents else nullcontext(self) as home:
            yield home, name

    # What is there

    def names(self) -> list[str]:
        """Returns the names of everything in the folder, sorted."""
        return sorted(os.listdir(self.path if self._descriptor is None else self._descriptor))

    def has(self, name: str) -> bool:
        """Returns whether there is something of this name, also if it would be refused."""
        return self._status(name) is not None

    def has_folder(self, name: str) -> bool:
        """Returns whether there is a folder of this name.

        Raises:
            RefusedFile: It is a link, a pipe, a socket or a device."""
        status = self._plain_status(name)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def has_file(self, name: str) -> bool:
        """Returns whether there is a file of this name.

        Raises:
            RefusedFile: It is a link, a pipe, a socket or a device."""
        status = self._plain_status(name)
        return status is not None and stat.S_ISREG(status.st_mode)

    def require_plain(self, name: str) -> None:
        """
        Raises:
            RefusedFile: A name is a link, a pipe, a socket or a device. It may be missing."""
        self._plain_status(name)

    def size(self, name: str) -> int:
        """Returns the bytes of a file.

        Raises:
            OSError: It is missing, refused, or cannot be read."""
        with self.open_file(name) as file:
            return os.fstat(file.fileno()).st_size

    def total_size(self) -> int:
        """Returns the bytes of all files in the folder and below it. Counts no links."""
        return self._total_size(_DEEPEST)

    def _total_size(self, depth: int) -> int:
        total = 0
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another process has removed it
                    if entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
                    elif entry.is_dir(follow_symlinks=False) and depth:
                        with self._folder(entry.name) as folder:
                            total += folder._total_size(depth - 1)
        return total

    # Reading

    def open_file(self, name: str) -> BufferedReader:
        """Opens a file for reading.

        Raises:
            OSError: It is missing, refused, or cannot be read."""
        return open(self._open(name, os.O_RDONLY), "rb")

    def read(self, name: str, limit: int) -> bytes:
        """Returns the content of a file. Of a file that grows, returns what it held when it was opened.

        Raises:
            OSError: It is missing, refused, longer than `limit` bytes, or cannot be read."""
        with self.open_file(name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise mistakes.too_large(self.path / name, size, limit)
            return file.read(size)

    def sha256(self, name: str) -> str:
        """Returns the digest of a file, of which little is in memory at a time.

        Raises:
            OSError: It is missing, refused, or cannot be read."""
        with self.open_file(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    # Writing

    def write(self, name: str, content: str | bytes, *, durable: bool = True, over_link: bool = False) -> None:
        """Writes bytes, or text as UTF-8, to a file, which keeps the permissions of the file that it replaces. The file
        appears complete or not at all.

        Args:
            durable: Flush to disk. Caches that verify their content can skip the flush.
            over_link: Replace a link by the file, instead of refusing it. What the link points to is not changed.

        Raises:
            OSError: The file cannot be written, or is refused; an existing file is unchanged."""
        existing = self._status(name)
        if existing is not None and not (over_link and stat.S_ISLNK(existing.st_mode)):
            self._require_file(name, existing)
        else:
            existing = None
        unfinished = _temporary(name)
        try:
            with open(self._open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                if existing is not None and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), stat.S_IMODE(existing.st_mode))
                if durable:
                    os.fsync(file.fileno())
            self._rename(unfinished, name)
            if durable:
                self._flush()
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._at(unfinished), dir_fd=self._descriptor)

    def create_file(self, name: str) -> BufferedWriter:
        """Opens a new file for writing.

        Raises:
            OSError: There is something of this name, or the file cannot be created."""
        return open(self._open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL), "wb")

    def append(self, name: str, content: str) -> None:
        """Appends text as UTF-8 to a file, which is created if it is missing.

        Raises:
            OSError: It cannot be written, or is refused."""
        with open(self._open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab") as file:
            self._require_own(name, file)
            file.write(content.encode())

    def truncate(self, name: str, size: int) -> None:
        """Shortens a file to `size` bytes.

        Raises:
            OSError: It cannot be written, or is refused."""
        with open(self._open(name, os.O_RDWR), "r+b") as file:
            self._require_own(name, file)
            file.truncate(size)

    def flushed_size(self, name: str) -> int:
        """Flushes a file to disk, and returns its size in bytes.

        Raises:
            OSError: It is missing, refused, or cannot be flushed."""
        with self.open_file(name) as file:
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size

    @contextmanager
    def new_folder(self, name: str, *, overwrite: bool = True, durable: bool = True) -> Iterator[Folder]:
        """Yields a new folder to write into and renames it to `name` at the end; after an error it is removed.

        Args:
            overwrite: Replace an existing folder. If false, an existing one stays and the new one is removed: for
                processes that may write the same content at the same time.
            durable: Flush to disk before renaming. Caches that verify their content can skip the flush.

        Raises:
            OSError: The folder cannot be written; an existing one is unchanged."""
        self.has_folder(name)
        unfinished = _temporary(name)
        os.mkdir(self._at(unfinished), dir_fd=self._descriptor)
        try:
            with self.folder(unfinished) as folder:
                yield folder
                if durable:
                    for inner in folder.names():
                        folder._flush(inner)
                    folder._flush()
            if overwrite:
                self.discard(name)
            try:
                os.rename(
                    self._at(unfinished), self._at(name), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor
                )
            except OSError:
                # A folder that is not empty cannot be renamed onto.
                if overwrite or not self.has(name):
                    raise
            if durable:
                self._flush()
        finally:
            with suppress(OSError):
                self.remove(unfinished)

    # Removing

    def remove(self, name: str) -> None:
        """Removes a file, a link, or a folder with everything in it. What links point to is not changed.

        Raises:
            OSError: It cannot be removed. It may be missing."""
        status = self._status(name)
        if status is None:
            return
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(self._at(name), dir_fd=self._descriptor)
        else:
            os.unlink(self._at(name), dir_fd=self._descriptor)

    def discard(self, name: str) -> None:
        """Removes a file or a folder in one step for other processes: renames it, then deletes it. Errors are
        ignored."""
        removed = _temporary(name)
        with suppress(OSError):  # missing, removed by another process, or immovable
            self._rename(name, removed)
            self.remove(removed)

    def remove_unfinished(self, pattern: str = "*.part") -> None:
        """Removes the temporary files and folders of killed processes: those named `.` and the pattern."""
        for name in fnmatch.filter(self.names(), f".{pattern}"):
            with suppress(OSError):
                self.remove(name)

    # Locking

    def lock(self, name: str) -> BinaryIO:
        """Opens a file, created if it is missing, and locks it until it is closed or this process ends. Locks nothing
        where the system or the file system has no locks.

        Raises:
            BlockingIOError: Another process has locked it.
            OSError: It cannot be opened, or is refused."""
        file = os.fdopen(self._open(name, os.O_RDWR | os.O_CREAT), "r+b")
        try:
            _lock(file)
        except BlockingIOError:
            file.close()
            raise
        except OSError:
            pass  # a file system without locks
        return file

    def is_locked(self, name: str) -> bool:
        """Returns whether a process has locked a file.

        Raises:
            OSError: The file cannot be opened, or is refused. It may be missing."""
        if not self.has_file(name):
            return False
        with self.open_file(name) as file:
            try:
                _lock(file)
            except OSError:
                return True
        return False

    # One name

    def _at(self, name: str) -> str:
        if name in ("", ".", "..") or os.sep in name or "/" in name or "\0" in name:
            raise mistakes.not_a_name(self.path / name)
        return str(self.path / name) if self._descriptor is None else name

    def _status(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _plain_status(self, name: str) -> os.stat_result | None:
        status = self._status(name)
        if status is not None:
            _require_plain(self.path, name, status)
        return status

    def _require_file(self, name: str, status: os.stat_result) -> None:
        _require_plain(self.path, name, status)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self.path / name))

    def _require_own(self, name: str, file: BinaryIO) -> None:
        """Refuses a file that has a second name: changing it in place would change another file too."""
        if os.fstat(file.fileno()).st_nlink > 1:
            raise mistakes.second_name(self.path / name)

    def _open(self, name: str, flags: int) -> int:
        status = self._status(name)
        if status is not None:
            self._require_file(name, status)
        descriptor = os.open(self._at(name), flags | _SAFE, 0o666, dir_fd=self._descriptor)
        try:
            # Another process may have replaced the file since its status was read.
            self._require_file(name, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _rename(self, old: str, new: str) -> None:
        os.replace(self._at(old), self._at(new), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def _flush(self, name: str = "") -> None:
        """Blocks until a file, or the names in a folder, would survive a power failure."""
        if not name:
            if self._descriptor is not None:
                os.fsync(self._descriptor)
        elif self.has_folder(name):
            with self.folder(name) as folder:
                folder._flush()
        else:
            self.flushed_size(name)


# Files and folders that the user names, written through the door to the folder that holds them.


@contextmanager
def atomic_folder(destination: Path, *, overwrite: bool = True, durable: bool = True) -> Iterator[Path]:
    """Yields a new folder to write into and renames it to `destination` at the end, as `Folder.new_folder` does.

    Raises:
        OSError: The folder cannot be written; an existing destination is unchanged."""
    with (
        Folder.open(destination.parent) as parent,
        parent.new_folder(destination.name, overwrite=overwrite, durable=durable) as unfinished,
    ):
        yield unfinished.path


def write_atomically(destination: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Writes bytes, or text as UTF-8, to a file, which keeps the permissions of the file that it replaces. A link is
    replaced by the file, and what it points to is not changed.

    Args:
        durable: Flush to disk before renaming. Caches that verify their content can skip the flush.

    Raises:
        OSError: The file cannot be written; an existing destination is unchanged."""
    with Folder.open(destination.parent) as parent:
        parent.write(destination.name, content, durable=durable, over_link=True)


def remove_folder(folder: Path) -> None:
    """Removes a folder in one step for other processes: renames it, then deletes it. Errors are ignored."""
    with suppress(OSError), Folder.open(folder.parent) as parent:
        parent.discard(folder.name)


def open_path(file: BinaryIO, path: Path) -> str:
    """Returns a path of the open file at `path`, for libraries that open files themselves."""
    descriptor = f"/dev/fd/{file.fileno()}"
    return descriptor if os.path.exists(descriptor) else str(path)


def is_unfinished(name: str) -> bool:
    """Returns whether a killed process may have left a file or folder of this name."""
    return name.startswith(".") and name.endswith(".part")


def _temporary(name: str) -> str:
    return f".{name}.{secrets.token_hex(4)}.part"


def _require_plain(folder: Path, name: str, status: os.stat_result) -> None:
    """Refuses everything except files and folders."""
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise mistakes.not_plain(folder / name, kinds.get(stat.S_IFMT(status.st_mode), "a device"))


def _lock(file: BinaryIO) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
