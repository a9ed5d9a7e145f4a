"""Ground truth of phrases: SA-Co with its annotators, RefCOCO's expressions, OmniLabel's descriptions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import FileFormatError, load_detections, load_ground_truth
from boxscore.formats import detect_format
from support.real_data import real


def dumped(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def questions(key: str, boxes: dict[int, list[list[float]]], **image: Any) -> dict[str, Any]:
    """COCO's JSON of two questions, with objects by image."""
    return {
        "images": [
            {"id": number, "width": 100, "height": 80, key: phrase, **image}
            for number, phrase in ((7, "a red cat"), (3, "a dog"))
        ],
        "categories": [{"id": 1, "name": "object"}],
        "annotations": [
            {"id": number, "image_id": image_id, "category_id": 1, "bbox": box, "area": 1, "iscrowd": 0}
            for number, (image_id, box) in enumerate(
                ((image_id, box) for image_id, each in boxes.items() for box in each), start=1
            )
        ],
    }


EXHAUSTIVE = {"is_instance_exhaustive": True}


@pytest.mark.parametrize("key", ["caption", "text", "sent", "sentence", "expression"])
def test_expressions_become_a_column_of_images(key: str, tmp_path: Path) -> None:
    path = dumped(tmp_path / "gt.json", questions(key, {7: [[1, 2, 30, 40]]}))
    assert detect_format(path) == ("refcoco", "RefCOCO's expressions in COCO's JSON")
    table = load_ground_truth(path)
    assert table.images.ids.tolist() == [3, 7]
    assert table.images.columns["phrase"].tolist() == ["a dog", "a red cat"]
    assert (table.boxes.tolist(), table.image.tolist()) == ([[1, 2, 31, 42]], [1])
    assert load_ground_truth(path, format="refcoco").images.columns["phrase"].tolist() == [
        "a dog",
        "a red cat",
    ]


@pytest.mark.filterwarnings("ignore:.*written as text")
@pytest.mark.parametrize(
    "ids",
    [("007", "3"), ("1", "2"), ("a", "7"), (1.0, 2.0), (7, "08"), (7, "9a"), (2**53 + 2, "1"), ("7", 7.0)],
)
def test_each_question_has_its_phrase_however_ids_are_written(ids: tuple[Any, ...], tmp_path: Path) -> None:
    content = questions("caption", {7: [[1, 2, 30, 40]]})
    for image, identifier in zip(content["images"], ids, strict=True):
        image |= {"id": identifier, "width": 100 + len(image["caption"])}
    content["annotations"][0]["image_id"] = ids[0]
    images = load_ground_truth(dumped(tmp_path / "gt.json", content)).images
    phrases = dict(zip((images.sizes[:, 0] - 100).tolist(), images.columns["phrase"].tolist(), strict=True))
    assert phrases == {9: "a red cat", 5: "a dog"}


def test_captions_and_results_are_others(tmp_path: Path) -> None:
    captions = {"images": [{"id": 1}], "annotations": [{"id": 1, "image_id": 1, "caption": "a cat"}]}
    assert detect_format(dumped(tmp_path / "captions.json", captions))[0] == "coco"
    path = dumped(tmp_path / "gt.json", questions("text_input", {}, **EXHAUSTIVE))
    truth = load_ground_truth(path)
    with pytest.raises(FileFormatError, match="detections must not be ground truth in the form of saco"):
        load_detections(path, truth)
    results = dumped(
        tmp_path / "dt.json", [{"image_id": 3, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]
    )
    assert load_detections(results, truth).image.tolist() == [0]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (
            {"id": 7, "is_instance_exhaustive": True},
            "an image must have a phrase (text_input). Got None in image 7",
        ),
        (
            {"id": 7, "text_input": 3, "is_instance_exhaustive": 1},
            "an image must have a phrase (text_input). Got 3",
        ),
        (
            {"id": 7, "text_input": "cat"},
            "is_instance_exhaustive must be true or false. Got None in image 7 of",
        ),
        (
            {"id": 7, "text_input": "cat", "is_instance_exhaustive": "x"},
            "is_instance_exhaustive must be true or",
        ),
    ],
)
def test_what_an_image_lacks(image: dict[str, Any], message: str, tmp_path: Path) -> None:
    content = questions("text_input", {}, **EXHAUSTIVE)
    content["images"].append(image)
    with pytest.raises(FileFormatError) as raised:
        load_ground_truth(dumped(tmp_path / "gt.json", content))
    assert str(raised.value).startswith(message)


