"""Summarize a part for the driver: a few numbers per class, no columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import IntArray
from boxscore.data.vocabulary import Categories, Id
from boxscore.extensions.large.engine import Engine
from boxscore.extensions.large.merging import check_headers
from boxscore.extensions.large.parts import COUNTED, Part, TruthIdentity
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.labels import TRUTH_WEIGHT


class PartHeader(NamedTuple):
    """Summary of a part without its columns: a few numbers per class."""

    version: str
    digest: str
    protocol: Protocol
    categories: Categories
    row_order: str
    row_count: int
    source: str
    images: int
    ends: tuple[Id, ...]
    """First and last image id; empty without images."""
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    detections: IntArray
    """Number of matched detections per class, [K]."""
    weighted: bool
    nbytes: int
    identity: TruthIdentity
    fallbacks: tuple[str, int]
    shard: tuple[int, int] | None

    @property
    def result_counts(self) -> dict[str, int]:
        """Number of images, objects, detections and classes, as in ``Evaluation.counts``."""
        return {
            "images": self.images,
            **{name: self.counts[name] for name in COUNTED},
            "classes": len(self.categories),
            "left_out": sum(self.left_out.values()),
        }


def header_of(part: Part) -> PartHeader:
    """Return the header of a part."""
    # First and last id suffice to check that parts follow each other.
    ids = part.image_ids
    return PartHeader(
        part.version,
        part.digest,
        part.protocol,
        part.categories,
        part.row_order,
        part.row_count,
        part.source,
        len(ids),
        tuple(ids[[0, -1]].tolist()) if len(ids) else (),
        part.counts,
        part.left_out,
        # Counts per class are differences of bounds, so no column is read.
        np.diff(part.matches.bounds[0]),
        TRUTH_WEIGHT.of(part.matches.extra) is not None,
        part.nbytes,
        part.identity,
        part.fallbacks,
        part.shard,
    )


def headers_of(engine: Engine, parts: Sequence[Any]) -> list[PartHeader]:
    """Return the headers of parts on any engine."""
    return engine.results([engine.submit("header", header_of, part) for part in parts], shown="matching")


def added_headers(headers: Sequence[PartHeader]) -> PartHeader:
    """Add up headers; keep the first source by name and drop ids.

    Raises
    ------
    InputError
        If the parts do not fit together.
    """
    check_headers(headers)
    # Add up by name: parts may differ in which classes they leave out.
    counts, left_out = Counter[str](), Counter[str]()
    for header in headers:
        counts.update(header.counts)
        left_out.update(header.left_out)
    # Use sums and minima, which do not depend on the order of parts.
    return headers[0]._replace(
        row_count=sum(header.row_count for header in headers),
        source=min(header.source for header in headers),
        images=sum(header.images for header in headers),
        ends=(),
        counts=dict(counts),
        left_out=dict(left_out),
        detections=np.sum([header.detections for header in headers], axis=0),
        weighted=any(header.weighted for header in headers),
        nbytes=sum(header.nbytes for header in headers),
        identity=TruthIdentity.joined(header.identity for header in headers),
        fallbacks=added_fallbacks(headers),
    )


def added_fallbacks(headers: Sequence[PartHeader | Part]) -> tuple[str, int]:
    """Return the first fallback message in text order, and the number of fallbacks."""
    texts, counts = zip(*(header.fallbacks for header in headers), strict=True)
    return min(filter(None, texts), default=""), sum(counts)
