"""RefCOCO's expressions in COCO's JSON: an image of its own for each, with the expression in it.

Conventions
-----------
An image has ``caption`` (MDETR's files), ``text``, ``sent``, ``sentence`` or ``expression``; it is the column
``phrase`` of images. REFER's own files are pickles and never read.

References
----------
https://github.com/ashkamath/mdetr, ``finetune_refcoco_testA.json``
"""

from __future__ import annotations

from boxscore.extensions.scoreless._phrases import PhraseFormat
from boxscore.formats._sniffer import Sniffer


class RefCocoFormat(PhraseFormat):
    """COCO's JSON with an expression in every image."""

    name = "refcoco"
    keys = ("caption", "text", "sent", "sentence", "expression")

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognise an expression in the first image."""
        return "RefCOCO's expressions in COCO's JSON" if self.begins(sniffer) else None


FORMAT = RefCocoFormat()
