"""What RF-DETR's maintainers met when they tried a drop-in (hotcoco, issue 5): seven findings, four of them silent."""

from __future__ import annotations

import contextlib
import copy
import io
import subprocess
import sys
from typing import Any

import numpy as np
import pycocotools.coco
import pycocotools.cocoeval
import pycocotools.mask
import pytest

from boxscore.compat import faster_coco_eval
from boxscore.compat.pycocotools import coco, cocoeval, mask

Library = tuple[Any, Any, Any]
REFERENCE: Library = (pycocotools.coco.COCO, pycocotools.cocoeval.COCOeval, pycocotools.mask)
FACES: dict[str, Library] = {
    "pycocotools": (coco.COCO, cocoeval.COCOeval, mask),
    "faster_coco_eval": (faster_coco_eval.COCO, faster_coco_eval.COCOeval_faster, faster_coco_eval.core.mask),
}


def dataset(seed: int = 0, *, scored: bool, sizes: bool = True, names: bool = True) -> dict[str, Any]:
    """A data set as torchmetrics and RF-DETR build it in memory, with masks and their own keys."""
    rng = np.random.default_rng(seed)
    rows, boxes = [], np.random.default_rng(7).integers(0, 30, (40, 2))
    for number, corner in enumerate(boxes.tolist()):
        x, y = (np.array(corner) + (rng.integers(-2, 3, 2) if scored else 0)).clip(0).tolist()
        w, h = 8 + 3 * (number % 7), 6 + 4 * (number % 5)
        pixels = np.zeros((70, 80), dtype=np.uint8, order="F")
        pixels[y : y + h, x : x + w - number % 3] = 1
        code = pycocotools.mask.encode(pixels)
        row = {
            "id": number + 1,
            "image_id": number % 5,
            "category_id": number % 3,
            "bbox": [float(x), float(y), float(w), float(h)],
            "area_bbox": float(w * h) * 12,
            "area_segm": int(pycocotools.mask.area(code)) * 4,
            "area": float(w * h) * 12,
            "iscrowd": int(not scored and number % 11 == 0),
            "segmentation": code,
        }
        rows.append(row | {"score": float(rng.random())} if scored else row)
    size = {"height": 70, "width": 80} if sizes else {}
    return {
        "images": [{"id": i, **size} for i in range(5)],
        "annotations": rows,
        "categories": [{"id": k, **({"name": str(k)} if names else {})} for k in range(3)],
    }


def indexed(library: Library, data: dict[str, Any]) -> Any:
    """Finding 3: ``dataset`` and ``createIndex`` on an empty object."""
    made = library[0]()
    made.dataset = data
    with contextlib.redirect_stdout(io.StringIO()):
        made.createIndex()
    return made


def numbers(library: Library, truth: Any, found: Any, kind: str, **params: Any) -> list[float]:
    evaluation = library[1](truth, found, iouType=kind)  # finding 6: by this name
    for name, value in params.items():
        setattr(evaluation.params, name, value)
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [float(value) for value in evaluation.stats[:12]]


def compared(
    face: str, kind: str = "bbox", data: Any = None, **params: Any
) -> tuple[list[float], list[float]]:
    results = []
    for library in (REFERENCE, FACES[face]):
        truth, found = copy.deepcopy(data or (dataset(scored=False), dataset(1, scored=True)))
        results.append(numbers(library, indexed(library, truth), indexed(library, found), kind, **params))
    return results[0], results[1]


each_face = pytest.mark.parametrize("face", FACES)


@each_face
@pytest.mark.parametrize("spelling", [bytes, str])
def test_1_counts_of_masks_as_bytes_and_as_text(face: str, spelling: type) -> None:
    data = dataset(scored=False), dataset(1, scored=True)
    reference, _ = compared("pycocotools", "segm", data)
    for side in data if spelling is str else ():
        for row in side["annotations"]:
            row["segmentation"]["counts"] = row["segmentation"]["counts"].decode()
    library = FACES[face]
    ours = numbers(library, *(indexed(library, side) for side in data), "segm")
    assert ours == reference
    assert ours[0] > 0.3


