"""What every test shares: hypothesis profiles, kinds as markers, one line about what was skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

from support.skipped import sentences

_COMMON = {
    "deadline": None,  # the machine is shared
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", derandomize=True, **_COMMON)  # the same cases on every machine
settings.register_profile("random", **_COMMON)  # new cases on every run
settings.register_profile(  # one failure is enough, however large its case
    "mutation", derandomize=True, phases=[Phase.explicit, Phase.generate], **_COMMON
)
settings.load_profile(os.environ.get("BOXSCORE_HYPOTHESIS", "default"))

HERE = Path(__file__).parent

KINDS = {
    "rules": ["rules", "oracle"],
    "parity": ["oracle"],
    "compat/test_coco_differential.py": ["oracle"],
    "compat/test_cocoeval_differential.py": ["oracle"],
    "suppression/test_nms_generated.py": ["oracle"],
    "suppression/test_nms_peers.py": ["oracle", "peers"],
    "golden": ["golden"],
    "properties": ["property"],
    "suppression/test_nms_properties.py": ["property"],
    "fuzz": ["fuzz"],
    "docs": ["docs"],
    "typing": ["typing"],
    "source": ["source"],
    "packaging": ["packaging"],
    "reports/test_browser.py": ["browser"],
    "real": ["real"],
}
"""The kinds of what stands in a folder or file; whatever hypothesis makes cases for is a property as well."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(HERE).as_posix() if item.path.is_relative_to(HERE) else ""
        for start, kinds in KINDS.items():
            if place == start or place.startswith(f"{start}/"):
                for kind in kinds:
                    item.add_marker(kind)
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("property")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped in a line for each remedy, not for each place; ``-rs`` lists the places."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    ]
    for sentence in sentences(reasons):
        terminalreporter.write_line(sentence)
