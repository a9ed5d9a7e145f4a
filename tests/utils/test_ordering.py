"""The fast orders against NumPy's plain ones."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from boxscore._utils.ordering import (
    MEASURED_FROM,
    MEASURED_TO,
    _sort_is_fast,
    descending_order,
    distinct_rows,
    group_order,
    inverse_order,
    ragged_ranges,
    rank_in_runs,
    rows_of_groups,
    run_starts,
    sort_runs,
    sorts_wide,
    stable_order,
    top_k_per_group,
)
from support.each import each
from support.examples import examples

TINY = 5e-324
scores = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [0.0, -0.0, TINY, -TINY, 1.0, np.nextafter(1, 2), np.nextafter(1, 0), -1.0, 1e308, -1e308]
    ),
    st.integers(-3, 3).map(float),
)


def plain_descending(values: Any) -> Any:
    return np.lexsort((np.arange(len(values)), -values))


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("groups", [1, 80, 1 << 20, 1 << 40])
@pytest.mark.parametrize("decimals", [1, 3, 17])
def test_orders_of_many_by_sort_and_by_passes(
    wide: bool, groups: int, decimals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boxscore._utils.ordering.sorts_wide", lambda count: wide)
    rng = np.random.default_rng(groups + decimals)
    values, group = rng.random(3_000).round(decimals), rng.integers(0, groups, 3_000)
    values[::7] += 2.0**-50  # differs only in bits that are cut
    order = group_order(group, values)
    assert order.dtype == np.intp
    assert np.array_equal(order, np.lexsort((np.arange(3_000), -values, group)))
    assert np.array_equal(descending_order(values), plain_descending(values))
    some = group % 100_000
    assert np.array_equal(stable_order(some, 100_000), np.argsort(some, kind="stable"))


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_runs_are_sorted(wide: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore._utils.ordering.sorts_wide", lambda count: wide)
    values = (np.arange(4_000) * 37 % 1009).astype(dtype)
    expected = sorted(values.tolist())
    sort_runs(values)
    assert values.tolist() == expected


@pytest.mark.parametrize("fast", [True, False])
def test_the_faster_sort_is_measured_once(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever it is; of few keys, and of very many, it is not asked."""
    asked = []

    def time_of(work: Callable[[], object]) -> int:
        asked.append(work())
        return 100 if len(asked) % 2 else 299 + (not fast)  # a pass, then the sort

    monkeypatch.setattr("boxscore._utils.ordering._nanoseconds", time_of)
    _sort_is_fast.cache_clear()
    try:
        assert sorts_wide(MEASURED_FROM - 1)
        assert sorts_wide(MEASURED_TO + 1)
        assert not asked
        assert [sorts_wide(count) for count in (MEASURED_FROM, MEASURED_TO)] == [fast, fast]
        assert len(asked) == 2
    finally:
        _sort_is_fast.cache_clear()


