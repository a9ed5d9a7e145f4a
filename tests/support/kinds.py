"""Kinds of tests, by folder and file; conftest.py makes markers of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parents[1]
QA = TESTS.parent / "qa"

KINDS = {
    "rules": ["rules", "oracle"],
    "parity": ["oracle"],
    "compat/test_coco_differential.py": ["oracle"],
    "compat/test_cocoeval_differential.py": ["oracle"],
    "extensions/training/test_model_objects_peers.py": ["oracle", "peers"],
    "extensions/crowds/test_froc_peers.py": ["oracle", "peers"],
    "suppression/test_nms_generated.py": ["oracle"],
    "suppression/test_nms_peers.py": ["oracle", "peers"],
    "integrations": ["oracle", "peers"],
    "golden": ["golden"],
    "properties": ["property"],
    "suppression/test_nms_properties.py": ["property"],
    "docs": ["docs"],
    "typing": ["typing"],
    "source": ["source"],
    "packaging": ["packaging"],
    "extensions/pages/test_browser.py": ["browser"],
    "extensions/pages/test_live_page.py": ["browser"],
    "fuzz": ["fuzz"],
    "attack": ["fuzz"],
    "real": ["real"],
}
"""The kinds of what stands in a folder or file; whatever hypothesis makes cases for is a property as well."""


LEFT_TO_CI = ("browser", "real", "long", "slow")
"""The kinds that `make test` leaves out."""

MAKE_TEST = " and ".join(f"not {kind}" for kind in ("slow", "browser", "real", "long"))
"""What the Makefile gives as ``-m``."""


@functools.cache
def kinds_of(path: Path) -> list[str]:
    """Return the kinds of what stands in a file."""
    root = next((root for root in (TESTS, QA) if path.is_relative_to(root)), None)
    place = path.relative_to(root).as_posix() if root else ""
    return [
        kind
        for start, kinds in KINDS.items()
        if place == start or place.startswith(f"{start}/")
        for kind in kinds
    ]


def counted_kinds(of_each: Iterable[Iterable[str]]) -> dict[str, int]:
    """Count tests by the kind for which each is left to CI, given all kinds of each; a test counts once."""
    counts = dict.fromkeys(LEFT_TO_CI, 0)
    for kinds in of_each:
        why = next((kind for kind in ("browser", "real", "slow", "long") if kind in kinds), None)
        if why is not None:
            counts[why] += 1
    return counts
