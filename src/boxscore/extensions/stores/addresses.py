"""Read files in object stores and on the web: URLs such as ``s3://bucket/key`` are used as paths.

Conventions
-----------
- URLs are shown without user name, password and query. Secrets go only to the store and, by pickling, to
  other processes.
- Files are read by range, or copied; nothing is written.
- ``http`` and ``https`` need no further package; pyarrow opens the stores that it supports, fsspec the
  others.
"""

from __future__ import annotations

import abc
import fnmatch
import functools
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn
from typing import Protocol as Protocol_
from urllib.parse import parse_qsl, quote, unquote

from boxscore._utils.given_paths import SECRETS, Several, VirtualPath
from boxscore._utils.records import NamedTuple
from boxscore.errors import FileFormatError, InputError, MissingDependencyError

_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/+(?:(?P<user>[^/@]*)@)?(?P<rest>.*)", re.DOTALL)

BY_ARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")
WEB = ("http", "https")
WITHOUT_PORTS = ("s3", "gs", "gcs", "abfs", "abfss")
WITHOUT_FOLDERS = ("gs", "gcs")
"""Stores in which pyarrow does not list folders that exist only as prefixes of keys."""
PATIENCE = 30
"""Seconds of retries if Google's store cannot be reached; the default is 15 minutes."""

NO_SECRETS = ("scheme", "region", "endpoint_override", "allow_bucket_creation", "allow_bucket_deletion")
"""Options after the ``?`` of pyarrow's URLs that messages may repeat."""

HEAD = 1 << 16
"""Bytes at the beginning of a file that identify its format."""

PIECE = 1 << 22
"""Bytes per copied chunk."""

ADVICE = (
    "are the name, credentials and region right? boxscore takes them from the environment, like the "
    "tools of the store"
)

_secrets: set[str] = set()


class Status(NamedTuple):
    """A store's answer for a URL."""

    size: int
    changed: float
    """Seconds since 1970; 0 if unknown."""
    is_folder: bool = False


class Address(VirtualPath):
    """A file or a folder in a store, as a path that can be read.

    Parameters
    ----------
    given : str
        ``scheme://[user[:password]@]place[?options]``.
    """

    given: str
    is_far = True

    def __new__(cls, given: str) -> Address:
        """Make a path from the part that may be shown."""
        return super().__new__(cls, _without_query(given))

    def __init__(self, given: str) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(_without_query(given))
        self.given = given
        _secrets.update(_secrets_in(given))

    def __str__(self) -> str:
        return _without_query(self.given)

    def __reduce__(self) -> tuple[Any, ...]:
        return Address, (self.given,)

    def __truediv__(self, name: Any) -> Address:
        place, mark, options = self.given.partition("?")
        return Address(f"{place.rstrip('/')}/{name}{mark}{options}")

    @property
    def parent(self) -> Path:  # type: ignore[override]
        """The parent, as a plain path that cannot be read."""
        return Path(str(self)).parent

    def absolute(self) -> Address:
        """Return the address."""
        return self

    # ------------------------------------------------------------ metadata

    @functools.cached_property
    def _store(self) -> _Store:
        return _Web(self) if self.scheme in WEB else _Arrow(self)

    @functools.cached_property
    def _status(self) -> Status | None:
        return self._store.status()

    @property
    def why_nothing(self) -> str:  # type: ignore[override]
        """Reason why nothing exists here, such as the answer of a web server."""
        return self._store.said or os.strerror(2)

    @property
    def scheme(self) -> str:
        """The scheme, before the colon."""
        return self.given.partition(":")[0].lower()

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return size and modification time, with device -1 and an inode number from the URL."""
        if self._status is None:
            raise FileNotFoundError(2, self.why_nothing, str(self))
        size, changed, is_folder = self._status
        mode = stat.S_IFDIR | 0o555 if is_folder else stat.S_IFREG | 0o444
        times = (changed, changed, changed)
        return os.stat_result((mode, hash(str(self)), -1, 1, 0, 0, size, *times))

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether a file or folder exists."""
        return self._status is not None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether a file exists."""
        return self._status is not None and not self._status.is_folder

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether a folder exists: some key has this prefix."""
        return self._status is not None and self._status.is_folder

    def iterdir(self) -> Iterator[Address]:  # type: ignore[override]
        """Yield the direct children of a folder."""
        for name, status in self._store.listed():
            inner = self / name
            vars(inner)["_status"] = status
            yield inner

    # ------------------------------------------------------------ reading

    @functools.cached_property
    def head(self) -> bytes:
        """Return the first bytes of a file, which identify its format; read once."""
        with self._store.file() as file:
            return bytes(file.read(HEAD))

    def open(self, mode: str = "r", *_: Any, **__: Any) -> Any:
        """Open a file to read bytes, by range."""
        if mode != "rb":
            raise InputError(
                f"{self}: cannot be written: boxscore reads from object stores but writes only local files."
            )
        return io.BufferedReader(self._store.file(), 1 << 16)

    def by_range(self) -> Any:
        """Open a file as Arrow's, reading only the requested ranges."""
        return self._store.file()

    def copy_to(self, file: IO[bytes]) -> None:
        """Write all bytes to a local file."""
        count = 0
        with self._store.stream() as stream:
            while piece := _read_chunk(self, stream):
                file.write(piece)
                count += len(piece)
        size = self.stat().st_size
        if size not in (0, count):
            _refuse_cut_short(self, count, size)


