"""Ground truth whose annotations are found as text: the same tables and messages as when all is decoded."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.formats import coco
from support.tables import same_bits

IMAGES = [{"id": number, "width": 90, "height": 80, "file_name": f"{number}.jpg"} for number in (1, 2, 3)]
CATEGORIES = [{"id": 4, "name": "cat"}, {"id": 7, "name": "dog"}]
ANNOTATIONS: list[dict[str, Any]] = [
    {"id": 9, "image_id": 1, "category_id": 4, "bbox": [1, 2, 30, 40], "area": 1200, "iscrowd": 0},
    {"id": 5, "image_id": 3, "category_id": 7, "bbox": [5, 6.5, 7, 8], "area": 56, "iscrowd": 1},
]
OBJECTS = [{"id": 1}, {"id": 2}]


def text(*parts: tuple[str, Any], indent: int | None = None) -> str:
    """Keys and values in this order; a key may come twice."""
    listed = (f"{json.dumps(key)}: {json.dumps(value, indent=indent)}" for key, value in parts)
    return "{" + ", ".join(listed) + "}"


A, B, C = ("annotations", ANNOTATIONS), ("images", IMAGES), ("categories", CATEGORIES)


def noted(**more: Any) -> tuple[str, Any]:
    """Annotations with another key."""
    return "annotations", [{**ANNOTATIONS[0], **more}, ANNOTATIONS[1], {**ANNOTATIONS[0], "id": 8, **more}]


FOUND = {
    "keys in records": text(noted(images=[1], categories=[2]), B, C),
    "first": text(A, B, C),
    "between": text(B, A, C),
    "last": text(C, B, A),
    "indented": text(B, A, C, indent=2),
    "info after": text(B, C, A, ("info", {"year": 2026})),
    "lists before": text(("licenses", OBJECTS), B, ("info", {"authors": OBJECTS}), C, A),
    "names of keys in strings": text(B, noted(note='"annotations": [{"id": 1}], "images": []'), C),
    "brackets in strings": text(B, noted(note="}], ]}"), C),
    "lists in records": text(B, noted(parts=[[{"annotations": []}], []]), C),
    "no ASCII": text(B, noted(note="x"), C).replace("note", "nöte"),
}
NOT_FOUND = {
    "empty": text(B, ("annotations", []), C),
    "empty, and a list after": text(B, C, ("annotations", []), ("licenses", OBJECTS)),
    "null": text(B, C, ("annotations", None)),
    "of another object": text(("info", {"annotations": OBJECTS}), B, C, A),
    "of another object alone": text(("info", {"annotations": OBJECTS}), B, C),
    "twice": text(B, A, C, ("annotations", ANNOTATIONS[:1])),
    "twice, one as text": text(B, A, C)[:-1] + ', "\\u0061nnotations": []}',
    "no images": text(A, C),
    "no categories": text(B, A),
    "an end in a record": text(B, C, A)[:-20],
    "a list": json.dumps(ANNOTATIONS),
}
WRONG = {
    "no end": text(B, C, A)[:-2],
    "lists after": text(B, C, A, ("licenses", OBJECTS)),
    "lists after, of lists": text(B, C, A, ("extra", [[1], [2]])),
    "lists between": text(B, A, ("licenses", OBJECTS), C),
    "a list of one before a list": text(B, C, ("annotations", ANNOTATIONS[:1]), ("licenses", OBJECTS)),
    "twice with lists": text(B, C, A, ("annotations", ANNOTATIONS[:1])),
    "a wrong record": text(B, C, ("annotations", [*ANNOTATIONS, {**ANNOTATIONS[0], "bbox": [1, 2]}])),
    "a wrong first record": text(B, C, ("annotations", [{"id": 1}, *ANNOTATIONS])),
    "not JSON in a record": text(B, A, C).replace("6.5", "6.5.5"),
    "NaN": text(B, A, C).replace("6.5", "NaN"),
    "a comma too many": text(B, A, C).replace('"iscrowd": 1}]', '"iscrowd": 1},]'),
    "a quote too few": text(B, A, C).replace('"area": 56', '"area: 56'),
    "a number for a record": text(B, ("annotations", [*ANNOTATIONS, 5]), C),
}


def outcome(path: Path) -> tuple[Any, ...]:
    """Return the table or the error of a file, and its warnings."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            table: Any = boxscore.load_ground_truth(path)
        except boxscore.BoxscoreError as error:
            table = str(error)
    return table, [str(one.message) for one in said]


@pytest.mark.parametrize("name", [*FOUND, *NOT_FOUND, *WRONG])
def test_tables_and_messages_are_those_of_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "truth.json"
    content = {**FOUND, **NOT_FOUND, **WRONG}[name].encode()
    path.write_bytes(content)
    around = coco._decode_around_annotations(content)
    assert (around is None) == (name in NOT_FOUND)
    table, said = outcome(path)
    monkeypatch.setattr(coco, "_decode_around_annotations", lambda _: None)
    expected, expected_said = outcome(path)
    assert said == expected_said
    assert type(table) is type(expected)
    if isinstance(table, str):
        assert table == expected
        return
    same_bits(table, expected)
    if name in FOUND:
        assert around is not None
        assert json.loads(bytes(around.annotations)) == json.loads(content)["annotations"]
        assert len(table) >= 2


def test_many_annotations_and_a_list_after_them(tmp_path: Path) -> None:
    """So many that they are read in slices, the wrong end in the last one."""
    records = [{**ANNOTATIONS[0], "id": number} for number in range(3_000)]
    path = tmp_path / "truth.json"
    path.write_text(text(B, C, ("annotations", records), ("licenses", OBJECTS)))
    assert np.array_equal(boxscore.load_ground_truth(path).ids, np.arange(3_000))
