"""Are the links to other sites alive? ``python tests/docs/external_links.py``, with a network; no part of the tests.

Prints each link that does not answer, and the pages that have it. The exit status is 1 if there is one. A site that
refuses programs (403, 429) is named, and no failure.
"""

from __future__ import annotations

import concurrent.futures
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"https?://[^\s)>\"'`\]|]+[^\s)>\"'`\]|.,:;]")
EXAMPLES = ("http://localhost", "https://example.")
SECONDS = 20


def links() -> dict[str, list[str]]:
    """Every link to another site, with the files that have it."""
    found: dict[str, list[str]] = {}
    for path in [
        *ROOT.glob("*.md"),
        ROOT / "CITATION.cff",
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*/README.md"),
    ]:
        for link in sorted(set(LINK.findall(path.read_text(encoding="utf-8")))):
            if not link.startswith(EXAMPLES):
                found.setdefault(link, []).append(str(path.relative_to(ROOT)))
    return found


def fault(link: str) -> tuple[bool, str]:
    """Whether a link is dead, and what the site said."""
    request = urllib.request.Request(link, headers={"User-Agent": "Mozilla/5.0 (link check)"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):
            return False, ""
    except urllib.error.HTTPError as error:
        return error.code not in (401, 403, 405, 429), f"status {error.code}"
    except OSError as error:
        return True, str(error)


def main() -> int:
    """Print the dead links; return the exit status."""
    found = links()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = dict(zip(found, pool.map(fault, found), strict=True))
    for link, (dead, said) in answers.items():
        if said:
            print(f"{'dead' if dead else 'refused'}: {link} ({said}) in {', '.join(found[link])}")
    dead = sum(is_dead for is_dead, _ in answers.values())
    print(f"{len(found)} links, {dead} dead")
    return int(dead > 0)


if __name__ == "__main__":
    sys.exit(main())
