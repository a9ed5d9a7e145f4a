"""Typed JSON, read in slices so that memory stays flat.

Conventions
-----------
- An array of records is decoded a slice at a time, cut between two records, straight into msgspec
  structs; the caller turns each slice into columns before the next is read. Where a cut falls wrong
  (a record that itself holds records), the whole is decoded at once instead.
- The garbage collector is paused meanwhile: it would walk objects that cannot form cycles.
- Errors name the file, the record, the field, the rule and the value.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from boxscore._collector import paused_collector
from boxscore._validate import message
from boxscore.errors import FileFormatError

__all__ = [
    "chunks_of",
    "decode_records",
    "explain",
    "first_byte",
    "open_binary",
    "parts_of",
    "paused_collector",
]

Record = TypeVar("Record")

SLICE_BYTES = 1 << 17
PART_BYTES = 1 << 22
"""Least share of a file that is worth a process of its own."""
PROGRESS_BYTES = 1 << 27
"""Files from this size on take about a second to read."""


@contextlib.contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, with an error that names it when that fails."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    with file:
        yield file


def first_byte(path: Path) -> bytes:
    """Return the first byte that is not white space, empty for an empty file."""
    with open_binary(path) as file:
        start = file.read(4096)
        return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def chunks_of(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Read bytes [start, end) of a file in slices, with a progress bar on stderr where that takes long."""
    with open_binary(path) as file, _progress(path) as advance:
        file.seek(start)
        left = path.stat().st_size - start if end is None else end - start
        while chunk := file.read(min(SLICE_BYTES, left)):
            left -= len(chunk)
            advance(len(chunk))
            yield chunk


@contextlib.contextmanager
def _progress(path: Path) -> Iterator[Callable[[int], object]]:
    size = path.stat().st_size
    if size < PROGRESS_BYTES or not sys.stderr.isatty():
        yield lambda count: None
        return
    from tqdm import tqdm

    with tqdm(total=size, unit="B", unit_scale=True, desc=f"reading {path.name}", leave=False) as bar:
        yield bar.update


