"""Comparing matches bit by bit."""

from __future__ import annotations

import dataclasses

import numpy as np

from boxscore import Detections, GroundTruth, Protocol
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches


def match_tables(truth: GroundTruth, found: Detections, protocol: Protocol, *, workers: int = 1) -> Matches:
    """Match two tables that have the same vocabularies."""
    return Matcher(truth, found, protocol).match(workers=workers)


def assert_same_matches(ours: Matches, expected: Matches) -> None:
    """Compare every column to the bit, and the vocabularies by their ids."""
    for field in dataclasses.fields(Matches):
        first, second = getattr(ours, field.name), getattr(expected, field.name)
        if field.name in ("images", "categories"):
            assert first.ids.tolist() == second.ids.tolist(), field.name
        elif isinstance(first, np.ndarray):
            assert first.dtype == second.dtype, field.name
            assert first.tobytes() == second.tobytes(), field.name
        else:
            assert first == second, field.name
