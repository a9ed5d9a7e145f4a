"""Serve the report's page on this machine, with every image of the data set.

Goal
----
The page of a report holds only some images. The served page shows all of them, filtered by class, kind of
mistake, score, IoU and size, with pictures from the image folder.

Conventions
-----------
- Only this machine is served: the socket listens at 127.0.0.1, and ``Host`` must name it, so that another
  site's name cannot lead here. Every path starts with a token that only the user who started the server
  knows.
- The server is read only: it answers only GET and HEAD, and rejects requests from other origins.
- A path identifies an image by its number in the data set, never by file name. Only images inside the image
  folder are read, after resolving links.
- Answers never contain a traceback; a rejected request gets a status and a line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import re
import secrets
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qs, quote

import numpy as np

from boxscore._utils import checks
from boxscore._version import __version__
from boxscore.errors import BoxscoreError, InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.pages.gallery import Gallery
from boxscore.extensions.pages.html import page_policy, plain, render_page
from boxscore.extensions.pages.index import ORDERS, Filter, MistakeIndex, Order
from boxscore.extensions.pages.mistakes import KINDS
from boxscore.extensions.pages.pictures import LONGEST_SIDE, find_picture, read_picture, require_pillow
from boxscore.extensions.pages.view import ReportOptions, report_view
from boxscore.matching.outcomes import OUTCOMES

ADDRESS = "127.0.0.1"
PAGE = 24
"""Images per answer."""

LONGEST_PATH = 2000
"""Maximum characters of a path with its query."""

MOST_FIELDS = 24
MOST_REQUESTS, MOST_PICTURES = 64, 2
"""Maximum concurrent requests, and pictures shrunk at a time."""

SMALL_PICTURES = 256
"""Number of cached small pictures, about 40 kB each."""

BLOCK = 1 << 16

SECONDS = 30
"""Timeout in seconds of an idle connection, and of the head of a request, however slowly it arrives."""

SHOWN_AS_THEY_ARE = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
    ".gif": "image/gif",
}
OTHER_PICTURES = (".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".jp2")
"""Extensions of pictures that not all browsers show: sent as JPEG."""

LARGE_SIDE = 2048

NO_FRAMES = "frame-ancestors 'none'"

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_PICTURE = re.compile(r"picture/(\d{1,9})")
_DETECTOR = re.compile(r"detector-(\d{1,4})(/images)?")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class RefusedError(Exception):
    """A request that is answered by a status and a line."""

    def __init__(self, status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, dict(headers or {})


class Answer(NamedTuple):
    """The body of an answer: text or bytes, or a file."""

    kind: str
    content: bytes = b""
    file: Path | None = None
    headers: Mapping[str, str] = {}
    status: HTTPStatus = HTTPStatus.OK


class Detector:
    """One served evaluation: its page, and its mistakes as columns."""

    def __init__(self, name: str, evaluation: Evaluation) -> None:
        self.name, self.evaluation = name, evaluation
        self._making = threading.Lock()
        self._page: bytes | None = None
        self.gallery = Gallery(evaluation, score_threshold=evaluation.operating_score)
        self.index = MistakeIndex(self.gallery)

    def page(self, make: Callable[[], bytes]) -> bytes:
        """Return the page, rendered on the first request."""
        with self._making:
            if self._page is None:
                self._page = make()
            return self._page


class Site:
    """Answers requests by path, independent of sockets.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Evaluations by detector name, with one ground truth.
    options : ReportOptions, optional
        Options of the pages; ``image_folder`` contains the pictures.

    Raises
    ------
    InputError
        When the image folder does not exist.
    """

    def __init__(self, evaluations: Mapping[str, Evaluation], options: ReportOptions | None = None) -> None:
        options = options or ReportOptions()
        folder = None if options.image_folder is None else Path(options.image_folder)
        if folder is not None:
            require_pillow()
            if not folder.is_dir():
                raise InputError("the image folder", "be a folder", got=repr(str(folder)))
        self._folder = folder
        self._options = dataclasses.replace(options, image_folder=None)
        self.detectors = [Detector(name, result) for name, result in evaluations.items()]
        self._has_picture: dict[int, bool] = {}
        self._small: OrderedDict[int, bytes | None] = OrderedDict()
        self._holding, self._shrinking = threading.Lock(), threading.Semaphore(MOST_PICTURES)

    def answer(self, path: str, query: str) -> Answer:
        """Answer a path after the token, without its first slash.

        Raises
        ------
        RefusedError
        """
        # There are three kinds of requests: a picture, a list of images, the page itself.
        if path == "":
            path = "detector-1"
        if match := _PICTURE.fullmatch(path):
            return self._picture(int(match[1]), small=query == "small")
        if match := _DETECTOR.fullmatch(path):
            number = int(match[1]) - 1
            if 0 <= number < len(self.detectors):
                detector = self.detectors[number]
                if match[2]:
                    return self._images(detector, query)
                return Answer(
                    "text/html; charset=utf-8",
                    self.page(number),
                    headers={"Content-Security-Policy": f"{page_policy(live=True)}; {NO_FRAMES}"},
                )
        raise RefusedError(HTTPStatus.NOT_FOUND, "this page does not exist")

    # ------------------------------------------------------------ pages

    def page(self, number: int) -> bytes:
        """Return the page of a detector; rendered once."""
        detector = self.detectors[number]
        return detector.page(lambda: self._render(number).encode("utf-8", "backslashreplace"))

    def _render(self, number: int) -> str:
        # Render the page of a report without its gallery: the browser requests images.
        detector = self.detectors[number]
        several = len(self.detectors) > 1
        title = detector.name if several and not self._options.title else self._options.title
        view = report_view(detector.evaluation, options=dataclasses.replace(self._options, title=title))
        rows = [int(row) for row in view["image_rows"]]
        kinds, classes = detector.index.tallies()
        # Pictures are URLs here, not part of the page.
        view["pictures"] = {
            str(place): address for place, row in enumerate(rows) if (address := self._address(row))
        }
        # Give the script the filters and their counts.
        view["live"] = {
            "images": f"detector-{number + 1}/images",
            "count": len(detector.index.counts),
            "with_pictures": self._folder is not None,
            "kinds": list(kinds.items()),
            "classes": [[k, count] for k, count in enumerate(classes.tolist()) if count],
            "sizes": detector.index.sizes,
            "page": PAGE,
        }
        if several:
            names = [one.name for one in self.detectors]
            view["links"] = [(f"detector-{place}", name) for place, name in enumerate(names, start=1)]
            view["here"] = f"detector-{number + 1}"
        return render_page(view)

    # ------------------------------------------------------------ images and their mistakes

    def _images(self, detector: Detector, query: str) -> Answer:
        # Filter all mistakes, then make records of only one page.
        asked, order, start = _read_query(query, detector)
        chosen = detector.index.chosen(asked, order)
        shown = chosen.images[start : start + PAGE].tolist()
        # Highlight boxes that pass the filter.
        lit: list[list[int]] = [[]] * len(shown)
        if asked.of_mistakes or order == "confident":
            lit = detector.index.boxes(chosen, shown)
        items = [
            {
                "row": row,
                "record": _with_plain_names(detector.gallery.record(row)),
                "counts": detector.index.counts[row].tolist(),
                "lit": marked,
                "picture": self._address(row),
            }
            for row, marked in zip(shown, lit, strict=True)
        ]
        value = {
            "images": len(chosen.images),
            "mistakes": chosen.mistakes,
            "filtered": asked.of_mistakes,
            "start": start,
            "items": items,
        }
        return Answer("application/json", json.dumps(value, separators=(",", ":"), allow_nan=False).encode())

    # ------------------------------------------------------------ pictures

    def _address(self, row: int) -> str | None:
        """Return the URL of an image's picture; None without a file."""
        # Look it up once, because several names are tried.
        if row not in self._has_picture:
            self._has_picture[row] = self._file(row) is not None
        return f"picture/{row}?small" if self._has_picture[row] else None

    def _file(self, row: int) -> Path | None:
        if self._folder is None or not 0 <= row < len(self.detectors[0].evaluation.images):
            return None
        path = find_picture(self.detectors[0].evaluation, row, self._folder)
        if path is None or path.suffix.lower() not in (*SHOWN_AS_THEY_ARE, *OTHER_PICTURES):
            return None
        return path

    def _picture(self, row: int, *, small: bool) -> Answer:
        path = self._file(row)
        if path is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "this picture does not exist")
        kind = SHOWN_AS_THEY_ARE.get(path.suffix.lower())
        if kind is not None and not small:
            return Answer(kind, file=path, headers=_KEPT)
        content = self._shrink(path, LONGEST_SIDE if small else LARGE_SIDE, row if small else None)
        # A blank frame, which browsers accept without an error.
        if content is None:
            return Answer("", status=HTTPStatus.NO_CONTENT)
        return Answer("image/jpeg", content, headers=_KEPT)

    def _shrink(self, path: Path, longest: int, held_as: int | None) -> bytes | None:
        """Return a picture as a small JPEG; None if it cannot be read."""
        # Cache small pictures by number, and evict the least recently used one.
        if held_as is not None:
            with self._holding:
                if held_as in self._small:
                    self._small.move_to_end(held_as)
                    return self._small[held_as]
        # Shrink one picture at a time: several large ones would fill the memory.
        content = None
        with self._shrinking, contextlib.suppress(InputError, OSError, MemoryError):
            # A picture that cannot be read is None, and is not tried again.
            picture, _ = read_picture(path, longest)
            picture.thumbnail((longest, longest))
            output = io.BytesIO()
            picture.save(output, "JPEG", quality=80)
            content = output.getvalue()
        if held_as is not None:
            with self._holding:
                self._small[held_as] = content
                while len(self._small) > SMALL_PICTURES:
                    self._small.popitem(last=False)
        return content


