"""What was skipped, in as few sentences as there are remedies, and what was left to CI."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

PACKAGE = re.compile(
    r"could not import '(?P<missing>[\w.]+)'|(?P<absent>[\w-]+) is (?:not installed|absent)|pip install (?P<hint>[\w-]+)"
)
DISTRIBUTIONS = {
    "cv2": "opencv-python-headless",
    "ensemble_boxes": "ensemble-boxes",
    "faster_coco_eval": "faster-coco-eval",
    "PIL": "pillow",
}
"""What to install for a module, where the two names differ."""

OTHER_PROGRAMS = {"make", "axe-core"}


def sentences(reasons: list[str]) -> list[str]:
    """Sum up the reasons of skipped tests: packages, the browser, real data, and whatever else it was."""
    packages: set[str] = set()
    counts: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for reason in reasons:
        found = PACKAGE.search(reason)
        name = next(filter(None, found.groups()), "") if found else ""
        if "real data" in reason:
            counts["real"] += 1
        elif "browser" in reason:
            counts["browser"] += 1
        elif name and name not in OTHER_PROGRAMS:
            counts["packages"] += 1
            name = name.split(".")[0]
            packages.add(DISTRIBUTIONS.get(name, name))
        else:
            others[reason] += 1
    said = []
    if counts["packages"]:
        said.append(
            f"{_tests(counts['packages'])} other tools: pip install {' '.join(sorted(packages, key=str.lower))}"
        )
    if counts["browser"]:
        said.append(f"{_tests(counts['browser'])} a browser: apt-get install chromium chromium-driver")
    if counts["real"]:
        said.append(
            f"{_tests(counts['real'])} the real data: set BOXSCORE_REAL_DATA to the folder that has it"
        )
    said += [f"{count} test{'s' * (count > 1)}: {reason}" for reason, count in others.items()]
    return [f"skipped: {'; '.join(said)}"] if said else []


def _tests(count: int) -> str:
    return f"{count} test{'s' * (count > 1)} that need{'s' * (count == 1)}"


def left_to_ci(counts: Mapping[str, int]) -> str:
    """Say how many tests were left out, by kind; nothing where there is none."""
    total = sum(counts.values())
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in counts.items() if count)
    return f"left to CI: {total:,} test{'s' * (total > 1)} ({kinds})" if total else ""
