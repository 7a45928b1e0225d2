"""A file that is written whole, or not at all: whoever looks, or kills the process, finds the old one or the new."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
from typing import Any

from dhkappa.errors import DataError, shown

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
