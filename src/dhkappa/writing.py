"""A file that is written whole, or not at all: whoever looks, or kills the process, finds the old one or the new."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from typing import Any

from dhkappa.errors import DataError, shown


def write_whole(path: str | os.PathLike[str], text: str, what: str) -> None:
    """Write text to a file as UTF-8; an existing file keeps who may read it. ``what`` names it in an error."""
    target = os.path.realpath(name_of(path, what))
    folder, name = os.path.split(target)
    draft = os.path.join(folder, f".{name[:50]}.{os.getpid()}.{threading.get_ident()}")
    try:
        data = text.encode("utf-8")
        if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
            with open(target, "wb") as file:  # a device or a pipe has no old content to keep
                file.write(data)
            return
        with open(draft, "wb") as file:
            file.write(data)
        if os.path.exists(target):
            os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(draft, target)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write the {what} {target!r}: {told(error)}.") from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(draft)


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
