"""Comparing matches bit by bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import boxscore
from support.insides import Matches
from support.quiet import quiet


def match_tables(
    truth: boxscore.GroundTruth, found: boxscore.Detections, protocol: Any, *, workers: int = 1
) -> Matches:
    """Match two tables."""
    with quiet():
        return boxscore.evaluate(truth, found, protocol=protocol, workers=workers).matched


def assert_same_matches(ours: Matches, expected: Matches) -> None:
    """Compare every column to the bit, and the vocabularies by their ids."""
    assert {*ours.extra} == {*expected.extra}
    for name, first in columns_of(ours).items():
        second = columns_of(expected)[name]
        if name in ("images", "categories"):
            assert first.ids.tolist() == second.ids.tolist(), name
        elif isinstance(first, np.ndarray):
            assert first.dtype == second.dtype, name
            assert first.shape == second.shape, name
            assert first.tobytes() == second.tobytes(), name
        else:
            assert first == second, name


def columns_of(matches: Matches) -> dict[str, Any]:
    """Return every field by its name, and every extra column by its own."""
    fields = {field.name: getattr(matches, field.name) for field in dataclasses.fields(matches)}
    return fields | fields.pop("extra")
