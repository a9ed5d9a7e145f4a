"""Comparing matches bit by bit."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

import boxscore
from support.insides import Matches


def match_tables(
    truth: boxscore.GroundTruth, found: boxscore.Detections, protocol: Any, *, workers: int = 1
) -> Matches:
    """Match two tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        return boxscore.evaluate(truth, found, protocol=protocol, workers=workers).matched


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
