"""Vocabularies: sorted unique ids, and rows looked up by id."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxscore import InputError
from boxscore.data.vocabulary import Categories, Images, as_ids

INTEGERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**70), 2**70))
IDS = st.one_of(st.lists(INTEGERS), st.lists(st.one_of(INTEGERS, st.text(max_size=3))))


@given(ids=IDS, values=IDS)
def test_rows_are_positions_among_the_sorted_unique_ids(ids: list[Any], values: list[Any]) -> None:
    images = Images.build(ids)
    expected = sorted({i for i in ids if isinstance(i, int)}) + sorted({i for i in ids if isinstance(i, str)})
    assert images.ids.tolist() == expected
    rows = images.rows(as_ids([*ids, *values], name="ids"))
    assert rows.dtype == np.int32
    assert rows.tolist() == [expected.index(i) if i in expected else -1 for i in [*ids, *values]]


@pytest.mark.parametrize("known", [[3, 1, 2], [0, 10**12], [-(2**63), 2**63 - 1], [5]])
def test_integer_rows_near_and_far(known: list[int]) -> None:
    images = Images.build(known)
    values = np.array([*known, 0, -1, 4, 2**62], dtype=np.int64)
    assert images.rows(values).tolist() == [
        sorted(known).index(i) if i in known else -1 for i in values.tolist()
    ]


def test_the_last_of_repeated_ids_stays() -> None:
    images = Images.build([7, 3, 7], file_names=["a", "b", "c"], sizes=[[1, 1], [2, 2], [3, 3]])
    assert images.ids.tolist() == [3, 7]
    assert images.file_names.tolist() == ["b", "c"]
    assert images.sizes.tolist() == [[2, 2], [3, 3]]
    assert Categories.build([1, 1], names=["old", "new"]).names.tolist() == ["new"]


def test_ids_of_numpy_and_of_python_are_the_same() -> None:
    for values in ([np.int64(3), np.int32(1)], np.array([3, 1]), np.array([3, 1], dtype=np.uint8), (3, 1)):
        ids = as_ids(values, name="ids")
        assert ids.dtype == np.int64
        assert ids.tolist() == [3, 1]
    assert as_ids([np.str_("a"), "b"], name="ids").tolist() == ["a", "b"]
    assert as_ids(np.array(["a", "b"]), name="ids").tolist() == ["a", "b"]


def test_ids_beyond_64_bits_stay_whole() -> None:
    for values in ([2**64 - 1], np.array([2**64 - 1], dtype=np.uint64)):
        assert as_ids(values, name="ids").tolist() == [2**64 - 1]


@pytest.mark.parametrize(
    "bad", [1.5, True, None, float("nan"), (1, 2), b"a", np.float64(1.0), np.bool_(True)]
)
def test_other_kinds_of_ids_are_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=r"^ids must be integers or strings\. Got .* in row 1\.$"):
        as_ids([1, bad], name="ids")


def test_ids_have_one_axis() -> None:
    with pytest.raises(InputError, match=r"^ids must have shape \[N\]\. Got shape \[1, 2\]\.$"):
        as_ids(np.array([[1, 2]]), name="ids")


def test_arrays_are_read_only() -> None:
    images = Images.build([1, 2], sizes=[[1, 1], [2, 2]])
    categories = Categories.build([1])
    for array in (images.ids, images.file_names, images.sizes, categories.ids, categories.names):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_labels_tell_classes_of_one_name_apart() -> None:
    assert Categories.build([0, 1, 2], names=["tumor", "tumor", "cell"]).labels == [
        "tumor (0)",
        "tumor (1)",
        "cell",
    ]


def test_classes_are_found_by_id_first_and_by_name_second() -> None:
    categories = Categories.build([1, 2, "cat"], names=["cat", "dog", "cow"])
    assert categories.rows_by_id_or_name(["cat", "dog", 1, "cow", "?"]).tolist() == [2, 1, 0, 2, -1]
    twins = Categories.build([4, 5], names=["tumor", "tumor"])
    assert twins.rows_by_id_or_name([5, "tumor (4)"]).tolist() == [1, 0]
    with pytest.raises(InputError, match=re.escape("Got 'tumor', the name or id of 2; give 'tumor (4)'")):
        twins.rows_by_id_or_name(["tumor"])


def test_same_as() -> None:
    assert Images.build([2, 1]).same_as(Images.build([1, 2]))
    assert not Images.build([1]).same_as(Images.build([1, 2]))
    assert not Images.build([1]).same_as(Images.build(["1"]))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"file_names": ["a"]}, "file_names must be as long as image ids (2). Got length 1."),
        ({"sizes": [[1, 1]]}, "sizes must be as long as image ids (2). Got length 1."),
        ({"sizes": [1, 1]}, "image sizes must have shape [N, 2]. Got shape [2]."),
        ({"columns": {"camera": [1]}}, "camera must be as long as image ids (2). Got length 1."),
    ],
)
def test_columns_of_another_length_are_refused(options: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        Images.build([1, 2], **options)
    assert str(caught.value) == text


def test_names_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match=r"^names must be as long as category ids \(2\)\. Got length 1\.$"):
        Categories.build([1, 2], names=["a"])


def test_an_image_without_a_name_is_called_as_its_id() -> None:
    assert Images.build([3, 7, "x"], file_names=["a.jpg", "", None]).names == ["a.jpg", "7", "x"]
