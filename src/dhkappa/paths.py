"""Files: find them, in natural order (day2 before day10), detect changes while they are read, write atomically."""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from dhkappa.errors import DataError, did_you_mean, invalid, shown

Path: TypeAlias = str | os.PathLike[str]
Paths: TypeAlias = Path | Iterable[Path]

_EXCEL = (".xlsx", ".xlsm")
FILE_TYPES = {  # by suffix
    **dict.fromkeys((".csv", ".csv.gz"), "CSV"),
    **dict.fromkeys((".tsv", ".tsv.gz", ".tab", ".tab.gz"), "TSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys(_EXCEL, "Excel"),
    **dict.fromkeys((".json", ".json.gz", ".json.zst"), "JSON"),
    **dict.fromkeys((f".{lines}{packed}" for lines in ("jsonl", "ndjson") for packed in ("", ".gz", ".zst")), "JSONL"),
}
_SPREADSHEETS = (".xlsb", ".xls", ".ods", ".numbers")
_UNPACKED, _TIMES = 1 << 28, 200  # a packed file may hold so many bytes, or so many times its own size
_PARQUET = b"PAR1"
_SIGNATURES: dict[bytes, tuple[tuple[str, ...], str, str]] = {  # first bytes: suffixes, what it is, what to do
    b"\x1f\x8b": ((".gz",), "is compressed with gzip, but its name does not end in .gz", "Add .gz to the name."),
    b"PK\x03\x04": (_EXCEL, "is a zip archive", "Unpack it and pass the files in it. An Excel file must end in .xlsx."),
    _PARQUET: ((".parquet", ".pq"), "is Parquet, but its name does not end in .parquet", "Add .parquet to the name."),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), ((), "is UTF-16 text", "Save it as UTF-8.")),
}


def natural_order(name: str) -> tuple[list[str], str]:
    """Return a sort key of text in which numbers are compared by size: day2.csv before day10.csv."""
    runs = re.split("([0-9]+)", name.casefold())
    for index in range(1, len(runs), 2):
        digits = runs[index].lstrip("0")
        runs[index] = f"{len(digits):09d}{digits}"
    return runs, name


def expand_patterns(paths: Iterable[str]) -> list[str]:
    """Replace glob patterns by the files that match, in natural order; a name that exists or matches none stays."""
    found = ([path] if os.path.exists(path) else _glob(path) or [path] for path in paths)
    return list(chain.from_iterable(found))


def _glob(pattern: str) -> list[str]:
    found = glob.iglob(pattern.replace("\0", ""), recursive=True)  # glob fails on it, and no name can contain it
    return sorted((file for file in found if not os.path.isdir(file)), key=natural_order)


def find_files(path: Paths) -> list[str]:
    """Return the files of a path, a glob pattern or a list of them; matches of a pattern are in natural order."""
    try:
        given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        files = list(chain.from_iterable(_matches(os.path.expanduser(os.fspath(one))) for one in given))
    except TypeError:
        raise invalid("path", f"The path must be a path or a list of paths, got {shown([path])}.") from None
    if not files:
        raise invalid("path", "The list of paths is empty.")
    places: dict[str, str] = {}
    for file in files:
        place = os.path.realpath(file)
        if place in places:
            message = f"{places[place]!r} and {file!r} are the same file, whose votes would be counted twice."
            raise invalid("path", message, code="duplicate-file")
        places[place] = file
    return files


def file_type(files: Iterable[str]) -> str:
    """Return the common type of some files, after checking that each can be opened."""
    types: dict[str, str] = {}
    for file in files:
        types.setdefault(_file_type(file), file)
    if len(types) > 1:
        (one, first), (other, second) = list(types.items())[:2]
        message = f"The files have several types: {first!r} is {one}, {second!r} is {other}."
        raise invalid("path", message, hint="Open one type at a time.", code="mixed-file-types")
    return next(iter(types))


def check_regular(file: Path) -> None:
    """Refuse a pipe or a device, which may have no end. A missing file is reported when it is opened."""
    if _is_special(file):
        message = f"{os.fspath(file)!r} is not a regular file."
        raise invalid("path", message, hint="Save its content to a file first.", code="not-a-regular-file")


