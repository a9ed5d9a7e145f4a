"""A server of files on this machine that sends ranges, and notes what it was asked for."""

from __future__ import annotations

import base64
import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit


class Asked(NamedTuple):
    """A request: its path with the query, its range, and who asked."""

    path: str
    range: str | None
    user: str | None


class WebServer:
    """What is served, how, and what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, list[Asked]()
        self.sends_ranges, self.failures, self.user = True, 0, ""
        self.spoil: Callable[[int, bytes, dict[str, str]], tuple[int, bytes, dict[str, str]]] | None = None
        self.address = ""

    def sent(self, handler: BaseHTTPRequestHandler) -> tuple[int, bytes, dict[str, str]]:
        """Return status, content and headers of the answer."""
        user = handler.headers.get("Authorization")
        user = None if user is None else base64.b64decode(user.removeprefix("Basic ")).decode()
        self.asked.append(Asked(handler.path, handler.headers.get("Range"), user))
        if self.failures:
            self.failures -= 1
            return 503, b"", {}
        if self.user and user != self.user:
            return 401, b"", {}
        file = self.folder / unquote(urlsplit(handler.path).path).lstrip("/")
        if not file.is_file():
            return 404, b"", {}
        content = file.read_bytes()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers.get("Range", ""))
        if wanted is None or not self.sends_ranges:
            return 200, content, {}
        first, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        if first >= len(content):
            return 416, b"", {}
        return 206, content[first : last + 1], {"Content-Range": f"bytes {first}-{last}/{len(content)}"}


@contextlib.contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    """Serve a folder for as long as the block lasts."""
    server = WebServer(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content, headers = server.sent(self)
            if server.spoil is not None:
                status, content, headers = server.spoil(status, content, headers)
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # whoever asked may have left
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.address = f"http://127.0.0.1:{listening.server_address[1]}"
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
