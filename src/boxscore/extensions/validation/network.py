"""Check whether boxes are in the coordinates of a network's input, or fractions of exchanged image sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from boxscore.data.tables import Detections
from boxscore.extensions.hints.network_input import NetworkInput, find_network_input
from boxscore.extensions.validation._findings import MUCH, NETWORK, SIZES_SWAPPED, Context, Finding, Tables


def network_findings(context: Context) -> Iterator[Finding]:
    """Report from where boxes must be scaled back to the image, if that raises the score."""
    assert context.detections is not None
    found = find_network_input(context.ground_truth, context.detections)
    if found is None:
        return

    def repaired(c: Context, given: Detections) -> Tables:
        boxes = found.input.scaled_back(given.boxes, given.images.sizes[given.image])
        moved = dataclasses.replace(given, boxes=boxes, sizes=boxes[:, 2:] - boxes[:, :2])
        return c.ground_truth, moved, c.protocol

    if not context.is_raised(repaired, MUCH):
        return
    yield context.finding(
        NETWORK if isinstance(found.input, NetworkInput) else SIZES_SWAPPED,
        "geometric",
        "error",
        len(context.detections),
        f"the boxes of the detections seem to be {found.input.words}: {found.given:,} of "
        f"the {found.best:,} most confident overlap an annotation as they are, and {found.scaled:,} when "
        f"scaled back to the image. Use {found.input.option}",
        repair=f"with {found.input.option}",
        repaired=repaired,
        at_once=True,
    )
