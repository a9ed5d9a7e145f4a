"""What ``evaluate`` says of its input in passing: as much of ``validate`` as costs next to nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.cli import main
from boxscore.extensions.pages.html import render_page
from boxscore.extensions.pages.view import report_view
from boxscore.extensions.validation._findings import by_weight
from boxscore.extensions.validation.digest import SAID_NOTES, digest, findings_of, quick_findings
from boxscore.extensions.validation.geometric import HIGH
from boxscore.extensions.validation.mismatch import LOW
from boxscore.protocols import load_protocol
from boxscore.reports import ReportOptions
from boxscore.validation import Finding, validate, validate_files
from extensions.validation.test_validation import CASES, DATASETS, Spoil, data, silent_class
from support.drawn import drawn, each_protocol
from support.evaluations import evaluation
from support.program import run_boxscore, run_python
from support.quiet import quiet
from support.real_data import real
from support.running import Run

ALWAYS = {
    *("classes-of-one-name", "image-without-detections", "class-without-detections", "annotation-degenerate"),
    *("detection-degenerate", "annotation-outside-image", "integer-coordinates", "crowd-flag-without-effect"),
    *("difficult-flag-without-effect", "ignore-flag-without-effect", "area-exceeds-box", "area-not-positive"),
    *("area-disagrees-with-mask", "score-outside-0-1", "scores-all-equal", "score-floor"),
    "annotation-empty-mask",
    *("detections-cut-per-image", "oriented-boxes-without-effect", "keypoints-without-effect"),
    *("masks-without-effect", "class-always-called-another", "class-without-results-file"),
}
FORMS = {"annotation-box-order", "detection-box-order", "network-coordinates", "image-sizes-swapped"}
BELOW = {"classes-numbered-differently", "images-off-by-one", "detections-off-annotations"}
BELOW |= {"annotation-box-not-of-mask"}
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
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        tables = load(tmp_path, spoil)
        evaluation = boxscore.evaluate(*tables)
    wanted = ALWAYS | (BELOW if evaluation.metrics["AP"] < LOW else set())
    if any("Use --class-map" in str(one.message) for one in warned):
        wanted = wanted - {"classes-numbered-differently"}  # said by the evaluation, with the option
    expected = {
        (found.code, found.severity, found.count, found.message)
        for found in validate(*tables)
        if found.code in wanted
        and found.severity != "note"
        and (found.code, found.severity) != ("class-without-detections", "warning")
    }
    if evaluation.metrics["AP"] < HIGH:
        forms = {
            (found.code, found.severity, found.count, found.message)
            for found in validate(*tables)
            if found.code in FORMS and found.repair
        }
        expected = forms or expected  # the rest follows from them
    quick = quick_findings(evaluation)
    said = [(found.code, found.severity, found.count, found.message) for found in quick]
    assert set(said) == expected
    assert [severity for _, severity, *_ in said] == sorted(severity for _, severity, *_ in said)
    assert len(said) == len(expected)
    assert all(found.examples == () for found in quick)


@pytest.mark.long
@pytest.mark.long
@pytest.mark.parametrize("protocol", each_protocol())
def test_it_reads_every_kind_of_data(protocol: str) -> None:
    """Tests that ignore what is said of such data do not look for it; here everything is, under every protocol."""
    for seed in (0, 5):
        with quiet():
            result = boxscore.evaluate(*drawn(protocol, seed), protocol=protocol)
        assert all(digest(quick_findings(result)))


def test_which_faults_it_sees(tmp_path: Path) -> None:
    """The comparison above would hold if nothing were ever found."""
    seen = set()
    for spoil in SPOILS:
        with quiet():
            seen |= {found.code for found in quick_findings(boxscore.evaluate(*load(tmp_path, spoil)))}
    flags = {"crowd-flag-without-effect", "ignore-flag-without-effect"}  # of other protocols, of VOC
    rest = {"area-disagrees-with-mask", "annotation-empty-mask", "class-without-detections"}
    elsewhere = {"class-always-called-another", "class-without-results-file"}  # with tests of their own
    elsewhere |= {code for code in ALWAYS if code.endswith("s-without-effect")}
    elsewhere |= {"network-coordinates", "image-sizes-swapped", "annotation-box-not-of-mask"}
    elsewhere |= {"classes-numbered-differently"}  # the evaluation itself has said so of these
    assert seen == (ALWAYS | BELOW | FORMS) - flags - rest - elsewhere


def test_a_class_without_detections_is_named_from_half_on(tmp_path: Path) -> None:
    truth, found = load(tmp_path, silent_class)
    assert quick_findings(boxscore.evaluate(truth, found)) == []
    few = found.take(np.flatnonzero(found.category == 0))
    codes = [finding.code for finding in quick_findings(boxscore.evaluate(truth, few))]
    assert codes[0] == "class-without-detections"


def finding(code: str, severity: str, **fields: Any) -> Finding:
    return Finding(code, "semantic", severity, 3000, "as it is", **fields)  # type: ignore[arg-type]


def test_the_text() -> None:
    """Each once and in words; a bound is no effect, and another protocol's number no difference."""
    warning, error = finding("score-floor", "warning"), finding("images-off-by-one", "error")
    assert digest([warning]) == ["warning: as it is."]
    measured = {"repair": "without them", "metric": "AP", "value": 0.25, "repaired": 0.5}
    assert digest([finding("score-floor", "warning", **measured), warning]) == [
        "warning: as it is. Without them, AP would be 0.5000 instead of 0.2500 (+0.2500).",
        "warning: as it is.",
    ]
    assert digest([finding("score-floor", "warning", **measured, bound=True)]) == ["warning: as it is."]
    other = {**measured, "repair": "with --protocol dota", "repaired_metric": "mAP"}
    assert digest([finding("oriented-boxes-without-effect", "warning", **other)]) == [
        "warning: as it is. With --protocol dota, mAP would be 0.5000 (AP is 0.2500 now)."
    ]
    assert digest([error] * 6) == [
        *["error in the input: as it is."] * 4,
        "2 more findings about the input: boxscore validate lists them.",
    ]


