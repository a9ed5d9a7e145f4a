"""JSON results that are decoded a piece at a time: any size of the pieces gives the same rows and errors."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore.formats import _json
from support.running import Run

Record = dict[str, Any]


def records(
    count: int = 400, *, seed: int = 1, images: int = 30, image: Callable[[int], Any] = int, **more: Any
) -> list[Record]:
    """Draw heaps of boxes in no order of the images, with few scores, so that many are equal."""
    rng = np.random.default_rng(seed)
    corners, sizes = rng.integers(0, 60, (count, 2)) / 2, rng.integers(5, 40, (count, 2)) / 3
    return [
        {
            "image_id": image(number),
            "category_id": label,
            "bbox": [*corner, *size],
            "score": score / 10,
            **more,
        }
        for number, label, corner, size, score in zip(
            rng.integers(0, images, count).tolist(),
            rng.integers(1, 4, count).tolist(),
            corners.tolist(),
            sizes.tolist(),
            rng.integers(1, 11, count).tolist(),
            strict=True,
        )
    ]


DATA: dict[str, list[Record]] = {
    "scattered": records(),
    "by image": sorted(records(), key=lambda record: record["image_id"]),
    "one image": records(images=1),
    "texts": records(image=lambda number: f"bild-{number}-ü"),
    "numbers as texts": records(image=lambda number: f"{number:03d}"),
    "large ids": records(image=lambda number: 2**63 + number),
    "large ids among small ones": records(image=lambda number: number if number < 28 else 2**70 + number),
    "exact only as integers": records(image=lambda number: 2**53 + number),
    "negative ids": records(image=lambda number: -number),
    "7.0": records(image=float),
    "further keys": records(deep=[{"a": 1}, {"b": [{}, "}, {"]}], text='ö "\\', none=None),
    "keys of text in some": [
        record | {"note": "}, {" * number} for number, record in enumerate(records(100, images=3))
    ],
    "text classes": [record | {"category_id": f"class {record['category_id']}"} for record in records()],
    "no record": [],
    "one record": records(1),
}

LAYOUTS: dict[str, Callable[[list[Record]], str]] = {
    "dense": lambda rows: json.dumps(rows, separators=(",", ":")),
    "indented": lambda rows: json.dumps(rows, indent=2, ensure_ascii=False),
    "in lines": lambda rows: "\ufeff [\n" + ",\n".join(map(json.dumps, rows)) + "\n] \n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("data", DATA)
def test_records_are_read_and_written_again(
    data: str, layout: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw.json"
    raw.write_text(LAYOUTS[layout](DATA[data]), encoding="utf-8")
    said = []
    for size in (_json.SLICE_BYTES, 700):
        monkeypatch.setattr(_json, "SLICE_BYTES", size)
        printed = run("nms", raw, "--iou-threshold", 0.5, "--output", tmp_path / "kept.json")
        said.append((printed, (tmp_path / "kept.json").read_bytes()))
    assert said[0] == said[1]
    kept = json.loads(said[0][1])
    assert len(kept) < len(DATA[data]) or len(DATA[data]) <= 1
    assert all(record in DATA[data] for record in kept[::20])


def texts_that_are_refused() -> dict[str, bytes]:
    rows = records(200, deep=[{"a": 1}, {"b": 2}])
    whole = json.dumps(rows)
    bad: dict[str, bytes] = {}
    for name, change in {
        "a score of text": {"score": "high"},
        "no score": {"score": None},
        "an id that is no whole number": {"image_id": 7.5},
        "a side below 0": {"bbox": [0, 0, -1, 1]},
        "three numbers": {"bbox": [1, 2, 3]},
        "an id of another kind": {"image_id": None},
    }.items():
        bad[name] = json.dumps([*rows[:150], rows[150] | change, *rows[151:]]).encode()
    at = whole.index('"score"', len(whole) // 2)
    bad["a score that is left out"] = (whole[:at] + '"other"' + whole[at + 7 :]).encode()
    bad["NaN"] = (whole[: at + 9] + "NaN" + whole[at + 12 :]).encode()
    bad["a missing quote"] = (whole[:at] + whole[at + 1 :]).encode()
    bad["a missing bracket"] = whole.replace("}, {", ", {", 1).encode()
    bad["a missing comma"] = (whole[:at] + whole[at:].replace("}, {", "} {", 1)).encode()
    bad["cut short"] = whole[: len(whole) * 3 // 4].encode()
    bad["cut inside the first record"] = whole[:30].encode()
    bad["no UTF-8"] = (whole[:at] + '"name": "').encode() + b"\xff" + ('", ' + whole[at:]).encode()
    bad["not at all"] = b""
    bad["a number"] = b"5"
    bad["behind the end"] = whole.encode() + b", 7]"
    return bad


REFUSED = texts_that_are_refused()


@pytest.mark.parametrize("size", [64, 700])
@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_text_is_refused_alike(
    name: str, size: int, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field, rule, value, record and byte are named; an older output stays."""
    raw, output = tmp_path / "raw.json", tmp_path / "kept.json"
    raw.write_bytes(REFUSED[name])
    output.write_text("before")
    call = ["nms", raw, "--output", output, "--iou-threshold", "0.5"]
    whole = run.error(*call)
    monkeypatch.setattr(_json, "SLICE_BYTES", size)
    assert run.error(*call) == whole
    assert whole.startswith("boxscore: error: ")
    assert output.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"raw.json", "kept.json"}


def test_ends_of_records_are_found_by_their_brackets() -> None:
    """Against a reader of letters."""
    random.seed(5)
    for _ in range(300):
        values = [
            random.choice([1, "a", '"', "\\", "},{", ',"', [1, {"a": [2]}], {"b": "]"}]) for _ in range(4)
        ]
        rows = [{"k": value, "l": values} for value in values]
        text = json.dumps(rows)[1:-1].encode()
        text = text[: random.randrange(1, len(text))]
        ends = [len(json.dumps(rows[:count])) - 2 for count in (1, 2, 3)]
        expected = [end for end in ends if end < len(text)]
        found = _json._outer_boundary(text)
        assert found == ((expected[-1], expected[-1] + 1) if expected else None)
