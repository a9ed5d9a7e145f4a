"""Recognize errors that mean that memory has run out."""

from __future__ import annotations

import errno

OUT_OF_MEMORY = 3
"""The exit status of the command line: the input may be good, and no check has failed."""


def require_room(size: int) -> None:
    """Raise an error where the system would not give this many bytes; none are touched.

    For libraries that end the process, each with a status of its own choice, where they get too little.
    """
    import mmap

    mmap.mmap(-1, size).close()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was missing; a library that could not be loaded for want of it is an ImportError.

    An error raised from such an error counts too: then no package is missing, and no file is bad.
    """
    if error.__context__ is not None and is_out_of_memory(error.__context__):
        return True
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    text = str(error).lower()
    fragments = _FRAGMENTS.get(next((kind for kind in _FRAGMENTS if isinstance(error, kind)), Exception), ())
    return any(fragment in text for fragment in fragments)


_FRAGMENTS: dict[type[Exception], tuple[str, ...]] = {
    ImportError: ("cannot allocate memory", "failed to map segment"),
    ValueError: ("array is too big", "maximum allowed dimension exceeded"),
}
"""Text of other errors, by type: those of the loader and of NumPy."""