def test_gravest_first() -> None:
    def of(severity: str, repaired: float, **fields: Any) -> Finding:
        return finding("code", severity, repair="x", metric="AP", value=0.3, repaired=repaired, **fields)

    error, other = of("error", 0.3), of("warning", 0.1, repaired_metric="AP")
    bound, small, rise = of("warning", 0.6, bound=True), of("warning", 0.31), of("warning", 0.48)
    assert by_weight([small, bound, rise, other, error]) == [error, other, rise, bound, small]


@pytest.mark.long
def test_the_command_says_it_below_the_result(tmp_path: Path) -> None:
    load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == "percent"))
    arguments = ["evaluate", "--gt", "gt.json", "--dt", "dt.json", "--output", "csv"]
    for more in ([], ["--strict", "--allow", "score-outside-0-1"]):
        status, output, errors = run_boxscore([*arguments, *more], folder=tmp_path)
        assert status == 0
        assert output.startswith("metric,value,")
        assert re.fullmatch(
            r"boxscore: warning: \d+ scores outside \[0, 1\] \([^)]*\); AP depends only on their order\. Are they "
            r"percentages\?\n",
            " ".join(errors.split()) + "\n",
        ), errors
        assert max(map(len, errors.splitlines())) <= 80
    assert run_boxscore([*arguments, "--no-digest"], folder=tmp_path) == (0, output, "")
    assert run_boxscore([*arguments, "--quiet"], folder=tmp_path) == (0, output, "")
    status, output, errors = run_boxscore([*arguments, "--strict", "--quiet"], folder=tmp_path)
    assert (status, output) == (2, "")
    assert errors.endswith("Accept it with --allow score-outside-0-1.\n")


def test_quiet_shows_errors_in_the_input(tmp_path: Path) -> None:
    for name, said in (("swapped_axes", 1), ("equal_scores", 1), ("percent", 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == name))
        arguments = ["evaluate", "--gt", "gt.json", "--dt", "dt.json", "--quiet"]
        _, _, errors = run_boxscore(arguments, folder=tmp_path)
        assert errors.count("boxscore: error in the input: ") == said, name
        assert "warning: " not in errors


