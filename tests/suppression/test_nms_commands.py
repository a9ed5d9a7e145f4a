"""``boxscore nms`` and ``boxscore fuse``: results files in, results files out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.boxes import box_convert, written_form
from boxscore.formats import _json
from boxscore.formats.results import load_results, save_results
from boxscore.suppression import suppress
from boxscore.suppression.methods import METHODS
from support.running import Run
from support.samples import SHAPES, SHAPES_VOC

COCO = SHAPES / "detections.json"
VOC = SHAPES_VOC / "results"
NEEDS_IOU = [name for name, method in METHODS.items() if "iou_threshold" in method.reads]

RAW = [
    {"image_id": 7, "category_id": 1, "bbox": [0, 0, 10, 10], "score": 0.70, "track": {"id": [1, {"a": 2}]}},
    {"note": "}, {", "image_id": 7, "category_id": 1, "bbox": [1, 0, 10, 10], "score": 0.90},
    {
        "image_id": 7,
        "category_id": 2,
        "bbox": [1.0, 0.0, 10.0, 10.0],
        "score": 0.80,
        "big": 12345678901234567890,
    },
    {"image_id": 8, "category_id": 1, "bbox": [1, 0, 10, 10], "score": 5e-1},
    {"image_id": 8, "category_id": 3, "bbox": [2, 0, 10, 10], "score": 0.40},
]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.json"
    path.write_text(json.dumps(RAW))
    return path


def call(run: Run, *arguments: object, status: int = 0) -> str:
    """Run the command line; return what it says on stderr."""
    output, errors = run(*[str(argument) for argument in arguments], status=status)
    assert output == ""
    return errors


def nms(run: Run, raw: Path, *arguments: object, status: int = 0) -> Any:
    """Run ``boxscore nms``; return the records kept, or the message."""
    output = raw.parent / "kept.json"
    errors = call(run, "nms", "--detections", raw, "--output", output, *arguments, status=status)
    if status:
        assert not output.exists()
        assert len(errors.splitlines()) == 1
        return errors.removeprefix("boxscore: error: ").rstrip("\n")
    return json.loads(output.read_text())


# ---------------------------------------------------------------- the table


def detections() -> boxscore.Detections:
    columns = [[row[key] for row in RAW] for key in ("image_id", "category_id", "bbox", "score")]
    return boxscore.Detections.from_arrays(*columns, box_format="xywh")


def test_groups_are_images_and_classes() -> None:
    found = detections()
    assert suppress(found, iou_threshold=0.5).indices.tolist() == [1, 2, 3, 4]
    assert suppress(found, iou_threshold=0.5, class_agnostic=True).indices.tolist() == [1, 3]
    assert suppress(found, iou_threshold=0.5, class_groups=[[1, 2]]).indices.tolist() == [1, 3, 4]
    assert suppress(found, iou_threshold=0.5, class_groups=[[3, "1"]]).indices.tolist() == [1, 2, 3]
    assert found.take(suppress(found, iou_threshold=0.5).indices).scores.tolist() == [0.9, 0.8, 0.5, 0.4]


def test_thresholds_and_caps() -> None:
    found = detections()
    assert suppress(found, iou_threshold=0.9, max_per_group=1).indices.tolist() == [1, 2, 3, 4]
    assert suppress(found, iou_threshold=0.9, max_per_image=1).indices.tolist() == [1, 3]
    assert suppress(found, iou_threshold=0.9, score_threshold=0.8).indices.tolist() == [1, 2]
    assert suppress(found, method="fast", iou_threshold=0.9, max_per_image=2).indices.tolist() == [1, 2, 3, 4]


def test_the_order_of_a_table_is_kept() -> None:
    left = suppress(detections(), iou_threshold=0.5).apply(detections())
    assert left.scores.tolist() == [0.9, 0.8, 0.5, 0.4]
    merged = suppress(detections(), method="nmm", iou_threshold=0.5).apply(detections())
    assert merged.boxes[0].tolist() == [0, 0, 11, 10]
    assert merged.sizes[0].tolist() == [11, 10]


@pytest.mark.parametrize("method", METHODS)
def test_as_the_functions_do(method: str) -> None:
    found = load_results(COCO).table
    groups = found.image.astype(int) * 1000 + found.category
    name, _, kind = method.partition("-")
    options: dict[str, Any] = {"iou_threshold": 0.4} if method in NEEDS_IOU else {}
    if name in ("soft", "matrix"):
        function = getattr(boxscore, f"{name}_nms")
        indices, scores = function(found.boxes, found.scores, groups=groups, method=kind, **options)
    else:
        names = {"hard": "batched_nms", "greedy-nmm": "greedy_nmm", "nmm": "nmm"}
        of = {"idxs" if method == "hard" else "groups": groups}
        result = getattr(boxscore, names.get(method, f"{method}_nms"))(
            found.boxes, found.scores, **of, **options
        )
        indices = result if isinstance(result, np.ndarray) else result.indices
        scores = found.scores[indices]
    left = suppress(found, method=method, **options)
    np.testing.assert_array_equal(left.indices, indices)
    np.testing.assert_array_equal(left.scores, scores)


@pytest.mark.parametrize("method", METHODS)
def test_no_detections(method: str) -> None:
    options: dict[str, Any] = {"iou_threshold": 0.5} if method in NEEDS_IOU else {}
    nothing = boxscore.Detections.from_arrays([], [], [], [])
    assert len(suppress(nothing, method=method, **options, max_per_image=3).apply(nothing)) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "iou_threshold must be given with method 'hard'. Got None."),
        (
            {"method": "soft_linear", "iou_threshold": 0.5},
            "method must be one of 'hard', 'soft-linear', 'soft-gaussian', 'diou', 'matrix-linear', "
            "'matrix-gaussian', 'fast', 'cluster', 'greedy-nmm', 'nmm'. Got 'soft_linear'; "
            "did you mean 'soft-linear'?",
        ),
        (
            {"method": "diou", "iou_threshold": 0.5, "overlap": "ios"},
            "overlap must be 'iou' with method 'diou'. Got 'ios'; used by hard, greedy-nmm, nmm.",
        ),
        ({"iou_threshold": 1.5}, "iou_threshold must be a number in [0, 1]. Got 1.5."),
        ({"iou_threshold": 0.5, "max_per_image": 0}, "max_per_image must be a whole number >= 1. Got 0."),
        (
            {"iou_threshold": 0.5, "class_groups": [["4"]]},
            "a class of a group must occur in the detections. Got '4'; known: 1, 2, 3.",
        ),
        (
            {"iou_threshold": 0.5, "class_groups": [["cat"]]},
            "a class of a group must occur in the detections. Got 'cat'; known: 1, 2, 3; these detections have "
            "ids without names: write 1,2.",
        ),
        ({"iou_threshold": 0.5, "class_groups": [[1, 2], [2]]}, "a class must be in one group. Got 2 twice."),
        (
            {"iou_threshold": 0.5, "class_groups": [[1]], "class_agnostic": True},
            "class_groups must not be combined with class_agnostic. Got both of them.",
        ),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(boxscore.InputError) as error:
        suppress(detections(), **options)
    assert str(error.value) == message


def test_options_without_effect_are_noticed(run: Run, raw: Path) -> None:
    with pytest.warns(
        boxscore.BoxscoreWarning, match="^iou_threshold 0.5 does not affect method 'matrix-linear'"
    ):
        suppress(detections(), method="matrix-linear", iou_threshold=0.5)
    output = raw.parent / "kept.json"
    given = ["nms", "--dt", raw, "--output", output, "--iou-threshold", 0.5, "--sigma", 2]
    assert call(run, *given) == (
        "boxscore: warning: sigma 2.0 does not affect method 'hard'; it is used by soft-gaussian, "
        f"matrix-gaussian.\n4 of 5 detections kept, written to {output}\n"
    )
    call(run, *given, "--strict", status=2)


# ---------------------------------------------------------------- COCO results


def test_records_stay_as_they_are(run: Run, raw: Path) -> None:
    assert nms(run, raw, "--iou-threshold", 0.5) == RAW[1:]
    text = (raw.parent / "kept.json").read_text()
    assert text == "[\n" + ",\n".join(json.dumps(row) for row in RAW[1:]) + "\n]\n"


def test_what_is_said(run: Run, raw: Path) -> None:
    output = raw.parent / "kept.json"
    errors = call(run, "nms", "--dt", raw, "--output", output, "--iou-threshold", "0.5")
    assert errors == f"4 of 5 detections kept, written to {output}\n"


def test_soft_methods_write_the_lowered_scores(run: Run, raw: Path) -> None:
    kept = nms(run, raw, "--method", "soft-linear", "--iou-threshold", 0.5)
    lowered = kept[0].pop("score")
    assert lowered == pytest.approx(0.7 * (1 - 9 / 11))
    assert list(kept[0]) == ["image_id", "category_id", "bbox", "track"]
    assert kept[0]["track"] == RAW[0]["track"]
    assert kept[1:] == RAW[1:]
    assert (
        nms(run, raw, "--method", "soft-linear", "--iou-threshold", 0.5, "--score-threshold", 0.6) == RAW[1:3]
    )


def test_merging_writes_the_merged_box(run: Run, raw: Path) -> None:
    kept = nms(run, raw, "--method", "greedy-nmm", "--iou-threshold", 0.5)
    assert kept == [{**RAW[1], "bbox": [0, 0, 11, 10]}, *RAW[2:]]


def test_choices(run: Run, raw: Path) -> None:
    groups = raw.parent / "groups.txt"
    groups.write_text("1, 2\n\n3\n")
    assert nms(run, raw, "--iou-threshold", 0.5, "--groups", groups) == [RAW[1], *RAW[3:]]
    assert nms(run, raw, "--iou-threshold", 0.5, "--class-agnostic") == [RAW[1], RAW[3]]
    assert nms(run, raw, "--iou-threshold", 0.5, "--max-per-image", 1) == [RAW[1], RAW[3]]
    assert nms(run, raw, "--iou-threshold", 0.9, "--max-per-group", 1) == RAW[1:]


def test_a_coco_object_keeps_the_rest_of_it(run: Run, raw: Path) -> None:
    whole = {
        "info": {"by": "me"},
        "images": [{"id": 7}, {"id": 8}],
        "categories": [
            {"id": 1, "name": "cat"},
            {"id": 2, "name": "traffic light"},
            {"id": 3, "name": "dog"},
        ],
        "annotations": RAW,
        "license": None,
    }
    raw.write_text(json.dumps(whole))
    groups = raw.parent / "groups.txt"
    groups.write_text("cat, traffic light\n")
    kept = nms(run, raw, "--iou-threshold", 0.5, "--groups", groups)
    assert kept == {**whole, "annotations": [RAW[1], *RAW[3:]]}
    assert list(kept) == list(whole)


def test_no_results(run: Run, raw: Path) -> None:
    raw.write_text("[]")
    assert nms(run, raw, "--iou-threshold", 0.5) == []
    raw.write_text(json.dumps(RAW))
    assert nms(run, raw, "--iou-threshold", 0.5, "--score-threshold", 2) == []


def test_not_in_place(run: Run, raw: Path) -> None:
    before = raw.read_bytes()
    errors = call(run, "nms", "--dt", raw, "--output", raw, "--iou-threshold", "0.5", status=2)
    assert errors == f"boxscore: error: --output must differ from the input. Got '{raw}'.\n"
    assert raw.read_bytes() == before
    assert [path.name for path in raw.parent.iterdir()] == ["raw.json"]


def test_what_stood_there_stays_when_writing_fails(
    run: Run, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = raw.parent / "kept.json"
    output.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    errors = call(run, "nms", "--dt", raw, "--output", output, "--iou-threshold", "0.5", status=2)
    assert errors == f"boxscore: error: {output}: cannot be written: No space left on device.\n"
    assert output.read_text() == "before"
    assert sorted(path.name for path in raw.parent.iterdir()) == ["kept.json", "raw.json"]


def test_without_scores_is_one_line(run: Run, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(raw.parent)
    raw.write_text(json.dumps([{**row, "score": None} for row in RAW]))
    errors = call(run, "nms", "--dt", "raw.json", "--output", "kept.json", "--iou-threshold", "0.5", status=2)
    assert errors == (
        "boxscore: error: the detections must have scores for this. Got none in raw.json; boxes without scores "
        "are counted, not ranked.\n"
    )
    assert not Path("kept.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"score": None},
            "a detection must have a score if another has one. Got none in detection 0 of raw.json; "
            "detection 1 of raw.json has 0.9; give every detection a score, or none.",
        ),
        ({"bbox": [1, 2, 3]}, "bbox must have 4 numbers. Got 3 in detection 0 of raw.json."),
        (
            {"bbox": [9, 9, -4, 2]},
            "boxes must have width >= 0. Got width -4.0 in detection 0 of raw.json; were two corners swapped?",
        ),
        (
            {"score": float("nan")},
            "score must be finite. Got NaN in raw.json, byte 68; a diverged model? JSON has no NaN or Infinity.",
        ),
    ],
)
def test_bad_files(
    change: dict[str, Any],
    message: str,
    run: Run,
    raw: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(raw.parent)
    raw.write_text(json.dumps([{**RAW[0], **change}, *RAW[1:]]))
    errors = call(run, "nms", "--dt", "raw.json", "--output", "kept.json", "--iou-threshold", "0.5", status=2)
    assert errors == f"boxscore: error: {message}\n"
    assert not Path("kept.json").exists()


def test_bad_input(run: Run, raw: Path) -> None:
    assert nms(run, raw, status=2) == "--iou-threshold must be given with method 'hard'. Got None."
    assert nms(run, raw, "--method", "sof-linear", status=2).endswith("did you mean 'soft-linear'?")
    wrong = nms(run, raw, "--iou-threshold", 1.2, status=2)
    assert wrong == "--iou-threshold must be a number in [0, 1]. Got 1.2."
    groups = raw.parent / "groups.txt"
    assert nms(run, raw, "--iou-threshold", 0.5, "--groups", groups, status=2) == (
        f"{groups}: cannot be read: No such file or directory."
    )
    groups.write_text("1, 9\n")
    assert nms(run, raw, "--iou-threshold", 0.5, "--groups", groups, status=2) == (
        "a class of a group must occur in the detections. Got 9; known: 1, 2, 3."
    )
    groups.write_text(" \n")
    assert nms(run, raw, "--iou-threshold", 0.5, "--groups", groups, status=2) == (
        f"a file with groups must name at least one class. Got none in {groups}."
    )
    raw.write_text(json.dumps([{**RAW[0], "score": -1}]))
    assert nms(run, raw, "--method", "soft-gaussian", "--score-threshold", 0, status=2).startswith(
        "scores must"
    )


def test_ground_truth_is_no_results(run: Run, tmp_path: Path) -> None:
    truth = SHAPES / "instances.json"
    errors = call(
        run, "nms", "--dt", truth, "--output", tmp_path / "kept.json", "--iou-threshold", "0.5", status=2
    )
    assert errors.endswith("; is this a ground-truth file?\n")
    folder = SHAPES_VOC / "VOC2007"
    errors = call(
        run, "nms", "--dt", folder, "--output", tmp_path / "kept", "--iou-threshold", "0.5", status=2
    )
    assert errors.endswith("; is this the ground truth?\n")


# ---------------------------------------------------------------- VOC results


def test_voc_round_trip(run: Run, tmp_path: Path) -> None:
    call(run, "nms", "--dt", VOC, "--output", tmp_path / "all", "--iou-threshold", "1")
    before = {path.name: path.read_text() for path in VOC.glob("comp4_det_*.txt")}
    assert {path.name: path.read_text() for path in (tmp_path / "all").iterdir()} == before
    call(
        run,
        "nms",
        "--dt",
        VOC,
        "--output",
        tmp_path / "kept",
        "--iou-threshold",
        "0.3",
        "--pixel-offset",
        "1",
    )
    truth = boxscore.load_ground_truth(SHAPES_VOC / "VOC2007", image_set="test")
    kept = boxscore.load_detections(tmp_path / "kept", truth)
    raw = boxscore.load_detections(VOC, truth)
    expected = suppress(raw, iou_threshold=0.3, pixel_offset=1).apply(raw)
    assert len(kept) < sum(text.count("\n") for text in before.values())
    for column in ("image", "category", "boxes", "scores"):
        np.testing.assert_array_equal(getattr(kept, column), getattr(expected, column))
    lines = {line for text in before.values() for line in text.splitlines()}
    assert {line for path in (tmp_path / "kept").iterdir() for line in path.read_text().splitlines()} <= lines


@pytest.mark.parametrize("method", ["soft-gaussian", "matrix-linear", "nmm"])
def test_voc_keeps_every_digit(method: str, run: Run, tmp_path: Path) -> None:
    options: dict[str, Any] = {"iou_threshold": 0.2} if method == "nmm" else {}
    given = ["--iou-threshold", "0.2"] if options else []
    call(run, "nms", "--dt", VOC, "--output", tmp_path / "kept", "--method", method, *given)
    kept = load_results(tmp_path / "kept").table
    raw = load_results(VOC).table
    expected = suppress(raw, method=method, **options).apply(raw)
    np.testing.assert_array_equal(kept.scores, expected.scores)
    np.testing.assert_array_equal(kept.boxes, expected.boxes)


def test_voc_groups_by_name(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    folder.mkdir()
    (folder / "comp4_det_test_cat.txt").write_text("000001 0.9 1 1 10 10\n\n000002 .50 1 1 10 10\n")
    (folder / "comp4_det_test_dog.txt").write_text("000001 0.8 1 1 10 10\n")
    (folder / "comp4_det_test_sofa.txt").write_text("")
    groups = tmp_path / "groups.txt"
    groups.write_text("dog, cat\n")
    call(
        run,
        "nms",
        "--dt",
        folder,
        "--output",
        tmp_path / "kept",
        "--iou-threshold",
        ".5",
        "--groups",
        groups,
    )
    assert {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()} == {
        "comp4_det_test_cat.txt": "000001 0.9 1 1 10 10\n000002 .50 1 1 10 10\n",
        "comp4_det_test_dog.txt": "",
        "comp4_det_test_sofa.txt": "",
    }
    (tmp_path / "kept" / "comp4_det_test_horse.txt").write_text("")
    errors = call(
        run, "nms", "--dt", folder, "--output", tmp_path / "kept", "--iou-threshold", ".5", status=2
    )
    assert errors == (
        "boxscore: error: the output folder must hold no other results, which would be read with these. Got "
        f"comp4_det_test_horse.txt in {tmp_path / 'kept'}.\n"
    )


# ---------------------------------------------------------------- fuse


def test_fuse(run: Run, raw: Path) -> None:
    other = raw.parent / "other.json"
    other.write_text(
        json.dumps([{**RAW[1], "category_id": 9}, {**RAW[1], "bbox": [2, 0, 10, 10], "score": 0.6}])
    )
    output = raw.parent / "fused.json"
    errors = call(run, "fuse", raw, other, "--weights", 2, 1, "--output", output)
    assert errors == f"5 boxes from 7 detections of 2 models, written to {output}\n"
    fused = json.loads(output.read_text())
    assert all(list(record) == ["image_id", "category_id", "bbox", "score"] for record in fused)
    assert [record["score"] for record in fused] == sorted((r["score"] for r in fused), reverse=True)
    assert {(record["image_id"], record["category_id"]) for record in fused} == {
        (7, 1), (7, 2), (7, 9), (8, 1), (8, 3),
    }  # fmt: skip
    weights = np.array([0.9 * 2, 0.7 * 2, 0.6])
    best = next(record for record in fused if (record["image_id"], record["category_id"]) == (7, 1))
    assert best["bbox"] == pytest.approx([weights @ [1, 0, 2] / weights.sum(), 0, 10, 10])
    assert best["score"] == pytest.approx(weights.mean() * 2 / 3)


def test_fuse_agrees_with_the_function(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "fused.json"
    call(run, "fuse", COCO, COCO, "--method", "nmw", "--iou-threshold", "0.4", "--output", output)
    table = load_results(COCO).table
    groups = table.image.astype(int) * 100 + table.category
    fused = boxscore.nmw([table.boxes] * 2, [table.scores] * 2, [groups] * 2, iou_threshold=0.4)
    written = load_results(output).table
    np.testing.assert_array_equal(written.scores, fused.scores)
    np.testing.assert_allclose(written.boxes, fused.boxes, rtol=1e-12, atol=1e-12)


def test_fuse_voc_results(run: Run, tmp_path: Path) -> None:
    other, output = tmp_path / "other", tmp_path / "fused"
    call(run, "nms", "--dt", VOC, "--output", other, "--method", "nmm", "--iou-threshold", 0.2)
    (other / "comp4_det_test_horse.txt").write_text("000001 0.5 1 1 10 10\n")
    call(run, "fuse", VOC, other, "--output", output)
    tables = [load_results(folder).table for folder in (VOC, other)]
    names = [table.categories.ids[table.category] for table in tables]
    pictures = [table.images.ids[table.image] for table in tables]
    groups = [[f"{a} {b}" for a, b in zip(*pair, strict=True)] for pair in zip(pictures, names, strict=True)]
    fused = boxscore.weighted_boxes_fusion(
        [table.boxes for table in tables], [table.scores for table in tables], groups
    )
    written = load_results(output).table
    got = {
        (f"{image} {label}", score, *box)
        for image, label, score, box in zip(
            written.images.ids[written.image].tolist(),
            written.categories.ids[written.category].tolist(),
            written.scores.tolist(),
            written.boxes.tolist(),
            strict=True,
        )
    }
    assert got == {
        (group, score, *box)
        for group, score, box in zip(
            fused.groups.tolist(), fused.scores.tolist(), fused.boxes.tolist(), strict=True
        )
    }
    assert {path.name for path in output.iterdir()} == {path.name for path in other.iterdir()}
    (output / "comp4_det_test_zebra.txt").write_text("")
    errors = call(run, "fuse", VOC, other, "--output", output, status=2)
    assert "comp4_det_test_zebra.txt" in errors


def test_fuse_columns(run: Run, tmp_path: Path) -> None:
    columns, text, output = tmp_path / "raw.npz", tmp_path / "fused.json", tmp_path / "fused.npz"
    boxscore.save_columns(load_results(COCO).table, columns)
    call(run, "fuse", COCO, COCO, "--iou-threshold", 0.4, "--output", text)
    call(run, "fuse", columns, columns, "--iou-threshold", 0.4, "--output", output)
    one, other = load_results(text).table, load_results(output).table
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_allclose(one.boxes, other.boxes, rtol=1e-12, atol=1e-12)
    # The extension of another format chooses that format.
    call(run, "fuse", columns, columns, "--iou-threshold", 0.4, "--output", tmp_path / "other.json")
    assert sorted(json.loads((tmp_path / "other.json").read_text()), key=repr) == sorted(
        json.loads(text.read_text()), key=repr
    )


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize("method", ["hard", "soft-gaussian", "nmm"])
def test_columns(method: str, run: Run, tmp_path: Path) -> None:
    table = load_results(VOC).table
    boxscore.save_columns(table, tmp_path / "raw.npz")
    options: dict[str, Any] = {} if method == "soft-gaussian" else {"iou_threshold": 0.2}
    given = ["--method", method, *(["--iou-threshold", 0.2] if options else [])]
    call(run, "nms", "--dt", tmp_path / "raw.npz", "--output", tmp_path / "kept.npz", *given)
    kept, left = load_results(tmp_path / "kept.npz").table, suppress(table, method=method, **options)
    expected = left.apply(table)
    assert len(kept) == len(expected) > 0
    for name in ("image", "category", "scores", "boxes", "sizes"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(expected, name))


def test_columns_of_masks(run: Run, tmp_path: Path) -> None:
    """Masks saved as columns are suppressed, and written, as those of a results file."""
    random = np.random.default_rng(0)
    masks = random.random((12, 9, 9)) < 0.7
    table = boxscore.Detections.from_arrays([1] * 12, [1] * 12, None, random.random(12), masks=masks)
    boxscore.save_columns(table, tmp_path / "raw.npz")
    given = ["--iou-type", "segm", "--iou-threshold", 0.55]
    call(run, "nms", "--dt", tmp_path / "raw.npz", "--output", tmp_path / "kept.npz", *given)
    kept = load_results(tmp_path / "kept.npz").table
    rows = np.sort(boxscore.mask_nms(masks, table.scores, iou_threshold=0.55))
    assert 0 < len(rows) < 12
    assert kept.scores.tolist() == table.scores[rows].tolist()
    assert kept.masks is not None
    assert np.array_equal(kept.masks.arrays(), masks[rows])


def test_large_files_are_written_in_pieces(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of the file, an object around the records, and lowered scores: the same records."""
    random = np.random.default_rng(0)
    corner = random.random((400, 2)).round(2) * 30
    records = [
        {
            "image_id": int(number % 3),
            "category_id": 1,
            "bbox": [*corner[number].tolist(), 12.5, 9.25],
            "score": float(random.random()),
            "deep": [{"a": number}, {"b": [1, {}]}],
        }
        for number in range(400)
    ]
    monkeypatch.setattr(_json, "SLICE_BYTES", 700)
    raw, output = tmp_path / "raw.json", tmp_path / "kept.json"
    found = boxscore.Detections.from_arrays(
        *[[record[key] for record in records] for key in ("image_id", "category_id", "bbox", "score")],
        box_format="xywh",
    )
    for method, options in (("hard", {"iou_threshold": 0.3}), ("soft-linear", {"iou_threshold": 0.3})):
        left = suppress(found, method=method, **options)
        order = np.argsort(left.indices)
        expected = [
            {**records[row], "score": score}
            for row, score in zip(left.indices[order].tolist(), left.scores[order].tolist(), strict=True)
        ]
        assert 0 < len(expected) < 400
        for whole in (records, {"info": 1, "images": [], "annotations": records, "after": [2]}):
            raw.write_text(json.dumps(whole))
            call(run, "nms", "--dt", raw, "--output", output, "--method", method, "--iou-threshold", 0.3)
            written = json.loads(output.read_text())
            assert (written if isinstance(whole, list) else written["annotations"]) == expected
            if isinstance(whole, dict):
                assert {**written, "annotations": 0} == {**whole, "annotations": 0}


