"""WIDER FACE, CrowdHuman and VisDrone: the numbers that the benchmarks' own scripts gave."""

from __future__ import annotations

import json
import random
import tarfile
from pathlib import Path

import pytest

import boxscore
from boxscore import InputError
from support.quiet import quiet
from support.real_data import real

pytestmark = pytest.mark.real

WIDER_FACE = {"easy": 0.9324932633835993, "medium": 0.9127942909886333, "hard": 0.8297205022059916}
"""Of 123,525 boxes, by the Python script of the benchmark."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("widerface")
    with tarfile.open(real("crowd", "widerface", "widerface_txt.tar.gz")) as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member)
            if file is not None:
                path = folder.joinpath(*Path(member.name).parts[1:])
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(file.read())
    return folder


def test_wider_face_to_the_last_bit(results: Path) -> None:
    truth = boxscore.load_ground_truth(real("crowd", "widerface", "ground_truth"))
    result = boxscore.evaluate(truth, boxscore.load_detections(results, truth), protocol="widerface")
    assert result.metrics == WIDER_FACE
    assert (len(truth), len(result.detections), len(truth.images)) == (39708, 123525, 3226)
    with quiet():
        assert (
            boxscore.evaluate(truth, result.detections, protocol="widerface", workers=3).metrics == WIDER_FACE
        )


def test_an_unsorted_file_of_faces_is_refused(results: Path, tmp_path: Path) -> None:
    """The script would read it as ranked: lines in another order turned .932 into .238."""
    file = next(path for path in sorted(results.glob("*/*.txt")) if len(path.read_text().splitlines()) > 9)
    copy = tmp_path / file.parent.name / file.name
    copy.parent.mkdir()
    lines = file.read_text().splitlines()
    random.Random(3).shuffle(rows := lines[2:])
    copy.write_text("\n".join([*lines[:2], *rows]))
    with pytest.raises(
        InputError, match=r"must come by descending score.*sort the lines of each file by score"
    ):
        boxscore.evaluate(real("crowd", "widerface", "ground_truth"), tmp_path, protocol="widerface")


def test_the_crowdhuman_sample_of_mmdetection() -> None:
    folder = real("crowd", "crowdhuman", "mmdet_sample")
    expected = json.loads((folder / "expected.json").read_text())
    result = boxscore.evaluate(folder / "annotation.odgt", folder / "detections.odgt", protocol="crowdhuman")
    assert result.metrics == {
        "AP": expected["AP"],
        "MR": expected["MR2"],
        "JI": expected["JI"]["JI"],
    }


def test_visdrone_by_a_rewriting_of_its_toolkit() -> None:
    """MATLAB was not run: the expected numbers are of a rewriting."""
    folder = real("crowd", "visdrone")
    expected = json.loads((folder / "expected.json").read_text())
    sizes = {
        name: (width, height)
        for name, (height, width) in json.loads((folder / "sizes.json").read_text()).items()
    }
    truth = boxscore.load_ground_truth(folder / "annotations", image_sizes=sizes)
    result = boxscore.evaluate(
        truth, boxscore.load_detections(folder / "results", truth), protocol="visdrone"
    )
    for key, value in result.metrics.items():
        assert 100 * value == pytest.approx(expected[key], abs=1e-12), key
    of_class = dict(zip(truth.categories.ids.tolist(), result.class_values["AP"].tolist(), strict=True))
    for number, value in expected["per_class"].items():
        assert 100 * of_class[int(number)] == pytest.approx(value, abs=1e-12)
    plain = {"extends": "visdrone", "ap": {"class_mean": "of_defined"}}
    once = boxscore.evaluate(truth, result.detections, protocol=plain)["AP"]
    assert 100 * once == pytest.approx(expected["AP_each_class_once"], abs=1e-12)
