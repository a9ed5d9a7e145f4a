"""What one answer of a language model holds, how it was read, and what its numbers are."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest

from boxscore import InputError, parse_answer
from boxscore.extensions.scoreless._answer_text import ReadAnswer, read_answer
from boxscore.extensions.scoreless.coordinates import COORDINATES, Evidence
from support.each import each
from support.real_data import real

CAT = '{"bbox_2d": [100, 50, 300, 200], "label": "cat"}'
DOG = '{"bbox_2d": [10, 20, 30, 40], "label": "dog"}'
BOTH = [("cat", (100, 50, 300, 200)), ("dog", (10, 20, 30, 40))]


def boxes_of(read: ReadAnswer) -> list[tuple[str | None, tuple[float, ...]]]:
    return [(box.label, box.numbers) for box in read.boxes]


@each(
    [
        (f"[{CAT}, {DOG}]", "read", BOTH),
        (f"<think>[1, 2, 3, 4] {DOG}</think>\n<answer>[{CAT}]</answer> done {DOG}", "read", BOTH[:1]),
        (f"<s>[{CAT}]</s><|im_end|>", "read", BOTH[:1]),
        (f"<think>perhaps {CAT} or {DOG}", "truncated", []),
        (f"A:\n```json\n[{CAT}]\n```\nB:\n```json\n[{DOG}]\n```", "read", BOTH[:1]),
        (f"```python\nimport cv2\n```\nso [{CAT}, {DOG}]", "repaired", BOTH),
        (f"{{'objects': [{CAT}, {DOG},], 'n': (1, 2)}}", "read", BOTH),
        (f'{{"objects": [{CAT}, {DOG}, {{"bbox_2d": [5, 6', "truncated", BOTH),
        (f"I'm sure: {CAT}, isn't it? And {DOG}.", "repaired", BOTH),
        (f"{{'label': 'it's', 'bbox_2d': [1, 2, 3, 4]}}\n{CAT}\n{DOG}", "truncated", BOTH),
        (f'{{"a": [{CAT}, oops, {DOG}]}}', "repaired", BOTH),
        ('{"label": "cat", "bbox_2d": [100, 50, 300, 200], "box": [1, 2, 3, 4]}', "read", BOTH[:1]),
        ('{"size": [0, 0, 640, 480], "objects": []}', "empty", []),
        ('[{"label": "cat", "bbox_2d": []}]', "empty", []),
        ('[{"label": "cat"}]', "unreadable", []),
        ("[[100, 50, 300, 200], [10, 20, 30, 40]]", "read", [(None, numbers) for _, numbers in BOTH]),
        ('{"boxes": [' + CAT + ", " + DOG + "]}", "read", BOTH),
        ('[{"bbox": {"x1": 100, "y1": 50, "x2": 300, "y2": 200}, "name": "cat"}]', "read", BOTH[:1]),
        ('[{"bbox": ["100", "50", "300", "200"], "class": 7}]', "read", [("7", (100, 50, 300, 200))]),
        ("None.", "empty", []),
        ("null", "empty", []),
        ("42", "unreadable", []),
        ("The cat is at [100, 50, 300, 200].", "unreadable", []),
        ("cat<loc_1><loc_2><loc_3><loc_4><loc_5><loc_6><loc_7><loc_8>dog<loc_9><loc_10>", "truncated",
         [("cat", (1, 2, 3, 4)), ("cat", (5, 6, 7, 8))]),
        ("<loc0001><loc0002><loc0003><loc0004> a cat ; <loc0005><loc0006>", "truncated", [("a cat", (1, 2, 3, 4))]),
        ("<|object_ref_start|>cat<|object_ref_end|><|box_start|>(1,2),(3,4)<|box_end|>"
         "<|object_ref_start|>dog<|object_ref_end|><|box_start|>(5,6),(7", "truncated", [("cat", (1, 2, 3, 4))]),
        ("<ref>cat</ref><box>(1,2),(3,4)</box><box>[[5,6,7,8]]</box>", "read",
         [("cat", (1, 2, 3, 4)), ("cat", (5, 6, 7, 8))]),
        ("<|object_ref_start|>cat<|object_ref_end|><|box_start|>None<|box_end|>", "empty", []),
        ("<phrase>cats</phrase><object><patch_index_0033><patch_index_0067></delimiter_of_multi_objects/>"
         "<patch_index_0000><patch_index_1023></object>", "read", [("cats", (1, 1, 3, 2)), ("cats", (0, 0, 31, 31))]),
        ('<points x1="1.5" y1="2" x2="3" y2="4" alt="cat">cat</points>', "read",
         [("cat", (1.5, 2, 1.5, 2)), ("cat", (3, 4, 3, 4))]),
        ("A cat [[001,002,003,004]] and a dog [[005,006,007,008;009,010,011,012]]", "read",
         [("A cat", (1, 2, 3, 4)), ("and a dog", (5, 6, 7, 8)), ("and a dog", (9, 10, 11, 12))]),
    ]
)  # fmt: skip
def test_an_answer(text: str, status: str, boxes: list[Any]) -> None:
    read = read_answer(text)
    assert (read.status, boxes_of(read)) == (status, boxes)


@each(
    [
        ('[{"bbox_2d": [1, 2, 3]}, {"bbox_2d": [1, 2, 3, 4, 5]}, {"bbox_2d": null}, {"bbox_2d": "a"}]', 4),
        ('[{"bbox_2d": [1, 2, NaN, 4]}, {"bbox_2d": [1, 2, 1e999, 4]}, {"bbox_2d": [1, 2, true, 4]}]', 3),
        (f'[{{"bbox_2d": [1, 2, 3, {"9" * 5000}]}}, {{"bbox_2d": [1, 2, 3, 1{"0" * 400}]}}]', 2),
        ('[{"bbox_2d": [1, 2, 3, 1e101]}]', 1),
        ("[[1, 2, 3], [4, 5, 6, 7, 8]]", 2),
        ("cat<loc_1><loc_2><loc_3>dog<loc_4><loc_5><loc_6><loc_7>", 1),
        ("<|ref|>cat<|/ref|><|det|>[[1, 2, 3], [x, 2, 3, 4]]<|/det|>", 2),
    ]
)
def test_what_is_not_four_numbers_is_counted(text: str, damaged: int) -> None:
    assert read_answer(text).damaged == damaged


def test_a_second_block_is_said() -> None:
    block = f"```json\n[{CAT}]\n```"
    assert [read_answer(text).has_more for text in (block, f"{block}\n{block}")] == [False, True]


@each(
    [
        ("It is at approximately (358,24,486,249). More at (1,2,3,4).", (358, 24, 486, 249)),
        ("Top-left corner: (205, 34), \n- Bottom-right corner: (467, 359).", (205, 34, 467, 359)),
        ("Between 3 and 4 cats, at [1, 2, 3].", None),
    ]
)
def test_numbers_in_prose_where_that_is_asked_for(text: str, four: tuple[int, ...] | None) -> None:
    assert read_answer(text).status == "unreadable"
    read = read_answer(text, loose=True)
    assert (read.status, [box.numbers for box in read.boxes]) == (
        ("loose", [four]) if four else ("unreadable", [])
    )


HOSTILE = (
    *(
        "[",
        "{",
        '{"a":',
        "}",
        "{}",
        '"',
        "{'",
        '"\\',
        "\\",
        "(",
        "```",
        "<think>",
        "</think>",
        "<answer>",
        " ",
    ),
    *(
        "</s>",
        "<|im_end|>",
        "<point",
        '<point x="',
        "<loc_1>",
        "<loc_",
        "<loc0001> a ; ",
        "<patch_index_0001>",
    ),
    *(
        "<phrase>a",
        "<|box_start|>",
        "<|box_start|>(1,2)     ",
        "<|det|>[[",
        "<ref>",
        "[[001,002,003,004;",
        "<1>",
    ),
    *(
        "1",
        "1.",
        "1e",
        "(1,2",
        "[1,",
        '{"bbox_2d": [1,2',
        "{[",
        '{"a":1:',
        '{"a": {"bbox": [1]} b} ',
        "{'a\n",
    ),
)


@pytest.mark.long
def test_time_in_proportion_to_length() -> None:
    """Also where nothing fits; twice the text may take three times as long, on a busy machine."""
    begin = time.process_time()
    for piece in HOSTILE:
        for start in ("", '{"objects": [', "```json\n["):
            read_answer(start + piece * (20_000 // len(piece)), loose=True)
    nested = "{" * 10_000 + "}" * 10_000
    assert read_answer(nested).boxes == []
    assert time.process_time() - begin < 20


@pytest.mark.long
def test_depth_is_no_matter() -> None:
    deep = "[" * 30_000 + f"{CAT}" + "]" * 30_000
    assert boxes_of(read_answer(deep)) == BOTH[:1]
    assert boxes_of(read_answer('{"a": ' * 30_000 + CAT)) == BOTH[:1]


@each(
    [
        ("deepseek", "<|ref|>cat<|/ref|><|det|>[[50, <|ref|>dog<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>", 1),
        ("deepseek", "<|ref|>cat<|/ref|><|det|>[[1, 2, 3, 4], [5, 6, <|det|>[[1, 2, 3, 4]]<|/det|>", 2),
        ("qwen", "<|box_start|>(50,200),(5<|box_start|>(1,2),(3,4)<|box_end|>", 1),
        ("internvl", "<ref>cat</ref><box>[[50, 200, <ref>dog</ref><box>[[1, 2, 3, 4]]</box>", 1),
        ("nothing inside", "<ref>cat</ref><box><ref>dog</ref><box>[[1, 2, 3, 4]]</box>", 1),
    ]
)
def test_a_tag_that_is_cut_in_the_middle(name: str, text: str, boxes: int) -> None:
    read = read_answer(text)
    assert (read.status, len(read.boxes), read.damaged) == ("truncated", boxes, 0), name


def test_a_missing_end_of_complete_boxes_is_not_a_cut() -> None:
    read = read_answer("<ref>cat</ref><box>[[1, 2, 3, 4]]<ref>dog</ref><box>[[5, 6, 7, 8]]</box>")
    assert (read.status, len(read.boxes)) == ("read", 2)


@each([("json", f"[{CAT}]"), ("tags", "cat<loc_1><loc_2><loc_3><loc_4>")])
def test_a_byte_order_mark_changes_nothing(name: str, text: str) -> None:
    assert read_answer("\ufeff" + text) == read_answer(text), name


# ---------------------------------------------------------------- what the numbers are


def evidence(boxes: list[list[float]], size: tuple[float, float], key: str = "bbox_2d") -> Evidence:
    written = np.array(boxes, dtype=float)
    return Evidence.of(written, np.tile(np.array(size, dtype=float), (len(boxes), 1)), [key] * len(boxes))


@each(
    [
        ("fractions", [[0.1, 0.2, 0.9, 1.0]], (640, 480), "bbox", ("unit",)),
        ("zeros and ones", [[0, 0, 1, 1]], (640, 480), "bbox", ("unit", "pixels")),
        ("beyond 1000", [[10, 20, 1200, 400]], (1920, 1080), "bbox_2d", ("pixels",)),
        ("outside the image", [[10, 20, 630, 900]], (640, 480), "bbox_2d", ("1000",)),
        ("outside, y first", [[10, 20, 630, 900]], (640, 480), "box_2d", ("1000-yx",)),
        ("inside the image", [[10, 20, 630, 400]], (640, 480), "bbox_2d", ("1000", "pixels")),
        ("inside, y first", [[10, 20, 630, 400]], (640, 480), "box_2d", ("1000-yx", "pixels")),
        ("small", [[10, 20, 63.5, 40]], (640, 480), "bbox_2d", ("1000", "pixels", "percent")),
        ("no size", [[10, 20, 630, 900]], (np.nan, np.nan), "bbox_2d", ("1000", "pixels")),
        ("a square of 1000", [[10, 20, 630, 900]], (1000, 1000), "bbox_2d", ("pixels",)),
        ("many in a small image", [[10, 20, 630, 400]] * 100, (640, 480), "bbox_2d", ("pixels",)),
        ("many in a larger image", [[10, 20, 630, 400]] * 100, (960, 480), "bbox_2d", ("1000", "pixels")),
        ("one stray of 100", [[10, 20, 630, 400]] * 99 + [[10, 20, 5000, 400]], (640, 480), "bbox_2d", ("pixels",)),
        ("nothing", [], (640, 480), "bbox_2d", ("pixels",)),
        ("percent of a square of 1000", [[10.5, 20, 60, 90]], (1000, 1000), "bbox_2d", ("pixels", "percent")),
        ("fractions, perhaps y first", [[0.1, 0.6, 0.2, 0.9]], (640, 480), "box_2d", ("unit-yx", "unit")),
        ("an enlarged input", [[100, 80, 900, 700]], (500, 375), "bbox_2d", ("1000", "pixels")),
        ("an enlarged portrait", [[80, 100, 700, 900]], (375, 500), "bbox_2d", ("1000", "pixels")),
        ("an enlarged square", [[80, 100, 700, 980]], (640, 640), "bbox_2d", ("1000", "pixels")),
        ("thousandths of a square", [[80, 100, 700, 999]], (640, 640), "bbox_2d", ("1000",)),
        ("many in a part of small images", [[10, 20, 460, 400]] * 100, (640, 480), "bbox_2d", ("1000", "pixels")),
    ]
)  # fmt: skip
def test_candidates(
    name: str, boxes: list[list[float]], size: tuple[float, float], key: str, expected: tuple[str, ...]
) -> None:
    if not boxes:
        assert Evidence.of(np.empty((0, 4)), np.empty((0, 2)), []).candidates == expected
    else:
        assert evidence(boxes, size, key).candidates == expected, name


def test_pixels_of_an_enlarged_input_need_its_size() -> None:
    advice = "pixels of an enlarged input need input_width and input_height in each answer"
    box, large = "[100, 80, 900, 700]", "[100, 80, 1090, 800]"
    with pytest.raises(InputError, match=rf"--coordinates 1000\|pixels \(in .*\); {advice}\.$"):
        parse_answer(f'[{{"bbox_2d": {box}}}]', size=(500, 375))
    with pytest.raises(InputError, match=f"be inside their images .* 1 of them outside .*{advice}"):
        parse_answer(f'[{{"bbox_2d": {large}}}]', size=(640, 480))
    # With the size of the input, each number is one of its pixels.
    read = parse_answer(
        f'[{{"bbox_2d": {box}}}]', size=(500, 375), input_size=(1000, 750), coordinates="pixels"
    )
    assert read.boxes.tolist() == [[50.0, 40.0, 450.0, 350.0]]
    read = parse_answer(f'[{{"bbox_2d": {large}}}]', size=(640, 480), input_size=(1280, 960))
    assert read.boxes.tolist() == [[50.0, 40.0, 545.0, 400.0]]


@pytest.mark.parametrize(("size", "into"), [((900, 600), (1344, 896)), ((480, 640), (960, 1280))])
def test_boxes_beyond_1000_that_leave_their_images_are_not_pixels_of_them(
    size: tuple[int, int], into: tuple[int, int]
) -> None:
    """Also if the shorter side reaches farther than the aspect ratio of the largest number allows."""
    parts = [[0.1, 0.1, 0.9, 0.98], *[[0.2, 0.3, 0.4, 0.5]] * 7]
    boxes = [[round(part * side) for part, side in zip(box, into * 2, strict=True)] for box in parts]
    answer = json.dumps([{"bbox_2d": box, "label": "cat"} for box in [*boxes, boxes[0]]])
    with pytest.raises(InputError, match=r"Got 9 boxes .* 2 of them outside .* need input_width"):
        parse_answer(answer, size=size)
    read = parse_answer(answer, size=size, input_size=into).boxes
    expected = [[part * side for part, side in zip(box, size * 2, strict=True)] for box in [*parts, parts[0]]]
    assert np.abs(read - expected).max() < 1


def test_a_box_in_ten_may_leave_its_image() -> None:
    inside = [[10, 20, 1900, 1000]] * 19
    read = parse_answer(
        json.dumps([{"bbox_2d": box} for box in [*inside, [10, 20, 1900, 1300]]]), size=(1920, 1080)
    )
    assert read.coordinates == "pixels"


def test_what_can_be_two_things_is_asked() -> None:
    with pytest.raises(InputError) as raised:
        parse_answer(f"[{CAT}]", size=(640, 480))
    assert str(raised.value) == (
        "coordinates of boxes must be in one convention; these can be 1000 or pixels. Got 1 box with numbers up "
        "to 300, no decimals, 0 of them outside their image if they are pixels, a largest side of 640 pixels, the "
        "key bbox_2d in the answer; say which with --coordinates 1000|pixels (in Python coordinates=)."
    )


@each(
    [
        ("pixels", [64, 48, 320, 240]),
        ("1000", [40.96, 23.04, 204.8, 115.2]),
        ("1000-yx", [30.72, 30.72, 153.6, 153.6]),
        ("999", [64 / 999 * 640, 48 / 999 * 480, 320 / 999 * 640, 240 / 999 * 480]),
        ("unit", [640, 480, 640, 480]),
        ("percent", [64 * 6.4, 48 * 4.8, 640, 480]),
        ("florence-2", [64.5 * 0.64, 48.5 * 0.48, 320.5 * 0.64, 240.5 * 0.48]),
        ("paligemma", [48 / 1024 * 640, 64 / 1024 * 480, 240 / 1024 * 640, 320 / 1024 * 480]),
    ]
)
def test_a_convention(name: str, expected: list[float]) -> None:
    size = (640, 480)
    answer = parse_answer("[64, 48, 320, 240]", size=size, input_size=size, coordinates=name)
    assert answer.boxes is not None
    assert answer.boxes[0].tolist() == pytest.approx(expected, abs=1e-12)
    assert (answer.coordinates, answer.because) == (name, "as given")


def test_every_convention_is_tested() -> None:
    assert {*COORDINATES} - {"kosmos-2", "molmo"} == {
        *("pixels", "1000", "1000-yx", "999", "unit", "unit-yx", "percent", "florence-2", "paligemma")
    }


@each(
    [
        ("centers of two cells", 33, 67, [15, 22.5, 35, 37.5]),
        ("sides of one cell", 33, 33, [10, 15, 20, 30]),
        ("sides in one row", 32, 34, [0, 15, 30, 30]),
    ]
)
def test_cells_of_kosmos(name: str, first: int, last: int, expected: list[float]) -> None:
    text = f"<phrase>cat</phrase><object><patch_index_{first:04d}><patch_index_{last:04d}></object>"
    answer = parse_answer(text, size=(320, 480))
    assert answer.boxes is not None
    assert answer.boxes.tolist() == [expected], name


def test_pixels_of_what_the_model_saw() -> None:
    answer = parse_answer(f"[{CAT}]", size=(1920, 1080), input_size=(960, 540), coordinates="pixels")
    assert answer.boxes is not None
    assert answer.boxes.tolist() == [[200, 100, 600, 400]]


def test_what_is_turned_clipped_and_repeated_is_counted() -> None:
    boxes = [[300, 200, 100, 50], [5, 5, 5, 90], [-20, 5, 700, 90], [700, 5, 800, 90], [5, 5, 5, 90]]
    answer = parse_answer(
        json.dumps([{"bbox": box, "label": "cat"} for box in boxes] + [{"bbox": boxes[-1], "label": "cat"}]),
        size=(640, 480),
        coordinates="pixels",
    )
    assert answer.boxes is not None
    assert answer.boxes.tolist() == [
        *([100, 50, 300, 200], [5, 5, 5, 90], [0, 5, 640, 90], [640, 5, 640, 90]),
        *([5, 5, 5, 90], [5, 5, 5, 90]),
    ]
    assert {kind: count for kind, count in answer.counts.items() if count} == {
        "answers": 1,
        "read": 1,
        "boxes": 6,
        "swapped": 1,
        "without_area": 3,
        "out_of_range": 2,
        "repeated": 2,
        "longest_run": 2,
    }


def test_two_notations_in_one_answer_are_one_by_their_order() -> None:
    """The first notation that is there is read: there is no guess per box."""
    text = "cat<loc_1><loc_2><loc_3><loc_4> <ref>dog</ref><box>[[5,6,7,8]]</box>"
    assert [box.numbers for box in read_answer(text).boxes] == [(1, 2, 3, 4)]


@each(
    [
        (3, {}, "text must be text. Got a value of type int."),
        ("", {"coordinates": "gemini"}, "coordinates must be one of"),
        ("", {"size": (640, 0)}, "size must be a width and a height above 0. Got (640, 0)."),
        ("", {"size": (640,)}, "size must have shape [N, 2]"),
    ]
)
def test_what_is_refused(text: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_answer(text, **options)
    assert str(raised.value).startswith(message), str(raised.value)


def test_an_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.extensions.scoreless.parsed_answers.LONGEST", 10)
    with pytest.raises(InputError, match=r"text must have at most 10 letters\. Got 11\."):
        parse_answer("x" * 11)


def test_shown() -> None:
    answer = parse_answer(f"[{CAT}]", size=(320, 240), coordinates="pixels")
    images = "taken to be those of the images themselves"
    assert repr(answer) == f"Answer: read, 1 box, pixels (as given; {images})"
    assert repr(parse_answer("None")) == "Answer: empty, 0 boxes"


# ---------------------------------------------------------------- real answers


def test_all_real_answers() -> None:
    for case in json.loads(real("scoreless", "answers", "cases.json").read_text()):
        answer = parse_answer(case["answer"])
        found = [
            [label, numbers] for label, numbers in zip(answer.labels, answer.written.tolist(), strict=True)
        ]
        assert found == case["expected_boxes_as_written"], case["name"]
        assert answer.status in case["expected_status"].split("_or_"), case["name"]
