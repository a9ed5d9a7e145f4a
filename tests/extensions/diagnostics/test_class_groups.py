"""Metrics of groups of classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import InputError
from boxscore.diagnostics import class_group_scores
from boxscore.extensions.diagnostics.class_groups import groups_of_text
from support.running import Run
from support.samples import DT, GT


@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012", "lvis"])
def test_a_group_is_evaluating_its_classes_alone(protocol: str, scene: Any) -> None:
    truth, detections = scene(0, images=40)
    names = truth.categories.names.tolist()
    result = boxscore.evaluate(truth, detections, protocol=protocol, digest=False)
    groups = class_group_scores(result, {"first": names[:2], "others": ["*"]})
    whole = class_group_scores(result, {"all": ["*"]})
    alone = boxscore.evaluate(truth, detections, protocol=protocol, classes=names[:2], digest=False)
    metrics = result.metrics
    for column, key in enumerate(groups.metrics):
        first = groups.values[0, column]
        np.testing.assert_equal(whole.values[0, column], metrics[key])  # to the bit
        if protocol != "lvis":  # its cap is over all classes of an image
            np.testing.assert_equal(first, alone.metrics[key])
    values = result.class_values[next(iter(result.class_values))]
    assert groups.values[0, 0] == pytest.approx(np.nanmean(values[:2]), abs=1e-12)
    assert groups.values[1, 0] == pytest.approx(np.nanmean(values[2:]), abs=1e-12)
    frame, total = groups.to_frame(), groups.total_frame()
    assert (
        frame["ground_truths"][:2].sum()
        == total["ground_truths"].item()
        == result.class_counts["ground_truths"].sum()
    )


def test_groups_are_read_from_text_and_files(tmp_path: Path) -> None:
    expected = {"novel": ["cat", "dog"], "base": ["*"]}
    assert groups_of_text("novel=cat, dog;base=*") == expected
    (tmp_path / "groups.txt").write_text("# of the paper\nnovel=cat,dog\n\nbase=*\n")
    (tmp_path / "groups.json").write_text(json.dumps(expected))
    assert groups_of_text(str(tmp_path / "groups.txt")) == expected
    assert groups_of_text(str(tmp_path / "groups.json")) == expected
    for text in ("novel", "=cat", "a=b;a=c"):
        with pytest.raises(InputError, match="novel=cat,dog;base="):
            groups_of_text(text)
    (tmp_path / "groups.json").write_text('{"novel": "cat"}')
    with pytest.raises(InputError, match="be a list of class names"):
        groups_of_text(str(tmp_path / "groups.json"))


def test_what_has_no_groups_is_refused(scene: Any) -> None:
    result = boxscore.evaluate(*scene(0, images=4), digest=False)
    with pytest.raises(InputError, match="a class of a group must be one of"):
        class_group_scores(result, {"a": ["nothing"]})
    with pytest.raises(InputError, match="be one or more"):
        class_group_scores(result, {})
    pooled = boxscore.evaluate(
        *scene(0, images=4), protocol={"extends": "coco", "matching": {"per_class": False}}, digest=False
    )
    with pytest.raises(InputError, match="have a value per class"):
        class_group_scores(pooled, {"a": ["*"]})


def test_the_command_prints_groups_and_all(run: Run) -> None:
    output = run("slices", GT, DT, "--class-groups", "novel=star,circle;base=*", "--output", "csv").out
    lines = [line.split(",")[0] for line in output.splitlines() if line]
    assert lines[:4] == ["group", "novel", "base", "(all)"]
    assert "must not be combined with --class-groups" in run.error(
        "slices", GT, DT, "--class-groups", "a=star", "--bins", "3"
    )
