"""Messages are lines that somebody reads: of a bounded length, whatever the names and values in them."""

from __future__ import annotations

import warnings

import pytest

from boxscore.errors import LONGEST_MESSAGE, BoxscoreError, BoxscoreWarning, InputError, shortened


def test_a_long_text_keeps_its_ends() -> None:
    text = shortened("a" * 5000 + "the end.")
    assert text.startswith("aaa")
    assert "characters) ..." in text
    assert text.endswith("the end.")
    assert len(text) <= LONGEST_MESSAGE
    assert shortened("a" * LONGEST_MESSAGE) == "a" * LONGEST_MESSAGE


@pytest.mark.parametrize("part", ["name", "rule", "got", "place", "cause"])
def test_every_part_of_a_message_is_bounded(part: str) -> None:
    parts = {"name": "n", "rule": "r", "got": "g", "place": "p", "cause": "c", part: "x" * 20_000}
    assert len(str(InputError(parts.pop("name"), parts.pop("rule"), **parts))) <= LONGEST_MESSAGE


def test_whole_texts_are_bounded() -> None:
    assert len(str(InputError("x" * 20_000))) <= LONGEST_MESSAGE
    assert len(str(BoxscoreError("x" * 20_000))) <= LONGEST_MESSAGE
    with pytest.warns(BoxscoreWarning) as caught:
        warnings.warn("x" * 20_000, BoxscoreWarning, stacklevel=1)
    assert len(str(caught[0].message)) <= LONGEST_MESSAGE