@given(values=st.lists(scores, max_size=60))
@settings(max_examples=examples(800))
def test_descending_order(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    order = descending_order(array)
    assert order.dtype == np.intp
    assert order.tolist() == plain_descending(array).tolist()


@each(
    [
        (kind, count)
        for count in [0, 1, 2, 3, 70_000]
        for kind in [
            "uniform",
            "ties",
            "low bits",
            "denormal",
            "negative",
            "mixed",
            "constant",
            "sorted",
            "float32",
            "zeros",
        ]
    ]
)
def test_descending_order_of_many(kind: str, count: int) -> None:
    rng = np.random.default_rng(count)
    values = {
        "uniform": lambda: rng.random(count),
        "ties": lambda: rng.integers(0, 5, count) / 4,
        "low bits": lambda: 0.5 + rng.integers(0, 9, count) * 2.0**-53,
        "denormal": lambda: rng.integers(-9, 9, count) * TINY,
        "negative": lambda: -rng.random(count),
        "mixed": lambda: rng.standard_normal(count) * 10.0 ** rng.integers(-300, 300, count),
        "constant": lambda: np.full(count, 0.25),
        "sorted": lambda: np.sort(rng.random(count))[::-1].copy(),
        "float32": lambda: rng.random(count).astype(np.float32).astype(np.float64),
        "zeros": lambda: rng.choice([0.0, -0.0], count),
    }[kind]()
    before = values.tobytes()
    assert np.array_equal(descending_order(values), plain_descending(values))
    assert values.tobytes() == before


@given(
    keys=st.lists(st.integers(0, 2**40), max_size=60),
    size=st.sampled_from([1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 2**31, 2**40 + 1]),
)
@settings(max_examples=examples(500))
def test_stable_order(keys: list[int], size: int) -> None:
    for kind in (np.int64, np.intp):
        array = np.array(keys, dtype=kind) % size
        assert stable_order(array, size).tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("size", [2, 256, 65_536, 65_537, 2**33])
def test_stable_order_of_many(size: int) -> None:
    keys = np.random.default_rng(size).integers(0, size, 70_000)
    keys[::3] = size - 1
    assert np.array_equal(stable_order(keys, size), np.argsort(keys, kind="stable"))


@given(values=st.lists(st.integers(0, 3), max_size=30))
def test_run_starts(values: list[int]) -> None:
    expected = [i for i in range(len(values)) if i == 0 or values[i] != values[i - 1]]
    assert run_starts(np.array(values, dtype=np.int64)).tolist() == expected


@given(rows=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=12))
def test_ragged_ranges(rows: list[tuple[int, int]]) -> None:
    starts, counts = np.array(rows, dtype=np.intp).reshape(-1, 2).T
    expected = [value for start, count in rows for value in range(start, start + count)]
    assert ragged_ranges(starts, counts).tolist() == expected


@given(groups=st.lists(st.integers(-2, 3), max_size=30), k=st.integers(1, 4))
def test_top_k_per_group(groups: list[int], k: int) -> None:
    expected = [i for i, group in enumerate(groups) if groups[:i].count(group) < k]
    values = np.array(groups, dtype=np.int64)
    assert top_k_per_group(values, k).tolist() == expected
    assert top_k_per_group(values + 2, k, 6).tolist() == expected


def test_rank_in_runs_starts_again_where_the_value_changes() -> None:
    assert rank_in_runs(np.array([3, 3, 1, 3, 3, 3])).tolist() == [0, 1, 0, 0, 1, 2]
    assert rank_in_runs(np.array([], dtype=np.int64)).tolist() == []


def test_inverse_order_undoes_an_order() -> None:
    order = np.array([2, 0, 3, 1])
    assert inverse_order(order).tolist() == [1, 3, 0, 2]
    assert order[inverse_order(order)].tolist() == [0, 1, 2, 3]


@given(
    arrays(
        st.sampled_from([np.float64, np.int32, np.uint8, np.bool_]),
        st.tuples(st.integers(0, 30), st.integers(0, 4)),
        elements=st.integers(0, 1),
    )
)
def test_distinct_rows(rows: np.ndarray) -> None:
    first, number = distinct_rows(rows)
    assert rows[first][number].tolist() == rows.tolist()
    known = sorted({*map(tuple, rows.tolist())})
    assert [*map(tuple, rows[first].tolist())] == known
    assert first.tolist() == [[*map(tuple, rows.tolist())].index(row) for row in known]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="has no such timer")
def test_an_interrupt_amid_distinct_rows_is_no_other_error() -> None:
    """NumPy's comparison of records answers it with a TypeError."""
    rows, interrupts = np.zeros((40, 6)), 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(200):
            interrupts += 1
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                while True:
                    distinct_rows(rows)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupts == 200


@given(st.lists(st.integers(0, 6), max_size=30))
def test_rows_of_groups(values: list[int]) -> None:
    expected = [[row for row, value in enumerate(values) if value == group] for group in range(7)]
    assert [rows.tolist() for rows in rows_of_groups(np.array(values, dtype=np.int32), 7)] == expected


def test_rows_of_no_group() -> None:
    assert rows_of_groups(np.empty(0, dtype=np.int32), 0) == []