def test_several_annotators(tmp_path: Path) -> None:
    first = questions("text_input", {7: [[1, 2, 30, 40], [5, 5, 9, 9]], 3: [[0, 0, 4, 4]]}, **EXHAUSTIVE)
    second = questions("text_input", {7: [[1, 2, 31, 40]]}, **EXHAUSTIVE)
    second["images"][1]["is_instance_exhaustive"] = False
    dumped(tmp_path / "gt" / "b.json", second)
    dumped(tmp_path / "gt" / "a.json", first)
    dumped(tmp_path / "gt" / "results.json", [{"image_id": 7}])
    assert detect_format(tmp_path / "gt", side="ground truth") == ("saco", "a folder of SA-Co's JSON")
    table = load_ground_truth(tmp_path / "gt")
    assert table.columns["annotator"].tolist() == ["a", "a", "a", "b"]
    assert table.image.tolist() == [0, 1, 1, 1]
    assert table.images.columns["exhaustive"].tolist() == [False, True]
    assert table.images.columns["annotators"].tolist() == ["a/b", "a/b"]
    assert sorted(table.ids.tolist()) == [1, 2, 3, 4]
    alone = load_ground_truth(tmp_path / "gt" / "a.json")
    chosen = table[table.columns["annotator"] == "a"]
    assert sorted(chosen.boxes.tolist()) == sorted(alone.boxes.tolist())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 9}, "Got 2 images of only one of them, such as 7 in"),
        ({"text_input": "a cat"}, "Got 'a cat' and 'a red cat' in image 7 in"),
    ],
)
def test_annotators_of_other_questions(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    other = questions("text_input", {}, **EXHAUSTIVE)
    other["images"][0].update(change)
    dumped(tmp_path / "a.json", questions("text_input", {}, **EXHAUSTIVE))
    dumped(tmp_path / "b.json", other)
    with pytest.raises(FileFormatError) as raised:
        load_ground_truth(tmp_path)
    rule = "an annotator's file must have the images and phrases of the other annotators. "
    assert str(raised.value).startswith(rule + message)


@pytest.mark.long
def test_many_phrases_cost_a_text_each(tmp_path: Path) -> None:
    """100,000 phrases in as many images, of one class; and as many descriptions, which are classes."""
    count = 100_000
    content = questions("text_input", {})
    content["images"] = [
        {"id": number, "width": 9, "height": 9, "text_input": f"thing {number}", **EXHAUSTIVE}
        for number in range(count)
    ]
    path = dumped(tmp_path / "gt.json", content)
    begin = time.process_time()
    table = load_ground_truth(path)
    answers = tmp_path / "answers.jsonl"
    line = {"image_id": 5, "answer": '[{"bbox": [0.1, 0.1, 0.5, 0.5], "label": "it"}]'}
    answers.write_text(json.dumps(line))
    assert len(load_detections(answers, table)) == 1
    described = {
        "images": [{"id": 1, "width": 9, "height": 9}],
        "descriptions": [
            {"id": number, "text": f"thing {number}", "image_ids": [1]} for number in range(count)
        ],
        "annotations": [{"image_id": 1, "bbox": [1, 1, 5, 5], "description_ids": [77_777]}],
    }
    labels = load_ground_truth(dumped(tmp_path / "ol.json", described)).image_labels
    assert time.process_time() - begin < 30
    assert (len(table.categories), len(table.images)) == (1, count)
    assert repr(labels) == "ImageLabels: 99,999 negative, 1 positive"


# ---------------------------------------------------------------- OmniLabel

OMNILABEL = {
    "images": [{"id": 8, "file_name": "a.jpg", "width": 100, "height": 80}, {"id": 9, "file_name": "b.jpg"}],
    "descriptions": [
        {
            "id": 20,
            "text": "Cat",
            "image_ids": [8, 9],
            "anno_info": {"orig_id": 1, "type": "object_category"},
        },
        {"id": 10, "text": "a  red cat", "image_ids": [8], "anno_info": {"type": "object_description"}},
        {"id": 30, "text": "Dog", "image_ids": []},
    ],
    "annotations": [
        {"id": 1, "image_id": 8, "bbox": [1, 2, 30, 40], "iscrowd": 0, "description_ids": [20, 10]},
        {"id": 2, "image_id": 9, "bbox": [5, 6, 7, 8], "iscrowd": 1, "description_ids": [20]},
    ],
}


def test_descriptions_are_classes(tmp_path: Path) -> None:
    path = dumped(tmp_path / "gt.json", OMNILABEL)
    assert detect_format(path) == ("omnilabel", "OmniLabel's JSON")
    table = load_ground_truth(path)
    assert table.categories.ids.tolist() == [10, 20, 30]
    assert table.categories.names.tolist() == ["a  red cat", "Cat", "Dog"]
    assert table.categories.columns["type"].tolist() == ["object_description", "object_category", ""]
    assert table.categories.columns["words"].tolist() == [3, 1, 1]
    assert table.boxes.tolist() == [[1, 2, 31, 42], [1, 2, 31, 42], [5, 6, 12, 14]]
    assert (table.category.tolist(), table.crowd.tolist()) == ([1, 0, 1], [False, False, True])
    labels = table.image_labels
    assert labels is not None
    assert list(zip(labels.image.tolist(), labels.category.tolist(), labels.kind.tolist(), strict=True)) == [
        *((0, 1, 1), (1, 1, 1), (0, 0, 1))
    ]


def test_predictions_have_a_score_for_each_description(tmp_path: Path) -> None:
    truth = load_ground_truth(dumped(tmp_path / "gt.json", OMNILABEL))
    predictions = [
        {"image_id": 8, "bbox": [1, 2, 30, 40], "description_ids": [10, 20], "scores": [0.25, 0.5]},
        {"image_id": 9, "bbox": [1, 2, 3, 4], "description_ids": [30], "scores": [0.75]},
    ]
    found = load_detections(dumped(tmp_path / "dt.json", predictions), truth)
    assert (found.category.tolist(), found.image.tolist()) == ([0, 1, 2], [0, 0, 1])
    assert found.scores.tolist() == [0.25, 0.5, 0.75]
    for each in predictions:
        del each["scores"]
    assert not load_detections(dumped(tmp_path / "dt.json", predictions), truth).scored


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**OMNILABEL, "annotations": [{"image_id": 5, "bbox": [1, 2, 3, 4], "description_ids": []}]},
         "image_id must be listed in images. Got 5 in annotation 0 of"),
        ({**OMNILABEL, "annotations": [{"image_id": 8, "bbox": [1, 2, 3, 4], "description_ids": [4]}]},
         "description_ids must be listed in descriptions. Got 4 in annotation 0 of"),
        ({**OMNILABEL, "annotations": [{"image_id": 8, "bbox": [1, 2, 3], "description_ids": [10]}]},
         "bbox must be four numbers. Got 3 in annotation 0 of"),
        ({**OMNILABEL, "descriptions": [{"id": 1, "text": "a", "image_ids": [5]}], "annotations": []},
         "image_ids of a description must be listed in images. Got 5 in"),
        ({**OMNILABEL, "descriptions": [{"id": 1, "text": "a"}, {"id": 1, "text": "b"}], "annotations": []},
         "descriptions must have an id of their own each. Got one twice in"),
        ({**OMNILABEL, "images": [{"id": 8}, {"id": 8}], "annotations": []},
         "images must have an id of their own each. Got one twice in"),
    ],
)  # fmt: skip
def test_what_omnilabel_refuses(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError) as raised:
        load_ground_truth(dumped(tmp_path / "gt.json", content))
    assert str(raised.value).startswith(message), str(raised.value)