def is_excel(path: Any) -> bool:
    """Tell whether a path, or each path of a list, has the name of an Excel file."""
    if isinstance(path, (list, tuple)):
        return bool(path) and all(map(is_excel, path))
    return isinstance(path, (str, os.PathLike)) and str(os.fspath(path)).lower().endswith(_EXCEL)


def most_unpacked(size: int) -> int:
    """Return how many bytes a compressed file of some bytes may hold: more is a decompression bomb."""
    return max(_UNPACKED, _TIMES * size)


def _is_special(file: Path) -> bool:
    return os.path.exists(file) and not os.path.isfile(file) and not os.path.isdir(file)


def is_unicode(text: str) -> bool:
    """Tell whether text can be written as UTF-8, which half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _matches(path: str) -> list[str]:
    if re.match("[A-Za-z][A-Za-z0-9+.-]+://", path):
        message = f"URLs of type {path.partition(':')[0]}:// are not supported."
        hint = "Download the file first, or open it with your own engine and pass the table."
        raise invalid("path", message, hint=hint, code="url-not-supported")
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        matching = _glob(path)
        if matching == [path]:  # listed, but not there
            message = f"File not found: {path!r} is a link to {os.readlink(path)!r}, which does not exist."
            raise invalid("path", message, code="file-not-found") from None
        if not matching or "\0" in path:
            raise not_found(path) from None
        return matching
    except OSError as error:
        raise _not_readable(path, error) from None
    if stat.S_ISDIR(mode):
        raise _is_folder(path)
    return [path]


def _not_readable(path: str, error: OSError) -> DataError:
    message = f"Cannot open {path!r}: {system_message(error)}."
    return invalid("path", message, hint="Check its permissions.", code="file-not-readable")


def not_found(path: str) -> DataError:
    """Return the error for a file that does not exist, with a similar name in its folder as the hint."""
    folder, name = os.path.split(path)
    message, hint = f"File not found: {path!r}.", ""
    if glob.escape(path) != path:
        message = f"No file matches {path!r}."
    elif os.path.isdir(folder or "."):
        with suppress(OSError):  # a folder that cannot be listed
            hint = did_you_mean(name, os.listdir(folder or ".")).strip()
    else:
        message += f" There is no folder {folder!r}."
    return invalid("path", message, hint=hint, code="file-not-found")


def _is_folder(folder: str) -> DataError:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return _not_readable(folder, error)
    suffix = next((ending for ending in FILE_TYPES for name in names if name.lower().endswith(ending)), None)
    pattern = os.path.join(glob.escape(folder), f"*{suffix}")
    hint, options = ("", {}) if suffix is None else (f"Pass a pattern, such as {pattern!r}.", {"path": pattern})
    message = f"{folder!r} is a folder. It contains: {shown(names) or 'nothing'}."
    return invalid("path", message, hint=hint, code="path-is-folder", options=options, choices={"path": "FILE"})


def _file_type(file: str) -> str:
    """Return the type of a file by its suffix, after checking that it can be opened."""
    kind = next((kind for ending, kind in FILE_TYPES.items() if file.lower().endswith(ending)), None)
    if file.lower().endswith(_SPREADSHEETS):
        hint = "Save it as .xlsx, or the sheet as CSV, and pass that."
        raise invalid("path", f"{file!r} is a spreadsheet of a type that is not read.", hint=hint, code="spreadsheet")
    if kind is None:
        hint = f"The name must end in one of {', '.join(FILE_TYPES)}."
        raise invalid("path", f"The type of {file!r} is unknown.", hint=hint, code="unknown-file-type")
    if not is_unicode(file):
        raise invalid("path", f"The file name {file!r} is not UTF-8.", hint="Rename it.", code="not-utf8")
    check_regular(file)
    try:
        with open(file, "rb") as opened:
            first = opened.read(4)
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - 4))
            last = opened.read(4)
    except OSError as error:
        raise _not_readable(file, error) from None
    if not first:
        raise invalid("path", f"{file!r} is empty.", code="empty-file")
    for signature, (endings, problem, hint) in _SIGNATURES.items():
        wrong = first.startswith(signature) and not file.lower().endswith(endings)
        if wrong and (signature != _PARQUET or last == _PARQUET):
            raise invalid("path", f"{file!r} {problem}.", hint=hint, code="wrong-file-type")
    return kind


@dataclass(frozen=True, slots=True)
class FileStates:
    """Identity, size and times of some files by path; None for a path that is not a regular file."""

    states: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[Path]) -> FileStates:
        """Record the state of files before they are read."""
        return cls({path: _state(path) for path in map(os.path.abspath, files)})  # whatever the working directory

    def __add__(self, other: FileStates) -> FileStates:
        return FileStates({**self.states, **other.states})

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise ``DataError`` if a file changed before or during the block, also if that made the block fail."""
        self._check(None)  # what replaced a file may have no end
        try:
            yield
        except DataError as error:
            self._check(error)
            raise
        self._check(None)

    def _check(self, error: DataError | None) -> None:
        for path, state in self.states.items():
            if _state(path) != state:
                message, hint = f"{path!r} has changed since it was opened.", "Open it again when it no longer changes."
                raise invalid("path", message, hint=hint, code="file-changed") from error