def address_of(text: str) -> Address:
    """Return a URL; if it was parsed as a path, restore its second slash."""
    given = re.sub(r"^([^:]+):/(?=[^/])", r"\1://", text)
    if _is_ambiguous(given):
        raise InputError(
            f"the name and password in {given.partition(':')[0]}://...",
            "not contain / ? # @ : unescaped",
            got="one of them",
            cause="write / as %2F, ? as %3F, # as %23, @ as %40 and : as %3A, or leave both out, for the "
            "environment to give",
        )
    return Address(given)


def all_at(text: str) -> Path:
    """Return a URL, or all files of a store that match a pattern."""
    address = address_of(text)
    place = text.partition("?")[0].partition("://")[2].partition("/")[2]
    return Several(str(address), _matching(address)) if any(sign in place for sign in "*[") else address


def _matching(address: Address) -> list[Address]:
    """Return the sorted files of a store that match a pattern; ``*`` does not match slashes."""
    # Options of a URL are not part of the pattern.
    place, mark, options = address.given.partition("?")
    scheme, _, rest = place.partition("://")
    root, *patterns = rest.split("/")
    found = [Address(f"{scheme}://{root}{mark}{options}")]
    # Go down folder by folder: stores lack a glob, so list only folders that match.
    for number, pattern in enumerate(patterns):
        if not any(sign in pattern for sign in "*["):
            found = [above / pattern for above in found]
            continue
        last = number == len(patterns) - 1
        found = [
            inner
            for above in found
            for inner in above.iterdir()
            if fnmatch.fnmatchcase(inner.name, pattern) and (last or inner.is_dir())
        ]
    return [one for one in found if one.exists()]


def _is_ambiguous(given: str) -> bool:
    """Return whether a user name or password may be parsed wrongly, so that a secret becomes the host."""
    scheme, _, rest = given.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, host_alone = host.rpartition("@")
    behind = rest[len(host) :]
    if (behind[:1] in ("?", "#") and "@" in behind) or (at and not host_alone):
        # Before any slash.
        return True
    if "@" in user or user.count(":") > 1:
        return True
    with_port = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?", host_alone) is not None
    return not with_port or (":" in host_alone and scheme.lower() in WITHOUT_PORTS)


def remember_secrets(words: Sequence[str]) -> None:
    """Register secrets in some words, so that messages do not repeat them."""
    for word in words:
        match = _ADDRESS.search(word) if "://" in word else None
        if match is not None:
            _secrets.update(_secrets_in(match[0]))
            if _is_ambiguous(match[0]):
                _secrets.add(match[0].partition("://")[2])


def without_secrets(text: str) -> str:
    """Return a message without the secrets of URLs and the environment."""
    of_machine = filter(None, (os.environ.get(name) for name in SECRETS))
    for secret in sorted({*_secrets, *of_machine}, key=len, reverse=True):
        for written in (secret, repr(secret)[1:-1]):
            text = text.replace(written, "...")
    return text


def _without_query(given: str) -> str:
    match = _ADDRESS.fullmatch(given)
    assert match is not None
    user = match["user"]
    kept = f"{user.partition(':')[0]}@" if user and match["scheme"].lower().startswith("abfs") else ""
    return f"{match['scheme']}://{kept}{match['rest'].partition('?')[0]}"


def _secrets_in(given: str) -> Iterator[str]:
    match = _ADDRESS.fullmatch(given)
    assert match is not None
    name, _, password = (match["user"] or "").partition(":")
    query = match["rest"].partition("?")[2]
    values = [value for key, value in parse_qsl(query) if key not in NO_SECRETS]
    written = [pair for pair in query.split("&") if pair.partition("=")[0] not in NO_SECRETS]
    is_shown = match["scheme"].lower().startswith("abfs")
    if match["user"] and not is_shown:
        yield f"{match['user']}@"
    if query:
        yield f"?{query}"
    for secret in (password, name if password and not is_shown else "", *values, *written):
        for text in {secret, unquote(secret), secret.partition("=")[2] or secret}:
            if len(text) > 3:
                yield text


