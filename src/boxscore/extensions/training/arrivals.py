"""Compare the images and objects that arrived from a training loop with the expected ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore._utils.text import counted_of
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import InputError


class Expected(NamedTuple):
    """The number of expected images and, if known, their ids and the number of objects of each."""

    image_count: int
    images: tuple[Id, ...] = ()
    objects: Mapping[Id, int] = {}

    @classmethod
    def of(cls, given: Any) -> Expected:
        """Read the user's ``expected`` argument."""
        if isinstance(given, GroundTruth):
            counts = np.bincount(given.image, minlength=len(given.images))
            given = dict(zip(given.images.ids.tolist(), counts.tolist(), strict=True))
        if isinstance(given, str) or not isinstance(given, Iterable):
            return cls(checks.whole_number(given, 1, name="expected"))
        objects = {}
        if isinstance(given, Mapping):
            objects = {
                image: checks.whole_number(count, 0, name="expected", place=f"image {image!r}")
                for image, count in given.items()
            }
        images = tuple(dict.fromkeys(given))
        if not images:
            raise InputError("expected", "name at least one image", got="none")
        return cls(len(images), images, objects)

    def missing(self, arrived: Mapping[Id, int], *, numbered: bool) -> str:
        """Describe what did not arrive; ``""`` if everything did.

        Parameters
        ----------
        arrived : mapping of id to int
            Number of objects of each image.
        numbered : bool
            Whether images lack ids, so that only totals can be compared.
        """
        # Without ids, only the number of images can be compared.
        said = []
        absent = [] if numbered else [image for image in self.images if image not in arrived]
        present = (
            min(len(arrived), self.image_count)
            if numbered or not self.images
            else self.image_count - len(absent)
        )
        # Name the first missing image.
        if present < self.image_count:
            without = ""
            if absent:
                more = f" and {len(absent) - 1:,} more" if len(absent) > 1 else ""
                without = f", without image {absent[0]!r}{more}"
            said.append(f"{counted_of(present, self.image_count, 'expected image')} arrived{without}")
        # Compare objects per image: more than expected in one image do not make up for another.
        wanted = sum(self.objects.values())
        if numbered:
            came = min(sum(arrived.values()), wanted)
        else:
            came = sum(min(arrived.get(image, 0), count) for image, count in self.objects.items())
        if came < wanted:
            short = [i for i, n in self.objects.items() if not numbered and arrived.get(i, n) < n]
            first = (
                f": image {short[0]!r} has {arrived[short[0]]:,} of {self.objects[short[0]]:,}"
                if short
                else ""
            )
            said.append(f"{counted_of(came, wanted, 'expected object')} arrived{first}")
        return "; ".join(said)
