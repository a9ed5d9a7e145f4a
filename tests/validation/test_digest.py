"""What ``evaluate`` says of its input in passing: as much of ``validate`` as costs next to nothing."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.validation import Finding, validate
from boxscore.validation.digest import digest, quick_findings
from boxscore.validation.mismatch import LOW
from support.program import run_boxscore, run_python
from validation.test_validation import CASES, DATASETS, Spoil, data, silent_class

ALWAYS = {
    *("classes-of-one-name", "image-without-detections", "class-without-detections", "annotation-degenerate"),
    *("detection-degenerate", "annotation-outside-image", "integer-coordinates", "crowd-flag-without-effect"),
    *("difficult-flag-without-effect", "ignore-flag-without-effect", "area-exceeds-box", "area-not-positive"),
    *("area-disagrees-with-mask", "score-outside-0-1", "scores-all-equal", "score-floor"),
    "detections-cut-per-image",
}
BELOW = {"classes-numbered-differently", "images-off-by-one", "detections-off-annotations"}
REFUSED = {
    "repeat_image",
    "repeat_category",
    "orphan_image",
    "orphan_class",
    "negative",
    "negative_detection",
}
REFUSED |= {"unknown_image"}


def load(folder: Path, spoil: Spoil | None) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth, results = data()
    if spoil is not None:
        spoil(truth, results)
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    table = boxscore.load_ground_truth(folder / "gt.json")
    return table, boxscore.load_detections(folder / "dt.json", table)


SPOILS = [case[0] for case in CASES if case[0].__name__ not in REFUSED]


@pytest.mark.parametrize("spoil", SPOILS, ids=[spoil.__name__ for spoil in SPOILS])
def test_it_is_a_part_of_validate(spoil: Spoil, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        tables = load(tmp_path, spoil)
        evaluation = boxscore.evaluate(*tables)
    wanted = ALWAYS | (BELOW if evaluation.metrics["AP"] < LOW else set())
    expected = [
        (found.code, found.severity, found.count, found.message)
        for found in validate(*tables)
        if found.code in wanted
        and found.severity != "info"
        and (found.code, found.severity) != ("class-without-detections", "warning")
    ]
    quick = quick_findings(evaluation)
    assert [(found.code, found.severity, found.count, found.message) for found in quick] == expected
    assert all(found.examples == () and found.repair == "" for found in quick)


def test_which_faults_it_sees(tmp_path: Path) -> None:
    """The comparison above would hold if nothing were ever found."""
    seen = set()
    for spoil in SPOILS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
            seen |= {found.code for found in quick_findings(boxscore.evaluate(*load(tmp_path, spoil)))}
    flags = {"crowd-flag-without-effect", "ignore-flag-without-effect"}  # of other protocols, of VOC
    rest = {"area-disagrees-with-mask", "class-without-detections"}
    assert seen == (ALWAYS | BELOW) - flags - rest


def test_a_class_without_detections_is_named_from_half_on(tmp_path: Path) -> None:
    truth, found = load(tmp_path, silent_class)
    assert quick_findings(boxscore.evaluate(truth, found)) == []
    few = found.take(np.flatnonzero(found.category == 0))
    codes = [finding.code for finding in quick_findings(boxscore.evaluate(truth, few))]
    assert codes[0] == "class-without-detections"


def finding(code: str, severity: str) -> Finding:
    return Finding(code, "semantic", severity, 3, "")  # type: ignore[arg-type]


def test_the_line() -> None:
    warning, error = finding("score-floor", "warning"), finding("images-off-by-one", "error")
    assert digest([warning]) == "1 warning about the input: score-floor (3); boxscore validate says more"
    assert digest([error, warning, warning]).startswith(
        "1 error and 2 warnings about the input: images-off-by-one (3), score-floor (3), score-floor (3); "
    )
    assert digest([error] * 6) == (
        "6 errors about the input: " + "images-off-by-one (3), " * 4 + "2 more; boxscore validate says more"
    )


def test_the_command_says_it_below_the_result(tmp_path: Path) -> None:
    load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == "percent"))
    arguments = ["evaluate", "--gt", "gt.json", "--dt", "dt.json", "--output", "csv"]
    for more in ([], ["--strict"]):
        status, output, errors = run_boxscore([*arguments, *more], folder=tmp_path)
        assert status == 0
        assert output.startswith("metric,value,")
        assert re.fullmatch(
            r"boxscore: 1 warning about the input: score-outside-0-1 \(\d+\); boxscore validate says more\n",
            errors,
        )
    assert run_boxscore([*arguments, "--no-digest"], folder=tmp_path) == (0, output, "")


def test_nothing_is_said_of_good_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(tmp_path, None)
    assert main(["evaluate", "--gt", str(tmp_path / "gt.json"), "--dt", str(tmp_path / "dt.json")]) == 0
    assert capsys.readouterr().err == ""


def test_a_run_configuration_can_leave_it_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == "percent"))
    tables = '[ground_truth]\npath = "gt.json"\n[detections]\npath = "dt.json"\n[output]\n'
    for text, said in (("", True), ("digest = true", True), ("digest = false", False)):
        (tmp_path / "run.toml").write_text(tables + text)
        assert main(["run", str(tmp_path / "run.toml")]) == 0
        assert ("score-outside-0-1" in capsys.readouterr().err) == said


def test_a_protocol_without_a_summary(tmp_path: Path) -> None:
    """It has no summary metric: no effect is measured."""
    tables = load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == "swapped_classes"))
    protocol = {"extends": "coco", "name": "mine", "summary": []}
    assert quick_findings(boxscore.evaluate(*tables, protocol=protocol)) == []
    assert all(found.metric == "" for found in validate(*tables, protocol=protocol))


def test_the_page_names_the_quick_checks() -> None:
    page = (DATASETS.parent / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    section = re.search(r"## What `evaluate` checks in passing\n(.*?)\n## ", page, re.DOTALL)
    assert section
    named = set(re.findall(r"`([a-z0-1]+(?:-[a-z0-9]+)+)`", section[1]))
    assert named == {code for code in ALWAYS | BELOW if "-flag-" not in code}
    assert "the flags without effect" in section[1]


def test_pandas_is_not_loaded(tmp_path: Path) -> None:
    load(tmp_path, None)
    code = (
        "import sys; from boxscore.cli import main; "
        "main(['evaluate', '--gt', 'gt.json', '--dt', 'dt.json']); "
        "assert 'boxscore.validation.digest' in sys.modules; "
        "print([name for name in ('pandas', 'boxscore.diagnostics', 'matplotlib') if name in sys.modules])"
    )
    status, output, errors = run_python(["-c", code], folder=tmp_path)
    assert (status, errors) == (0, "")
    assert output.endswith("[]\n")
