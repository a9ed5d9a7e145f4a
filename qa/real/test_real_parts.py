"""Every real pair in parts of random images, saved and read again: the bits of one evaluation, whatever the rules.

Merged at once, and reduced class by class with the large classes by ranges of scores.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.distributed import Part, merge, part_of, scan
from boxscore.extensions.weights.resampling import Draws, Groups
from boxscore.formats.reading import read_detections, read_options
from support import limits
from support.insides import distributed_evaluation
from support.parted import Tables, bits, parts_of
from support.quiet import quiet
from support.real_data import real, unpacked

pytestmark = pytest.mark.real

COCO_BOXES = "coco_val2017/ground_truth_boxes.json"
KEYPOINTS = "coco_keypoints250/person_keypoints.json"
MASKS = "coco_val2017_masks206/instances.json"
FAKE = "coco_val2014_fake100/instances_val2014"
DOTA, OPEN_IMAGES, CROWDS = "dota/evaluation_example", "openimages/sample", "crowd"
PADILLA = ("padilla_database/gts/pascalvoc_format", "padilla_database/dets/coco_format/coco_dets.json")


def read(truth: str, found: str, *, any_sides: bool = False, **options: Any) -> Tables:
    with quiet():
        ground_truth = boxscore.load_ground_truth(real(truth), **options)
        if any_sides:
            return ground_truth, read_detections(real(found), ground_truth, read_options(any_sides=True))
        return ground_truth, boxscore.load_detections(real(found), ground_truth)


def yolact(kind: str) -> Tables:
    tables = read(COCO_BOXES, f"coco_val2017/yolact_{kind}_100.bbox.json")
    ids = json.loads(real("coco_val2017/yolact_image_ids.json").read_text())
    with quiet():
        chosen = boxscore.evaluate(*tables, images=ids)
    return chosen.ground_truth, chosen.detections


def open_images(boxes: str, predictions: str, labels: str, **options: str) -> Tables:
    paths = {name: real(OPEN_IMAGES, file) for name, file in {"image_labels": labels, **options}.items()}
    return read(f"{OPEN_IMAGES}/{boxes}", f"{OPEN_IMAGES}/{predictions}", any_sides=True, **paths)


def dota() -> Tables:
    return read(
        f"{DOTA}/row_DOTA_labels", f"{DOTA}/result_classname", image_set=real(DOTA, "imgnamefile.txt")
    )


def wider_face() -> Tables:
    truth = boxscore.load_ground_truth(real(CROWDS, "widerface", "ground_truth"))
    with unpacked(real(CROWDS, "widerface", "widerface_txt.tar.gz")) as folder:
        return truth, boxscore.load_detections(folder / "widerface_txt", truth)


def visdrone() -> Tables:
    sizes = json.loads(real(CROWDS, "visdrone", "sizes.json").read_text())
    sizes = {name: (width, height) for name, (height, width) in sizes.items()}
    return read("crowd/visdrone/annotations", "crowd/visdrone/results", image_sizes=sizes)


def pair(*paths: str, **options: Any) -> Callable[[], Tables]:
    return lambda: read(*paths, **options)


PAIRS: dict[str, Callable[[], Tables]] = {
    "COCO, YOLOv2": pair(COCO_BOXES, "coco_val2017/yolov2_608.json"),
    "COCO, boxes in another order": pair(COCO_BOXES, "coco_val2017/yolov2_416_wrong_box_order.json"),
    "COCO, YOLACT": lambda: yolact("base"),
    "COCO, YOLACT of ResNet-50": lambda: yolact("resnet50"),
    "COCO, true areas": pair(MASKS, "coco_val2017_masks206/yolov2_608.json"),
    "COCO, masks of YOLACT": pair(MASKS, "coco_val2017_masks206/yolact_base.segm.json"),
    "COCO 2014, boxes": pair(f"{FAKE}_100.json", f"{FAKE}_fakebbox100_results.json"),
    "COCO 2014, masks": pair(f"{FAKE}_100.json", f"{FAKE}_fakesegm100_results.json"),
    "brain tumors": pair("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json"),
    "keypoints, a": pair(KEYPOINTS, "coco_keypoints250/openpose_a.json"),
    "keypoints, b": pair(KEYPOINTS, "coco_keypoints250/openpose_b.json"),
    "LVIS": pair("lvis/lvis_val_100.json", "lvis/detections_bbox.json", any_sides=True),
    "LVIS, masks": pair("lvis/lvis_val_100.json", "lvis/detections_segm.json"),
    "LVIS, made up": pair("lvis/own/ground_truth.json", "lvis/own/detections_bbox.json"),
    "LVIS, made-up masks": pair("lvis/own/ground_truth.json", "lvis/own/detections_segm.json"),
    "Open Images": lambda: open_images(
        "boxes_expanded.csv", "predictions_expanded.csv", "labels_expanded.csv"
    ),
    "Open Images, not expanded": lambda: open_images("boxes.csv", "predictions.csv", "labels.csv"),
    "Open Images, masks": lambda: open_images(
        "boxes_expanded.csv",
        "mask_predictions.csv",
        "labels_expanded.csv",
        segments="segments_expanded.csv",
    ),
    "PASCAL VOC 2007": pair("voc2007/VOC2007", "voc2007/results/yolov2", image_set="test"),
    "Padilla's database": pair(*PADILLA),
    "Padilla's toy example": pair(
        "padilla_toyexample/gts_vocpascal_format", "padilla_toyexample/dets_coco_format/coco_dets.json"
    ),
    "DOTA": dota,
    "CrowdHuman": pair(
        "crowd/crowdhuman/mmdet_sample/annotation.odgt", "crowd/crowdhuman/mmdet_sample/detections.odgt"
    ),
    "WIDER FACE": wider_face,
    "VisDrone": visdrone,
}

OWN_RULES: dict[str, dict[str, Any]] = {
    "coco, pooled": {"extends": "coco", "matching": {"per_class": False}},
    "lvis-fixed, 20": {"extends": "lvis-fixed", "matching": {"max_detections": [20]}},
    "visdrone at points": {
        "extends": "visdrone",
        "ap": {"interpolation": "points", "class_mean": "of_defined"},
    },
    "crowds of unknown size": {"extends": "crowdhuman", "boxes": {"clip": "none"}},
    "FROC": {"extends": "coco", "summary": [{"key": "FROC", "metric": "FROC"}, {"key": "AP"}]},
}

RULES: dict[str, list[str]] = {
    "COCO, YOLOv2": ["coco", "crowds of unknown size", "FROC"],
    "COCO, boxes in another order": ["coco"],
    "COCO, YOLACT": ["coco", "coco, pooled", "torchmetrics"],
    "COCO, YOLACT of ResNet-50": ["coco", "ultralytics", "supervision"],
    "COCO, true areas": ["coco", "coco, pooled", "crowdhuman"],
    "COCO, masks of YOLACT": ["coco-segm", "coco-boundary"],
    "COCO 2014, boxes": ["coco", "tide", "crowdhuman"],
    "COCO 2014, masks": ["coco-segm"],
    "brain tumors": ["coco", "coco-segm", "coco-boundary"],
    "keypoints, a": ["coco-keypoints"],
    "keypoints, b": ["coco-keypoints"],
    "LVIS": ["lvis", "lvis-fixed", "lvis-fixed, 20", "lvis-pooled"],
    "LVIS, masks": ["lvis-segm", "lvis-challenge-2021", "lvis-boundary"],
    "LVIS, made up": ["lvis", "lvis-fixed, 20", "lvis-pooled"],
    "LVIS, made-up masks": ["lvis-segm", "lvis-fixed-segm"],
    "Open Images": ["openimages-challenge", "openimages-v2"],
    "Open Images, not expanded": ["openimages-challenge"],
    "Open Images, masks": ["openimages-segmentation", "openimages-segmentation-weight-0"],
    "PASCAL VOC 2007": ["voc2007", "voc2012", "voc2007-numpy", "detectron2-voc2007", "cartucho"],
    "Padilla's database": ["voc2007", "voc2012", "padilla-voc", "padilla-coco", "chainercv-voc2012"],
    "Padilla's toy example": ["padilla-voc", "padilla-voc2007", "globox"],
    "DOTA": ["dota", "dota-v1.5", "dota-task2", "mmrotate", "mmrotate-probiou", "hrsc", "ultralytics-obb"],
    "CrowdHuman": ["crowdhuman"],
    "WIDER FACE": ["widerface"],
    "VisDrone": ["visdrone", "visdrone at points"],
}


@cache
def tables_of(name: str) -> Tables:
    return PAIRS[name]()


def test_every_pair_has_rules() -> None:
    assert [*RULES] == [*PAIRS]


@pytest.mark.parametrize(("name", "rules"), [(name, rules) for name in RULES for rules in RULES[name]])
def test_the_bits_of_one_process(name: str, rules: str) -> None:
    protocol = boxscore.load_protocol({"name": "own", **OWN_RULES[rules]} if rules in OWN_RULES else rules)
    with quiet():
        result = boxscore.evaluate(*tables_of(name), protocol=protocol)
    expected = bits(result)
    random = np.random.default_rng(len(name) + len(rules))
    partition = random.integers(0, int(random.integers(2, 8)), len(result.images))
    parts = parts_of(tables_of(name), protocol, partition)
    saved = [Part.from_bytes(part.to_bytes()) for part in random.permutation(np.array(parts, dtype=object))]
    assert bits(merge(saved)) == expected
    largest = int(result.class_counts["detections"].max(initial=0))
    assert bits(distributed_evaluation(saved, most=largest // 3 + 1)) == expected
    assert bits(merge([part_of(result)])) == expected


@pytest.mark.parametrize("name", ["COCO, true areas", "PASCAL VOC 2007", "WIDER FACE", "VisDrone"])
def test_images_are_weighed_in_parts(name: str) -> None:
    """Draws and slices: all classes at once, and class by class, the large ones by ranges of scores."""
    rules = RULES[name][0]
    protocol = boxscore.load_protocol(rules)
    with quiet():
        result = boxscore.evaluate(*tables_of(name), protocol=protocol)
        images, rows = len(result.images), protocol.rows
        parts = parts_of(tables_of(name), protocol, np.arange(images) % 3)
    for weights in (Draws.of_seed(images, 3, 0), Groups((np.arange(images) % 4).astype(np.uint8), 0, 3)):
        expected = [one.tobytes() for one in result._weighted_metrics(rows, weights)]
        assert [one.tobytes() for one in merge(parts)._weighted_metrics(rows, weights)] == expected
        with pytest.MonkeyPatch.context() as patch:
            limits.few_detections_at_a_time(patch, 1000)
            ours = distributed_evaluation(parts)._weighted_metrics(rows, weights)
        assert [one.tobytes() for one in ours] == expected


@pytest.mark.parametrize("name", ["COCO, true areas", "PASCAL VOC 2007", "WIDER FACE", "VisDrone"])
def test_scans(name: str) -> None:
    rules = RULES[name][0]
    with quiet():
        expected = bits(boxscore.evaluate(*tables_of(name), protocol=rules))
        assert bits(scan(*tables_of(name), protocol=rules, partitions=3)) == expected


def test_bytes_of_a_detection(tmp_path: Path) -> None:
    """12,457 detections, 36,781 objects: what crowds ask for takes nothing where nobody asks."""
    result = boxscore.evaluate(*tables_of("COCO, YOLOv2"))
    matches = part_of(result).matches
    assert matches.nbytes / len(result.matched) < 21
    assert not matches.extra
