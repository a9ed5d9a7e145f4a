"""Names, passwords and queries of addresses are in no message, whatever is wrong with them or their server."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.cli import main
from boxscore.errors import BoxscoreError
from boxscore.extensions.stores.addresses import Address, _Web
from support.web_server import WebServer, web_server

GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"
FIRST, LAST = "QzFirst7", "QzLast9"
"""Both ends of every secret: neither may be repeated."""

odd = st.text(st.sampled_from(list("%/?#@:&=+;,~!*[]()'\"\\ |äß\t<>0aZ")), max_size=6)
secrets = odd.map(lambda middle: f"{FIRST}{middle}{LAST}")
users = secrets.filter(lambda text: "/" not in text)  # which nothing tells from the host and a folder
escaped = secrets.map(lambda text: quote(text, safe=""))


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "truth.json").write_bytes(Path(GT).read_bytes())
    (folder / "found.json").write_bytes(Path(DT).read_bytes())
    with pytest.MonkeyPatch.context() as patch, web_server(folder) as server:
        patch.setattr(_Web, "PAUSES", (0,))
        patch.setattr(_Web, "SECONDS", 0.2)
        yield server


def said(*arguments: str) -> tuple[int, str]:
    """Run the command line; return its status and all that it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*arguments])
    return status, out.getvalue() + err.getvalue()


def refuse_secrets(text: str) -> None:
    assert FIRST not in text, text
    assert LAST not in text, text