def test_a_small_input_is_evaluated_again(tmp_path: Path) -> None:
    """What is said is what ``validate`` says, in its order."""
    spoil = next(spoil for spoil in SPOILS if spoil.__name__ == "half_a_run")
    tables = load(tmp_path, spoil)
    quick = quick_findings(boxscore.evaluate(*tables))
    codes = {item.code for item in quick}
    known = [dataclasses.replace(item, examples=()) for item in validate(*tables) if item.code in codes]
    assert quick == known
    assert quick[0].effect > 0.1


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012", "padilla-coco"])
def test_what_the_floor_hides_at_most(protocol: str) -> None:
    """The oracle: at each threshold alone, every missed object is found right below the floor."""
    truth, found = shapes_of_random_scores()
    rules = load_protocol(protocol)
    above = found.take(np.flatnonzero(found.scores >= 0.4))
    result = boxscore.evaluate(truth, above, protocol=rules)
    floor = next(item for item in validate(truth, above, protocol=rules) if item.code == "score-floor")
    values = []
    for threshold in rules.matching.iou_thresholds:
        one = dataclasses.replace(
            rules,
            matching=dataclasses.replace(rules.matching, iou_thresholds=(threshold,)),
            summary=tuple(dataclasses.replace(row, iou=None) for row in rules.summary[:1]),
        )
        outcomes = boxscore.evaluate(truth, above, protocol=one).outcomes
        missed = np.setdiff1d(np.arange(len(truth)), outcomes.truth_row)
        more = boxscore.Detections.from_arrays(
            np.append(above.images.ids[above.image], truth.images.ids[truth.image[missed]]),
            np.append(above.categories.ids[above.category], truth.categories.ids[truth.category[missed]]),
            np.concatenate([above.boxes, truth.boxes[missed]]),
            np.append(above.scores, np.full(len(missed), 0.1)),
            images=truth.images,
            categories=truth.categories,
        )
        values.append(next(iter(boxscore.evaluate(truth, more, protocol=one).metrics.values())))
    assert floor.bound
    assert floor.value == next(iter(result.metrics.values()))
    assert floor.repaired == pytest.approx(np.mean(values), abs=1e-12)
    assert floor.effect > 0.05
    whole = boxscore.evaluate(truth, found, protocol=rules)
    assert floor.value <= next(iter(whole.metrics.values())) <= floor.repaired


def shapes_of_random_scores() -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    result = evaluation(classes=4, images=25, noise=4.0, seed=5)
    truth = result.ground_truth
    return truth.take(np.flatnonzero(~truth.crowd)), result.detections


def test_a_floor_below_which_nothing_is_missed_is_none() -> None:
    box = [[10 * i, 0, 10 * i + 9, 9] for i in range(30)]
    truth = boxscore.GroundTruth.from_arrays([1] * 30, ["a"] * 30, box)
    found = boxscore.Detections.from_arrays([1] * 30, ["a"] * 30, box, np.linspace(0.5, 1, 30))
    assert validate(truth, found) == []


def test_a_subset_of_classes_is_no_fault(tmp_path: Path) -> None:
    """Of these classes no score is low, 4 images have none and each has 5 detections: by the choice alone."""
    random = np.random.default_rng(0)
    image = np.repeat(np.arange(10), 10)
    category = np.tile([1] * 5 + [2] * 5, 10)
    boxes = random.uniform(0, 50, (100, 4)) + np.array([0, 0, 60, 60])
    detections = boxscore.Detections.from_arrays(
        image, category, boxes, np.where(category == 1, 0.7, 0.01) + random.uniform(0, 0.2, 100)
    )
    objects = random.choice(100, 30, replace=False)
    truth = boxscore.GroundTruth.from_arrays(
        image[objects],
        category[objects],
        boxes[objects] + 9 * (objects % 3)[:, None],
        images=range(10),
        categories={1: "a", 2: "b"},
    )
    chosen = boxscore.evaluate(truth, detections, classes=["a"])
    false = {
        "score-floor",
        "detections-cut-per-image",
        "image-without-detections",
        "image-without-annotations",
    }
    for findings in (quick_findings(chosen), findings_of(chosen)):
        assert not false & {finding.code for finding in findings}
    alone = [finding.code for finding in validate(chosen.ground_truth, chosen.detections)]
    assert {"score-floor", "detections-cut-per-image"} <= set(alone)