# ---------------------------------------------------------------- stores


class _Store(Protocol_):
    """The location of a URL."""

    said: str
    """The server's reason why nothing exists; empty if it gave none."""

    def status(self) -> Status | None:
        """Return the status of the file or folder; None if it does not exist."""
        ...

    def listed(self) -> list[tuple[str, Status]]:
        """List the direct children of a folder, sorted by name."""
        ...

    def file(self) -> Any:
        """Open a file for reading ranges, as Arrow's if pyarrow opens it."""
        ...

    def stream(self) -> Any:
        """Open a file for reading once from the beginning."""
        ...


def _named_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a client's exceptions to an error that names the URL, without secrets."""

    @functools.wraps(function)
    def named(store: Any, *arguments: Any) -> Any:
        try:
            return function(store, *arguments)
        except InputError:
            raise
        # Each client has its own exceptions.
        except Exception as error:
            raise _unreadable(store.address, error) from None

    return named


def _unreadable(address: Address, error: Exception) -> FileFormatError:
    reason = without_secrets(str(error).partition("\n")[0])[:200].rstrip(".") or type(error).__name__
    advice = "" if address.scheme in WEB else f"; {ADVICE}"
    return FileFormatError(f"{address}: cannot be read: {reason}{advice}.")


def _read_chunk(address: Address, stream: Any) -> bytes:
    """Read the next chunk of a stream."""
    try:
        return bytes(stream.read(PIECE))
    # Each client has its own exceptions.
    except Exception as error:
        raise _unreadable(address, error) from None


def _refuse_cut_short(address: Address, count: int, size: int) -> NoReturn:
    got = f"{count:,} of {size:,} bytes"
    cause = "the connection was cut, or the file replaced meanwhile: try again"
    raise FileFormatError(str(address), "be sent whole", got=got, cause=cause)


class _Arrow:
    """A store that pyarrow opens, or fsspec for it."""

    said = ""

    def __init__(self, address: Address) -> None:
        self.address = address

    @functools.cached_property
    def _place(self) -> tuple[Any, str]:
        return _file_system(self.address.given, os.getpid())

    @_named_errors
    def status(self) -> Status | None:
        system, place = self._place
        return _status_of(system.get_file_info(place))

    @_named_errors
    def listed(self) -> list[tuple[str, Status]]:
        from pyarrow.fs import FileSelector

        system, place = self._place
        below = self.address.scheme in WITHOUT_FOLDERS
        found: dict[str, Status | None] = {}
        for info in system.get_file_info(FileSelector(place, recursive=below)):
            name, slash, _ = info.path.removeprefix(place.rstrip("/")).strip("/").partition("/")
            if slash:
                found.setdefault(name, Status(0, 0.0, is_folder=True))
            elif name:
                found[name] = _status_of(info)
        return [(name, status) for name, status in sorted(found.items()) if status is not None]

    @_named_errors
    def file(self) -> Any:
        system, place = self._place
        return system.open_input_file(place)

    @_named_errors
    def stream(self) -> Any:
        system, place = self._place
        return system.open_input_stream(place, compression=None)


def _status_of(info: Any) -> Status | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    changed = 0.0 if info.mtime_ns is None else info.mtime_ns / 1e9
    return Status(info.size or 0, changed, info.type == FileType.Directory)


