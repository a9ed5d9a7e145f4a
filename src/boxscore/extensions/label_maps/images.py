"""Pair the images of truth and prediction, and check that no image occurs twice."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from boxscore._utils.text import counted
from boxscore.errors import InputError


class OfImages(Protocol):
    """A result for some images."""

    @property
    def images(self) -> tuple[int | str, ...]:
        """Ids of the images."""


def different_images(images: Sequence[int | str]) -> None:
    """Check that no image occurs twice."""
    if len(set(images)) != len(images):
        seen: set[int | str] = set()
        twice = next(image for image in images if image in seen or seen.add(image))  # type: ignore[func-returns-value]
        raise InputError("images", "be unique", got=f"{twice!r} twice")


def matched_streams(
    truth: Iterable[Any], prediction: Iterable[Any], images: Iterable[int | str] | None
) -> Iterator[tuple[int | str, Any, Any]]:
    """Iterate over truth, prediction and images together; all must have the same length."""
    # Advance the iterators in step, so that only one image is in memory.
    streams: dict[str, Iterator[Any]] = {"truth": iter(truth), "prediction": iter(prediction)}
    if images is not None:
        streams["images"] = iter(images)
    number, missing = 0, object()
    while True:
        values: dict[str, Any] = {name: next(stream, missing) for name, stream in streams.items()}
        # All must end together; otherwise images would be skipped silently.
        ended = [name for name, value in values.items() if value is missing]
        if len(ended) == len(values):
            return
        if ended:
            longer = next(name for name in values if name not in ended)
            raise InputError(
                ended[0], f"be as long as {longer}", got=f"length {number}, and {longer} has more"
            )
        # Convert NumPy ids to Python's, which compare equal everywhere.
        image: Any = values.get("images", number)
        image = image.item() if isinstance(image, np.generic) else image
        yield image, values["truth"], values["prediction"]
        number += 1


def of_images(images: Sequence[int | str]) -> str:
    """Format the number of images."""
    return counted(len(images), "image")


def joined_images(
    parts: Sequence[OfImages], choices: Sequence[object]
) -> tuple[tuple[int | str, ...], list[int]]:
    """Return the images of merged results, and the position of each result's first image.

    ``choices`` are the rules and classes of each result; all must be equal.
    """
    if not parts:
        raise InputError("results to merge", "be at least one", got="none")
    if any(choice != choices[0] for choice in choices):
        raise InputError("results to merge", "have the same rules and classes", got="different ones")
    images = tuple(image for part in parts for image in part.images)
    different_images(images)
    return images, list(itertools.accumulate((len(part.images) for part in parts[:-1]), initial=0))
