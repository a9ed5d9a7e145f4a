"""Files of answers of language models: their conventions, labels, phrases, counts, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError, load_detections
from boxscore.data.vocabulary import Images
from boxscore.errors import BoxscoreWarning
from boxscore.extensions.scoreless.answer_counts import KINDS, answers_text, is_answers
from boxscore.formats import detect_format
from support.real_data import real

SIZES = {1: (640.0, 480.0), 2: (640.0, 480.0), 3: (320.0, 240.0)}
IMAGES = Images.build([*SIZES], file_names=["a.jpg", "b.jpg", "c.jpg"], sizes=[*SIZES.values()])
TRUTH = GroundTruth.from_arrays(
    [1, 2],
    [1, 2],
    [[64, 48, 320, 240], [0, 0, 50, 50]],
    images=IMAGES,
    categories={1: "cat", 2: "fire_hydrant"},
)
CAT = {"bbox_2d": [64, 48, 320, 240], "label": "cat"}


def written(path: Path, *answers: Any, **common: Any) -> Path:
    """Write JSON lines; an answer that is no text is written as JSON."""
    lines = []
    for number, answer in enumerate(answers, start=1):
        record = answer if isinstance(answer, dict) and "answer" in answer else {"answer": answer}
        text = record["answer"]
        record = {**record, "answer": text if isinstance(text, (str, type(None))) else json.dumps(text)}
        lines.append(json.dumps({"image_id": number, **common, **record}))
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path, truth: GroundTruth = TRUTH, **options: Any) -> Detections:
    return load_detections(path, truth, **{"coordinates": "pixels", **options})


def counts_of(table: Detections) -> dict[str, int]:
    return {kind: count for kind, count in table.answers["counts"].items() if count}


def test_the_three_forms_of_a_file(tmp_path: Path) -> None:
    lines = written(tmp_path / "a.jsonl", [CAT], "None", [])
    listed = tmp_path / "a.json"
    listed.write_text(json.dumps([json.loads(line) for line in lines.read_text().splitlines()]))
    folder = tmp_path / "answers"
    folder.mkdir()
    for name, answer in (("a", [CAT]), ("b", None), ("c", [])):
        (folder / f"{name}.txt").write_text(json.dumps(answer))
    for path in (lines, listed, folder):
        assert detect_format(path, side="detections")[0] == "answers"
        table = read(path)
        assert (table.boxes.tolist(), table.category.tolist()) == ([[64, 48, 320, 240]], [0])
        assert not table.scored
        assert counts_of(table) == {"answers": 3, "read": 1, "empty": 2, "boxes": 1, "longest_run": 1}


def test_an_image_by_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"image": "images/b.jpg", "answer": json.dumps([CAT])}))
    assert read(path).image.tolist() == [1]


def test_labels(tmp_path: Path) -> None:
    names = ["cat", " CAT", "Fire Hydrant", "fire-hydrant", "fire hydrants", "hydrant", "catfish"]
    path = written(tmp_path / "a.jsonl", [{**CAT, "label": name} for name in names])
    with pytest.warns(
        BoxscoreWarning, match="ignoring 3 detections of 3 classes that the ground truth does not"
    ):
        table = read(path)
    assert table.category.tolist() == [0, 0, 1, 1]
    assert dict(table.left_out) == {"fire hydrants": 1, "hydrant": 1, "catfish": 1}
    assert table.answers["unknown_labels"] == table.left_out
    assert (table.answers["counts"]["unknown_label"], table.answers["first"]["unknown_label"]) == (3, 1)


def test_names_that_differ_in_case_alone_are_compared_exactly(tmp_path: Path) -> None:
    truth = dataclasses.replace(
        TRUTH, categories=boxscore.data.vocabulary.Categories.build([1, 2], names=["Cat", "cat"])
    )
    path = written(tmp_path / "a.jsonl", [{**CAT, "label": name} for name in ("Cat", "cat", "CAT")])
    with pytest.warns(BoxscoreWarning, match="ignoring 1 detection"):
        assert read(path, truth).category.tolist() == [0, 1]


def test_a_box_without_a_label(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [CAT], [[1, 2, 3, 4], [5, 6, 7, 8]])
    with pytest.warns(BoxscoreWarning) as caught:
        assert len(read(path)) == 1
    assert [str(each.message) for each in caught] == [
        f"{path}: ignoring 2 boxes without a label (first: line 2 of {path}): with several classes, boxes need labels; or add a "
        '"phrase" to the answer to set the class.'
    ]
    one = GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]], images=IMAGES, categories={1: "cat"})
    assert read(path, one).category.tolist() == [0, 0, 0]


def test_every_box_is_of_the_phrase_that_was_asked_for(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl",
        {"answer": [CAT], "phrase": "Fire hydrant"},
        {"answer": [[1, 2, 3, 4]], "phrase": "cat"},
        {"image_id": 1, "answer": [{**CAT, "label": "that cat"}], "phrase": "cat"},
    )
    table = read(path)
    assert (table.image.tolist(), table.category.tolist()) == ([0, 1, 0], [1, 0, 0])
    one = GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]], images=IMAGES, categories={1: "referent"})
    assert read(path, one).category.tolist() == [0, 0, 0]
    questions = Images.build([1, 2], sizes=[[640, 480]] * 2, columns={"phrase": ["a cat", "a dog"]})
    of_questions = GroundTruth.from_arrays(
        [1], [1], [[0, 0, 9, 9]], images=questions, categories={1: "object"}
    )
    labeled = written(tmp_path / "b.jsonl", [{**CAT, "label": "tabby"}])
    assert read(labeled, of_questions).category.tolist() == [0]


def test_what_was_counted_stays_with_the_table_and_is_said(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl",
        [CAT, CAT, CAT, {**CAT, "bbox_2d": [1, 2, 3]}, {**CAT, "bbox_2d": [600, 60, 700, 50]}],
        f"```json\n[{json.dumps(CAT)}]\n```\n```json\n[]\n```",
    )
    with pytest.warns(BoxscoreWarning, match="lion"):
        table = read(written(path, *map(json.loads, ()), *_answers(path), [{**CAT, "label": "lion"}] * 2))
    assert is_answers(table.answers)
    assert list(table.answers["counts"]) == list(KINDS)
    assert answers_text(table.answers) == (
        "3 answers: 3 read. A second fenced block in 1 answer is not read. 7 boxes in the convention pixels, as "
        "given; taken to be those of the images themselves. Of the boxes 1 not four numbers (first: 1), 2 with an "
        "unknown label (first: 3), 1 with corners turned (first: 1), 1 outside the image (first: 1), 3 repeated "
        "exactly (first: 1), the longest run 3. Unknown labels: lion (2)."
    )
    boxscore.save_columns(table, tmp_path / "a.npz")
    assert load_detections(tmp_path / "a.npz", TRUTH).answers == table.answers


def _answers(path: Path) -> list[str]:
    return [json.loads(line)["answer"] for line in path.read_text().splitlines()]


def test_repeated_boxes_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [CAT, CAT], [CAT])
    assert [len(read(path, repeated=how)) for how in (None, "keep", "once")] == [3, 3, 2]
    table = read(path, repeated="once")
    assert (table.answers["counts"]["repeated"], table.answers["counts"]["boxes"]) == (1, 3)
    assert "Repeated boxes are taken once." in answers_text(table.answers)
    scored = table.replaced(scores=np.ones(2))
    assert boxscore.evaluate(TRUTH, scored).signature.endswith("|repeated:once")


def test_prose_where_that_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [CAT], {"answer": "It is at (1, 2, 3, 4).", "phrase": "cat"})
    assert [len(read(path, loose=loose)) for loose in (False, True)] == [1, 2]
    assert counts_of(read(path, loose=True))["loose"] == 1


def test_images_without_an_answer_are_counted(tmp_path: Path) -> None:
    table = read(written(tmp_path / "a.jsonl", [CAT]))
    assert (table.answers["counts"]["missing"], table.answers["first"]["missing"]) == (2, 2)


def test_sizes_from_the_file_the_user_and_the_ground_truth(tmp_path: Path) -> None:
    unsized = dataclasses.replace(TRUTH, images=Images.build([1, 2, 3]))
    path = written(tmp_path / "a.jsonl", [{**CAT, "bbox_2d": [100, 100, 500, 500]}])
    expected = [64, 48, 320, 240]
    assert read(path, coordinates="1000").boxes.tolist() == [expected]
    with pytest.raises(InputError, match="an image must have a known size if detections are fractions of it"):
        read(path, unsized, coordinates="1000")
    assert read(path, unsized, coordinates="1000", image_sizes="640x480").boxes.tolist() == [expected]
    sized = written(tmp_path / "b.jsonl", [{**CAT, "bbox_2d": [100, 100, 500, 500]}], width=640, height=480)
    assert read(sized, unsized, coordinates="1000").boxes.tolist() == [expected]


def test_widths_in_place_of_corners_are_doubted_and_not_changed(tmp_path: Path) -> None:
    sizes = [{**CAT, "bbox_2d": [200, 100 + number, 60, 50]} for number in range(6)]
    path = written(tmp_path / "a.jsonl", [*sizes, CAT])
    with pytest.warns(BoxscoreWarning) as caught:
        assert read(path).boxes[0].tolist() == [60, 50, 200, 100]
    assert [str(each.message) for each in caught] == [
        f"{path}: 6 of 7 boxes have corners in the wrong order. Answers are read as two corners; did the prompt ask for x, y, width and height?"
    ]
    assert len(read(written(path, [*sizes[:5], CAT]))) == 6  # pytest makes a warning an error


def test_points_are_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", '<point x="50" y="25" alt="cat">cat</point>')
    with pytest.warns(BoxscoreWarning, match="contain points, read as boxes without area"):
        assert load_detections(path, TRUTH).boxes.tolist() == [[320, 120, 320, 120]]


def test_two_conventions_in_a_file(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.jsonl", "cat<loc_1><loc_2><loc_3><loc_4>", "<loc0001><loc0002><loc0003><loc0004> cat"
    )
    with pytest.raises(InputError) as raised:
        load_detections(path, TRUTH)
    assert str(raised.value) == (
        "boxes of one file must be in one convention of coordinates. Got 1 in the notation of florence-2, 1 in the "
        f"notation of paligemma in {path}; say which with --coordinates florence-2|paligemma (in Python "
        "coordinates=)."
    )
    assert len(load_detections(path, TRUTH, coordinates="florence-2")) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"image_id": 1, "answer": [1]}', "answer must be text. Got [1] in line 2 of {path}; save the text of the model"),
        ('{"answer": "[]"}', "an answer must have image_id. Got none in line 2 of {path}; each answer needs the id"),
        ('{"image_id": 1.5, "answer": ""}', "image_id must be a whole number or text. Got 1.5 in line 2 of {path}."),
        ('{"image_id": 1, "text": ""}', "a record must have the key answer. Got only 'image_id', 'text' in line 2"),
        ('{"image_id": 1, "answer": "", "phrase": 3}', "phrase must be text. Got 3 in line 2 of {path}."),
        ('{"image_id": 1, "answer": "", "width": 0, "height": 3}', "width must be pixels, above 0. Got 0 in line 2"),
        ('{"image_id": 1, "answer": "", "input_width": 9}', "input_height must be pixels, above 0. Got None in"),
        ('{"image_id": 7, "answer": ""}', "image 7 must have one answer. Got a second one, after line 1 of {path} in"),
        ('{"image_id": 1, ', "a line must be a JSON object. Got"),
    ],
)  # fmt: skip
def test_what_is_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"image_id": 7, "answer": ""}}\n{line}\n')
    with pytest.raises(InputError) as raised:
        load_detections(path, TRUTH)
    assert str(raised.value).startswith(message.format(path=path)), str(raised.value)


def test_a_list_of_records_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"image_id": 1, "answer": ""}, 3]')
    with pytest.raises(
        InputError, match=r"answers must be a JSON list of objects, or JSON lines\. Got other text in"
    ):
        load_detections(path, TRUTH)


def test_they_are_no_ground_truth(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"ground truth must not be answers of a model\. Got .*a\.jsonl; pass them as"
    ):
        boxscore.load_ground_truth(written(tmp_path / "a.jsonl", [CAT]))


def test_options_that_only_answers_have(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[]")
    for options in ({"coordinates": "1000"}, {"repeated": "once"}, {"loose": True}):
        with pytest.raises(InputError, match="not be used with the format coco, which lacks answers of a"):
            load_detections(path, TRUTH, **options)  # type: ignore[arg-type]


# ---------------------------------------------------------------- fifteen conventions

HALF = {
    **dict.fromkeys(
        ("cogvlm", "internvl", "qwen2_vl", "unit", "xyxy_0_1000", "yxyx_0_1000", "percent"), 0.5 / 1000
    ),
    **dict.fromkeys(("deepseek_vl2", "rex_omni"), 0.5 / 999),
    "florence_2": 0.5 / 1000,
    "pixels_of_the_image": 0.0,
    "kosmos_2": 1 / 32,
    "paligemma": 1 / 1024,  # rounded down when it was written, and read as supervision does, by 1024
}
"""How far a side may be off, in parts of it: half a step of the grid, of Kosmos-2 a cell."""


def test_conventions_of_real_models() -> None:
    folder = real("scoreless", "answers")
    records = json.loads((folder / "boxes.json").read_text())
    sizes = [(each["width"], each["height"]) for each in records]
    expected = [(row, label, box) for row, each in enumerate(records) for label, box in each["boxes_xyxy"]]
    names = ["bird", "cat", "dog"]
    truth = GroundTruth.from_arrays(
        [records[row]["image_id"] for row, _, _ in expected],
        [names.index(label) for _, label, _ in expected],
        [box for _, _, box in expected],
        images=Images.build([each["image_id"] for each in records], sizes=sizes),
        categories=dict(enumerate(names)),
    )
    files = sorted(folder.glob("*.jsonl"))
    assert len(files) == 15
    for path in files:
        said = "percent" if path.stem == "percent" else None
        with pytest.warns(BoxscoreWarning) if path.stem == "molmo_points" else _quiet():
            table = load_detections(path, truth, coordinates=said)
        assert len(table) == len(truth)
        extent = np.tile(truth.images.sizes, 2)
        for row in range(len(table)):
            same = (truth.image == table.image[row]) & (truth.category == table.category[row])
            box, sides = table.boxes[row], extent[table.image[row]]
            if path.stem == "molmo_points":
                inside = (truth.boxes[same][:, :2] <= box[:2]) & (box[2:] <= truth.boxes[same][:, 2:])
                assert inside.all(axis=1).any(), path
                continue
            off = np.abs(truth.boxes[same] - box) / sides
            if path.stem == "pixels_of_the_resized_image":
                line = json.loads(path.read_text().splitlines()[table.image[row]])
                within = 0.5 / np.tile([line["input_width"], line["input_height"]], 2)
            else:
                within = np.full(4, HALF[path.stem])
            assert (off <= within + 1e-12).all(axis=1).any(), (path, off.min(axis=0))


def _quiet() -> Any:
    import contextlib

    return contextlib.nullcontext()


def test_evidence_of_real_files() -> None:
    folder = real("scoreless", "answers")
    expected = json.loads((folder / "evidence_of_coordinates.json").read_text())
    sizes = {
        each["image_id"]: (each["width"], each["height"])
        for each in json.loads((folder / "boxes.json").read_text())
    }
    truth = GroundTruth.from_arrays([], [], np.empty((0, 4)), images=Images.build([*sizes], sizes=[*sizes.values()]), categories={1: "cat", 2: "bird", 3: "dog"})  # fmt: skip
    for name, evidence in expected.items():
        options = {"coordinates": "percent"} if name == "percent" else {}
        try:
            because = load_detections(folder / f"{name}.jsonl", truth, **options).answers["because"]
        except BoxscoreWarning:
            continue  # points
        if name == "percent":
            with pytest.raises(InputError, match="these can be 1000-yx or pixels or percent") as raised:
                load_detections(folder / "percent.jsonl", truth)
            because = str(raised.value)
        if evidence["tokens"]:
            (notation,) = evidence["tokens"]
            name = notation.partition("(")[2].rstrip(")") or notation
            assert because == f"by their tags: 20 in the notation of {name}"
        else:
            assert f"{evidence['boxes']} boxes with numbers up to {evidence['largest_value']:g}" in because
            assert ("no decimals" in because) != evidence["decimals"]
            assert f"{evidence['boxes_outside_if_pixels']} of them outside" in because
            assert f"the key {evidence['key'][0]}" in because
