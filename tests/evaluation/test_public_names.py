"""What users see of results: few public names, one way to a table, short ``repr``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.errors import InputError
from boxscore.protocols import load_protocol, protocol_names
from boxscore.validation import validate

SHAPES = Path(boxscore.__file__).parents[2] / "datasets" / "shapes_coco"
LINES = 20

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

PUBLIC = [
    "ground_truth",
    "detections",
    "protocol",
    "metrics",
    "signature",
    "counts",
    "labels",
    "categories",
    "images",
    "summary",
    "per_class",
    "matches",
    "curves",
    "to_frame",
    "class_counts",
    "class_values",
    "operating_score",
    "ap_by_iou",
    "arrays",
    "to_json",
    "to_latex",
    "flat",
    "report",
    "plot",
    "save_part",
    "compare",
    "plan",
]


@functools.cache
def sample() -> boxscore.Evaluation:
    return boxscore.evaluate(SHAPES / "instances.json", SHAPES / "detections.json")


def test_an_evaluation_shows_what_users_need() -> None:
    """Everything else has an underscore, or is for extensions and not listed."""
    shown = [name for name in dir(sample()) if not name.startswith("_")]
    assert sorted(shown) == sorted(PUBLIC)
    documented = type(sample()).__doc__ or ""
    for name in shown:
        member = inspect.getattr_static(type(sample()), name, None)
        assert inspect.getdoc(member) if name not in documented else True, name


def test_tables_are_reached_one_way() -> None:
    result = sample()
    assert result.to_frame().equals(result.per_class)
    for name in ("per_class", "summary", "matches"):
        assert result.to_frame(name).equals(getattr(result, name))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^table must be one of 'per_class', 'summary', 'matches'\."):
        result.to_frame("classes")  # type: ignore[arg-type]


def answers() -> Iterator[tuple[str, Any]]:
    """Every diagnostic that needs no more than an evaluation."""
    result = sample()
    for name in sorted(diagnostics.__all__):
        function = getattr(diagnostics, name)
        if name[0].isupper() or not callable(function):
            continue
        needed = [
            one
            for one in list(inspect.signature(function).parameters.values())[1:]
            if one.default is inspect.Parameter.empty and one.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        if needed:
            continue
        options = {"resamples": 20} if "resamples" in inspect.signature(function).parameters else {}
        for asked in (result, {"one": result, "two": result}):
            try:
                yield name, function(asked, **options)
            except (InputError, AttributeError, TypeError, KeyError):
                continue


def test_every_public_result_has_a_short_repr_and_no_table_that_is_none() -> None:
    made = [
        ("Evaluation", sample()),
        ("GroundTruth", sample().ground_truth),
        ("Detections", sample().detections),
        ("matched", sample().matched),
        ("outcomes", sample().outcomes),
        ("Curves", sample().curves_of()),
        ("Categories", sample().categories),
        ("Images", sample().images),
        *((name, load_protocol(name)) for name in protocol_names()),
        *((one.code, one) for one in validate(sample().ground_truth, sample().detections)),
        *answers(),
    ]
    assert len({name for name, _ in made}) > 40
    long = {name: repr(one).count("\n") + 1 for name, one in made if repr(one).count("\n") >= LINES}
    assert long == {}
    wide = {name: len(repr(one)) for name, one in made if len(repr(one)) > LINES * 160}
    assert wide == {}
    for name, one in made:
        for table in ("to_frame", "total_frame"):
            if hasattr(one, table) and name not in ("GroundTruth", "Detections"):
                assert isinstance(getattr(one, table)(), pd.DataFrame), (name, table)
