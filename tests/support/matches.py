"""Comparing matches bit by bit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from boxscore import Detections, GroundTruth, Protocol
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches


def match_tables(truth: GroundTruth, found: Detections, protocol: Protocol, *, workers: int = 1) -> Matches:
    """Match two tables that have the same vocabularies."""
    return Matcher(truth, found, protocol).match(workers=workers)


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
