"""Threads that the system does not give: the work is done all the same, in order."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from boxscore._utils.processes import in_threads


@pytest.mark.parametrize("most", [0, 1, 100])
@pytest.mark.parametrize("workers", [1, 3, 1000])
def test_results_in_order(workers: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, [0]

    def refuse(self: threading.Thread) -> Any:
        started[0] += 1
        if started[0] > most:
            raise RuntimeError("can't start new thread")
        return start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert list(in_threads(lambda item: item * item, range(20), workers=workers)) == [
        i * i for i in range(20)
    ]


def test_an_error_of_a_task() -> None:
    with pytest.raises(RuntimeError, match="mine"):
        list(in_threads(lambda item: (_ for _ in ()).throw(RuntimeError("mine")), [1], workers=2))
