"""How many pixels a run-length code is of, added up digit by digit."""

from __future__ import annotations

from boxscore.extensions.masks.run_lengths import DAMAGED, MOST_CHARACTERS, MOST_PIXELS


def slow_total(text: bytes) -> int:
    """What ``rleFrString`` does, in whole numbers that do not overflow."""
    runs: list[int] = []
    place = 0
    while place < len(text):
        value, shift = 0, 0
        while True:
            if place == len(text) or not 0 <= text[place] - 48 < 64:
                return DAMAGED
            digit = text[place] - 48
            place += 1
            value |= (digit & 31) << shift
            shift += 5
            if not digit & 32:
                break
        if shift > 5 * MOST_CHARACTERS:
            return DAMAGED
        if digit & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
    if min(runs, default=0) < 0 or max(runs, default=0) > MOST_PIXELS:
        return DAMAGED
    return sum(runs)
