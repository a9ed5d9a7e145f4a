"""The server behind ``boxscore view``: what it answers, and what it refuses."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import boxscore
from boxscore.extensions.pages.server import LONGEST_PATH, MOST_REQUESTS, PAGE, Server, Site, _Handler
from boxscore.reports import ReportOptions
from support.evaluations import HOSTILE, evaluation, hostile_evaluation, shapes
from support.samples import SHAPES

Image = pytest.importorskip("PIL.Image")

NOT_A_PAGE = "default-src 'none'; frame-ancestors 'none'"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks a server as anything could that reaches its port."""

    def __init__(self, server: Server) -> None:
        self.server, self.port, self.token = server, server.server_port, server.token

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """Ask for a path behind the token."""
        return self.raw(f"/{self.token if token is None else token}/{path}", method=method, headers=headers)

    def raw(self, target: str, *, method: str = "GET", headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": f"127.0.0.1:{self.port}", **(headers or {})}.items():
                connection.putheader(name, value)
            connection.endheaders()
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())

    def bytes(self, sent: bytes) -> bytes:
        """Send bytes, and read until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            read = b""
            while block := connection.recv(1 << 16):
                read += block
            return read


@contextlib.contextmanager
def served(
    *results: boxscore.Evaluation, folder: Path | None = None, names: tuple[str, ...] = ("a", "b", "c")
) -> Iterator[Client]:
    site = Site(
        dict(zip(names, results, strict=False)), ReportOptions(date="", image_folder=folder, resamples=0)
    )
    with Server(site) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield Client(server)
        finally:
            server.shutdown()
            thread.join(10)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with served(shapes(), folder=SHAPES / "images") as made:
        yield made


# ---------------------------------------------------------------- what it shows


def test_the_page_is_the_report_s(client: Client) -> None:
    reply = client.ask("")
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = reply.body.decode()
    assert '<section id="gallery"' in page
    assert '<section id="analysis"' in page
    assert "served by boxscore view" in page
    assert "data:image/jpeg" not in page
    assert client.ask("detector-1").body == reply.body


def test_all_images_come_page_by_page(client: Client) -> None:
    first = client.ask("detector-1/images").json
    assert (first["images"], first["start"], first["filtered"]) == (24, 0, False)
    assert len(first["items"]) == min(PAGE, 24)
    one = first["items"][0]
    assert one["record"]["boxes"]
    assert one["lit"]
    assert client.ask(one["picture"]).headers["content-type"] == "image/jpeg"
    last = client.ask("detector-1/images?start=23").json
    assert [item["row"] for item in last["items"]] == [first["items"][23]["row"]]
    assert client.ask("detector-1/images?start=500").json["items"] == []


def test_a_filter_is_answered(client: Client) -> None:
    answer = client.ask("detector-1/images?class=0&kind=classification&from=0.6&iou_from=.5&size=medium").json
    assert answer["filtered"] is True
    assert 0 < answer["images"] < 24
    for item in answer["items"]:
        boxes = [item["record"]["boxes"][at] for at in item["lit"]]
        assert boxes
        assert all(0 in (box[4], box[9]) and box[6] >= 0.6 for box in boxes)
    only = client.ask("detector-1/images?image=000000000206").json
    assert only["images"] == 1
    without = client.ask("detector-1/images?hide=false+positive&hide=missed").json
    assert (without["images"], without["mistakes"]) == (24, 0)


@pytest.mark.parametrize(
    "query",
    [
        "class=7",
        "class=-1",
        "class=%F0%9D%9F%8F",
        "class=1e3",
        "kind=nothing",
        "size=huge",
        "order=random",
        "from=nan",
        "from=1e999",
        "iou_to=x",
        "hide=everything",
        "start=-24",
        "start=99999999999999999999",
        "a",
        "&".join(f"hide=missed&x{n}=1" for n in range(20)),
    ],
)
def test_what_is_no_filter_is_a_bad_request(client: Client, query: str) -> None:
    reply = client.ask(f"detector-1/images?{query}")
    assert reply.status == 400
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(reply.body.splitlines()) == 1


def test_several_detectors_have_a_page_each() -> None:
    with served(shapes(), evaluation(images=3), names=("old", "<b>new")) as client:
        page = client.ask("detector-2").body.decode()
        assert '<a href="detector-1">' in page
        assert '<a href="detector-2" aria-current="page">' in page
        assert "&lt;b&gt;new" in page
        assert "<b>new" not in page
        assert client.ask("detector-1/images").json["images"] == 24
        assert client.ask("detector-2/images").json["images"] == 3
        assert client.ask("detector-3").status == client.ask("detector-0/images").status == 404


# ---------------------------------------------------------------- pictures


def test_a_picture_is_the_file_or_a_small_copy(client: Client) -> None:
    item = client.ask("detector-1/images?image=000000000206").json["items"][0]
    whole = client.ask(item["picture"].partition("?")[0])
    file = SHAPES / "images" / item["record"]["file"]
    assert whole.body == file.read_bytes()
    assert whole.headers["content-type"] == "image/png"
    small = client.ask(item["picture"])
    with Image.open(io.BytesIO(small.body)) as picture:
        assert picture.format == "JPEG"
        assert picture.size == (240, 180)
    assert client.ask(item["picture"]).body == small.body


@pytest.mark.parametrize(
    ("asked", "status", "first", "end"),
    [
        ("bytes=0-99", 206, 0, 100),
        ("bytes=10-", 206, 10, None),
        ("bytes=-20", 206, -20, None),
        ("bytes=5-99999999", 206, 5, None),
        ("bytes=0-1,5-6", 200, 0, None),
        ("items=0-1", 200, 0, None),
        ("bytes=-", 200, 0, None),
    ],
)
def test_a_part_of_a_file(client: Client, asked: str, status: int, first: int, end: int | None) -> None:
    whole = client.ask("picture/0").body
    reply = client.ask("picture/0", headers={"Range": asked})
    assert reply.status == status
    assert reply.body == whole[first:end]
    assert int(reply.headers["content-length"]) == len(reply.body)
    if status == 206:
        at = first % len(whole)
        assert reply.headers["content-range"] == f"bytes {at}-{at + len(reply.body) - 1}/{len(whole)}"


@pytest.mark.parametrize("asked", ["bytes=99999999-", "bytes=7-3", "bytes=-0"])
def test_a_part_that_is_not_there(client: Client, asked: str) -> None:
    reply = client.ask("picture/0", headers={"Range": asked})
    whole = len(client.ask("picture/0").body)
    assert (reply.status, reply.body) == (416, b"")
    assert reply.headers["content-range"] == f"bytes */{whole}"


def test_a_broken_picture_is_a_blank_frame_and_a_missing_one_has_no_address(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff not a picture")
    Image.new("RGB", (30, 20), "red").save(tmp_path / "b.bmp")
    result = evaluation(images=3, file_names=["a.jpg", "b.bmp", "c.jpg"])
    with served(result, folder=tmp_path) as client:
        items = client.ask("detector-1/images?order=listed").json["items"]
        assert [item["picture"] for item in items] == ["picture/0?small", "picture/1?small", None]
        broken = client.ask("picture/0?small")
        assert (broken.status, broken.body) == (204, b"")
        assert client.ask("picture/2").status == client.ask("picture/999").status == 404
        other = client.ask("picture/1")  # browsers need not know the format: sent as JPEG
        assert other.headers["content-type"] == "image/jpeg"
        (tmp_path / "a.jpg").unlink()
        assert client.ask("picture/0").status == 404


# ---------------------------------------------------------------- what it refuses


@pytest.mark.parametrize("token", ["", "x", "..", "%2e%2e", "\N{LATIN SMALL LETTER E}" * 32])
def test_without_the_token_nothing_is_shown(client: Client, token: str) -> None:
    for path in ("", "detector-1", "detector-1/images", "picture/0"):
        reply = client.ask(path, token=token)
        assert reply.status == 403
        assert client.token.encode() not in reply.body
    assert client.raw("/").status == client.raw("*").status == client.raw("http://127.0.0.1/").status == 403


def test_one_slash_more_leads_to_the_page(client: Client) -> None:
    reply = client.raw(f"/{client.token}")
    assert (reply.status, reply.headers["location"]) == (302, f"/{client.token}/")


@pytest.mark.parametrize(
    "path",
    [
        "picture/..%2f..%2fetc%2fpasswd",
        "picture/../../../etc/passwd",
        "..%2f..%2fetc/passwd",
        "../../etc/passwd",
        "picture//etc/passwd",
        "picture/0/../../secret.txt",
        "picture/-1",
        "picture/0%00.jpg",
        "picture/",
        "picture",
        "images",
        "detector-1/",
        "detector-1/images/",
        "instances.json",
        "%2e/",
        "./",
    ],
)
def test_no_path_names_a_file(client: Client, path: str) -> None:
    reply = client.ask(path)
    assert reply.status == 404
    assert reply.body == b"this page does not exist\n"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "images", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    Image.new("RGB", (30, 20)).save(outside / "secret.jpg")
    (folder / "a.jpg").symlink_to(outside / "secret.jpg")
    (folder / "sub").symlink_to(outside)
    names = ["a.jpg", "sub/secret.jpg", "../outside/secret.jpg", str(outside / "secret.jpg"), "b.jpg"]
    Image.new("RGB", (30, 20)).save(folder / "real.jpg")
    (folder / "b.jpg").symlink_to(folder / "real.jpg")
    with served(evaluation(images=5, file_names=names), folder=folder) as client:
        assert [client.ask(f"picture/{row}").status for row in range(5)] == [404, 404, 404, 404, 200]


def test_what_is_no_picture_is_not_sent(tmp_path: Path) -> None:
    names = ["notes.txt", "page.html", "logo.svg", ".env", "script.js"]
    for name in names:
        (tmp_path / name).write_text("<script>alert(1)</script>")
    with served(evaluation(images=5, file_names=names), folder=tmp_path) as client:
        assert [client.ask(f"picture/{row}").status for row in range(5)] == [404] * 5


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "[::1]:{port}"]
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    reply = client.ask("", headers={"Host": host.format(port=client.port)})
    assert (reply.status, reply.body) == (403, b"this host is not served\n")


def test_the_host_stands_there_once(client: Client) -> None:
    line = f"GET /{client.token}/ HTTP/1.1\r\n"
    mine = f"Host: 127.0.0.1:{client.port}\r\n"
    assert b" 403 " in client.bytes(f"{line}\r\n".encode()).splitlines()[0]
    assert b" 403 " in client.bytes(f"{line}{mine}Host: evil.example\r\n\r\n".encode()).splitlines()[0]
    assert b" 200 " in client.bytes(f"{line}{mine}Connection: close\r\n\r\n".encode()).splitlines()[0]


def test_localhost_is_this_machine(client: Client) -> None:
    assert client.ask("", headers={"Host": f"localhost:{client.port}"}).status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"]
)
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    reply = client.ask("detector-1/images", headers={"Origin": origin.format(port=client.port)})
    assert (reply.status, reply.body) == (403, b"other origins are not served\n")
    mine = client.ask("detector-1/images", headers={"Origin": f"http://127.0.0.1:{client.port}"})
    assert mine.status == 200
    assert not [name for name in mine.headers if name.startswith("access-control")]


def test_another_site_may_link_but_not_embed(client: Client) -> None:
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.ask("picture/0", headers=embedded).status == 403
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.ask("", headers=followed).status == 200
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert client.ask("detector-1/images", headers=own).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_other_methods_are_refused(client: Client, method: str) -> None:
    reply = client.ask("", method=method)
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    assert reply.body == b"only GET and HEAD are supported\n"


@pytest.mark.parametrize("path", ["", "detector-1/images", "picture/0", "picture/0?small", "nothing"])
def test_head_is_get_without_a_body(client: Client, path: str) -> None:
    get, head = client.ask(path), client.ask(path, method="HEAD")
    assert (head.status, head.headers, head.body) == (get.status, get.headers, b"")


@pytest.mark.parametrize("path", ["", "detector-1/images", "picture/0", "nothing", "x" * LONGEST_PATH])
def test_every_answer_has_the_headers(client: Client, path: str) -> None:
    reply = client.ask(path)
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert reply.headers["x-frame-options"] == "DENY"
    policy = reply.headers["content-security-policy"]
    assert policy.endswith("frame-ancestors 'none'")
    if path:
        assert policy == NOT_A_PAGE
    else:
        assert "default-src 'none'" in policy
        assert "connect-src 'self'" in policy
        assert "img-src 'self' data:" in policy
        assert "unsafe" not in policy


def test_long_addresses_are_refused(client: Client) -> None:
    assert client.ask("detector-1/images?image=" + "x" * LONGEST_PATH).status == 414
    target = f"GET /{'x' * 70_000} HTTP/1.1\r\n\r\n"
    assert b" 414 " in client.bytes(target.encode()).splitlines()[0]


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / / / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET / HTTP/1.0\r\n",
    ],
)
def test_what_is_no_request_has_no_traceback(
    client: Client, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    reply = client.bytes(sent)
    assert b"Traceback" not in reply
    assert b"<" not in reply
    assert client.ask("").status == 200
    assert capfd.readouterr() == ("", "")


def test_an_error_is_a_line(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise boxscore.InputError("this", "be right", got="wrong")

    monkeypatch.setattr(Site, "answer", fail)
    reply = client.ask("")
    assert (reply.status, reply.body) == (500, b"this page cannot be shown\n")


def test_hostile_names_are_harmless() -> None:
    with served(hostile_evaluation(), names=(HOSTILE[0],)) as client:
        page = client.ask("").body.decode()
        assert "<script>document.title" not in page
        assert page.count("<script") == 2
        answer = client.ask("detector-1/images?order=listed")
        assert answer.headers["content-type"] == "application/json"
        files = [item["record"]["file"] for item in answer.json["items"]]
        assert not any("\u202e" in name or "\x1b" in name for name in files if name)


def test_nothing_is_listed_or_changed(tmp_path: Path) -> None:
    Image.new("RGB", (30, 20)).save(tmp_path / "a.jpg")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path, tmp_path / "a.jpg")}
    with served(evaluation(images=1, file_names=["a.jpg"]), folder=tmp_path) as client:
        for path in ("", "picture", "picture/", "picture/0", "picture/0?small", "detector-1/images"):
            body = client.ask(path).body
            assert b"Directory listing" not in body
            assert str(tmp_path).encode() not in body
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.jpg"]


def test_only_this_machine_is_listened_to(client: Client) -> None:
    assert client.server.server_address[0] == "127.0.0.1"
    assert len(client.token) >= 32


def test_a_port_that_is_taken_or_none(client: Client) -> None:
    with pytest.raises(boxscore.InputError, match="the port must be free"):
        Server(client.server.site, port=client.port)
    with pytest.raises(boxscore.InputError, match="port must be"):
        Server(client.server.site, port=70_000)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(boxscore.InputError, match="the image folder must be a folder"):
        Site({"a": shapes()}, ReportOptions(image_folder=tmp_path / "nothing"))


@pytest.mark.long
def test_many_connections_leave_room_again(client: Client) -> None:
    held = [socket.create_connection(("127.0.0.1", client.port)) for _ in range(MOST_REQUESTS + 10)]
    time.sleep(0.3)
    for connection in held:
        connection.close()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if client.ask("").status == 200:
                return
        time.sleep(0.1)
    raise AssertionError("no answer")


@pytest.mark.long
def test_many_at_once_are_the_same(client: Client) -> None:
    replies: list[bytes] = []

    def ask() -> None:
        replies.append(client.ask("detector-1/images?order=worst").body)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(replies) == 8
    assert len(set(replies)) == 1


def test_a_head_that_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Handler, "timeout", 1)
    with served(shapes()) as client:
        with socket.create_connection(("127.0.0.1", client.port), timeout=20) as connection:
            # Each byte arrives within the timeout, and all of them do not.
            start = time.monotonic()
            with contextlib.suppress(OSError):
                for _ in range(40):
                    connection.sendall(b"G")
                    time.sleep(0.2)
            assert time.monotonic() - start < 6
        assert client.ask("").status == 200