def parts_of(path: Path, count: int) -> list[tuple[int, int]]:
    """Cut the file of a JSON array between records into about equal byte ranges.

    Returns
    -------
    list of (start, end)
        Fewer than ``count`` where the file is small or no boundary is found. Every range but the first
        starts at a record; every one but the last ends before the comma behind one.
    """
    size = path.stat().st_size
    count = min(count, size // PART_BYTES)
    starts, ends = [0], []
    with open_binary(path) as file:
        for part in range(1, count):
            file.seek(size * part // count)
            found = _last_boundary(file.read(SLICE_BYTES))
            if found is None:
                return [(0, size)]
            ends.append(size * part // count + found[0])
            starts.append(size * part // count + found[1])
    return list(zip(starts, [*ends, size], strict=True))


def decode_records(
    chunks: Iterable[bytes | memoryview],
    decode: Callable[[bytes], list[Record]],
    whole: Callable[[], bytes],
) -> Iterator[list[Record]]:
    """Decode a JSON array of records slice by slice.

    Parameters
    ----------
    chunks : iterable of bytes
        The array's text, in pieces of any length.
    decode : callable
        Decodes the text of an array; raises ``msgspec.MsgspecError``.
    whole : callable
        Returns the whole text, for when a slice does not decode. Then the array is decoded at once, and
        what ``decode`` raises names the place in it.

    Yields
    ------
    list of records
    """
    buffer = b""
    done = 0
    for chunk in chunks:
        if not buffer and not done:
            chunk = bytes(chunk).removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[")
        buffer += chunk
        cut = _last_boundary(buffer)
        if not cut:
            continue
        try:
            records = decode(b"[" + buffer[: cut[0]] + b"]")
        except msgspec.MsgspecError:
            break
        yield records
        done += len(records)
        buffer = buffer[cut[1] :]
    else:
        try:
            yield decode(b"[" + buffer)
        except msgspec.MsgspecError:
            pass
        else:
            return
    yield decode(whole().removeprefix(b"\xef\xbb\xbf"))[done:]


def _last_boundary(text: bytes) -> tuple[int, int] | None:
    """Find the last ``}, {``: the end of a record and the start of the next."""
    start = len(text)
    for _ in range(64):
        start = text.rfind(b"{", 0, start)
        if start <= 0:
            return None
        window = text[max(0, start - 32) : start]
        between = window.rstrip()
        if between.endswith(b",") and between[:-1].rstrip().endswith(b"}"):
            return start - len(window) + len(between) - 1, start
    return None


_PLACE = re.compile(r" - at `\$(?P<place>[^`]*)`$")
_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "array": "an array",
    "object": "an object",
    "null": "null",
    "bool": "true or false",
}


def explain(error: Exception, path: Path, *, record: str, text: bytes, cause: str = "") -> FileFormatError:
    """Turn a decoding error into the one form of message.

    Parameters
    ----------
    error : Exception
        What msgspec raised.
    path : Path
    record : str
        What one record is called: ``"detection"``, ``"annotation"``.
    text : bytes
        The file's content, to tell a cut file from a malformed one.
    cause : str
        The likely cause when a record has another shape altogether.
    """
    name = path.name
    if not text.strip():
        return FileFormatError(message("a JSON file", "hold JSON", got="an empty file", place=str(path)))
    text_of_error = str(error)
    if "truncated" in text_of_error:
        return FileFormatError(
            message(
                "a JSON file",
                "be complete",
                got="an end of file in the middle of a value",
                place=str(path),
                cause="was the download or the write cut short?",
            )
        )
    if "malformed" in text_of_error:
        return FileFormatError(_malformed(text_of_error, text, path))
    found = _PLACE.search(text_of_error)
    place = found["place"] if found else ""
    rule = text_of_error[: found.start()] if found else text_of_error
    index = re.search(r"\[(\d+)\]", place)
    field = place[index.end() :].lstrip(".") if index else place.lstrip(".")
    where = f"{record} {index[1]} of {path}" if index else str(path)
    missing = re.match(r"Object missing required field `(\w+)`", rule)
    if missing:
        return FileFormatError(
            message(f"a {record}", f"have {missing[1]}", got="none", place=where, cause=cause)
        )
    kinds = re.match(r"Expected `([^`]+)`, got `(\w+)`", rule)
    what = field or (f"a {record}" if index else name)
    if kinds:
        wanted = " or ".join(_KINDS.get(kind.strip(), kind.strip()) for kind in kinds[1].split("|"))
        got = _KINDS.get(kinds[2], kinds[2])
        return FileFormatError(
            message(what, f"be {wanted}", got=got, place=where, cause="" if field else cause)
        )
    length = re.match(r"Expected `array` of length (\d+)", rule)
    if length:
        return FileFormatError(message(what, f"have {length[1]} numbers", got="another length", place=where))
    if "out of range" in rule:
        return FileFormatError(message(what, "be finite", got="a number too large for a float", place=where))
    return FileFormatError(f"{where}: {what}: {rule}.")


def _malformed(error: str, text: bytes, path: Path) -> str:
    position = re.search(r"byte (\d+)", error)
    start = int(position[1]) if position else 0
    for word in (b"NaN", b"Infinity", b"-Infinity"):
        if text[start:].startswith(word) or text[max(0, start - 1) :].startswith(word):
            key = re.findall(rb'"(\w+)"\s*:', text[max(0, start - 200) : start])
            return message(
                key[-1].decode() if key else "a number",
                "be finite",
                got=word.decode(),
                place=f"{path}, byte {start}",
                cause="a diverged model? JSON has no NaN or Infinity",
            )
    near = text[max(0, start - 20) : start + 20].decode("utf-8", errors="replace")
    return message("a JSON file", "be JSON", got=f"{near!r} near byte {start}", place=str(path))
