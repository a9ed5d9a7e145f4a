"""What boxscore says of odd data, left unsaid."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from boxscore.errors import BoxscoreWarning


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Ignore every :class:`boxscore.errors.BoxscoreWarning`; others are still errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoxscoreWarning)
        yield
