"""A file that is written whole, or not at all: whoever looks, or kills the process, finds the old one or the new."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from typing import Any

from dhkappa.errors import DataError, shown

_LEFT = 3600  # seconds after which nobody writes to a draft any more


def write_whole(path: str | os.PathLike[str], text: str, what: str) -> None:
    """Write text to a file as UTF-8; an existing file keeps who may read it. ``what`` names it in an error."""
    target = os.path.realpath(name_of(path, what))
    try:
        data = text.encode("utf-8")
        if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
            with open(target, "wb") as file:  # a device or a pipe has no old content to keep
                file.write(data)
            return
        _replace(target, data)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write the {what} {target!r}: {told(error)}.") from None


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
