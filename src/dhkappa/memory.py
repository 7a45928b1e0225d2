"""Names of ``dhkappa.resources`` for modules that still import them from here."""

from dhkappa.resources import (
    MIB,
    folder_on_disk,
    is_out_of_memory,
    memory_errors,
    need,
    out_of_memory,
    own_words,
    share,
)

__all__ = [
    "MIB",
    "counting",
    "fitting",
    "folder_on_disk",
    "is_out_of_memory",
    "need",
    "own_words",
    "share",
    "too_large",
]

counting = fitting = memory_errors


def too_large(what: str) -> str:
    """Return the message of ``out_of_memory``."""
    return str(out_of_memory(what))
