"""Files: find those that a path names, refuse those that change while they are read, write one atomically."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from dhkappa.errors import DataError, did_you_mean, shown

Path: TypeAlias = str | os.PathLike[str]

KINDS = {
    **dict.fromkeys((".csv", ".csv.gz"), "CSV"),
    **dict.fromkeys((".tsv", ".tsv.gz", ".tab", ".tab.gz"), "TSV"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".json", ".json.gz", ".json.zst"), "JSON"),
    **dict.fromkeys((f".{lines}{packed}" for lines in ("jsonl", "ndjson") for packed in ("", ".gz", ".zst")), "JSONL"),
}
"""What a file holds, by the end of its name."""

_SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
_PARQUET = b"PAR1"
_MARKS: dict[bytes, tuple[tuple[str, ...], str]] = {
    b"\x1f\x8b": ((".gz",), "is gzipped, which its name does not say: add .gz to it"),
    b"PK\x03\x04": ((), "is a zip: unpack it, and pass the files in it; a spreadsheet, save as CSV"),
    _PARQUET: ((".parquet", ".pq"), "is Parquet, which its name does not say: add .parquet to it"),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), ((), "is UTF-16 text: save it as UTF-8")),
}
"""How files begin that are not what their names say: how the names of such files end, and what to say of others."""


def found(path: Path | Iterable[Path]) -> list[str]:
    """Return the files that a path, a glob or a list of them names, in order; what a glob matches, by name."""
    try:
        given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        files = list(chain.from_iterable(_matches(os.path.expanduser(os.fspath(one))) for one in given))
    except TypeError:
        raise DataError(f"path must be the path of a file or a list of paths, not {shown([path])}.") from None
    if not files:
        raise DataError("path names no file: the list is empty.")
    places: dict[str, str] = {}
    for file in files:
        place = os.path.realpath(file)
        if place in places:
            raise DataError(f"path names one file twice, {places[place]!r} and {file!r}: its votes would count twice.")
        places[place] = file
    return files


def kind_of(files: Iterable[str]) -> str:
    """Return the one kind that files are of, after a look at whether each can be opened."""
    kinds: dict[str, str] = {}
    for file in files:
        kinds.setdefault(_kind(file), file)
    if len(kinds) > 1:
        (one, first), (other, second) = list(kinds.items())[:2]
        raise DataError(
            f"path names files of several kinds, {first!r} ({one}) and {second!r} ({other}): open one kind at a time."
        )
    return next(iter(kinds))


def check_regular(file: Path) -> None:
    """Refuse a pipe or a device, which may have no end; whether there is such a file is seen when it is opened."""
    try:
        mode = os.stat(file).st_mode
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(f"{os.fspath(file)!r} is no regular file: save what comes out of it to a file first.")


def is_unicode(text: str) -> bool:
    """Tell whether text can be written as UTF-8: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _matches(path: str) -> list[str]:
    """Return the file of that name, or what matches it as a glob."""
    if re.match("[A-Za-z][A-Za-z0-9+.-]+://", path):
        raise DataError(
            f"path is an address ({path.partition(':')[0]}://...) of a kind that is not read here: download it first, "
            "or open it with your own engine and pass the table."
        )
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        pattern = path.replace("\0", "")  # which no name can hold, and glob cannot bear
        matching = sorted(file for file in glob.iglob(pattern, recursive=True) if not os.path.isdir(file))
        if matching == [path]:  # there, and yet nothing there
            raise DataError(f"path {path!r} is a link to {os.readlink(path)!r}, where there is no file.") from None
        if not matching or pattern != path:
            raise DataError(f"path {path!r} {_missing(path)}") from None
        return matching
    except OSError as error:
        raise DataError(f"{path!r} cannot be opened: see who may read it and its folder.\n{error}") from None
    if stat.S_ISDIR(mode):
        raise DataError(f"path {path!r} is a folder{_inside(path)}")
    return [path]


def _missing(path: str) -> str:
    """Say that there is no such file, and which there is."""
    folder, name = os.path.split(path)
    if glob.escape(path) != path:
        return "matches no file: look at the folder and the spelling."
    if not os.path.isdir(folder or "."):
        return f"is no file: there is no folder {folder!r}."
    return "is no file." + did_you_mean(name, os.listdir(folder or "."))


def _inside(folder: str) -> str:
    """Say what a folder holds, and a glob that would open it."""
    names = sorted(os.listdir(folder))
    suffix = next((ending for ending in KINDS for name in names if name.lower().endswith(ending)), None)
    if suffix is None:
        return f" with no file that we read: it holds {shown(names) or 'nothing'}."
    pattern = os.path.join(glob.escape(folder), "*" + suffix)
    return f": pass a glob, such as {pattern!r}. It holds {shown(names)}."


