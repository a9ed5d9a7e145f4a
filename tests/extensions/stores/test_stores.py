"""Files in stores and on the web, and several files as one, evaluate as the same files here do."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import boxscore
from boxscore._utils.given_paths import path_of
from boxscore.errors import InputError
from support.limits import small_partitions
from support.running import Run
from support.web_server import WebServer, web_server

GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the data set as JSON, JSON lines and Parquet, whole and in files of some images each."""
    folder = tmp_path_factory.mktemp("files")
    truth = boxscore.load_ground_truth(GT)
    found = boxscore.load_detections(DT, truth)
    (folder / "truth.json").write_bytes(Path(GT).read_bytes())
    (folder / "found.json").write_bytes(Path(DT).read_bytes())
    records = json.loads(Path(DT).read_text())
    (folder / "found.jsonl").write_text("\n".join(map(json.dumps, records)))
    for number in range(3):
        (folder / f"part-{number}.json").write_text(json.dumps(records[number * 100 : number * 100 + 100]))
    content = json.loads(Path(GT).read_text())
    for number in range(2):
        images = content["images"][number * 12 : number * 12 + 12]
        ids = {image["id"] for image in images}
        annotations = [one for one in content["annotations"] if one["image_id"] in ids]
        text = json.dumps({**content, "images": images, "annotations": annotations})
        (folder / f"half-{number}.json").write_text(text)
    pytest.importorskip("pyarrow", reason="needs boxscore[tables]")
    from boxscore.formats.parquet import FORMAT

    FORMAT.save(truth, folder / "truth.parquet")
    FORMAT.save_partitions(found, folder / "dt", 4)
    return folder


@pytest.fixture
def web(files: Path) -> Iterator[WebServer]:
    with web_server(files) as server:
        yield server


EVERY = [("truth.json", "found.json"), ("truth.parquet", "found.jsonl"), ("truth.json", "found.parquet")]


def whole(run: Run) -> str:
    return run("evaluate", GT, DT).out


@pytest.mark.parametrize(("truth", "found"), EVERY)
@pytest.mark.parametrize("options", [[], ["--shard", "1/1"]])
def test_the_web(
    web: WebServer, files: Path, tmp_path: Path, run: Run, truth: str, found: str, options: list[str]
) -> None:
    if found == "found.parquet":  # the web has no folders
        found = "dt/part-00000.parquet"
        same = run("evaluate", GT, str(files / found), *options).out
    else:
        same = whole(run)
    saved = ["--save-part", str(tmp_path / "part.npz")] if options else []
    call = ["evaluate", f"{web.address}/{truth}?token=topsecret", f"{web.address}/{found}", *options, *saved]
    assert run(*call).out == same
    assert all(asked.user is None for asked in web.asked)
    if saved:
        assert b"topsecret" not in (tmp_path / "part.npz").read_bytes()


