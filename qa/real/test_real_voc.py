"""Real detectors on real PASCAL VOC data, and the two kinds of files and of rules crossed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from oracles import kit
from oracles.pycoco import assert_equal_to_pycocotools, run_pycocotools
from support.real_data import real

pytestmark = pytest.mark.real

KIT = {"voc2007": "kit", "voc2007-numpy": "port", "voc2012": "area"}
DATABASE_TRUTHS = {
    "voc": "padilla_database/gts/pascalvoc_format",
    "coco_v1": "padilla_database/gts/coco_format_v1/instances_default.json",
    "coco_v2": "padilla_database/gts/coco_format_v2/instances_v2.json",
}
TOY_TRUTHS = {
    "voc": "padilla_toyexample/gts_vocpascal_format",
    "coco": "padilla_toyexample/gts_coco_format/toy_example_coco.JSON",
}
TOY_FOUND = "padilla_toyexample/dets_coco_format/coco_dets.json"
"""The other six encodings are neither COCO nor VOC form."""


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def voc2007() -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth = boxscore.load_ground_truth(real("voc2007/VOC2007"), image_set="test")
    return truth, boxscore.load_detections(real("voc2007/results/yolov2"), truth)


def ap_by_class(evaluation: boxscore.Evaluation) -> dict[str, float]:
    frame = evaluation.per_class
    return dict(zip(frame["class"].tolist(), frame["AP"].tolist(), strict=True))


# ---------------------------------------------------------------- voc2007, YOLOv2


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        ("voc2007", "ap11_kit"),
        ("voc2007-numpy", "ap11_numpy_arange"),
        ("voc2007-numpy", "ap11_published"),
        ("voc2012", "ap_area"),
    ],
)
def test_voc2007_equals_the_expected_ap_exactly(protocol: str, key: str) -> None:
    expected = read(real("voc2007/expected_yolov2.json"))
    evaluation = boxscore.evaluate(*voc2007(), protocol=protocol)
    assert ap_by_class(evaluation) == {name: row[key] for name, row in expected["per_class"].items()}
    assert evaluation.metrics == {"mAP": expected["mean"][key]}


def test_voc2007_counts() -> None:
    expected = read(real("voc2007/expected_yolov2.json"))["per_class"]
    evaluation = boxscore.evaluate(*voc2007(), protocol="voc2007")
    frame = evaluation.per_class.set_index("class")
    assert frame["ground_truths"].to_dict() == {name: row["n_positive"] for name, row in expected.items()}
    assert frame["detections"].to_dict() == {name: row["n_detections"] for name, row in expected.items()}
    counts = {key: evaluation.counts[key] for key in ("images", "ground_truths", "difficult", "detections")}
    assert counts == {"images": 4952, "ground_truths": 12032, "difficult": 2944, "detections": 98023}


@pytest.mark.parametrize("protocol", KIT)
def test_voc2007_does_not_depend_on_workers(protocol: str) -> None:
    one, five = (boxscore.evaluate(*voc2007(), protocol=protocol, workers=workers) for workers in (1, 5))
    assert ap_by_class(one) == ap_by_class(five)


@pytest.mark.slow
def test_coco_numbers_on_voc_files() -> None:
    truth, found = voc2007()
    evaluation = boxscore.evaluate(truth, found, protocol="coco")
    number = {identifier: row for row, identifier in enumerate(truth.images.ids.tolist(), start=1)}
    in_coco_form = {
        "images": [{"id": row} for row in number.values()],
        "categories": [
            {"id": int(i), "name": n}
            for i, n in zip(truth.categories.ids, truth.categories.names, strict=True)
        ],
        "annotations": records(truth, number),
    }
    results = [
        {**row, "score": score}
        for row, score in zip(records(found, number), found.scores.tolist(), strict=True)
    ]
    assert_equal_to_pycocotools(evaluation, run_pycocotools(in_coco_form, results))


def records(table: Any, number: dict[Any, int]) -> list[dict[str, Any]]:
    """Rows in COCO form from the public columns: corners to x, y, width, height."""
    x1, y1, x2, y2 = table.boxes.T
    bbox = np.stack([x1, y1, x2 - x1, y2 - y1], axis=1).tolist()
    image_ids = [number[identifier] for identifier in table.images.ids[table.image].tolist()]
    category_ids = table.categories.ids[table.category].tolist()
    return [
        {
            "id": row,
            "image_id": image,
            "category_id": category,
            "bbox": box,
            "area": box[2] * box[3],
            "iscrowd": 0,
        }
        for row, (image, category, box) in enumerate(zip(image_ids, category_ids, bbox, strict=True), start=1)
    ]


# ---------------------------------------------------------------- padilla_database


@cache
def database(truth_kind: str) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth = boxscore.load_ground_truth(real(DATABASE_TRUTHS[truth_kind]))
    return truth, boxscore.load_detections(real("padilla_database/dets/coco_format/coco_dets.json"), truth)


def test_database_voc_rules() -> None:
    expected = read(real("padilla_database/expected_voc_devkit_semantics.json"))
    for protocol, key, mean in (("voc2012", "ap_area", 0.613875), ("voc2007", "ap_11pt", 0.607511)):
        evaluation = boxscore.evaluate(*database("voc"), protocol=protocol)
        assert round(evaluation.metrics["mAP"], 6) == mean
        by_class = ap_by_class(evaluation)
        assert set(by_class) == set(expected["per_class"])
        for name, row in expected["per_class"].items():
            assert by_class[name] == pytest.approx(row[key], rel=4e-16), name  # their sum is not NumPy's
        frame = evaluation.per_class.set_index("class")
        assert frame["ground_truths"].to_dict() == {n: r["npos"] for n, r in expected["per_class"].items()}
        assert frame["detections"].to_dict() == {n: r["n_det"] for n, r in expected["per_class"].items()}


@pytest.mark.parametrize("protocol", KIT)
@pytest.mark.parametrize("truth_kind", ["voc", "coco_v1", "coco_v2"])
def test_database_equals_the_kit_in_plain_python(truth_kind: str, protocol: str) -> None:
    """VOC numbers on VOC files and on COCO files."""
    truth, found = database(truth_kind)
    objects = [
        kit.Object(*row)
        for row in zip(
            truth.image.tolist(),
            truth.category.tolist(),
            map(tuple, truth.boxes.tolist()),
            (truth.difficult | truth.crowd).tolist(),
            strict=True,
        )
    ]
    detections = [
        kit.Found(*row)
        for row in zip(
            found.image.tolist(),
            found.category.tolist(),
            found.scores.tolist(),
            map(tuple, found.boxes.tolist()),
            strict=True,
        )
    ]
    evaluation = boxscore.evaluate(truth, found, protocol=protocol)
    ours = evaluation.per_class["AP"].tolist()
    theirs = [
        kit.average_precision(objects, detections, k, rule=KIT[protocol])
        for k in range(len(truth.categories))
    ]
    assert np.array_equal(ours, theirs, equal_nan=True)


def test_database_loaders_agree() -> None:
    """The same 273 objects, whichever file they were read from; COCO forms know no difficult ones."""
    frames = {kind: database(kind)[0].to_pandas() for kind in DATABASE_TRUTHS}
    stems = {kind: database(kind)[0].images.file_names for kind in DATABASE_TRUTHS}
    assert {kind: len(frame) for kind, frame in frames.items()} == dict.fromkeys(DATABASE_TRUTHS, 273)
    assert frames["voc"]["difficult"].sum() == 38
    keyed = {}
    for kind, (truth, _) in {kind: database(kind) for kind in DATABASE_TRUTHS}.items():
        files = [Path(name).stem for name in stems[kind][truth.image]]
        labels = truth.categories.names[truth.category].tolist()
        corners = truth.boxes.round(6).tolist()
        keyed[kind] = sorted(zip(files, labels, corners, strict=True))
    assert keyed["voc"] == keyed["coco_v1"] == keyed["coco_v2"]


# ---------------------------------------------------------------- padilla_toyexample


@pytest.mark.parametrize("truth_kind", TOY_TRUTHS)
def test_toyexample_of_every_form_scores_alike(truth_kind: str) -> None:
    truth = boxscore.load_ground_truth(real(TOY_TRUTHS[truth_kind]))
    found = boxscore.load_detections(real(TOY_FOUND), truth)
    offset_0 = {"boxes": {"pixel_offset": 0}}
    scores = {}
    for name, extends, threshold in (
        ("11-point", "voc2007", 0.5),
        ("area", "voc2012", 0.5),
        ("11-point at .75", "voc2007", 0.75),
        ("area at .75", "voc2012", 0.75),
    ):
        rules = {"extends": extends, "matching": {"iou_thresholds": [threshold]}}
        scores[name] = [
            round(100 * boxscore.evaluate(truth, found, protocol=chosen).metrics["mAP"], 2)
            for chosen in (rules, {**rules, **offset_0})
        ]
    assert scores == {
        "11-point": [88.64, 88.64],
        "area": [89.58, 89.58],
        "11-point at .75": [49.24, 49.24],
        "area at .75": [50.97, 50.97],
    }