def test_nothing_is_said_of_good_data(tmp_path: Path, run: Run) -> None:
    load(tmp_path, None)
    assert run("evaluate", "--gt", tmp_path / "gt.json", "--dt", tmp_path / "dt.json").err == ""


def test_a_run_configuration_can_leave_it_out(tmp_path: Path, run: Run) -> None:
    load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == "percent"))
    tables = '[ground_truth]\npath = "gt.json"\n[detections]\npath = "dt.json"\n[output]\n'
    for text, said in (("", True), ("digest = true", True), ("digest = false", False)):
        (tmp_path / "run.toml").write_text(tables + text)
        assert ("outside [0, 1]" in run("run", tmp_path / "run.toml").err) == said


def test_a_protocol_without_a_summary(tmp_path: Path) -> None:
    """It has no summary metric: no effect is measured."""
    tables = load(tmp_path, next(spoil for spoil in SPOILS if spoil.__name__ == "swapped_classes"))
    protocol = {"extends": "coco", "name": "mine", "summary": []}
    assert quick_findings(boxscore.evaluate(*tables, protocol=protocol)) == []
    assert all(found.metric == "" for found in validate(*tables, protocol=protocol))


def test_the_page_names_the_quick_checks() -> None:
    page = (DATASETS.parent / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    section = re.search(r"## Checks of `evaluate`\n(.*?)\n## ", page, re.DOTALL)
    assert section
    named = set(re.findall(r"`([a-z0-1]+(?:-[a-z0-9]+)+)`", section[1]))
    assert named == {code for code in ALWAYS | BELOW | FORMS if "-flag-" not in code} | {*SAID_NOTES}
    assert "the flags without effect" in section[1]


@pytest.mark.long
def test_pandas_is_not_loaded(tmp_path: Path) -> None:
    load(tmp_path, None)
    code = (
        "import sys; from boxscore.cli import main; "
        "main(['evaluate', '--gt', 'gt.json', '--dt', 'dt.json']); "
        "assert 'boxscore.extensions.validation.digest' in sys.modules; "
        "print([name for name in ('pandas', 'boxscore.diagnostics', 'matplotlib') if name in sys.modules])"
    )
    status, output, errors = run_python(["-c", code], folder=tmp_path)
    assert (status, errors) == (0, "")
    assert output.endswith("[]\n")


@pytest.mark.long
def test_boxes_in_another_form_are_the_one_finding(tmp_path: Path, run: Run) -> None:
    """With both numbers, in the command and in Python; the low score explains the rest."""
    spoil = next(spoil for spoil in SPOILS if spoil.__name__ == "swapped_axes")
    with pytest.warns(boxscore.BoxscoreWarning, match="y1,x1,y2,x2"):
        truth, found = load(tmp_path, spoil)
    paths = [str(tmp_path / "gt.json"), str(tmp_path / "dt.json")]
    with_option = boxscore.load_detections(paths[1], truth, box_format="yxyx")
    repaired = boxscore.evaluate(truth, with_option, digest=False)["AP"]
    with pytest.warns(boxscore.FindingWarning) as caught:
        before = boxscore.evaluate(truth, found)["AP"]
    assert caught[0].filename == __file__  # the line that called evaluate
    assert str(caught[0].message).startswith("error in the input: detections: read as")
    python = 'Use --dt-box-format yxyx, or box_format="yxyx" of load_detections. With'
    assert python in str(caught[0].message)
    end = (
        f"Use --dt-box-format yxyx. With --dt-box-format yxyx, AP would be {repaired:.4f} instead of {before:.4f} "
        f"({repaired - before:+.4f})."
    )
    assert repaired > before + 0.5
    assert [warning.message.code for warning in caught] == ["detection-box-order"]  # type: ignore[union-attr]
    words = " ".join(run("evaluate", *paths).err.split())
    assert words.endswith(end)
    assert words.count("boxscore: ") == 1  # the loader's warning is in the finding
    for command, *more in (["check", "--min", "AP=0"], ["compare", paths[1], "--names", "a", "b"]):
        words = " ".join(run(command, *paths, *more, status=int(command == "check")).err.split())
        assert words.count("extend outside their image;") == words.count("error in the input: ") > 0
    with pytest.warns(boxscore.BoxscoreWarning) as caught:
        boxscore.evaluate(*paths)
    assert [type(warning.message) for warning in caught] == [boxscore.FindingWarning]


def test_boxes_in_another_form_are_said_without_the_finding(tmp_path: Path, run: Run) -> None:
    """By the loader: without the quick checks, and where something stops the command before them."""
    spoil = next(spoil for spoil in SPOILS if spoil.__name__ == "swapped_axes")
    with pytest.warns(boxscore.BoxscoreWarning, match="y1,x1,y2,x2"):
        load(tmp_path, spoil)
    paths = [str(tmp_path / "gt.json"), str(tmp_path / "dt.json")]
    for options, status, ways in (
        (["--no-digest"], 0, {"digest": False}),
        (["--classes", "7"], 2, {"classes": [7]}),
    ):
        assert run("evaluate", *paths, *options, status=status).err.startswith(
            f"boxscore: error in the input: {paths[1]}: read as x,y,width,height, "
        )
        with (
            pytest.warns(boxscore.BoxscoreWarning, match="extend outside") as caught,
            contextlib.suppress(boxscore.InputError),
        ):
            boxscore.evaluate(*paths, **ways)  # type: ignore[arg-type]
        assert [type(warning.message) for warning in caught] == [boxscore.BoxscoreWarning]


def test_results_of_few_images() -> None:
    """Half of the images and more without a detection: the number without these, and the option."""
    images, boxes = np.arange(700), np.tile([10.0, 10, 60, 60], (700, 1))
    truth = boxscore.GroundTruth.from_arrays(images, ["a"] * 700, boxes)
    found = boxscore.Detections.from_arrays(
        images[:301], ["a"] * 301, boxes[:301], np.linspace(0.01, 1, 301), images=truth.images
    )
    with pytest.warns(boxscore.FindingWarning) as caught:
        result = boxscore.evaluate(truth, found)
    text = str(caught[0].message)
    assert "To evaluate only some images, list their ids in a file: --images FILE, or images= of" in text
    few = boxscore.evaluate(truth, found, images=range(301), digest=False)["AP"]
    assert text.endswith(
        f" Without these images, AP would be {few:.4f} instead of {result['AP']:.4f} ({few - result['AP']:+.4f})."
    )
    assert few == pytest.approx(1, abs=1e-12)
    with pytest.warns(boxscore.FindingWarning, match="or of an interrupted run") as caught:
        boxscore.evaluate(truth, found.take(np.arange(0)))
    assert not any("--images" in str(warning.message) for warning in caught)


@pytest.mark.slow
@pytest.mark.real
def test_three_faces_of_a_real_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`validate`, the page and the lines below ``evaluate``: the same counts, words and effects."""
    paths = [str(real("coco_val2017", name)) for name in ("ground_truth_boxes.json", "yolov2_608.json")]
    known = validate_files(*paths)
    assert [(item.code, item.count) for item in known] == [
        ("score-floor", 12457),
        ("class-without-detections", 5),
        ("class-always-called-another", 3),
        ("near-duplicate-annotation", 4),
        ("image-without-detections", 371),
        ("detection-outside-image", 1040),
        ("image-without-annotations", 48),
    ]
    result = boxscore.evaluate(*paths)
    assert findings_of(result) == known
    capsys.readouterr()
    assert main(["evaluate", "--gt", paths[0], "--dt", paths[1]]) == 0
    floor, called = known[0], known[2]
    assert (floor.bound, floor.effect_text) == (True, "")
    words = " ".join(capsys.readouterr().err.split())
    assert words == (
        f"boxscore: warning: {floor.message}. boxscore: warning: {called.message} {called.effect_text}."
    )
    page = render_page(report_view(result, options=ReportOptions(resamples=0)))
    text = html.unescape(re.sub("<[^>]*>", "", page))
    for item in known:
        assert item.message[1:] in text, item.code
        assert item.effect_text in text, item.code
    assert text.count(f"{floor.message}.") == 1  # the first sentence
    assert "No score threshold recommended" in text