def test_a_file_that_changes_between_its_two_readings_is_refused(raw: Path) -> None:
    results = load_results(raw)
    output = raw.parent / "kept.json"
    for records in (RAW[:3], [*RAW, *RAW]):
        raw.write_text(json.dumps(records))
        with pytest.raises(boxscore.FileFormatError, match="must not change while it is read"):
            save_results(results, np.array([0, 4]), output)
        assert [path.name for path in raw.parent.iterdir()] == [raw.name]


# ---------------------------------------------------------------- fuse, bad input


def test_fuse_bad_input(run: Run, raw: Path) -> None:
    output = raw.parent / "fused.json"

    def message(*arguments: object) -> str:
        errors = call(run, "fuse", *arguments, "--output", output, status=2)
        assert not output.exists()
        return errors.removeprefix("boxscore: error: ").rstrip("\n")

    assert message(raw, "--weights", 1, 2) == "--weights must be as long as the files (1). Got length 2."
    assert message(raw, "--weights", 0) == "--weights must be positive and finite. Got [0.0]."
    assert (
        message(raw, "--method", "wfb")
        == "--method must be one of 'wbf', 'nmw', 'greedy-nmm', 'nmm'. Got 'wfb'; did you mean 'wbf'?"
    )
    assert (
        message(raw, VOC) == f"the results to fuse must have one format, coco like {raw}. Got voc in {VOC}."
    )
    names = [{"id": 1, "name": name} for name in ("cat", "dog")]
    files = [raw.with_name(f"{category['name']}.json") for category in names]
    for file, category in zip(files, names, strict=True):
        file.write_text(
            json.dumps({"images": [{"id": 7}], "categories": [category], "annotations": [RAW[0]]})
        )
    assert message(*files) == (
        f"class 1 must have the same name in all files ('cat' in an earlier one). Got 'dog' in {files[1]}; "
        "are these results of another data set?"
    )
    assert message(raw, "--method", "nmw", "--confidence", "max").startswith(
        "--confidence must not be used with method 'nmw'."
    )