def _with_plain_names(record: dict[str, Any]) -> dict[str, Any]:
    names = {key: plain(record[key]) for key in ("id", "file") if record[key] is not None}
    return {**record, **names}


_KEPT = {"Cache-Control": "private, max-age=600"}


def _read_query(query: str, detector: Detector) -> tuple[Filter, Order, int]:
    """Parse the filter of a request; reject an invalid one."""
    # Limit, look up or parse everything from outside before using it.
    try:
        fields = parse_qs(query, strict_parsing=bool(query), max_num_fields=MOST_FIELDS)
    except ValueError:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the query is not valid") from None

    def text(name: str) -> str:
        return fields.get(name, [""])[-1]

    # Each kind of value has one check; a missing one is None.
    def whole(name: str, below: int) -> int | None:
        if not text(name):
            return None
        if not (text(name).isascii() and text(name).isdecimal() and int(text(name)) < below):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"unknown {name}")
        return int(text(name))

    def place(name: str, known: Sequence[str]) -> int | None:
        if not text(name):
            return None
        if text(name) not in known:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"unknown {name}")
        return known.index(text(name))

    # Reject NaN and infinity.
    def number(name: str, missing: float) -> float:
        if not text(name):
            return missing
        with contextlib.suppress(ValueError):
            value = float(text(name))
            if np.isfinite(value):
                return value
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} must be a number")

    # Outcomes are given by name, and converted to positions.
    hidden = []
    for name in fields.get("hide", []):
        if name not in OUTCOMES:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "unknown value of hide")
        hidden.append(OUTCOMES.index(name))
    # A missing field gets the value that accepts everything.
    asked = Filter(
        category=whole("class", len(detector.evaluation.ground_truth.categories)),
        kind=place("kind", KINDS),
        score_from=number("from", -np.inf),
        score_to=number("to", np.inf),
        iou_from=number("iou_from", -np.inf),
        iou_to=number("iou_to", np.inf),
        size=place("size", detector.index.sizes),
        image=text("image").strip().lower(),
        hidden=tuple(hidden),
    )
    order = ORDERS[place("order", ORDERS) or 0]
    return asked, order, whole("start", 10**9) or 0


