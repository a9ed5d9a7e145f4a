"""One process runs the examples of all pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_docs_examples import Runner


@pytest.fixture(scope="session")
def runner() -> Iterator[Runner]:
    running = Runner()
    yield running
    running.close()