# ---------------------------------------------------------------- boxes in another form


def scene(count: int = 400) -> tuple[list[dict[str, Any]], np.ndarray[Any, Any]]:
    """Detections clipped to images of 640 x 480, and their corners: pairs that overlap by more than half."""
    random = np.random.default_rng(5)
    low = random.uniform(-40, [600, 440], (count, 2))
    corners = np.hstack([low, low + random.uniform(20, 90, (count, 2))])
    corners = np.round(np.vstack([corners, corners + 2]).clip(0, [640, 480, 640, 480]) * 4) / 4
    rows = [
        {"image_id": at % 9, "category_id": at % 3, "bbox": [], "score": round(float(score), 6)}
        for at, score in zip([*range(count)] * 2, random.uniform(0, 1, 2 * count), strict=True)
    ]
    return rows, corners


def file_of(path: Path, rows: list[dict[str, Any]], numbers: Any) -> Path:
    path.write_text(
        json.dumps([row | {"bbox": box} for row, box in zip(rows, numbers.tolist(), strict=True)])
    )
    return path


FORMS = {"xyxy": "xyxy", "yxyx": "xyxy", "xywh": "", "yxhw": "", "cxcywh": "cxcywh"}
"""Forms of boxes, and the option that is named where they are read as x,y,width,height without images."""


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["hard", "nmm"])
@pytest.mark.parametrize("fractions", [False, True])
def test_boxes_in_another_form(form: str, method: str, fractions: bool, tmp_path: Path, run: Run) -> None:
    rows, corners = scene()
    as_written = written_form(form)  # type: ignore[arg-type]
    scale = [1024.0, 512.0, 1024.0, 512.0] if fractions else [1.0, 1.0, 1.0, 1.0]
    usual = file_of(tmp_path / "usual.json", rows, box_convert(corners, "xyxy", "xywh"))
    other = file_of(tmp_path / "other.json", rows, as_written.numbers_of(corners / scale))
    kept = {}
    for path, options in ((usual, []), (other, ["--dt-box-format", form])):
        output = tmp_path / f"kept-{path.name}"
        errors = call(
            run, "nms", path, "--output", output, "--method", method, "--iou-threshold", 0.5, *options
        )
        assert "warning" not in errors
        kept[path] = json.loads(output.read_bytes())
    assert len(kept[usual]) == {"hard": 409, "nmm": 408}[method]
    numbers = np.array([row["bbox"] for row in kept[other]])
    back = box_convert(as_written.corners_of(numbers) * scale, "xyxy", "xywh")
    assert [row | {"bbox": []} for row in kept[other]] == [row | {"bbox": []} for row in kept[usual]]
    assert np.abs(back - [row["bbox"] for row in kept[usual]]).max() < 1e-9
    fused = tmp_path / "fused.json"
    call(run, "fuse", other, other, "--output", fused, "--dt-box-format", form)
    errors = call(run, "nms", other, "--output", fused, "--iou-threshold", 0.5)
    named = f" Use --dt-box-format {FORMS[form]}.\n"
    assert named in errors if FORMS[form] else "warning" not in errors


def test_the_form_is_said_of_boxes_of_negative_size(tmp_path: Path, run: Run) -> None:
    rows, corners = scene(30)
    path = file_of(tmp_path / "dt.json", rows, box_convert(corners, "xyxy", "xywh"))
    options = ("--output", tmp_path / "kept.json", "--iou-threshold", 0.5, "--dt-box-format", "xyxy")
    errors = call(run, "nms", path, *options, status=2)
    assert errors.startswith("boxscore: error: boxes must have ")
    assert errors.endswith(f" of {path}; are these x,y,w,h? Use --dt-box-format xywh.\n")


def test_a_warning_is_said_once_of_a_file_given_twice(tmp_path: Path, run: Run) -> None:
    corners = [[100 + at, 100 + at, 130 + at, 130 + at] for at in range(40)]
    records = [{"image_id": 1, "category_id": 1, "bbox": box, "score": 0.5} for box in corners]
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(records))
    assert run("fuse", path, path, "-o", tmp_path / "fused.json").err.count("Are these x1,y1,x2,y2?") == 1
