"""Read typed JSON in slices, in constant memory.

Conventions
-----------
- An array of records is decoded one slice at a time into msgspec structs; the caller converts each slice to
  columns before the next is read. Slices end between two records. If a guessed end is wrong (a record that
  contains records), later ends are found by counting brackets.
- Callers pause the garbage collector, because the decoded objects cannot form cycles.
- Skipped keys must be UTF-8 too, as in ``json``; msgspec does not check them.
- Errors give the file, the record, the field, the rule and the value.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np

from boxscore._utils.progress import progress_is_shown
from boxscore.data.hints import ask
from boxscore.errors import FileFormatError, shortened

Record = TypeVar("Record")

SLICE_BYTES = 1 << 17
PART_BYTES = 1 << 22
"""Smallest chunk of a file that is worth another process."""
PROGRESS_BYTES = 1 << 27
"""Minimum size of a file for a progress bar: it takes about a second to read."""
MOST_AGAIN = 1 << 26
"""Maximum size of a text that is decoded again for a message."""


@contextlib.contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; errors name the file."""
    try:
        file = path.open("rb")
    except (OSError, ValueError) as error:  # a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise FileFormatError(f"{path}: cannot be read: {reason}.") from None
    with file:
        yield file


def first_byte(path: Path) -> bytes:
    """Return the first byte that is not whitespace; empty for an empty file."""
    with open_binary(path) as file:
        start = file.read(4096)
        return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def chunks_of(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Read bytes [start, end) of a file in slices, with a progress bar on stderr if the file is large."""
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
    if size < PROGRESS_BYTES or not progress_is_shown():
        yield lambda count: None
        return
    from tqdm import tqdm

    with tqdm(total=size, unit="B", unit_scale=True, desc=f"reading {path.name}", leave=False) as bar:
        yield bar.update


def parts_of(size: int, read: Callable[[int, int], bytes], shares: Sequence[float]) -> list[tuple[int, int]]:
    """Split a JSON array between records into byte ranges of about these shares; one range if that fails."""
    starts, ends = [0], []
    for middle in [int(size * share) for share in itertools.accumulate(shares[:-1])]:
        boundary = _find_last_boundary(read(middle, middle + SLICE_BYTES))
        if boundary is None:
            return [(0, size)]
        ends.append(middle + boundary[0])
        starts.append(middle + boundary[1])
    return list(zip(starts, [*ends, size], strict=True))


def decode_records(
    chunks: Iterable[bytes | memoryview],
    decode: Callable[[bytes], list[Record]],
    whole: Callable[[], bytes],
) -> Iterator[list[Record]]:
    """Decode a JSON array in slices; if one fails, decode the whole text to locate the error."""
    done = 0
    try:
        for records in _decode_slices(chunks, decode):
            yield records
            done += len(records)
        return
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    yield _decode_checked(decode, whole().removeprefix(b"\xef\xbb\xbf"))[done:]


def _decode_slices(
    chunks: Iterable[bytes | memoryview], decode: Callable[[bytes], list[Record]]
) -> Iterator[list[Record]]:
    """Decode slices; guess where each one ends, and count brackets after a wrong guess."""
    buffer = b""
    done = least = 0
    find_cut: Callable[[bytes], tuple[int, int] | None] = _find_last_boundary
    for chunk in chunks:
        if not buffer and not done:
            chunk = bytes(chunk).removeprefix(b"\xef\xbb\xbf").lstrip()
            if chunk[:1] == b"]":  # not an array, but would become one with the bracket added below
                raise msgspec.DecodeError("not an array")
            chunk = chunk.removeprefix(b"[")
        buffer += chunk
        if len(buffer) < least or not (cut := find_cut(buffer)):
            continue
        try:
            # A slice that ends inside a record or a string does not decode: a bracket or quote is open.
            records = _decode_checked(decode, _as_array(buffer, cut[0]))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            find_cut = _outer_boundary
            outer = find_cut(buffer)
            try:
                records = _decode_checked(
                    decode, b"[" + buffer if outer is None else _as_array(buffer, outer[0])
                )
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                if outer is not None or "truncated" not in str(error):
                    raise
            if outer is None:
                least = 2 * len(buffer)  # a long record that is still incomplete
                continue
            cut = outer
        yield records
        done += len(records)
        buffer, least = buffer[cut[1] :], 0
    yield _decode_checked(decode, b"[" + buffer)


def _as_array(text: bytes, end: int) -> bytes:
    return b"".join((b"[", memoryview(text)[:end], b"]"))


def _decode_checked(decode: Callable[[bytes], list[Record]], text: bytes) -> list[Record]:
    records = decode(text)
    check_utf8(text)
    return records


def check_utf8(text: bytes) -> None:
    """Raise ``UnicodeDecodeError`` if skipped text is not UTF-8."""
    if not text.isascii():
        decode = codecs.getincrementaldecoder("utf-8")().decode
        for start in range(0, len(text), SLICE_BYTES):  # in slices, to avoid a second copy of the text
            decode(text[start : start + SLICE_BYTES], final=start + SLICE_BYTES >= len(text))


def _find_last_boundary(text: bytes) -> tuple[int, int] | None:
    """Find the last ``}, {``; return the end of a record and the start of the next."""
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


def _outer_boundary(text: bytes) -> tuple[int, int] | None:
    """Find the last comma between two records by counting all brackets and quotes."""
    plain = re.sub(rb"\\.", b"__", text, flags=re.DOTALL) if b"\\" in text else text
    letters = np.frombuffer(plain, np.uint8)
    outside = np.cumsum(letters == ord('"'), dtype=np.int64) % 2 == 0
    opened = np.isin(letters, (ord("{"), ord("["))).astype(np.int64)
    opened -= np.isin(letters, (ord("}"), ord("]")))
    depth = np.cumsum(opened * outside)
    commas = np.flatnonzero((letters == ord(",")) & outside & (depth == 0))
    return (int(commas[-1]), int(commas[-1]) + 1) if len(commas) else None


_JSON_PATH = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "array": "an array",
    "object": "an object",
    "null": "null",
    "bool": "true or false",
}
_NAMES_OF_TYPES = {str: "str", int: "int", float: "float", list: "array", dict: "object", bool: "bool"}
_NAMES_OF_TYPES[type(None)] = "null"


def explain(
    error: Exception,
    path: Path,
    *,
    record: str,
    text: bytes,
    whole: tuple[str, str],
) -> FileFormatError:
    """Convert an error of msgspec to one that names the record and field, or the rule for the whole file."""
    # Start with rules for the whole file, for which msgspec does not name a record.
    if not text.strip():
        return FileFormatError("a JSON file", "hold JSON", got="an empty file", place=str(path))
    text_of_error = str(error)
    if isinstance(error, RecursionError):
        return FileFormatError("a JSON file", "not nest deeper", got="too many levels", place=str(path))
    if isinstance(error, UnicodeDecodeError):
        return _utf8_error(text, path)
    if "truncated" in text_of_error:
        return _truncated_error(path)
    if "malformed" in text_of_error:
        return _malformed_error(text_of_error, text, path)
    # Split the message of msgspec into rule and path; the path has the index of the record and the key.
    located = _JSON_PATH.search(text_of_error)
    json_path = located["path"] if located else ""
    rule = text_of_error[: located.start()] if located else text_of_error
    missing = re.match(r"Object missing required field `(\w+)`", rule)
    kinds = re.match(r"Expected `([^`]+)`, got `(\w+)`", rule)
    length = re.match(r"Expected `array` of length (\d+)(?:, got (\d+))?", rule)

    def is_wrong(value: Any) -> bool:
        if missing:
            return isinstance(value, dict) and missing[1] not in value
        if kinds:
            return _NAMES_OF_TYPES.get(type(value)) == kinds[2]
        return isinstance(value, list) and (not length or len(value) != int(length[1]))

    # msgspec leaves out some lengths, and the keys of objects that may have any. It reports a length before
    # it reads what is beyond, which may be NaN.
    found = None
    if "[...]" in json_path or (length and not length[2]):
        try:
            found = _first_wrong(_decoded_again(text), _parts_of(json_path), is_wrong)
        except (msgspec.MsgspecError, RecursionError) as other:
            if length and "malformed" in str(other):
                return _malformed_error(str(other), text, path)
    keys = [] if found is None else [shortened(key, 60) for key in found[0]]
    is_object = missing is not None or (kinds is not None and kinds[1].startswith("object"))
    field, where, number = _place(json_path, keys, record, path, is_object=is_object)
    article = "an" if record[0] in "aeiou" else "a"
    what = field or (whole[0] if number is None else f"{article} {record}")
    # A missing key.
    if missing:
        cause = "" if field else _cause_of_missing(record, missing[1], bool(number))
        if not cause and not field and whole[1] in ("a list", "a list of results"):
            cause = ask("file of another kind", path)
        return FileFormatError(what, f"have {missing[1]}", got="none", place=where, cause=cause)
    # A value of another type.
    if kinds:
        named = [kind.strip() for kind in kinds[1].split("|")]
        if {"int", "float"} <= {*named}:  # an id or a count, where 7.0 is accepted as 7
            named.remove("float")
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in named)
        wanted = wanted if number is not None or field else whole[1] or wanted
        return FileFormatError(what, f"be {wanted}", got=_KINDS.get(kinds[2], kinds[2]), place=where)
    # A list of another length, or a number too large for a float.
    if length:
        got = length[2] or ("another number" if found is None else f"{len(found[1]):,}")
        return FileFormatError(what, f"have {length[1]} numbers", got=got, place=where)
    if "out of range" in rule:
        return FileFormatError(what, "be finite", got="a number too large for a float", place=where)
    return FileFormatError(f"{where}: {what}: {rule}.")


def _place(
    json_path: str, keys: Sequence[str], record: str, path: Path, *, is_object: bool
) -> tuple[str, str, int | None]:
    """Return the field of an error, where it is, and the number of its record; None outside of records.

    ``keys`` are the keys at each ``[...]`` of the path. With ``is_object``, the value must be an object.
    """
    head, of_values, rest = json_path.partition("[...]")
    for key in keys[1:]:
        rest = rest.replace("[...]", f"[{key!r}]", 1)
    # Name the record by its index, or the value of an object by its key. Records below a key are objects;
    # other lists there hold values.
    index = re.search(r"\[(\d+)\]", head)
    below = json_path[index.end() :] if index else ""
    if index and not (index.start() == 0 or of_values or below[:1] == "." or (is_object and not below)):
        index = None
    if not (index or of_values):
        return json_path.lstrip("."), str(path), None
    number = int(index[1]) if index else 0
    field = below if index else rest
    where = f"{record} {number} of {path}" if index else f"{repr(keys[0]) if keys else 'a value'} of {path}"
    # A list in a list, or in an object: the inner one has the records.
    inner = re.match(r"\[(\d+)\]", field)
    if inner:
        outer = f"list {number} of {path}" if index else where
        field, where = field[inner.end() :], f"{record} {inner[1]} of {outer}"
    return field.lstrip("."), where, number


def kind_of(value: Any) -> str:
    """Return what JSON calls the kind of a value, such as ``an array``."""
    return _KINDS[_NAMES_OF_TYPES[type(value)]]


def _decoded_again(text: bytes) -> Any:
    """Return the value of a text, for a message; null if it is large."""
    return msgspec.json.decode(text if len(text) <= MOST_AGAIN else b"null")


def _parts_of(json_path: str) -> list[str | int | None]:
    """Split a path of msgspec, such as ``[3].bbox``; ``[...]``, any value of an object, becomes None."""
    parts = re.findall(r"\[(\d+)\]|\.([^.\[]+)|\[\.\.\.\]", json_path)
    return [int(index) if index else key or None for index, key in parts]


def _first_wrong(
    value: Any, parts: Sequence[str | int | None], is_wrong: Callable[[Any], bool]
) -> tuple[list[str], Any] | None:
    """Return the keys at each ``[...]`` and the first wrong value at a path; None if no value is wrong."""
    for at, part in enumerate(parts):
        if part is None:
            for key, inner in value.items() if isinstance(value, dict) else ():
                found = _first_wrong(inner, parts[at + 1 :], is_wrong)
                if found is not None:
                    return [key, *found[0]], found[1]
            return None
        try:
            value = value[part]
        except (LookupError, TypeError):
            return None
    return ([], value) if is_wrong(value) else None


def _cause_of_missing(record: str, field: str, after_first: bool) -> str:
    if record != "detection":
        return ""
    return {
        "score": "detection 0 has one: give every detection a score, or none"
        if after_first
        else "is this a ground-truth file?",
        "bbox": "only results without any bbox may have masks or keypoints instead",
    }.get(field, "")


def _truncated_error(path: Path) -> FileFormatError:
    return FileFormatError(
        "a JSON file",
        "be complete",
        got="an end of file in the middle of a value",
        place=str(path),
        cause="was the download or the write cut short?",
    )


def _utf8_error(text: bytes, path: Path) -> FileFormatError:
    cause = "UTF-16?" if text[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        got = f"the byte {text[error.start]:#04x} at byte {error.start}"
        return FileFormatError("a JSON file", "be UTF-8", got=got, place=str(path), cause=cause)
    return FileFormatError("a JSON file", "be UTF-8", got="other bytes", place=str(path))


def _malformed_error(error: str, text: bytes, path: Path) -> FileFormatError:
    # Python writes NaN and Infinity, which JSON does not allow: find them near the error, and name the key.
    position = re.search(r"byte (\d+)", error)
    start = int(position[1]) if position else 0
    for word in (b"-Infinity", b"Infinity", b"NaN"):
        begin = text.find(word, max(0, start - len(word)), start + len(word))
        if begin >= 0:
            key = re.findall(rb'"(\w+)"\s*:', text[max(0, begin - 200) : begin])
            return FileFormatError(
                key[-1].decode() if key else "a number",
                "be finite",
                got=word.decode(),
                place=f"{path}, byte {begin}",
                cause="a diverged model? JSON has no NaN or Infinity",
            )
    # Lines with an object each.
    if text[start - 1 : start] == b"{" and text[: start - 1].rstrip(b" \t\r\n").endswith(b"}"):
        got, cause = f"another one at byte {start - 1:,}", "a file with an object per line must end in .jsonl"
        return FileFormatError("a JSON file", "hold one value", got=got, place=str(path), cause=cause)
    # The text ends before a value is complete.
    if start >= len(text.rstrip()):
        return _truncated_error(path)
    # Binary data; otherwise show the text near the error.
    if b"\0" in text[:64] or text[:2] in (b"\x1f\x8b", b"PK"):
        kind = "compressed" if text[:2] in (b"\x1f\x8b", b"PK") else "binary or UTF-16"
        return FileFormatError("a JSON file", "be JSON text", got=f"{kind} data", place=str(path))
    near = text[max(0, start - 20) : start + 20].decode("utf-8", errors="replace")
    return FileFormatError("a JSON file", "be JSON", got=f"{near!r} near byte {start}", place=str(path))
