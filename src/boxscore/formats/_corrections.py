"""Describe a correction of one label of ground truth, which formats apply to their files."""

from __future__ import annotations

from typing import NamedTuple

from boxscore.data.vocabulary import Id


class Correction(NamedTuple):
    """One label that is changed, or a new one."""

    image: Id
    file_name: str
    """Of the image; empty where it has none."""
    place: int | None
    """Of the label among those of its image, from 0; None for a new one."""
    id: Id | None
    """Of the annotation; None for a new one."""
    label: str
    number: Id
    """The id of the class."""
    box: tuple[float, float, float, float] | None
    """Corners, or None where they stay."""
    size: tuple[float, float]
    """Width and height of the image in the unit of the box; NaN where unknown."""