def slow(status: int, content: bytes, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
    import time

    time.sleep(0.5)
    return status, content, headers


SPOILS: dict[str, Callable[..., Any] | None] = {
    "as it is": None,
    "403": lambda *_: (403, b"<Error>denied</Error>", {}),
    "500": lambda *_: (500, b"", {}),
    "garbage": lambda status, content, headers: (status, b"\x00\xff{" * 40, headers),
    "short": lambda status, content, headers: (status, content[: len(content) // 2], headers),
    "odd headers": lambda status, content, _: (status, content, {"Content-Range": "bytes */none"}),
}


def test_servers(web: WebServer) -> None:
    """Every kind of failure is an error in words, of each side, in each command that reads files."""
    place = web.address.removeprefix("http://")
    for name, spoil in {**SPOILS, "slow": slow}.items():
        web.spoil = spoil
        address = f"http://{FIRST}:{LAST}@{place}/truth.json?token={FIRST}&sig={LAST}&{quote(name)}"
        for call in (["evaluate", address, DT], ["evaluate", GT, address], ["stats", address]):
            status, text = said(*call)
            refuse_secrets(text)
            good = name in ("as it is", "odd headers") and (call[1] == address)
            assert status == (0 if good else 2), (name, text)
            assert "Traceback" not in text
    web.spoil = None


@given(user=escaped, password=escaped, key=escaped, value=escaped, kind=st.sampled_from([*SPOILS]))
@settings(deadline=None)
def test_escaped_secrets(web: WebServer, user: str, password: str, key: str, value: str, kind: str) -> None:
    place = web.address.removeprefix("http://")
    web.spoil = SPOILS[kind]
    for name in ("found.json", "none.json", "f*.json"):
        address = f"http://{user}:{password}@{place}/{name}?{key}={value}"
        _, text = said("evaluate", GT, address, "--no-digest")
        refuse_secrets(text)
        refuse_secrets(str(boxscore.formats.reading.path_of(address)))
    web.spoil = None


SCHEMES = ("http", "https", "s3", "gs", "abfs", "hdfs", "none", "memory")
CALLS: tuple[tuple[str, ...], ...] = (
    ("evaluate", "{}", DT, "--no-such-option"),
    ("evaluate", GT, DT, "{}"),
    ("evaluate", GT, DT, "--protocol", "{}"),
    ("evaluate", GT, DT, "--images", "{}"),
    ("evaluate", GT, DT, "--format", "{}"),
    ("evaluate", GT, DT, "--output", "{}.json"),
    ("evaluate", GT, DT, "--report", "{}"),
    ("evaluate", GT, DT, "--save-part", "{}.npz"),
    ("evaluate", GT, DT, "--scheduler", "{}"),
    ("compare", GT, DT, DT, "--names", "{}"),
    ("merge", "{}"),
    ("run", "{}"),
    ("convert", "--gt", GT, "--output", "{}.json"),
    ("{}",),
)


@given(
    scheme=st.sampled_from(["http", "s3", "gs", "abfs", "hdfs", "none"]),
    user=users,
    password=secrets,
    query=secrets,
    call=st.sampled_from(CALLS),
)
@settings(deadline=None)
def test_secrets_as_they_are_typed(scheme: str, user: str, password: str, query: str, call: Any) -> None:
    """A slash, a question mark or an @ in a password ends it for a parser; what follows is not repeated."""
    user = "box" if scheme == "abfs" else user  # a container, which is shown
    address = f"{scheme}://{user}:{password}@127.0.0.1:9/a b/x.json?key={query}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Web, "PAUSES", ())
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        status, text = said(*(word.format(address) if word.startswith("{}") else word for word in call))
    refuse_secrets(text)
    assert status == 2 or "--names" in call or "--images" in call, text
    assert "Traceback" not in text


@given(scheme=st.sampled_from(SCHEMES), user=users, password=secrets, query=secrets)
@settings(deadline=None)
def test_python_repeats_none_either(scheme: str, user: str, password: str, query: str) -> None:
    from boxscore._utils.given_paths import path_of

    user = "box" if scheme == "abfs" else user  # a container, which is shown
    try:
        path = path_of(f"{scheme}://{user}:{password}@host/a/x.json?key={query}")
    except BoxscoreError as error:
        refuse_secrets(str(error))
        return
    for text in (str(path), repr(path), path.name, str(path.absolute())):
        refuse_secrets(text)
    if isinstance(path, Address):
        refuse_secrets(f"{path / 'y'} {path.parent}")
    again = pickle.loads(pickle.dumps(path))
    assert str(again) == str(path)
    refuse_secrets(str(again))


@pytest.mark.parametrize(
    "given_",
    [
        "s3://KEY:abc/def@bucket/x.json",
        "s3://AKIA:123/def@bucket/x.json",
        "https://ann:p?w@host/x.json",
        "https://ann:p#w@host/x.json",
        "https://ann:p@w@host/x.json",
        "https://ann:1?2@host/x.json",
        "https://ann:p:w@host/x.json",
    ],
)
def test_what_must_be_escaped_is_said(given_: str) -> None:
    status, text = said("evaluate", given_, DT)
    assert status == 2
    assert "://... must not contain / ? # @ : unescaped. Got one of them; write / as %2F" in text
    for part in ("KEY", "AKIA", "ann", "def"):
        assert part not in text


@pytest.mark.parametrize(
    "given_",
    [
        "https://host:8080/dir@2x/x.json",
        "http://[::1]:80/x.json",
        "s3://bucket/dir@v2/x.json?region=a",
        "abfs://box@account.dfs.core.windows.net/x",
        "hdfs://node:8020/x",
        "https://host/x.json?a=b@c",
    ],
)
def test_other_addresses_stay_as_they_are(given_: str) -> None:
    from boxscore._utils.given_paths import path_of

    assert str(path_of(given_)) == given_.partition("?")[0]


@pytest.mark.parametrize("name", ["found.jsonl", "found.csv"])
def test_a_file_that_is_cut_short_is_refused(web: WebServer, name: str) -> None:
    """Lines that are missing at the end would be no error of the format."""
    truth = boxscore.load_ground_truth(GT)
    found = boxscore.load_detections(DT, truth).to_pandas()
    path = web.folder / name
    found.to_csv(path) if name.endswith("csv") else found.to_json(path, orient="records", lines=True)
    size = path.stat().st_size

    def cut(status: int, content: bytes, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        return status, content[: content.rindex(b"\n", 0, -9) + 1] if status == 200 else content, headers

    web.spoil = cut
    status, text = said("evaluate", GT, f"{web.address}/{name}")
    web.spoil = None
    assert status == 2
    assert f"{web.address}/{name} must be sent whole. Got " in text
    assert f" of {size:,} bytes; the connection was cut" in text
    assert said("evaluate", GT, f"{web.address}/{name}?{FIRST}", "--no-digest")[0] == 0
