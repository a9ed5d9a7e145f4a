"""Read RefCOCO's expressions in COCO JSON: each expression has an image of its own.

Conventions
-----------
An image has ``caption`` (MDETR's files), ``text``, ``sent``, ``sentence`` or ``expression``, which becomes
the image column ``phrase``. REFER's own files are pickles and are never read.

References
----------
https://github.com/ashkamath/mdetr, ``finetune_refcoco_testA.json``
"""

from __future__ import annotations

from boxscore.extensions.scoreless._phrases import PhraseFormat
from boxscore.formats._sniffer import Sniffer


class RefCocoFormat(PhraseFormat):
    """COCO JSON with an expression in every image."""

    name = "refcoco"
    keys = ("caption", "text", "sent", "sentence", "expression")

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize an expression in the first image."""
        return "RefCOCO's expressions in COCO's JSON" if self.begins(sniffer) else None


FORMAT = RefCocoFormat()
