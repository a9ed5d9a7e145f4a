"""``COCO`` and ``mask`` beside the reference: the same answers, the same text, the same exceptions."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from side_by_side import OURS, REFERENCE, Library, load, outcome, random_dataset, same

from support.each import each

# pycocotools' compiled decode, under NumPy 2.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning")


def both(function: Any, dataset: Any, results: Any = ()) -> None:
    """Call with each library's ground truth and results; compare value, text and what became of both."""
    answers = []
    for library in (REFERENCE, OURS):
        truth, found = load(library, dataset, list(results))
        given = copy.deepcopy(list(results))
        answers.append((outcome(lambda: function(library, truth, found, given)), truth.dataset, given))  # noqa: B023
    assert same(*answers), answers


def random_filters(rng: np.random.Generator) -> dict[str, Any]:
    def pick(*values: Any) -> Any:
        return values[rng.integers(len(values))]

    return {
        "images": pick([], 7, [7, 8], [8, 7, 7, 1000], np.array([7, 9]), (8,)),
        "categories": pick([], 2, [2, 3], [3, 1000], np.array([2, 4]), (3, 3)),
        "areas": pick([], [0, 1024], [64, np.inf], [16.0, 16.0]),
        "crowd": pick(None, 0, 1, True, False),
        "names": pick([], "class 2", ["class 2", "class 3"], "class 2 and class 3", ["class"], ("class 4",)),
        "groups": pick([], "group 0", ["group 1"], "group 0, group 1"),
    }


@each(range(80))
def test_look_ups(seed: int) -> None:
    rng = np.random.default_rng([seed, 50])
    dataset, _ = random_dataset(rng)
    if seed % 5 == 0:
        for annotation in dataset["annotations"]:
            annotation["id"] //= 2
    if seed % 7 == 0:
        del dataset["annotations"][0]["area"]
    f = random_filters(rng)
    for question in (
        lambda _, truth, *__: truth.getAnnIds(f["images"], f["categories"], f["areas"], f["crowd"]),
        lambda _, truth, *__: truth.getAnnIds(catIds=f["categories"], iscrowd=f["crowd"]),
        lambda _, truth, *__: truth.getCatIds(f["names"], f["groups"], f["categories"]),
        lambda _, truth, *__: truth.getCatIds(catNms=f["names"]),
        lambda _, truth, *__: truth.getImgIds(f["images"], f["categories"]),
        lambda _, truth, *__: truth.getImgIds(),
        lambda _, truth, *__: truth.loadImgs(f["images"]),
        lambda _, truth, *__: truth.loadCats(f["categories"]),
        lambda _, truth, *__: truth.loadAnns(truth.getAnnIds(imgIds=f["images"])),
        lambda _, truth, *__: truth.loadAnns(1),
        lambda _, truth, *__: truth.loadAnns(np.int64(1)),
        lambda _, truth, *__: [dict(truth.anns), dict(truth.imgToAnns), dict(truth.catToImgs), truth.imgs],
        lambda _, truth, *__: truth.info(),
    ):
        both(question, dataset)