@functools.lru_cache(maxsize=64)
def _file_system(given: str, process: int) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it; forked processes make their own."""
    # pyarrow has its own clients for most stores.
    scheme, _, rest = given.partition("://")
    try:
        from pyarrow import fs
    except ImportError:
        raise MissingDependencyError(f"{scheme}:// needs pyarrow: pip install 'boxscore[stores]'.") from None
    if scheme.lower() in BY_ARROW:
        # Google's client would retry for 15 minutes: set a limit unless the URL has one.
        place, mark, options = rest.partition("?")
        user, at, key = place.rpartition("@")
        if scheme.lower() in ("gs", "gcs") and "retry_limit_seconds" not in options:
            mark, options = "?", f"{options}{'&' * bool(options)}retry_limit_seconds={PATIENCE}"
        # Quote the key, because it may contain any character.
        found: tuple[Any, str] = fs.FileSystem.from_uri(
            f"{scheme}://{user}{at}{quote(key, safe='/:')}{mark}{options}"
        )
        if scheme.lower() in ("abfs", "abfss"):
            return _with_key(found[0], unquote(user.partition(":")[2])), found[1]
        return found
    # Everything else uses fsspec.
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise MissingDependencyError(f"{scheme}:// needs fsspec: pip install 'boxscore[stores]'.") from None
    system, place = fsspec.core.url_to_fs(given)
    return fs.PyFileSystem(fs.FSSpecHandler(system)), place


def _with_key(system: Any, password: str) -> Any:
    """Set the account key or shared access signature of an Azure store, which pyarrow ignores in a URL.

    They come from the URL, or from the variables that Azure's own tools read.
    """
    _, (options,) = system.__reduce__()
    chosen = {
        "account_key": password or os.environ.get("AZURE_STORAGE_KEY"),
        "sas_token": os.environ.get("AZURE_STORAGE_SAS_TOKEN"),
    }
    given = next(((name, value) for name, value in chosen.items() if value and name in options), None)
    if given is None:
        return system
    known = {name: value for name, value in options.items() if value and name not in chosen}
    return type(system)(**known, **dict([given]))


# ---------------------------------------------------------------- the web


class _Web:
    """A file on the web that is read by range."""

    PAUSES = (0.2, 1.0)
    """Seconds before a request is retried."""
    SECONDS = 60

    def __init__(self, address: Address) -> None:
        self.address, self.said = address, ""
        match = _ADDRESS.fullmatch(address.given)
        assert match is not None
        self._url = f"{match['scheme']}://{match['rest']}"
        self._user = unquote(match["user"] or "")

    def _answer(self, **headers: str) -> Any:
        """Retry a request if the server or the connection fails; the caller reads the answer."""
        import base64
        import time
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        request = Request(self._url, headers=headers)
        # Do not send it to redirect targets.
        if self._user:
            word = base64.b64encode(self._user.encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {word}")
        for seconds in self.PAUSES:
            try:
                return urlopen(request, timeout=self.SECONDS)
            except HTTPError as error:
                if error.code < 500:
                    raise
            except (URLError, ConnectionError, TimeoutError):
                pass
            time.sleep(seconds)
        return urlopen(request, timeout=self.SECONDS)

    @_named_errors
    def status(self) -> Status | None:
        from email.utils import parsedate_to_datetime
        from urllib.error import HTTPError

        try:
            with self._answer(Range="bytes=0-0") as answer:
                said = answer.headers
                total = said.get("Content-Range", "").rpartition("/")[2] or said.get("Content-Length")
        except HTTPError as error:
            if error.code in (404, 410):
                self.said = without_secrets(str(error).partition("\n")[0])[:200].rstrip(".")
                return None
            # No first byte: an empty file.
            if error.code == 416:
                return Status(0, 0.0)
            raise
        date = said.get("Last-Modified")
        size = int(total) if total and total.isdecimal() else 0
        return Status(size, 0.0 if date is None else parsedate_to_datetime(date).timestamp())

    def listed(self) -> list[tuple[str, Status]]:
        """Return nothing: the web has only files."""
        return []

    def file(self) -> Any:
        """Open the file for reading ranges."""
        reader = _WebFile(self)
        try:
            import pyarrow
        except ImportError:
            return reader
        return pyarrow.PythonFile(reader, mode="r")

    @_named_errors
    def stream(self) -> Any:
        return self._answer()

    @_named_errors
    def read(self, start: int, count: int) -> bytes:
        """Read a range; reject a server that sends the whole file instead."""
        with self._answer(Range=f"bytes={start}-{start + count - 1}") as answer:
            if answer.status != 206 and start:
                rule = "be on a server that sends ranges, to be read in parts"
                cause = "copy it here first"
                raise FileFormatError(str(self.address), rule, got="all of the file", cause=cause)
            content = bytes(answer.read(count))
        if len(content) < count:
            _refuse_cut_short(self.address, len(content), count)
        return content


class RangeFile(io.RawIOBase):
    """A file of known size that is read range by range.

    Parameters
    ----------
    size : int
    """

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    @abc.abstractmethod
    def content(self, start: int, count: int) -> bytes:
        """Return a range of at least 1 byte."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a position."""
        self._at = (0, self._at, self._size)[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        left = max(self._size - self._at, 0)
        count = left if size is None or size < 0 else min(size, left)
        content = self.content(self._at, count) if count else b""
        self._at += len(content)
        return content

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes."""
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _WebFile(RangeFile):
    """A position in a file on the web."""

    def __init__(self, web: _Web) -> None:
        super().__init__(web.address.stat().st_size)
        self._web = web

    def content(self, start: int, count: int) -> bytes:
        content: bytes = self._web.read(start, count)
        return content
