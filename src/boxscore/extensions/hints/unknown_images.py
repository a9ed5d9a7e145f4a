"""Explain why an image of the detections is unknown or ambiguous in the ground truth, and suggest an option.

Conventions
-----------
Functions return the error; the core raises it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore._utils.ordering import distinct
from boxscore._utils.text import counted, verb
from boxscore.data.alignment import check_units
from boxscore.data.image_names import FEW_SHOWN, SEVERAL, NameMatches, names_of, stem_of
from boxscore.data.lookup import UnlistedImagesError, value_of
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.unlisted import images_called, with_images
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.hints.image_offsets import find_offset
from boxscore.extensions.hints.renamed_images import nearest_names

FEW_UNKNOWN = 0.1
"""Maximum fraction of unknown images, relative to known ones, that does not suggest another split."""


def image_error(
    rows: NDArray[np.int32],
    values_at: Callable[[NDArray[np.intp]], list[Id]],
    names: NameMatches,
    images: Images,
    place: Place,
) -> InputError:
    """Return the error for values that match several images, or none."""
    # Report a value that matches several images first, with the candidates.
    several = np.flatnonzero(rows == SEVERAL)
    if len(several):
        value = values_at(several[:1])[0]
        return InputError(
            "image_id",
            "identify one image of the ground truth",
            got=repr(value),
            place=place(int(several[0])),
            cause=candidates_text(value, names, images),
        )
    # Otherwise report the first unknown value, and the number of distinct ones.
    row = int(np.argmin(rows))
    values = values_at(np.flatnonzero(rows < 0))
    value, unknown = values[0], dict.fromkeys(values)
    near = nearest_names(value, images) if isinstance(value, str) else ()
    listed = len(distinct(rows[rows >= 0]))
    return unlisted_error(value, place(row), list(unknown), listed, near=near)


def unlisted_error(
    value: Id, place: str, names: Sequence[Id], listed: int, *, near: Sequence[str] = ()
) -> UnlistedImagesError:
    """Return the error for the first of some unlisted images, with the number of listed ones."""
    few = len(names) <= listed * FEW_UNKNOWN
    them, these = ("them", "these images") if len(names) > 1 else ("it", "this image")
    if listed or len(names) == 1:
        unknown = f"{counted(len(names), 'image')} of these detections {verb(len(names), 'are')} not listed"
    else:
        unknown = f"none of the {len(names):,} images of these detections is listed"
    why = ", perhaps an image without objects" if few else ", perhaps results of another split"
    similar = f" (most similar {'names' if near[1:] else 'name'}: {', '.join(map(repr, near))})"
    remedy = (
        f"--unlisted-images drop (in Python unlisted_images=) ignores {these}, background adds {them} "
        "without objects"
    )
    error = UnlistedImagesError(
        "image_id",
        "be in the ground truth",
        got=f"{value!r}",
        place=place,
        cause=f"{unknown}{similar if near else why}; {remedy}",
    )
    error.names, error.remedy = list(names), remedy
    return error


def candidates_text(value: Id, matches: NameMatches, images: Images) -> str:
    """List the images that a value can refer to, or the other name that refers to its image."""
    if value in matches.clashes:
        return (
            f"its name matches the same image as {matches.clashes[value]!r}; they differ in folder or "
            "extension"
        )
    rows = names_of(images).candidates(value) if isinstance(value, str) else []
    number = value_of(value)
    rows = rows or [row for row, other in enumerate(images.ids.tolist()) if value_of(other) == number]
    if len(rows) < 2:
        files = enumerate(images.file_names.tolist())
        rows = [row for row, name in files if name is not None and value_of(stem_of(name)) == number]
    pairs = zip(images.file_names[rows].tolist(), images.ids[rows].tolist(), strict=True)
    texts = [repr(identifier if name is None else name) for name, identifier in pairs]
    more = f", ... ({len(texts):,} in all)" if len(texts) > FEW_SHOWN else ""
    return f"it can be {' or '.join(texts[:FEW_SHOWN])}{more}: use a longer path, or the image id"


def refuse_other_cause(
    read: Callable[[GroundTruth], Detections], ground_truth: GroundTruth, error: UnlistedImagesError
) -> None:
    """Raise the cause of unlisted images if it is known: mixed pixels and fractions, or shifted image ids."""
    other_units = ground_truth.units != "pixels" or bool(np.isnan(ground_truth.images.sizes).any())
    numbered = all(value_of(name) is not None for name in error.names)
    if not (other_units or numbered):
        return
    # Read the detections in images that are added for them.
    wider = with_images(
        ground_truth, images_called(error.names, ground_truth.images, np.nan), as_written=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        try:
            detections = read(wider)
        except InputError:
            return
    check_units(detections, ground_truth)
    found = find_offset(wider, detections, images=ground_truth.images) if numbered else None
    if found is not None:
        advice = f"use {found.advice} (in Python image_id_offset= of load_detections)"
        raise InputError(
            error.name, error.rule, got=error.got, place=error.place, cause=f"{found}; {advice}"
        ) from None
