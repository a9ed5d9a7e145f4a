"""Pickle dataclasses without their caches, and arrays into files that are read in place."""

from __future__ import annotations

import dataclasses
from typing import Any, BinaryIO

ALIGNED = 64
"""Arrays start at multiples of so many bytes."""


class PicklesFields:
    """A dataclass that pickles as its fields: what was given, not what was computed from it."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def write_pickle(value: object, file: BinaryIO) -> None:
    """Write a pickle, followed by its arrays as they are in memory."""
    import pickle

    arrays: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    contents = [memoryview(pickled), *(array.raw() for array in arrays)]
    pickle.dump([content.nbytes for content in contents], file)
    for content in contents:
        file.write(bytes(-file.tell() % ALIGNED))
        file.write(content)
    file.flush()


def mapped_pickle(file: BinaryIO) -> object:
    """Return what :func:`write_pickle` wrote in this run of the program, arrays in the file's pages."""
    import mmap
    import pickle

    file.seek(0)
    sizes: list[int] = pickle.load(file)
    content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    start, parts = file.tell(), []
    for size in sizes:
        start += -start % ALIGNED
        parts.append(content[start : start + size])
        start += size
    return pickle.loads(parts[0], buffers=parts[1:])
