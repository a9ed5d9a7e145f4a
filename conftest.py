"""What every test shares: hypothesis profiles, kinds as markers, which files run, and what is said of skipped and left ones."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings

from boxscore._utils import progress
from boxscore.extensions.stores import addresses
from support.examples import examples
from support.forks import only_renew_locks_that_may_be_held
from support.kinds import MAKE_TEST, counted_kinds, kinds_of
from support.quiet import IGNORED, unsought
from support.running import Run
from support.selection import Selection, select
from support.skipped import left_to_ci, sentences

gc.disable()  # nearly all that is imported and collected stays: to look for garbage there takes a quarter of the time

_COMMON = {
    "deadline": None,  # the machine is shared
    "max_examples": examples(100),
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
for _name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):  # what is printed depends on the user's terminal
    os.environ.pop(_name, None)
only_renew_locks_that_may_be_held()

settings.register_profile("default", derandomize=True, **_COMMON)  # the same cases on every machine
settings.register_profile("random", **_COMMON)  # new cases on every run
settings.register_profile(  # one failure is enough, however large its case
    "mutation", derandomize=True, phases=[Phase.explicit, Phase.generate], **_COMMON
)
settings.load_profile(os.environ.get("BOXSCORE_HYPOTHESIS", "default"))


@pytest.fixture(autouse=True)
def _no_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed does not depend on how fast the machine is; tests of stages set the time themselves."""
    monkeypatch.setattr(progress, "SILENT", 1e6)


@pytest.fixture(autouse=True)
def _no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password of one test is a word in the messages of another."""
    monkeypatch.setattr(addresses, "_secrets", set())


@pytest.fixture
def no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked for in the data of a file of tests that ask for numbers alone."""
    unsought(monkeypatch)


@pytest.fixture(autouse=True)
def _no_findings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a test ignores what is said of its data, nothing is looked for."""
    if any(IGNORED in mark.args for mark in request.node.iter_markers("filterwarnings")):
        unsought(monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that one example after the other writes its files into."""
    return tmp_path_factory.mktemp("case")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command: ``run("evaluate", truth, found).out``."""
    return Run(capsys)


CHOSEN = pytest.StashKey[Selection]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--changed",
        action="store_true",
        help="only the tests of the core and of extensions that changed since main",
    )


def pytest_configure(config: pytest.Config) -> None:
    selection = select() if config.getoption("--changed") else None
    if selection is not None:
        config.stash[CHOSEN] = selection


def pytest_report_header(config: pytest.Config) -> str | None:
    if not config.getoption("--changed"):
        return None
    selection = config.stash.get(CHOSEN, None)
    return "tests of everything: no main to compare with" if selection is None else selection.header()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that are not chosen: they are not even imported."""
    selection = config.stash.get(CHOSEN, None)
    if selection is None or not collection_path.name.startswith("test_") or collection_path.is_dir():
        return None
    return None if collection_path in selection.selected else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for kind in kinds_of(item.path):
            item.add_marker(kind)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")


def pytest_collection_finish() -> None:
    """Look for garbage in what the tests make, and not again and again in what was collected."""
    if hypothesis.__version_info__ >= (6, 130):  # 6.100 draws the same example differently after a freeze
        gc.freeze()
    gc.enable()


LEFT = pytest.StashKey[dict[str, int]]()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count what `make test` leaves to CI."""
    config = items[0].config
    if config.option.markexpr == MAKE_TEST and not config.option.keyword:
        of_each = ([mark.name for mark in item.iter_markers()] for item in items)
        config.stash[LEFT] = counted_kinds(of_each)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the counts of a worker of pytest-xdist to the process that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left to CI"] = session.config.stash.get(LEFT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of one worker: each collects all tests."""
    output = getattr(node, "workeroutput", None) or {}
    if output.get("left to CI"):
        node.config.stash[LEFT] = output["left to CI"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped in a line for each remedy, not for each place; ``-rs`` lists the places."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    ]
    left = left_to_ci(terminalreporter.config.stash.get(LEFT, {}))
    selection = terminalreporter.config.stash.get(CHOSEN, None)
    files = selection.summary() if selection else ""
    for sentence in [*sentences(reasons), *filter(None, [left, files])]:
        terminalreporter.write_line(sentence)