@each_face
@pytest.mark.parametrize(
    "params",
    [
        {"maxDets": [1, 2, 3]},
        {"maxDets": [1, 10, 100], "iouThrs": np.array([0.5, 0.75])},
        {"recThrs": np.array([0.0, 0.25, 0.5])},
        {"catIds": [2]},
        {"imgIds": [0, 3]},
        {"useCats": 0},
    ],
)
def test_2_parameters_set_in_place_are_read(face: str, params: dict[str, Any]) -> None:
    reference, ours = compared(face, **params)
    if face == "faster_coco_eval" and params.get("maxDets") == [1, 2, 3]:
        assert (reference[0], ours[0] > 0) == (-1, True)  # of the largest, where pycocotools has none
        reference, ours = reference[1:], ours[1:]
    assert ours == reference
    assert ours != compared(face)[1][-len(ours) :]


@each_face
def test_3_an_index_is_made_when_asked_for(face: str) -> None:
    made = indexed(FACES[face], dataset(scored=False))
    expected = indexed(REFERENCE, dataset(scored=False))
    assert sorted(made.imgs) == sorted(expected.imgs)
    assert made.getAnnIds(imgIds=[2]) == expected.getAnnIds(imgIds=[2])
    assert compared(face)[0] == compared(face)[1]


@each_face
def test_4_areas_written_between_two_evaluations_are_read(face: str) -> None:
    results = []
    for library in (REFERENCE, FACES[face]):
        truth, found = indexed(library, dataset(scored=False)), indexed(library, dataset(1, scored=True))
        of_library = []
        for kind in ("bbox", "segm"):
            for side in (truth, found):
                for row in side.dataset["annotations"]:
                    row["area"] = row[f"area_{kind}"]
            of_library.append(numbers(library, truth, found, "bbox"))
        results.append(of_library)
    assert results[0] == results[1]
    assert results[1][0] != results[1][1]


@each_face
def test_5_boolean_masks_are_encoded(face: str) -> None:
    pixels = np.random.default_rng(0).random((13, 17)) < 0.4
    expected = pycocotools.mask.encode(np.asfortranarray(pixels, dtype=np.uint8))
    assert FACES[face][2].encode(np.asfortranarray(pixels)) == expected
    stack = np.asfortranarray(np.stack([pixels, ~pixels], axis=-1))
    assert FACES[face][2].encode(stack)[0] == expected


@each_face
def test_6_the_type_is_given_by_name(face: str) -> None:
    truth = indexed(FACES[face], dataset(scored=False))
    found = indexed(FACES[face], dataset(1, scored=True))
    assert FACES[face][1](truth, found, iouType="segm").params.iouType == "segm"


@each_face
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_7_images_without_sizes_and_categories_without_names(face: str, kind: str) -> None:
    bare = tuple(dataset(seed, scored=bool(seed), sizes=False, names=False) for seed in (0, 1))
    if kind == "bbox":
        for side in bare:
            for row in side["annotations"]:
                del row["segmentation"]
        whole = compared("pycocotools")[0]
        reference, ours = compared(face, data=bare)
        assert reference == ours == whole
        return
    for library in (REFERENCE, FACES[face]):
        with pytest.raises(KeyError, match=r"height|width"):  # as in pycocotools
            numbers(library, *(indexed(library, copy.deepcopy(side)) for side in bare), kind)


@pytest.mark.long
@each_face
def test_nothing_is_printed_behind_pythons_back(face: str) -> None:
    """Whoever redirects ``sys.stdout`` gets everything: no text goes to the descriptors, and nothing is warned."""
    code = (
        "import sys, warnings\nsys.path[:0] = sys.argv[1:]\nwarnings.simplefilter('error')\n"
        f"from test_adoption import *\nprint(len(compared({face!r}, maxDets=[1, 10, 500])[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *[path for path in sys.path if path]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("12\n", "")
