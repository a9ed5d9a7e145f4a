"""What is given to the loaders in place of a path is refused with what takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore import InputError
from support.samples import GT, SHAPES

OTHERS: list[tuple[Any, str]] = [
    (pd.DataFrame({"image": ["a"]}), "DataFrame"),
    ([], "list"),
    (None, "NoneType"),
    (7, "int"),
    (b"gt.json", "bytes"),
    (np.zeros(3), "ndarray"),
]


def _message(kind: str, got: str) -> str:
    return (
        f"path must be the path of a file or folder. Got a value of type {got}; {kind}.from_pandas takes a DataFrame, "
        f"{kind}.from_arrays takes arrays, and boxscore.evaluate(df, df) takes both sides."
    )


@pytest.mark.parametrize(("given", "got"), OTHERS)
def test_what_is_no_path_is_refused_with_what_takes_it(given: Any, got: str) -> None:
    with pytest.raises(InputError) as refused:
        boxscore.load_ground_truth(given)
    assert str(refused.value) == _message("GroundTruth", got)
    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    with pytest.raises(InputError) as refused:
        boxscore.load_detections(given, truth)
    assert str(refused.value) == _message("Detections", got)


def test_ground_truth_that_is_a_path_is_refused_beside_detections() -> None:
    with pytest.raises(InputError) as refused:
        boxscore.load_detections(SHAPES / "detections.json", GT)  # type: ignore[arg-type]
    assert str(refused.value) == (
        "ground_truth must be a GroundTruth table. Got a value of type str; boxscore.load_ground_truth reads it; boxscore.evaluate "
        "takes two paths."
    )
