"""False positives per image: of all classes over all images, those without objects too."""

from __future__ import annotations

import numpy as np

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.ratios import Ratios


def _values(curves: Curves, protocol: Protocol) -> Values:
    totals = curves.totals
    false = totals.counted - totals.recalled
    return Ratios(false, np.full(false.shape, totals.images), shared=True)


KIND = Kind("fp_per_image", lambda curves, protocol: {}, _values, lambda protocol: {})