def _kind(file: str) -> str:
    """Tell what a file holds by the end of its name, and that it can be opened."""
    kind = next((kind for ending, kind in KINDS.items() if file.lower().endswith(ending)), None)
    if file.lower().endswith(_SHEETS):
        raise DataError(f"{file!r} is a spreadsheet: save the sheet as CSV, and pass that.")
    if kind is None:
        raise DataError(
            f"{file!r} has a name that does not tell what it holds: it should end in one of {', '.join(KINDS)}. "
            "Rename it, or read it with your own tool and pass the table."
        )
    if not is_unicode(file):
        raise DataError(f"{file!r} has a name that is not UTF-8: rename it.")
    check_regular(file)
    try:
        with open(file, "rb") as opened:
            first = opened.read(4)
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - 4))
            last = opened.read(4)
    except OSError as error:
        raise DataError(f"{file!r} cannot be opened: see who may read it.\n{error}") from None
    if not first:
        raise DataError(f"{file!r} is empty, without as much as the names of columns.")
    ends = file.lower().endswith
    for mark, (ending, advice) in _MARKS.items():
        if first.startswith(mark) and not ends(ending) and (mark != _PARQUET or last == _PARQUET):
            raise DataError(f"{file!r} {advice}.")
    return kind


_Mark = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Steady:
    """What tells one state of some files from another, by their paths; None for what is no file with a state."""

    marks: Mapping[str, _Mark | None] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[str | os.PathLike[str]]) -> Steady:
        """Look at files, before anything is read of them."""
        paths = [os.path.abspath(path) for path in files]  # which stay, whatever becomes the working directory
        return cls({path: _mark(path) for path in paths})

    def __add__(self, other: Steady) -> Steady:
        return Steady({**self.marks, **other.marks})

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let files be read, and refuse what came of it if one has changed; also where that is what went wrong."""
        self._check(None)  # what took the place of a file may have no end
        try:
            yield
        except DataError as error:
            self._check(error)
            raise
        self._check(None)

    def _check(self, error: DataError | None) -> None:
        for path, mark in self.marks.items():
            if _mark(path) != mark:
                raise DataError(
                    f"{path!r} has changed since it was opened, in what it holds or in its rights or links, and a "
                    "number might be of neither state: open it again when nothing changes it any more."
                ) from error


def _mark(path: str) -> _Mark | None:
    """Return which file it is, its size and when it was last written to, also by the clock that nobody sets back."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    regular = stat.S_ISREG(found.st_mode)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if regular else None


_STANDARD = {"stdout": 1, "stderr": 2}
_OPEN = re.compile("/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]{1,9})")  # what a process has open, by name
_LEFT = 3600  # seconds after which nobody writes to a draft any more


def write_whole(path: str | os.PathLike[str], text: str, what: str) -> None:
    """Write text to a file as UTF-8; an existing file keeps who may read it. ``what`` names it in an error."""
    name = name_of(path, what)
    target = os.path.realpath(name)
    try:
        data = text.encode("utf-8")
        if is_stream(name):  # by its own name: what a link to a pipe leads to has none
            target = name
            _pour(name, data)
        else:
            _replace(target, data)
    except BrokenPipeError:  # whoever reads has had enough
        raise
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write the {what} {target!r}: {told(error)}.") from None


def is_stream(name: str) -> bool:
    """Tell whether a name is of a device or a pipe, which have no old content to keep, or of what is open already."""
    return _OPEN.fullmatch(name) is not None or (
        os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)
    )


def _pour(name: str, data: bytes) -> None:
    """Write to a device or a pipe, or where what is open already stands: after what a shell's ``>>`` keeps, say."""
    found = _OPEN.fullmatch(name)
    if found is None:
        with open(name, "wb") as file:
            file.write(data)
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    with open(os.dup(_STANDARD.get(found[1]) or int(found[2])), "wb") as file:
        file.write(data)


def _replace(target: str, data: bytes) -> None:
    """Write a draft beside the file, and put it in the place of the file when all of it is on disk."""
    folder, name = os.path.split(target)
    draft = os.path.join(folder, f".{name[:50]}.{secrets.token_hex(8)}.draft")
    try:
        with open(draft, "xb") as file:  # a new file, not what somebody has put in its way, nor through a link
            if os.path.exists(target):
                os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a machine that stops might keep the new name, and nothing in it
            now = os.fstat(file.fileno()).st_mtime
        os.replace(draft, target)
    except FileExistsError:  # which is not ours to remove
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    _tidy(folder, name, now - _LEFT)


def _tidy(folder: str, name: str, before: float) -> None:
    """Remove drafts of the same file that were left by processes killed long ago, by the clock of the folder's disk."""
    left = re.compile(re.escape(f".{name[:50]}.") + "[0-9a-f]{16}[.]draft")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if left.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)


def name_of(path: Any, what: str) -> str:
    """Return the name of a file as text."""
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, UnicodeError):
        raise DataError(f"the name of a {what} file must be text or a path, not {shown([path])}.") from None
    if "\0" in name or not name:
        raise DataError(f"{name!r} cannot be the name of a {what} file.")
    return name


def told(error: Exception) -> str:
    """Return what the system says, without its number."""
    return getattr(error, "strerror", None) or str(error)
