"""What every test shares: hypothesis profiles, kinds as markers, one line about what was skipped."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from support.kinds import kinds_of
from support.skipped import sentences

_COMMON = {
    "deadline": None,  # the machine is shared
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
for _name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):  # what is printed depends on the user's terminal
    os.environ.pop(_name, None)

settings.register_profile("default", derandomize=True, **_COMMON)  # the same cases on every machine
settings.register_profile("random", **_COMMON)  # new cases on every run
settings.register_profile(  # one failure is enough, however large its case
    "mutation", derandomize=True, phases=[Phase.explicit, Phase.generate], **_COMMON
)
settings.load_profile(os.environ.get("BOXSCORE_HYPOTHESIS", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for kind in kinds_of(item.path):
            item.add_marker(kind)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
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
