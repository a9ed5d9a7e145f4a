"""Counting how often overlapping pairs are searched for."""

from __future__ import annotations

from typing import Any

import pytest


def searches(patch: pytest.MonkeyPatch, similarity: Any) -> list[float]:
    """Return a list that gets the least overlap of every search by a similarity from now on."""
    found: list[float] = []
    search = similarity.of_pairs

    def noted(self: Any, truth: Any, detections: Any, comparison: Any) -> Any:
        found.append(comparison.lowest)
        return search(self, truth, detections, comparison)

    patch.setattr(similarity, "of_pairs", noted)
    return found