@pytest.mark.parametrize("key", ["annotations", "categories", "images", "info"])
def test_files_that_lack_a_part(key: str) -> None:
    dataset, _ = random_dataset(np.random.default_rng(0))
    del dataset[key]
    for question in (
        lambda _, truth, *__: [truth.anns, truth.cats, truth.imgs, dict(truth.catToImgs)],
        lambda _, truth, *__: truth.getAnnIds(),
        lambda _, truth, *__: truth.getCatIds(),
        lambda _, truth, *__: truth.info(),
        lambda library, truth, *_: library.COCOeval(truth, truth, "bbox").params.imgIds,
    ):
        both(question, dataset)


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
@pytest.mark.parametrize("seed", range(10))
def test_load_results(kind: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([seed, 60])
    dataset, results = random_dataset(rng, kind)
    if kind == "segm" and seed % 2:
        for result in results[seed % 4 :: 2]:
            result["bbox"] = [1.0, 2.0, 3.0, 4.0]
    elif kind == "segm" and seed % 4 == 0:
        results[0]["bbox"] = []

    def read(_: Library, truth: Any, __: Any, given: Any) -> Any:
        loaded = truth.loadRes(given)
        assert type(loaded) is not dict
        return [loaded.dataset, loaded.anns, dict(loaded.imgToAnns)]

    both(read, dataset, results)
    if kind != "segm":
        path = tmp_path / "results.json"
        path.write_text(json.dumps(results))
        both(lambda _, truth, *__: truth.loadRes(str(path)).dataset, dataset)
        both(lambda _, truth, *__: truth.loadRes(path).dataset, dataset)  # an assertion: str only


def test_other_results() -> None:
    dataset, results = random_dataset(np.random.default_rng(1))
    rows = np.array(
        [[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in results], dtype=np.float32
    )
    captions = [{"image_id": 7, "caption": "a cat"}, {"image_id": 9, "caption": "a dog"}]
    for given in (
        rows,
        rows.astype(np.float64),
        rows[:, :6],
        captions,
        [],
        tuple(results),
        [{"image_id": 1000, "bbox": [0, 0, 1, 1], "score": 1.0, "category_id": 2}],
        [{"image_id": 7, "score": 1.0, "category_id": 2}],
        [{"category_id": 2}],
        {},
    ):
        both(lambda _, truth, *__, given=given: truth.loadRes(copy.deepcopy(given)).dataset, dataset)
        both(lambda _, truth, *__, given=given: truth.loadNumpyAnnotations(given), dataset)


@pytest.mark.parametrize("seed", range(10))
def test_masks_of_annotations(seed: int) -> None:
    dataset, results = random_dataset(np.random.default_rng([seed, 70]), "segm")
    both(lambda _, truth, *__: [truth.annToRLE(ann) for ann in truth.anns.values()], dataset)
    both(lambda _, truth, *__: [truth.annToMask(ann) for ann in truth.anns.values()], dataset)
    both(lambda _, __, found, ___: [found.annToMask(ann) for ann in found.anns.values()], dataset, results)


def test_mask_functions() -> None:
    rng = np.random.default_rng(2)
    stack = np.asfortranarray(rng.random((9, 7, 4)) < 0.5, dtype=np.uint8)
    answers = []
    for library in (REFERENCE, OURS):
        mask = library.mask
        codes = mask.encode(stack)
        answers.append(
            [
                codes,
                mask.encode(stack[:, :, 0]),
                outcome(lambda m=mask: m.encode(np.ascontiguousarray(stack[:, :, 1]))),
                outcome(lambda m=mask: m.encode(stack[None])),
                outcome(lambda m=mask: m.encode(stack.astype(float))),
                mask.decode(codes),
                mask.decode(codes[0]),
                mask.area(codes),
                mask.area(codes[0]),
                mask.toBbox(codes),
                mask.toBbox(codes[0]),
                mask.iou(codes, codes, [0, 1, 0, 1]),
                mask.merge(codes),
                mask.merge(codes, intersect=1),
                mask.frPyObjects([[0, 0, 5, 0, 5, 5]], 9, 7),
            ]
        )
    assert same(*answers)


def test_reading_a_file(tmp_path: Path) -> None:
    dataset, _ = random_dataset(np.random.default_rng(3))
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(dataset))
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "broken.json").write_text("{")
    for name in ("truth.json", "list.json", "broken.json", "none.json"):
        for given in (tmp_path / name, str(tmp_path / name)):
            one, other = (
                outcome(lambda given=given, library=library: library.COCO(given).dataset)
                for library in (REFERENCE, OURS)
            )
            assert same(one, other)


def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, _ = random_dataset(np.random.default_rng(4))
    for image in dataset["images"]:
        image["coco_url"] = f"http://nowhere.invalid/{image['id']}"
    answers = []
    for library, module in ((REFERENCE, "pycocotools.coco"), (OURS, "boxscore.compat.pycocotools.coco")):
        fetched: list[str] = []
        monkeypatch.setattr(f"{module}.urlretrieve", lambda url, name, into=fetched: into.append(url))
        truth, _ = load(library, dataset, [])
        folder = tmp_path / module / "images"
        answers.append(
            [outcome(truth.download), outcome(lambda t=truth, f=folder: t.download(str(f), [7, 8])), fetched]
        )
        assert folder.is_dir()
    assert same(*answers)


def test_show_annotations() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pictures = []
    for kind in ("segm", "keypoints"):
        dataset, _ = random_dataset(np.random.default_rng(5), kind)
        dataset["categories"] = [{**c, "skeleton": [[1, 2], [3, 4]]} for c in dataset["categories"]]
        for library in (REFERENCE, OURS):
            truth, _ = load(library, dataset, [])
            figure = plt.figure()
            np.random.seed(0)  # noqa: NPY002 - the reference draws its colors from it
            outcome(lambda t=truth: t.showAnns(list(t.anns.values()), draw_bbox=True))
            figure.canvas.draw()
            pictures.append(np.asarray(figure.canvas.buffer_rgba()).copy())
            plt.close(figure)
            assert truth.showAnns([]) == 0
            assert outcome(lambda t=truth: t.showAnns([{"caption": "a cat"}])) == (None, "a cat\n")
            assert outcome(lambda t=truth: t.showAnns([{}]))[0] == "Exception"
    assert same(pictures[0], pictures[1])
    assert same(pictures[2], pictures[3])
