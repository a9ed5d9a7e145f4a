"""Summary kinds: how cells become a number, and what a new kind costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.scoring.test_curves import K, tables

import boxscore
from boxscore.protocols.protocol import SUMMARY_KINDS
from boxscore.scoring.kinds import (
    KINDS,
    Kind,
    mean_of_defined,
    mean_per_class,
    summary_total,
    summary_values,
)


@pytest.mark.parametrize("shape", [(10, 101, 7), (10, 7), (1, 7), (3, 11, 0)])
def test_means_per_class_have_the_bits_of_each_mean(shape: tuple[int, ...]) -> None:
    cells = np.random.default_rng(0).random(shape)
    cells[..., 1:2] = np.nan
    expected = np.array([mean_of_defined(cells[..., k]) for k in range(shape[-1])], dtype=np.float64)
    assert mean_per_class(cells).tobytes() == expected.tobytes()


def test_no_cell_is_undefined() -> None:
    assert np.isnan(mean_of_defined(np.full((2, 3), np.nan)))


def test_a_new_kind_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind("worst", lambda curves, protocol: curves.recall, total=lambda cells: float(np.nanmin(cells)))
    monkeypatch.setitem(KINDS, "worst", kind)
    evaluation = boxscore.evaluate(*tables(3))
    row: Any = SimpleNamespace(key="worst", metric="worst", iou=0.5, area="all", cap=-1, classes="")
    recall = evaluation.curves_of().recall[0]
    assert summary_total(row, evaluation.protocol, evaluation.curves_of) == np.nanmin(recall)
    np.testing.assert_array_equal(summary_values(row, evaluation.protocol, evaluation.curves_of), recall)
    assert len(recall) == K


def test_every_kind_that_a_protocol_may_name_is_computed() -> None:
    assert list(KINDS) == list(SUMMARY_KINDS)


def test_an_unknown_kind_is_refused() -> None:
    evaluation = boxscore.evaluate(*tables(3))
    row: Any = SimpleNamespace(key="x", metric="AB", iou=None, area="all", cap=-1, classes="")
    with pytest.raises(boxscore.InputError, match="summary x: metric must be one of"):
        summary_total(row, evaluation.protocol, evaluation.curves_of)
