"""Ranges of a far file: each is read once, by several readers, and nothing is ever taken for another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boxscore.extensions.stores import held_ranges
from boxscore.extensions.stores.held_ranges import HeldRanges

CONTENT = np.random.default_rng(0).bytes(5_000)


class Far:
    """A file in a store, which notes what is read."""

    def __init__(self, sent: int = len(CONTENT)) -> None:
        self.ranges: list[tuple[int, int]] = []
        self._sent = sent

    def size(self) -> int:
        return len(CONTENT)

    def read_at(self, count: int, start: int) -> bytes:
        self.ranges.append((start, start + count))
        return CONTENT[start : min(start + count, self._sent)]

    @property
    def bytes_read(self) -> int:
        return sum(stop - start for start, stop in self.ranges)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ranges").mkdir()
    return tmp_path / "ranges" / "file"


def read(file: HeldRanges, start: int, stop: int) -> bytes:
    assert file.seek(start) == start
    content = file.read(stop - start)
    assert file.tell() == start + len(content)
    return content


def drawn(seed: int, count: int) -> list[tuple[int, int]]:
    starts = np.random.default_rng(seed).integers(0, len(CONTENT), count)
    return [(one, one + int(one) % 700 + 1) for one in starts.tolist()]


@pytest.mark.parametrize("seed", range(4))
def test_every_byte_is_read_once(folder: Path, seed: int) -> None:
    far, ranges = Far(), drawn(seed, 60)
    readers = [HeldRanges(far, folder), HeldRanges(far, folder)]
    for number, (start, stop) in enumerate(ranges):
        assert read(readers[number % 2], start, stop) == CONTENT[start:stop]
    asked = {byte for start, stop in ranges for byte in range(start, min(stop, len(CONTENT)))}
    assert far.bytes_read == len(asked)
    again = Far()
    for start, stop in ranges:  # another process, later
        assert read(HeldRanges(again, folder), start, stop) == CONTENT[start:stop]
    assert again.bytes_read == 0


def test_what_was_not_used_for_longest_makes_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_ranges, "MOST", 900)
    far = Far()
    for start, stop in drawn(9, 200):
        assert read(HeldRanges(far, folder), start, stop) == CONTENT[start:stop]
        assert sum(path.stat().st_size for path in folder.iterdir()) <= 900
    assert not [path for path in folder.iterdir() if path.suffix]


@pytest.mark.parametrize("seed", range(3))
def test_a_range_that_another_process_removes_is_read_again(folder: Path, seed: int) -> None:
    rng, far = np.random.default_rng(seed), Far()
    file = HeldRanges(far, folder)
    listed = held_ranges._listed

    def removed(where: Path) -> list[held_ranges._Held]:
        found = listed(where)
        for one in found:
            if rng.random() < 0.4:
                one.path.unlink()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_ranges, "_listed", removed)
        for start, stop in drawn(seed, 80):
            assert read(file, start, stop) == CONTENT[start:stop]


def test_without_the_folder_everything_is_read_from_the_store(tmp_path: Path) -> None:
    far = Far()
    file = HeldRanges(far, tmp_path / "of another machine" / "file")
    assert read(file, 10, 20) == read(file, 10, 20) == CONTENT[10:20]
    assert far.ranges == [(10, 20)] * 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_cut_short_ends_there(folder: Path) -> None:
    file = HeldRanges(Far(sent=100), folder)
    assert read(file, 90, 120) == CONTENT[90:100]
    assert read(file, 90, 120) == CONTENT[90:100]
    assert read(file, 0, 9_999) == CONTENT[:100]