def test_parquet_on_the_web_is_read_by_range(web: WebServer, files: Path) -> None:
    """Of a file with pictures only the columns of boxes are read."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(files / "dt" / "part-00001.parquet")
    pictures = pa.array([np.random.default_rng(row).bytes(20_000) for row in range(len(table))], pa.binary())
    pq.write_table(table.append_column("picture", pictures), files / "pictures.parquet")
    size = (files / "pictures.parquet").stat().st_size
    expected = boxscore.evaluate(GT, files / "dt" / "part-00001.parquet")
    web.asked.clear()
    assert boxscore.scan(GT, f"{web.address}/pictures.parquet").metrics == expected.metrics
    ranges = [re.fullmatch(r"bytes=(\d+)-(\d+)", asked.range or "") for asked in web.asked]
    assert all(ranges)
    lengths = [int(one[2]) - int(one[1]) + 1 for one in ranges if one]
    assert size > 1_500_000
    assert max(lengths) <= 1 << 16
    assert len(lengths) < 40


def test_a_range_of_parquet_is_read_from_a_store_once(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many partitions need a row group: footers alone are read again, to see that they stay."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    for side, per_image in (("truth", 5), ("found", 40)):
        image = np.repeat(np.arange(1500), per_image)
        corner = rng.integers(0, 90, (len(image), 2)) + rng.random((len(image), 2))
        box = np.hstack([corner, corner + 30])
        columns = {"image_id": image, "category_id": rng.integers(0, 3, len(image))}
        columns |= {name: box[:, at] for at, name in enumerate(("x1", "y1", "x2", "y2"))}
        columns |= {"score": rng.random(len(image))} if side == "found" else {}
        pq.write_table(pa.table(columns), tmp_path / f"{side}.parquet", row_group_size=20_000)
    small_partitions(monkeypatch, 6_000)
    call = ["evaluate", "{}/truth.parquet", "{}/found.parquet", "--memory-limit", "1GB", "--workers", "1"]
    here = run(*(word.format(tmp_path) for word in call)).out
    with web_server(tmp_path) as server:
        assert run(*(word.format(server.address) for word in call)).out == here
    for side in ("truth", "found"):
        size = (tmp_path / f"{side}.parquet").stat().st_size
        asked = [one.range or "" for one in server.asked if one.path == f"/{side}.parquet"]
        ends = [tuple(map(int, one.removeprefix("bytes=").split("-"))) for one in asked]
        assert len([last for first, last in ends if last == size - 1 and first]) > 10  # footers
        head = 1 << 16  # which tells the format
        assert sum(last - first for first, last in ends if last < size - 1) < size + head


def test_what_fails_on_the_way_is_asked_for_again(
    web: WebServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boxscore.extensions.stores.addresses import _Web

    monkeypatch.setattr(_Web, "PAUSES", (0, 0))
    web.failures = 2
    assert run("evaluate", f"{web.address}/truth.json", DT).out == whole(run)
    web.failures = 3
    error = run.error("evaluate", f"{web.address}/truth.json", DT)
    assert error.startswith(f"boxscore: error: {web.address}/truth.json: cannot be read: HTTP Error 503")


def test_names_and_passwords_go_to_the_server_alone(web: WebServer, run: Run) -> None:
    web.user = "ann:topsecret"
    place = web.address.removeprefix("http://")
    assert run("evaluate", f"http://ann:topsecret@{place}/truth.json", DT).out == whole(run)
    assert {asked.user for asked in web.asked} == {"ann:topsecret"}
    for user in ("", "ann:hopeless@"):
        error = run.error("evaluate", f"http://{user}{place}/truth.json", DT)
        assert f"{web.address}/truth.json: cannot be read: HTTP Error 401" in error
        assert "hopeless" not in error


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("{web}/none.json", "{web}/none.json: cannot be read: HTTP Error 404: Not Found."),
        ("{web}/found.json?key=topsecret", "{web}/found.json"),
        (
            "none://place/x.json?key=topsecret",
            "none://place/x.json: cannot be read: Protocol not known: none",
        ),
    ],
)
def test_errors_name_the_address_without_secrets(web: WebServer, run: Run, truth: str, message: str) -> None:
    pytest.importorskip("fsspec")
    error = run.error("evaluate", truth.format(web=web.address), DT)
    assert message.format(web=web.address) in error
    assert "topsecret" not in error
    assert "boxscore-" not in error  # the folder of copies


def test_a_server_without_ranges_serves_json_alone(web: WebServer, files: Path, run: Run) -> None:
    web.sends_ranges = False
    assert run("evaluate", f"{web.address}/truth.json", DT).out == whole(run)
    (files / "longer.parquet").write_bytes((files / "dt" / "part-00001.parquet").read_bytes())
    error = run.error("evaluate", GT, f"{web.address}/longer.parquet", "--memory-limit", "1GB")
    assert "must be on a server that sends ranges, to be read in parts" in error


def test_a_store_that_fsspec_opens(files: Path, run: Run) -> None:
    memory: Any = pytest.importorskip("fsspec").filesystem("memory")
    for file in files.rglob("*"):
        if file.is_file():
            memory.pipe(f"/bucket/{file.relative_to(files)}", file.read_bytes())
    for truth, found in (
        ("truth.json", "found.json"),
        ("truth.parquet", "dt"),
        ("half-*.json", "part-[0-2].json"),
        ("truth.parquet", "d*/part-*.parquet"),
    ):
        for options in ([], ["--memory-limit", "1GB"]):
            if options and not found.startswith("d"):
                continue
            call = ["evaluate", f"memory://bucket/{truth}", f"memory://bucket/{found}", *options]
            assert run(*call).out == whole(run), (truth, found)
    memory.pipe("/other/run/found.json", b"[]")
    error = run.error("evaluate", GT, "memory://other/run")
    assert "memory://other/run must be a file, or a folder of Parquet files. Got another folder" in error


def test_other_commands_read_from_stores_and_write_here(web: WebServer, tmp_path: Path, run: Run) -> None:
    truth, found = f"{web.address}/truth.json", f"{web.address}/found.json"
    for call in (["validate", truth, found], ["errors", truth, found], ["stats", truth]):
        same = run(call[0], *[{truth: GT, found: DT}[path] for path in call[1:]]).out.split()
        assert " ".join(run(*call).out.split()).replace(truth, GT).replace(found, DT).split() == same
    for name, path in (("here", DT), ("there", found)):
        run("nms", path, "--iou-threshold", "0.5", "--output", str(tmp_path / f"{name}.json"))
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "there.json").read_bytes()
    for option in ("--save-part", "--report"):
        error = run.error("evaluate", truth, found, option, f"s3://k:topsecret@bucket/x{option[:5]}.npz")
        assert "s3://bucket/x" in error
        assert "cannot be written: boxscore reads from object stores but writes only local files." in error


# ---------------------------------------------------------------- several files


def test_several_files_are_not_written_again(files: Path, tmp_path: Path, run: Run) -> None:
    call = ["nms", str(files / "part-*.json"), "--iou-threshold", "0.5", "--output", str(tmp_path / "x.json")]
    assert "the results to rewrite must be one file. Got 3 in " in run.error(*call)


def test_findings_are_of_all_files(files: Path, run: Run) -> None:
    truth, found = str(files / "half-*.json"), str(files / "part-*.json")
    both = " ".join(run("validate", truth, found).out.split()).replace(truth, GT).replace(found, DT)
    assert both.split() == run("validate", GT, DT).out.split()


@pytest.mark.parametrize("truth", ["truth.json", "half-*.json"])
@pytest.mark.parametrize("found", ["found.json", "part-*.json", "found.jsonl", "dt/*.parquet"])
def test_patterns(files: Path, run: Run, truth: str, found: str) -> None:
    assert run("evaluate", str(files / truth), str(files / found)).out == whole(run)
    assert boxscore.evaluate(files / truth, str(files / found)).metrics == boxscore.evaluate(GT, DT).metrics


def test_options_that_are_given_several_times(files: Path, run: Run) -> None:
    words = [word for number in range(3) for word in ("--dt", str(files / f"part-{number}.json"))]
    words += [word for number in range(2) for word in ("--gt", str(files / f"half-{number}.json"))]
    assert run("evaluate", *words).out == whole(run)
    parts = [
        word for number in (0, 1, 2, 3) for word in ("--dt", str(files / f"dt/part-0000{number}.parquet"))
    ]
    assert run("evaluate", "--gt", GT, *parts, "--memory-limit", "1GB").out == whole(run)


@pytest.mark.parametrize(
    ("truth", "found", "message"),
    [
        ("*.xml", "found.json", "*.xml: cannot be read: No file has such a name."),
        ("half-*.json", "found.js*", "found.js* must be of one format. Got "),
        ("[th]*[0h].json", "found.json", "an image must be in one file of the ground truth. Got 101 in "),
    ],
)
def test_several_files_that_are_no_data_set(
    files: Path, run: Run, truth: str, found: str, message: str
) -> None:
    assert message in run.error("evaluate", str(files / truth), str(files / found))


def test_annotations_that_every_file_counts_from_1_are_counted_again(tmp_path: Path) -> None:
    for image in (1, 2):
        content = {
            "images": [{"id": image, "width": 9, "height": 9}],
            "categories": [{"id": 1, "name": "cat"}],
            "annotations": [{"id": 1, "image_id": image, "category_id": 1, "bbox": [0, 0, 5, 5], "area": 25}],
        }
        (tmp_path / f"{image}.json").write_text(json.dumps(content))
    truth = boxscore.load_ground_truth(f"{tmp_path}/*.json")
    assert truth.ids.tolist() == [1, 2]
    assert truth.images.ids.tolist() == [1, 2]
    assert truth.source == f"{tmp_path}/*.json"


def test_scores_in_some_files_alone_are_refused(tmp_path: Path) -> None:
    record = {"image_id": 101, "category_id": 1, "bbox": [0, 0, 5, 5]}
    (tmp_path / "a.json").write_text(json.dumps([{**record, "score": 0.5}]))
    (tmp_path / "b.json").write_text(json.dumps([record]))
    with pytest.raises(InputError, match="detections must have scores in every file, or in none"):
        boxscore.load_detections(f"{tmp_path}/*.json", boxscore.load_ground_truth(GT))


# ---------------------------------------------------------------- a server of S3


@pytest.fixture(scope="module")
def bucket(files: Path) -> Iterator[str]:
    """Serve the files from a store that speaks S3."""
    server_of = pytest.importorskip("moto.server", reason="needs moto[server]")
    fs = pytest.importorskip("pyarrow.fs")
    with pytest.MonkeyPatch.context() as environment:
        server = server_of.ThreadedMotoServer(port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
        store, _ = fs.FileSystem.from_uri("s3://bucket?allow_bucket_creation=true")
        store.create_dir("bucket")
        fill(store, "bucket", files)
        yield "s3://bucket/a run"
        server.stop()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def fill(store: Any, bucket: str, files: Path) -> None:
    for file in sorted(files.rglob("*")):
        if file.is_file():
            with store.open_output_stream(f"{bucket}/a run/{file.relative_to(files)}") as output:
                output.write(file.read_bytes())


@contextlib.contextmanager
def serving(call: Sequence[str], port: int) -> Iterator[None]:
    """Run a server in a process of its own, from when it listens on."""
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(300):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.1)
            yield
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def google(files: Path) -> Iterator[str]:
    """Serve the files from a store that speaks as Google's does."""
    pytest.importorskip("gcp_storage_emulator", reason="needs gcp-storage-emulator")
    fs = pytest.importorskip("pyarrow.fs")
    port = free_port()
    call = [sys.executable, "-c", "from gcp_storage_emulator.__main__ import main; main()", "start"]
    with serving(
        [*call, "--host=127.0.0.1", f"--port={port}", "--in-memory", "--default-bucket=bucket"], port
    ):
        place = f"127.0.0.1:{port}"
        fill(fs.GcsFileSystem(anonymous=True, scheme="http", endpoint_override=place), "bucket", files)
        yield f"gs://anonymous@bucket/a run/{{}}?scheme=http&endpoint_override={place}"


AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Which its documentation says."""


@pytest.fixture(scope="module")
def azure(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the files from a store that speaks as Azure's does."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs azurite: npm install --global azurite")
    fs = pytest.importorskip("pyarrow.fs")
    port, folder = free_port(), tmp_path_factory.mktemp("azurite")
    place = f"127.0.0.1:{port}"
    call = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    with serving([*call, "--silent", "--skipApiVersionCheck", "--disableTelemetry"], port):
        ways = {"blob_storage_authority": place, "dfs_storage_authority": place}
        schemes = {"blob_storage_scheme": "http", "dfs_storage_scheme": "http"}
        store = fs.AzureFileSystem("devstoreaccount1", account_key=AZURITE_KEY, **ways, **schemes)
        store.create_dir("box")
        fill(store, "box", files)
        options = "&".join(f"{name}={value}" for name, value in ways.items())
        user = f"devstoreaccount1:{quote(AZURITE_KEY, safe='')}"
        yield f"abfs://{user}@box/a run/{{}}?{options}&enable_tls=false"


@pytest.fixture
def s3(bucket: str) -> str:
    return f"{bucket}/{{}}"


@pytest.mark.parametrize("store", ["s3", "google", "azure"])
@pytest.mark.parametrize(
    ("truth", "found", "options"),
    [
        ("truth.json", "found.json", []),
        ("half-*.json", "found.jsonl", []),
        ("truth.parquet", "dt", []),
        ("truth.parquet", "dt", ["--memory-limit", "2GB", "--workers", "2"]),
        ("truth.json", "d*/*.parquet", ["--shard", "1/1"]),
    ],
)
def test_a_store(
    store: str, request: pytest.FixtureRequest, run: Run, truth: str, found: str, options: list[str]
) -> None:
    place: str = request.getfixturevalue(store)
    assert run("evaluate", place.format(truth), place.format(found), *options).out == whole(run)
    error = run.error("evaluate", place.format("none.json"), place.format(found), *options)
    shown = str(path_of(place.format("none.json")))
    assert error == f"boxscore: error: {shown}: cannot be read: No such file or directory.\n"
    assert AZURITE_KEY not in error
    assert quote(AZURITE_KEY, safe="") not in error


def test_secrets_of_a_store_are_in_no_part(bucket: str, tmp_path: Path, run: Run) -> None:
    given = bucket.replace("s3://", "s3://testing:topsecret@")
    output = tmp_path / "part.npz"
    call = [f"{given}/truth.parquet", f"{given}/dt", "--shard", "1/1", "--save-part", str(output)]
    printed = run("evaluate", *call)
    assert printed.out == whole(run)
    assert "topsecret" not in printed.err
    content = output.read_bytes()
    assert b"topsecret" not in content
    assert f"{bucket}/dt".encode() in content
