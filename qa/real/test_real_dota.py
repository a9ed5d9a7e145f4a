"""DOTA's published example: the devkit's APs to the last bit, and what other tools make of the same files."""

from __future__ import annotations

import dataclasses
import json

import pytest

import boxscore
from boxscore import Detections, GroundTruth, load_detections, load_ground_truth
from boxscore.extensions.diagnostics.ties import tie_bounds
from boxscore.protocols.protocol import Protocol
from support.real_data import real

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")


@pytest.fixture(scope="module")
def tables() -> tuple[GroundTruth, Detections]:
    folder = real("dota", "evaluation_example")
    truth = load_ground_truth(folder / "row_DOTA_labels", image_set=folder / "imgnamefile.txt")
    return truth, load_detections(folder / "result_classname", truth)


def devkit(version: str, curve: str, threshold: float) -> Protocol:
    protocol = boxscore.load_protocol("dota" if version == "v1.0" else "dota-v1.5")
    matching = dataclasses.replace(protocol.matching, iou_thresholds=(threshold,))
    ap = protocol.ap if curve == "07" else dataclasses.replace(protocol.ap, interpolation="area")
    return dataclasses.replace(protocol, matching=matching, ap=ap)


@pytest.mark.parametrize("version", ["v1.0", "v1.5"])
@pytest.mark.parametrize("curve", ["07", "area"])
@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_every_ap_is_the_devkits_to_the_last_bit(
    tables: tuple[GroundTruth, Detections], version: str, curve: str, threshold: float
) -> None:
    path = real("dota", "evaluation_example", "expected_stable_sort.json")
    expected = json.loads(path.read_text())[f"{version} {curve} @{threshold:g}"]
    evaluation = boxscore.evaluate(*tables, protocol=devkit(version, curve, threshold))
    rows = {row["class"]: row["AP"] for row in evaluation.per_class.to_dict("records")}
    assert rows == {name: values["ap"] for name, values in expected["per_class"].items()}
    assert evaluation.metrics["mAP"] == expected["mean_of_these"]


def test_mmrotate_and_probiou(tables: tuple[GroundTruth, Detections]) -> None:
    path = real("dota", "evaluation_example", "expected_mmrotate_like.json")
    expected = json.loads(path.read_text())  # float32
    for protocol, kind in (("mmrotate", "iou"), ("mmrotate-probiou", "probiou")):
        evaluation = boxscore.evaluate(*tables, protocol=protocol)
        bounds = tie_bounds(evaluation).per_class
        for row, lowest, highest in zip(
            evaluation.per_class.to_dict("records"), bounds.lowest[:, 0], bounds.highest[:, 0], strict=True
        ):
            ap, truths, dropped, found = expected[f"{row['class']} {kind}"]
            if row["class"] == "small-vehicle":  # its sort is unstable, and equal scores decide the digits
                assert lowest <= ap <= highest
                assert row["AP"] == pytest.approx(ap, abs=5e-5)
            else:
                assert row["AP"] == pytest.approx(ap, abs=2e-7)
            assert (row["ground_truths"] + dropped, row["detections"]) == (truths, found)


def test_four_readings_of_one_folder(tables: tuple[GroundTruth, Detections]) -> None:
    found = {
        protocol: round(boxscore.evaluate(*tables, protocol=protocol).metrics["mAP"], 4)
        for protocol in ("dota", "dota-v1.5", "mmrotate", "mmrotate-probiou")
    }
    assert found == {"dota": 0.7146, "dota-v1.5": 0.7317, "mmrotate": 0.7413, "mmrotate-probiou": 0.7708}


def test_labels_have_headers_and_difficult_objects() -> None:
    truth = load_ground_truth(real("dota", "devkit_labelTxt"))
    assert len(truth.images) == 7
    assert truth.quadrilaterals is not None
    assert truth.images.columns["gsd"].shape == (7,)
    assert load_ground_truth(real("dota", "evaluation_example", "row_DOTA_labels")).difficult.sum() == 97


def test_an_hrsc_file(tmp_path: object) -> None:
    folder = real("dota", "mmrotate_tests")
    source = folder / "hrsc_100000006.xml"
    import pathlib

    annotations = pathlib.Path(str(tmp_path)) / "Annotations"
    annotations.mkdir()
    (annotations / "100000006.xml").write_bytes(source.read_bytes())
    truth = load_ground_truth(annotations.parent)
    assert truth.rotated is not None
    assert truth.rotated.tolist() == [[341.2143, 443.3325, 778.4297, 178.2595, -1.122944]]
    assert truth.categories.names.tolist() == ["ship"]
    assert truth.images.sizes.tolist() == [[1172, 816]]
