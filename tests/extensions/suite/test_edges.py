"""Suites as people write them: odd names, stray files, stale pages, metrics without a worst value."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from boxscore.cli import main
from boxscore.errors import InputError, MissingDependencyError
from boxscore.extensions.suite import running as running_module
from boxscore.suite import Suite, SuiteResult, run_suite
from support.suites import SETS, TOML, write_sets

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

PATTERNS = TOML.partition("[sets")[0]
COUNTS_FALSE = """
name = "false"
extends = "scoreless"
[[summary]]
key = "FP"
metric = "fp_per_image"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_sets(tmp_path / "data", images=4)
    return tmp_path


def read(folder: Path, text: str = TOML) -> Suite:
    (folder / "suite.toml").write_text(text)
    return Suite.read(folder / "suite.toml")


def run(folder: Path, text: str = TOML, **options: Any) -> SuiteResult:
    return run_suite(read(folder, text), **{"resamples": 5, "workers": 1, **options})


def under(protocol: str) -> str:
    return TOML.replace('name = "test"', f'name = "test"\nprotocol = "{protocol}"')


def test_all_cells_without_a_result_count_1_where_the_metric_falls(folder: Path) -> None:
    for path in folder.glob("data/*/model*.json"):
        path.unlink()
    result = run(folder, under("citypersons"))
    assert result.falls
    assert (result.values == 1).all()
    assert (run(folder).values == 0).all()


@pytest.mark.long
def test_no_cell_is_worse_than_one_without_a_result(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "false.toml").write_text(COUNTS_FALSE)
    far = [
        {"image_id": i, "category_id": 1, "bbox": [150, 50, 9, 9 + n], "score": 0.5}
        for i in range(4)
        for n in range(7)
    ]
    (folder / "data" / "set0" / "model1.json").write_text(json.dumps(far))
    (folder / "data" / "set1" / "model0.json").unlink()
    result = run(folder, under("false.toml"))
    assert result.values[0, 1] == result.values[1, 0] == 7
    assert result.failed_frame()["counts_as"].tolist() == [7]
    assert main(["suite", str(folder / "suite.toml"), "--resamples", "5"]) == 0
    assert "Each counts as 7." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["set", "groups", "images", "metric"])
def test_no_model_is_called_as_a_column(folder: Path, name: str) -> None:
    with pytest.raises(InputError, match=rf"among the models must differ from set, .* Got '{name}' in"):
        read(folder, TOML.replace("model0 =", f"{name} ="))


@pytest.mark.parametrize(
    ("key", "written"),
    [pytest.param("class_map", "2,1\n1,2\n", marks=pytest.mark.long), ("classes", "cat\ndog\n")],
)
def test_paths_of_classes_are_relative_to_the_file_and_part_of_what_is_kept(
    folder: Path, key: str, written: str
) -> None:
    (folder / "names.txt").write_text(written)
    text = TOML.replace('name = "test"', f'name = "test"\n{key} = "names.txt"')
    (one, *_) = read(folder, text).sets
    assert {**one.truth_options, **one.result_options} == {key: folder / "names.txt"}
    if key == "class_map":
        swapped = run(folder, text, keep=folder / "kept").values
        (folder / "names.txt").write_text("1,1\n2,2\n")
        plain = run(folder, text, keep=folder / "kept").values
        assert (plain == run(folder).values).all()
        assert (swapped != plain).any()


def test_classes_may_stand_in_the_file_itself(folder: Path) -> None:
    text = TOML.replace('name = "test"', 'name = "test"\nclasses = ["cat", "dog"]\nclass_map = "auto"')
    assert read(folder, text).sets[0].truth_options == {"classes": ["cat", "dog"]}
    assert read(folder, text).sets[0].result_options == {"class_map": "auto"}
    for key in ("classes", "class_map"):
        with pytest.raises(InputError, match=rf"set0.{key} must be a string that is not empty. Got 3 in"):
            read(folder, TOML.replace('name = "test"', f'name = "test"\n{key} = 3'))


def test_strays_beside_sets_are_no_sets(folder: Path) -> None:
    data = folder / "data"
    (data / ".cache").mkdir()
    (data / "pictures").mkdir()
    (data / "readme.txt").write_text("made by hand")
    assert [one.name for one in read(folder, PATTERNS).sets] == [f"set{s}" for s in range(SETS)]
    (data / "pictures").rmdir()
    assert [one.name for one in Suite.read(data).sets] == [f"set{s}" for s in range(SETS)]


def test_two_files_of_a_model_in_a_folder_are_refused(folder: Path) -> None:
    (folder / "data" / "set2" / "model0.log").write_text("epoch 1")
    message = r"one file of results for each model. Got model0.json and model0.log in .*set2"
    with pytest.raises(InputError, match=message):
        Suite.read(folder / "data")


@pytest.mark.long
def test_compressed_files_in_a_folder(folder: Path) -> None:
    import gzip

    plain = run_suite(Suite.read(folder / "data"), resamples=5, workers=1)
    for path in folder.glob("data/*/*.json"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = run_suite(Suite.read(folder / "data"), resamples=5, workers=1)
    assert packed.models == plain.models
    assert (packed.values == plain.values).all()


def test_an_error_names_the_key_of_the_set(folder: Path) -> None:
    with pytest.raises(InputError, match=r"sets\.set0\.results\.model0 must be a string that is not empty"):
        read(folder, TOML.replace('group = "small"', 'results = {model0 = ""}'))


@pytest.mark.parametrize("name", ["model0.json", "instances.json"])
def test_a_name_that_is_too_long_is_a_missing_cell(folder: Path, name: str) -> None:
    failed = run(folder, TOML.replace(name, f"{'m' * 300}.json")).failed_frame()
    assert failed["state"].tolist() == ["missing"] * (SETS if name == "model0.json" else 2 * SETS)


def test_what_is_broken_is_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise MissingDependencyError("Parquet needs pyarrow")

    with monkeypatch.context() as without:
        without.setattr(running_module, "read_detections", refused)
        assert not run(folder, keep=folder / "kept").worked.any()
    assert run(folder, keep=folder / "kept").worked.all()


@pytest.mark.long
def test_a_page_is_not_older_than_its_cells(folder: Path) -> None:
    pages, kept, model = folder / "out", folder / "kept", folder / "data" / "set0" / "model0.json"
    run(folder, keep=kept, report=pages)
    page = pages / "sets" / "set0" / "report.html"
    old, others = page.read_bytes(), (pages / "sets" / "set1" / "report.html").stat().st_mtime_ns
    model.write_text(json.dumps(json.loads(model.read_text())[1:]))
    run(folder, keep=kept)
    run(folder, keep=kept, report=pages)
    assert page.read_bytes() != old
    assert (pages / "sets" / "set1" / "report.html").stat().st_mtime_ns == others


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def served(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.long
def test_files_of_a_store(folder: Path, served: str) -> None:
    text = TOML.replace('"data/{set}/model', f'"{served}/data/{{set}}/model')
    (folder / "data" / "set1" / "model0.json").unlink()
    result = run(folder, text, keep=folder / "kept")
    assert (result.values == run(folder).values).all()
    (failed,) = result.failed_frame().to_dict("records")
    assert failed["state"] == "missing"
    assert failed["reason"].endswith("HTTP Error 404: File not found.")
