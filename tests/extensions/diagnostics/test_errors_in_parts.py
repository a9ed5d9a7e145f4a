"""Costs of errors over partitions: what is refused, the command, and numbers that come later."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from boxscore.diagnostics import error_list, error_types
from boxscore.errors import InputError
from extensions.diagnostics.test_tide import crowded_scene as scene
from support.insides import asked_again
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

from boxscore.formats.parquet import FORMAT
from boxscore.protocols import load_protocol


def test_what_is_refused(tmp_path: Path) -> None:
    truth, found = scene(0)
    FORMAT.save(found, tmp_path / "found.parquet")
    with asked_again(truth, tmp_path / "found.parquet", load_protocol("coco"), partition=250) as result:
        with pytest.raises(InputError, match="background_iou must be <= iou_threshold"):
            error_types(result, background_iou=0.9)
        with pytest.raises(InputError, match="a list of errors"):
            error_list(result)


GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"


@pytest.mark.parametrize("protocol", ["coco", "voc2012", "openimages-challenge", "tide"])
def test_the_command(protocol: str, tmp_path: Path, run: Run) -> None:
    found = str(tmp_path / "found")
    convert = ["convert", "--gt", GT, "--dt", DT, "--to", "parquet", "--partitions", "3", "--output", found]
    run(*convert)
    call = ["errors", GT, found, "--per-class", "--output", "csv", "--protocol", protocol]
    assert run(*call, "--memory-limit", "2GB", "--workers", "1").out == run(*call).out
    error = run.error(*call[:3], "--list", "--memory-limit", "2GB")
    assert "a list of errors must not be combined with --memory-limit" in error
    error = run.error(*call[:3], "--scoreless", "--memory-limit", "2GB")
    assert "--scoreless must not be combined with --memory-limit" in error
    error = run.error(*call[:3], "--protocol", "lvis-fixed", "--memory-limit", "2GB")
    assert (
        "error types must be computed with all images in memory. Got partitions; the protocol lvis-fixed uses"
        in error
    )


def test_what_the_summary_needs_is_computed_where_it_is_asked_for(tmp_path: Path) -> None:
    """Numbers of a result that come later are those that come at once, and errors need none."""
    truth, found = scene(3)
    FORMAT.save(found, tmp_path / "found.parquet")
    protocol = load_protocol("coco")
    with asked_again(truth, tmp_path / "found.parquet", protocol, partition=200, later=True) as result:
        error_types(result)
        counts = result.counts
        assert "_numbers" not in vars(result)
        with asked_again(truth, tmp_path / "found.parquet", protocol, partition=200) as other:
            np.testing.assert_equal(result.metrics, other.metrics)
            assert counts == other.counts == dict(other._numbers.counts)
            assert result.identity == other.identity
            assert result.class_rates.keys() == other.class_rates.keys()
        again = pickle.loads(pickle.dumps(result))
    np.testing.assert_equal(again.metrics, result.metrics)
    assert again.identity.same_as(result.identity)
    assert again.counts == counts
    np.testing.assert_equal(dict(again.class_rates), dict(result.class_rates))