# ---------------------------------------------------------------- HTTP


class Server(ThreadingHTTPServer):
    """Serves a site at 127.0.0.1 under a token, read only.

    Parameters
    ----------
    site : Site
    port : int, default 0
        0 selects any free port.

    Raises
    ------
    InputError
        When the port is in use or not permitted.
    """

    daemon_threads, block_on_close, allow_reuse_address = True, False, os.name == "posix"

    def __init__(self, site: Site, *, port: int = 0) -> None:
        checks.whole_number(port, 0, name="port", high=65535)
        self.site, self.token = site, secrets.token_urlsafe(24)
        self._free = threading.BoundedSemaphore(MOST_REQUESTS)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            cause = "omit --port to use any free port"
            raise InputError("the port", "be free", got=f"{port}: {error.strerror}", cause=cause) from None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Allowed values of ``Host``."""
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        """URL of the first page."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless too many requests are running."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then release the slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the error: a browser that disconnects is normal."""


class _Handler(BaseHTTPRequestHandler):
    """Checks a request, and sends the site's answer."""

    server: Server
    protocol_version, server_version, sys_version = "HTTP/1.1", f"boxscore/{__version__}", ""
    timeout = SECONDS

    def handle_one_request(self) -> None:
        """Answer a request, unless its head takes too long; ``timeout`` only bounds each read."""
        self._deadline = threading.Timer(self.timeout, self._hang_up)
        self._deadline.daemon = True
        self._deadline.start()
        try:
            super().handle_one_request()
        finally:
            self._deadline.cancel()

    def parse_request(self) -> bool:
        """Parse the head of a request; the answer may take longer."""
        is_valid = super().parse_request()
        self._deadline.cancel()
        return is_valid

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        self._respond()

    def do_HEAD(self) -> None:
        self._respond()

    def __getattr__(self, name: str) -> Any:
        """Reject every other method in the same way."""
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def log_message(self, *_: Any) -> None:
        """Log nothing, because paths contain the token."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer errors of http.server like all other rejections."""
        del message, explain
        status = HTTPStatus(code)
        self.close_connection = True
        self._send(_line(status, status.phrase.lower()))

    def _refuse_method(self) -> None:
        # The body of the request is not read.
        self.close_connection = True
        allowed = {"Allow": "GET, HEAD"}
        self._send(_line(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are supported", allowed))

    def _respond(self) -> None:
        try:
            answer = self._answer()
        except RefusedError as refused:
            answer = _line(refused.status, refused.text, refused.headers)
        except (BoxscoreError, OSError, MemoryError, ValueError):
            answer = _line(HTTPStatus.INTERNAL_SERVER_ERROR, "this page cannot be shown")
        # The browser has disconnected.
        with contextlib.suppress(OSError):
            self._send(answer)

    def _answer(self) -> Answer:
        # Keep the data from pages of other sites: check host, origin and site.
        if len(self.path) > LONGEST_PATH:
            raise RefusedError(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long")
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            raise RefusedError(HTTPStatus.FORBIDDEN, "this host is not served")
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        if origin is not None and origin not in [f"http://{host}" for host in self.server.hosts]:
            raise RefusedError(HTTPStatus.FORBIDDEN, "other origins are not served")
        if site not in ("none", "same-origin") and self.headers.get("Sec-Fetch-Mode") != "navigate":
            raise RefusedError(HTTPStatus.FORBIDDEN, "other sites are not served")
        # Compare the token in constant time, so that it cannot be guessed letter by letter.
        path, _, query = self.path.partition("?")
        _, token, *rest = (*path.split("/", 2), "")
        if not secrets.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "the address needs the token that boxscore view printed")
        if path.count("/") < 2:
            raise RefusedError(
                HTTPStatus.FOUND, "this address needs a slash at the end", {"Location": f"/{quote(token)}/"}
            )
        return self.server.site.answer(rest[0], query)

    def _send(self, answer: Answer) -> None:
        # Send a file from disk, in part if the browser requests a range.
        with contextlib.ExitStack() as stack:
            body: BinaryIO = io.BytesIO(answer.content)
            headers, status, size = dict(answer.headers), answer.status, len(answer.content)
            if answer.file is not None:
                body = stack.enter_context(answer.file.open("rb"))
                status, size, more = self._part(body)
                headers |= more
            # The default headers forbid everything, including caching.
            self.send_response_only(status)
            policy = {"Content-Security-Policy": f"default-src 'none'; {NO_FRAMES}"}
            headers = {**_HEADERS, **policy, "Cache-Control": "no-store", **headers}
            if answer.kind:
                headers["Content-Type"] = answer.kind
            if status != HTTPStatus.NO_CONTENT:
                headers["Content-Length"] = str(size)
            if self.close_connection:
                headers["Connection"] = "close"
            # HEAD gets all headers and no body.
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            # Send block by block, so that a large file is never in memory.
            while size > 0 and (block := body.read(min(size, BLOCK))):
                self.wfile.write(block)
                size -= len(block)

    def _part(self, file: BinaryIO) -> tuple[HTTPStatus, int, dict[str, str]]:
        """Seek to the requested range; return the status, the number of bytes, and headers."""
        whole = os.fstat(file.fileno()).st_size
        headers = {"Accept-Ranges": "bytes"}
        match = _RANGE.fullmatch(self.headers.get("Range", ""))
        if match is None or match.groups() == ("", ""):
            return HTTPStatus.OK, whole, headers
        low, high = match.groups()
        first = int(low) if low else max(whole - int(high), 0)
        last = min(int(high), whole - 1) if low and high else whole - 1
        if first > last:
            headers["Content-Range"] = f"bytes */{whole}"
            return HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, headers
        headers["Content-Range"] = f"bytes {first}-{last}/{whole}"
        file.seek(first)
        return HTTPStatus.PARTIAL_CONTENT, last - first + 1, headers


def _line(status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer("text/plain; charset=utf-8", f"{text}\n".encode(), headers=headers or {}, status=status)
