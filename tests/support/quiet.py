"""What boxscore says of odd data, left unsaid."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import pytest

from boxscore.errors import BoxscoreWarning
from boxscore.extensions.validation import digest

IGNORED = "ignore::boxscore.BoxscoreWarning"
"""The filter of tests that ignore everything that boxscore says of their data."""


def unsought(patch: pytest.MonkeyPatch) -> None:
    """Look for no findings, which nobody is told: that takes up to half the time of an evaluation of few boxes."""
    patch.setattr(digest, "warn_of_findings", lambda _: set())


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ignore every :class:`boxscore.errors.BoxscoreWarning`, unsought; others are still errors."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        unsought(patch)
        warnings.simplefilter("ignore", BoxscoreWarning)
        yield
