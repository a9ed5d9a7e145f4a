"""Write a protocol in one line, to print next to every score.

Conventions
-----------
Each field defines its word (:class:`boxscore.protocols.fields.Word`). Words that are always printed come
first; others are printed only when the value is not COCO's.
"""

from __future__ import annotations

from typing import Any

from boxscore._version import __version__
from boxscore.protocols.fields import ALWAYS, all_fields

FIRST = ("sim", "iou", "ap", "maxdet", "area", "crowd", "offset")
"""How the line begins; the other words follow in the order of the fields."""


def signature_of(protocol: Any) -> str:
    """Print every choice of a protocol in one line."""
    parts = dict.fromkeys(FIRST, "")
    for field in all_fields(protocol):
        word = field.rule.word
        if word is not None and (word.silent is ALWAYS or field.of(protocol) != word.silent):
            parts[word.key] = field.written(protocol, word.text)
    parts["v"] = __version__
    words = [f"{key}:{text}" for key, text in parts.items() if text]
    return "|".join(["boxscore", protocol.name, *words])