def test_scores_as_many_as_descriptions(tmp_path: Path) -> None:
    truth = load_ground_truth(dumped(tmp_path / "gt.json", OMNILABEL))
    one = {"image_id": 8, "bbox": [1, 2, 3, 4], "description_ids": [10, 20], "scores": [0.5]}
    with pytest.raises(
        FileFormatError, match=r"scores must be as many as description_ids \(2\)\. Got 1 in prediction 0"
    ):
        load_detections(dumped(tmp_path / "dt.json", [one]), truth)


# ---------------------------------------------------------------- real files


def test_real_files_against_a_plain_parse() -> None:
    folder = real("scoreless")
    for name in ("a", "b", "c"):
        path = folder / "saco" / f"ground_truth_{name}.json"
        content, table = json.loads(path.read_text()), load_ground_truth(path)
        by_id = {image["id"]: image for image in content["images"]}
        for row, identifier in enumerate(table.images.ids.tolist()):
            assert table.images.columns["phrase"][row] == by_id[identifier]["text_input"]
            assert table.images.columns["exhaustive"][row] == by_id[identifier]["is_instance_exhaustive"]
        assert len(table) == len(content["annotations"])
        assert table.crowd.sum() == sum(each["iscrowd"] for each in content["annotations"])
        assert table.masks is not None
    together = load_ground_truth(folder / "saco")
    assert len(together) == 255
    assert together.masks is not None
    refcoco = load_ground_truth(folder / "refcoco" / "ground_truth.json")
    assert (len(refcoco), refcoco.images.columns["phrase"][0]) == (1975, "person bottom left")
    omnilabel = load_ground_truth(folder / "omnilabel" / "8357.json")
    assert (len(omnilabel), len(omnilabel.categories), repr(omnilabel.image_labels)) == (
        *(8, 369, "ImageLabels: 364 negative, 5 positive"),
    )
    perfect = load_detections(folder / "omnilabel" / "predictions_perfect.json", omnilabel)
    assert sorted(perfect.category.tolist()) == sorted(omnilabel.category.tolist())
    assert np.isin(perfect.boxes, omnilabel.boxes).all()
    assert boxscore.evaluate(omnilabel, perfect)["AP"] == 1.0


def test_prose_of_real_models() -> None:
    """REC-Eval takes the first four numbers of a sentence; here only --loose does."""
    folder = real("scoreless", "refcoco")
    truth = load_ground_truth(folder / "ground_truth.json")
    for name, boxes in (("qwen25vl", [1, 30]), ("internvl", [0, 4])):
        path = folder / f"{name}_answers_without_a_first_box.json"
        tables = [load_detections(path, truth, loose=loose, coordinates="pixels") for loose in (False, True)]
        assert [len(table) for table in tables] == boxes
        assert tables[1].answers["counts"]["loose"] == boxes[1] - boxes[0]
