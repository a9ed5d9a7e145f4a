"""Two results of one model: how boxes pair, what is counted, and which cause fits a made mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxscore import Detections, InputError, box_iou
from boxscore.data.vocabulary import Images
from boxscore.parity import DetectionDiff, diff_detections
from support.running import Run

SIZES = [[1280, 720], [500, 375], [640, 640], [427, 640], [800, 800], [640, 480]]


def _model(seed: int = 0) -> dict[str, Any]:
    """Make detections of 18 images without duplicates of a class."""
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(1, 19), 12)
    size = np.array(SIZES)[(image - 1) % len(SIZES)]
    # one box per cell of a grid, so that boxes of an image hardly overlap
    cell = np.tile(np.arange(12), 18)
    corner = np.stack((cell % 4, cell // 4), axis=1) * size / [4, 3] + rng.uniform(2, 15, (len(image), 2))
    sides = size / [4, 3] * rng.uniform(0.4, 0.8, (len(image), 2))
    boxes = np.round(np.concatenate((corner, corner + sides), axis=1), 2)
    scores = np.round(rng.permutation(np.linspace(0.01, 0.99, len(image))), 6)
    return {
        "image": image,
        "class": rng.integers(1, 6, len(image)),
        "boxes": boxes,
        "scores": scores,
        "size": size,
    }


def _table(model: dict[str, Any], *, sizes: bool = True) -> Detections:
    ids = np.unique(model["image"]).tolist()
    extent = [SIZES[(number - 1) % len(SIZES)] for number in ids]
    images = Images.build(ids, sizes=extent if sizes else None)
    return Detections.from_arrays(
        model["image"], model["class"], model["boxes"], model["scores"], images=images
    )


def _rows(model: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: column[rows] for name, column in model.items()}


def _letterbox(model: dict[str, Any]) -> tuple[Any, Any]:
    gain = 640 / model["size"].max(axis=1, keepdims=True)
    return gain, np.tile((640 - model["size"] * gain) / 2, 2)


def _with(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda model: {**model, name: change(model)}


def _read_as_sizes(model: dict[str, Any]) -> Any:
    boxes = model["boxes"]
    return np.concatenate((boxes[:, :2], boxes[:, :2] + boxes[:, 2:]), axis=1)


def _best_of_image(model: dict[str, Any]) -> Any:
    order = np.argsort(-model["scores"])
    first = np.concatenate([[row for row in order if model["image"][row] == one][:5] for one in range(1, 19)])
    return _rows(model, np.sort(first))


def _noisy(scores: float, pixels: float, drop: float = 0.0) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(model: dict[str, Any]) -> dict[str, Any]:
        rng = np.random.default_rng(1)
        noise = rng.normal(0, scores, len(model["scores"]))
        return {
            **model,
            "scores": np.clip(model["scores"] * (1 - drop) + noise, 0, 1),
            "boxes": model["boxes"] + rng.normal(0, pixels, model["boxes"].shape),
        }

    return change


def _doubled(model: dict[str, Any]) -> dict[str, Any]:
    more = {**model, "boxes": model["boxes"] + 1, "scores": model["scores"] * 0.5}
    return {name: np.concatenate((model[name], more[name])) for name in model}


MISTAKES: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "padding kept": ("geometry", _with("boxes", lambda m: m["boxes"] + _letterbox(m)[1] / _letterbox(m)[0])),
    "input pixels": ("geometry", _with("boxes", lambda m: m["boxes"] * _letterbox(m)[0] + _letterbox(m)[1])),
    "stretched": (
        "geometry",
        _with(
            "boxes",
            lambda m: (m["boxes"] * _letterbox(m)[0] + _letterbox(m)[1]) * np.tile(m["size"], 2) / 640,
        ),
    ),
    "half a pixel": ("shift", _with("boxes", lambda m: m["boxes"] + 0.5)),
    "x and y": ("box format", _with("boxes", lambda m: m["boxes"][:, [1, 0, 3, 2]])),
    "corners as sizes": ("box format", _with("boxes", _read_as_sizes)),
    "rounded": ("whole pixels", _with("boxes", lambda m: np.round(m["boxes"]))),
    "cut off": ("whole pixels", _with("boxes", lambda m: np.trunc(m["boxes"]))),
    "three digits": ("digits of scores", _with("scores", lambda m: np.round(m["scores"], 3))),
    "half precision": (
        "half precision",
        _with("scores", lambda m: m["scores"].astype(np.float16).astype(float)),
    ),
    "squared": ("score function", _with("scores", lambda m: m["scores"] ** 2)),
    "logits": ("score function", _with("scores", lambda m: np.log(m["scores"] / (1 - m["scores"])))),
    "two sigmoids": ("score function", _with("scores", lambda m: 1 / (1 + np.exp(-m["scores"])))),
    "threshold": ("score threshold", lambda m: _rows(m, m["scores"] >= 0.25)),
    "cap": ("max detections", _best_of_image),
    "no NMS": ("NMS missing", _doubled),
    "classes from 0": ("class offset", _with("class", lambda m: m["class"] - 1)),
    "two classes": ("class order", _with("class", lambda m: np.array([0, 1, 4, 3, 2, 5])[m["class"]])),
    "images lost": ("images missing", lambda m: _rows(m, m["image"] % 5 != 0)),
    "images from 0": ("image ids", _with("image", lambda m: m["image"] - 1)),
    "another input": ("input", _noisy(0.03, 3, 0.3)),
    "float16 inside": ("precision", _noisy(0.001, 0.2)),
    "int8": ("precision", _noisy(0.03, 1.5)),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_cause_of_a_mistake(mistake: str, seed: int) -> None:
    name, change = MISTAKES[mistake]
    model = _model(seed)
    diff = diff_detections(_table(model), _table(change(model)))
    assert [cause.name for cause in diff.causes] == [name]
    assert diff.causes[0].obeying >= 0.95 * diff.causes[0].of


def test_the_same_result_has_no_cause_in_any_order() -> None:
    model = _model()
    order = np.random.default_rng(5).permutation(len(model["scores"]))
    diff = diff_detections(_table(model), _table(_rows(model, order)))
    assert diff.causes == []
    assert diff.changed == 0
    assert diff.counts["same"] == len(order)


def test_what_a_letterbox_says() -> None:
    model = _model()
    kept = diff_detections(_table(model), _table(MISTAKES["padding kept"][1](model))).causes[0].text
    assert "half the difference between the sides of each image" in kept
    pixels = diff_detections(_table(model), _table(MISTAKES["input pixels"][1](model))).causes[0].text
    assert "of 640 pixels" in pixels
    unknown = diff_detections(
        _table(model, sizes=False), _table(MISTAKES["padding kept"][1](model), sizes=False)
    )
    assert unknown.causes[0].name == "geometry"


def _most_pairs(good: list[list[bool]]) -> int:
    """Try every partner of the first row, and none."""
    if not good:
        return 0
    best = _most_pairs(good[1:])
    for column, fits in enumerate(good[0]):
        if fits:
            rest = [[*row[:column], *row[column + 1 :]] for row in good[1:]]
            best = max(best, 1 + _most_pairs(rest))
    return best


@given(
    st.lists(st.tuples(*[st.integers(0, 8)] * 2, *[st.integers(3, 9)] * 2, st.integers(1, 2)), max_size=7),
    st.lists(st.tuples(*[st.integers(0, 8)] * 2, *[st.integers(3, 9)] * 2, st.integers(1, 2)), max_size=7),
)
def test_counts_against_an_assignment(one: list[Any], two: list[Any]) -> None:
    """Every way to pair is tried for the most pairs of a class; the other numbers follow."""
    tables = []
    for rows in (one, two):
        boxes = np.array([[x, y, x + w, y + h] for x, y, w, h, _ in rows], dtype=float).reshape(-1, 4)
        scores = np.linspace(0.9, 0.1, len(rows))
        tables.append(Detections.from_arrays([1] * len(rows), [c for *_, c in rows], boxes, scores))
    diff = diff_detections(*tables)
    pairs = 0
    for label in (1, 2):
        mine, others = (
            table.boxes[[k for k, (*_, c) in enumerate(rows) if c == label]]
            for table, rows in zip(tables, (one, two), strict=True)
        )
        pairs += _most_pairs((box_iou(mine, others) >= 0.5).tolist())
    counts = diff.counts
    assert counts["same"] + counts["moved"] + counts["rescored"] + counts["moved and rescored"] == pairs
    assert sum(counts.values()) - counts["only in B"] == len(one)
    assert pairs + counts["relabeled"] + counts["only in B"] == len(two)
    assert sum(map(len, (diff.pairs["image"],))) == pairs


def test_kinds_of_one_pair_each() -> None:
    a = Detections.from_arrays(
        [1] * 6,
        [1, 1, 1, 1, 1, 2],
        [[k * 30, 0, k * 30 + 20, 20] for k in range(6)],
        [0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
    )
    moved = [
        [0, 0, 20, 20],
        [30, 0, 52, 20],
        [60, 0, 80, 20],
        [90, 0, 112, 20],
        [150, 0, 170, 20],
        [200, 0, 209, 9],
    ]
    b = Detections.from_arrays([1] * 6, [1, 1, 1, 1, 1, 1], moved, [0.9, 0.8, 0.75, 0.3, 0.4, 0.1])
    assert diff_detections(a, b).counts == {
        "same": 1,
        "moved": 1,
        "rescored": 1,
        "moved and rescored": 1,
        "relabeled": 1,
        "only in A": 1,
        "only in B": 1,
    }
    assert diff_detections(a, b, box_tolerance=2, score_tolerance=0.5).counts["same"] == 4


def test_boxes_without_area_are_the_same_as_themselves() -> None:
    table = Detections.from_arrays(
        [1, 1, 1], [1, 1, 2], [[5, 5, 5, 9], [5, 5, 9, 9], [5, 5, 5, 9]], [0.9, 0.8, 0.7]
    )
    assert diff_detections(table, table).counts["same"] == 3


def test_names_and_fractions_need_the_ground_truth() -> None:
    a = Detections.from_arrays(["a"], [1], [[5, 5, 9, 9]], [0.9])
    b = Detections.from_arrays(["b"], [1], [[5, 5, 9, 9]], [0.9])
    with pytest.raises(InputError, match="common ids"):
        diff_detections(a, b)
    with pytest.raises(InputError, match="in pixels"):
        diff_detections(a, a.replaced(units="fractions"))


def test_equal_scores() -> None:
    model = _model()
    flat = {**model, "scores": np.full(len(model["scores"]), 0.5)}
    causes = diff_detections(_table(model), _table(flat)).causes
    assert [cause.name for cause in causes] == ["score function"]
    assert "all scores of B are 0.5" in causes[0].text


def test_many_boxes_of_an_image_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model()
    whole = diff_detections(_table(model), _table(_doubled(model)))
    monkeypatch.setattr("boxscore.extensions.parity.pairing.BLOCK", 7)
    monkeypatch.setattr("boxscore.extensions.parity.signatures.BLOCK", 7)
    blocks = diff_detections(_table(model), _table(_doubled(model)))
    assert blocks.counts == whole.counts
    assert blocks.causes == whole.causes


def test_empty_results() -> None:
    nothing = Detections.from_arrays([], [], np.empty((0, 4)), [])
    diff = diff_detections(nothing, nothing)
    assert isinstance(diff, DetectionDiff)
    assert diff.changed == 0
    assert diff_detections(_table(_model()), nothing).counts["only in A"] == 216


def _write(path: Path, model: dict[str, Any]) -> Path:
    records = [
        {
            "image_id": int(i),
            "category_id": int(c),
            "bbox": [b[0], b[1], b[2] - b[0], b[3] - b[1]],
            "score": float(s),
        }
        for i, c, b, s in zip(
            model["image"], model["class"], model["boxes"].tolist(), model["scores"], strict=True
        )
    ]
    path.write_text(json.dumps(records))
    return path


def test_the_command(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model()
    a = _write(tmp_path / "a.json", model)
    b = _write(tmp_path / "b.json", MISTAKES["threshold"][1](model))
    truth: dict[str, Any] = {
        "images": [
            {"id": n, "width": SIZES[(n - 1) % 6][0], "height": SIZES[(n - 1) % 6][1]} for n in range(1, 19)
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 30, 30], "area": 900, "iscrowd": 0}
        ],
        "categories": [{"id": n, "name": f"c{n}"} for n in range(1, 6)],
    }
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    monkeypatch.setenv("COLUMNS", "80")
    assert run("diff", a, a).out.startswith("A and B are the same within the tolerances")
    printed = run("diff", a, b, "--gt", tmp_path / "gt.json", "--top", 2, status=1).out
    assert "score threshold (53 of 53)" in " ".join(printed.split())
    assert max(map(len, printed.splitlines())) <= 80
    assert run("diff", a, b, "--allowed", 0.3).err == ""
    value = json.loads(run("diff", a, b, "--output", "json", status=1).out)
    assert value["counts"]["only in A"] == 53
    assert value["differs"] is True
    assert "must be two" in run.error("diff", a)
    assert "--top" in run.error("diff", a, b, "--top", -1)
    # a folder of YOLO lines in fractions is read with the sizes of the ground truth
    for name, shift in (("one", 0), ("two", 0.05)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text(f"0 {0.3 + shift} .3 .3 .3 .9\n")
    folders = [tmp_path / "one", tmp_path / "two"]
    assert "--gt" in run.error("diff", *folders)
    for image in truth["images"]:
        image["file_name"] = f"{image['id']}.jpg"
    (tmp_path / "names.txt").write_text("c1\nc2\n")
    named = ["--gt", tmp_path / "gt.json", "--dt-classes", tmp_path / "names.txt"]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    assert "0 of 1 detection" in run("diff", *folders, *named, status=1).out
