"""What is measured: the data sets, how big they are, and who can run them.

Goal
----
One table of cases. ``compare.py`` runs them by name or by set, ``make_data.py`` writes the made-up ones.

Conventions
-----------
- Only the standard library: the harness itself stays small in memory and needs no environment.
- A case is two COCO files, one of ground truth and one of results, and the detection caps to evaluate with.
- ``small`` cases take minutes together, ``large`` ones the rest; ``real`` ones need data the project does
  not ship (``../shared/data`` or ``$BOXSCORE_REAL_DATA``) and are skipped with a message without it.
- A contender left out of a case has its reason here, and the report prints it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CASES", "CONVERTED", "Case", "DataSpec", "Files", "real_files", "real_folder"]

BENCHMARKS = Path(__file__).resolve().parent
PROJECT = BENCHMARKS.parent

COCO_CAPS = (1, 10, 100)

SLOW_PYTHON = "pure Python loops: half a minute and more at this size, and the small case already compares it"
TOO_BIG = "not tried: keeps a record per image, class and area range, expected to need more than 24 GB"
TOO_DEEP = "not tried: 200 times the detections of the capped image, where it takes 4.6 s"


@dataclass(frozen=True, slots=True)
class DataSpec:
    """How to make one ground truth and one results file; the same spec gives the same bytes.

    Attributes
    ----------
    layout : {"scenes", "one_image", "tied_scores"}
        Detector-like scenes, or one of two pathological corners.
    images, categories, ground_truths, detections : int
        Exact counts.
    image_cap : int
        The most detections an image keeps, as a detector's own last step does.
    full_precision : bool
        Boxes and scores as float32 arithmetic leaves them (17 digits in JSON) instead of rounded to 2 and 3
        decimals. Both occur in the wild.
    polygons : bool
        Ground truth with ``segmentation``, as the official files have.
    seed : int
    """

    layout: str
    images: int
    categories: int
    ground_truths: int
    detections: int
    image_cap: int
    full_precision: bool = False
    polygons: bool = False
    seed: int = 20


@dataclass(frozen=True, slots=True)
class Files:
    """The two files of a case."""

    ground_truth: Path
    detections: Path


@dataclass(frozen=True, slots=True)
class Case:
    """One row group of the report.

    Attributes
    ----------
    name, title : str
    group : {"small", "large", "real"}
    spec : DataSpec or None
        None for real data.
    caps : tuple of int
        Detection caps per image and class.
    kind : {"bbox", "segm", "keypoints"}
        What is compared. Masks and keypoints are made by ``masks.py``.
    left_out : dict of str to str
        Contender name to the reason why it does not run here.
    expected : dict of str to float
        Published values, to 4 decimals, that every contender must reach.
    """

    name: str
    title: str
    group: str
    spec: DataSpec | None = None
    caps: tuple[int, ...] = COCO_CAPS
    left_out: dict[str, str] = field(default_factory=dict)
    kind: str = "bbox"
    expected: dict[str, float] = field(default_factory=dict)


def _coco_val(detections: int, image_cap: int, *, full: bool = False) -> DataSpec:
    return DataSpec("scenes", 5_000, 80, 36_781, detections, image_cap, full_precision=full, polygons=full)


_KEYS = ("AP", "AP50", "AP75", "AR1", "AR10", "AR100")


def _expect(*values: float) -> dict[str, float]:
    return dict(zip(_KEYS, values, strict=True))


CASES = {
    case.name: case
    for case in (
        Case("coco_36k", "COCO val size, 36,000 detections", "small", _coco_val(36_000, 100)),
        Case(
            "coco_200k",
            "COCO val size, 200,000 detections",
            "small",
            _coco_val(200_000, 100),
            left_out={"pycocotools": SLOW_PYTHON},
        ),
        Case(
            "coco_500k",
            "COCO val size, 500,000 detections",
            "small",
            _coco_val(500_000, 300),
            left_out={"pycocotools": SLOW_PYTHON},
        ),
        Case(
            "coco_200k_full",
            "COCO val size, 200,000 detections, 17-digit numbers, ground truth with polygons",
            "large",
            _coco_val(200_000, 100, full=True),
            left_out={"pycocotools": SLOW_PYTHON},
        ),
        Case(
            "coco_500k_full",
            "COCO val size, 500,000 detections, 17-digit numbers, ground truth with polygons",
            "large",
            _coco_val(500_000, 300, full=True),
            left_out={"pycocotools": SLOW_PYTHON},
        ),
        Case(
            "objects365_2m",
            "Objects365 val size, 2,000,000 detections",
            "large",
            DataSpec("scenes", 80_000, 365, 1_200_000, 2_000_000, 100),
            left_out={"pycocotools": TOO_BIG, "faster-coco-eval": TOO_BIG},
        ),
        Case(
            "one_image",
            "One image, one class: 20,000 detections, 5,000 ground truths",
            "large",
            DataSpec("one_image", 1, 1, 5_000, 20_000, 20_000),
        ),
        Case(
            "one_image_uncapped",
            "The same image without COCO's cut to 100 detections (caps 1, 10, 20,000)",
            "large",
            DataSpec("one_image", 1, 1, 5_000, 20_000, 20_000),
            caps=(1, 10, 20_000),
            left_out={"pycocotools": TOO_DEEP},
        ),
        Case(
            "tied_scores",
            "One class, 500,000 detections, all of one score",
            "large",
            DataSpec("tied_scores", 5_000, 1, 36_781, 500_000, 200),
            left_out={"pycocotools": SLOW_PYTHON},
        ),
        Case(
            "keypoints",
            "Keypoints: 5,000 images, 40,000 detections of 17",
            "small",
            caps=(20,),
            kind="keypoints",
            left_out={
                "pycocotools": SLOW_PYTHON,
                "vernier": "its face for keypoints is another",
            },
        ),
        Case(
            "masks",
            "Masks: 5,000 images, 36,000 polygons, 100,000 RLE",
            "large",
            kind="segm",
            left_out={
                "pycocotools": SLOW_PYTHON,
                "vernier": "its face for masks is another",
            },
        ),
        Case("real_voc2007", "VOC 2007 test as COCO JSON, YOLOv2, 98,023 detections", "real"),
        Case("real_widerface", "WIDER FACE validation as COCO JSON, 123,525 detections", "real"),
        Case(
            "real_yolov2_608",
            "COCO val2017, YOLOv2 608, 12,457 detections",
            "real",
            expected=_expect(0.1938, 0.3180, 0.2116, 0.1732, 0.2195, 0.2195),
        ),
        Case(
            "real_yolact_base",
            "COCO val2017, 100 images, YOLACT base",
            "real",
            expected=_expect(0.3981, 0.6425, 0.4253, 0.3460, 0.4663, 0.4740),
        ),
        Case(
            "real_yolact_resnet50",
            "COCO val2017, 100 images, YOLACT ResNet-50",
            "real",
            expected=_expect(0.3587, 0.5908, 0.3481, 0.3130, 0.4265, 0.4352),
        ),
    )
}

CONVERTED = ("real_voc2007", "real_widerface")
"""Made into COCO JSON by ``real_data.py``, in a temporary folder."""

_REAL_DETECTIONS = {
    "real_yolov2_608": "yolov2_608.json",
    "real_yolact_base": "yolact_base_100.bbox.json",
    "real_yolact_resnet50": "yolact_resnet50_100.bbox.json",
}


def real_folder() -> Path:
    """Return the folder of real data: ``$BOXSCORE_REAL_DATA``, or beside the project."""
    return Path(os.environ.get("BOXSCORE_REAL_DATA") or PROJECT.parent / "shared" / "data")


def real_files(case: Case, scratch: Path) -> Files | None:
    """Find the real data of a case.

    YOLACT ran on 100 images, so the ground truth is cut to them. The cut goes to ``scratch``, a temporary
    folder of the caller's: real data is never copied into the project.

    Returns
    -------
    Files or None
        None when the data is not on this machine.
    """
    folder = real_folder() / "coco_val2017"
    ground_truth = folder / "ground_truth_boxes.json"
    detections = folder / _REAL_DETECTIONS[case.name]
    if not (ground_truth.is_file() and detections.is_file()):
        return None
    if "yolact" in case.name:
        keep = set(json.loads((folder / "yolact_image_ids.json").read_text()))
        full = json.loads(ground_truth.read_text())
        full["images"] = [image for image in full["images"] if image["id"] in keep]
        full["annotations"] = [row for row in full["annotations"] if row["image_id"] in keep]
        ground_truth = scratch / f"{case.name}_ground_truth.json"
        ground_truth.write_text(json.dumps(full))
    return Files(ground_truth, detections)