def _state(path: str) -> tuple[int, ...] | None:
    """Return device, inode, size and times; the change time cannot be set back."""
    with suppress(OSError, ValueError):
        found = os.stat(path)
        if stat.S_ISREG(found.st_mode):
            return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return None


_STANDARD = {"stdout": 1, "stderr": 2}
_OPEN = re.compile("/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]{1,9})")  # open file descriptors by name
_ABANDONED = 3600  # age in seconds at which a draft is taken for abandoned


def write_file(path: Path, content: str | bytes, what: str) -> None:
    """Write bytes, or text as UTF-8, to a file, atomically; it keeps its permissions. ``what`` is for errors."""
    name = file_name(path, what)
    stream = is_stream(name)
    target = name if stream else os.path.realpath(name)  # a link to a pipe has no real path
    try:
        (_write_stream if stream else _replace)(
            target, content.encode("utf-8") if isinstance(content, str) else content
        )
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"Cannot write the {what} {target!r}: {system_message(error)}.", code="cannot-write") from None


def is_stream(name: str) -> bool:
    """Tell whether a name is that of a device, a pipe or an open file descriptor."""
    return _OPEN.fullmatch(name) is not None or _is_special(name)


def _write_stream(name: str, data: bytes) -> None:
    """Write to a device or a pipe, or to an open file descriptor at its position."""
    found = _OPEN.fullmatch(name)
    for stream in (sys.stdout, sys.stderr):
        if found and stream is not None:
            stream.flush()
    with open(os.dup(_STANDARD.get(found[1]) or int(found[2])) if found else name, "wb") as file:
        file.write(data)


def _replace(target: str, data: bytes) -> None:
    """Write a draft next to the file and rename it when all of it is on disk."""
    import secrets  # takes time

    folder, name = os.path.split(target)
    draft = os.path.join(folder, f".{name[:50]}.{secrets.token_hex(8)}.draft")
    try:
        with open(draft, "xb") as file:  # never an existing file or link
            if os.path.exists(target):
                os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a crash might keep the new name without the content
            now = os.fstat(file.fileno()).st_mtime
        os.replace(draft, target)
    except FileExistsError:  # not our file to remove
        raise
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    _remove_abandoned(folder, name, now - _ABANDONED)


def _remove_abandoned(folder: str, name: str, before: float) -> None:
    """Remove drafts of the same file left by killed processes, by the clock of the file system."""
    left = re.compile(re.escape(f".{name[:50]}.") + "[0-9a-f]{16}[.]draft")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if left.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)


def file_name(path: Any, what: str) -> str:
    """Return the name of a file as text."""
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, UnicodeError):
        raise invalid("path", f"The name of a {what} file must be text or a path, got {shown([path])}.") from None
    if "\0" in name or not name:
        raise invalid("path", f"{name!r} is not a valid name of a {what} file.")
    return name


def system_message(error: Exception) -> str:
    """Return the message of the operating system without its number."""
    return getattr(error, "strerror", None) or str(error)
