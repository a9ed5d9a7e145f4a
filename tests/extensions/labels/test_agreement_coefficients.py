"""Kappa and alpha by their definitions in fractions, and by scikit-learn and krippendorff."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boxscore.extensions.labels.agreement import cohens_kappa, krippendorffs_alpha
from oracles import agreement as oracle
from support.examples import examples

ROUNDING = 4e-15
"""Of sums of a few hundred shares, and of one quotient."""


def is_value(ours: float, exact: Any) -> bool:
    return math.isnan(ours) if exact is None else abs(ours - float(exact)) <= ROUNDING * max(1, abs(exact))


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], int]:
    """Values of 2 to 5 annotators; -1 where one was not asked."""
    classes = draw(st.integers(1, 5))
    annotators, units = draw(st.integers(2, 5)), draw(st.integers(0, 25))
    one = st.one_of(st.just(0), st.integers(-1, classes - 1))
    rows = st.lists(one, min_size=units, max_size=units)
    values = draw(st.lists(rows, min_size=annotators, max_size=annotators))
    return np.array(values, dtype=np.int64).reshape(annotators, units), classes


@pytest.mark.oracle
@pytest.mark.property
@given(tables())
def test_alpha_is_its_definition(table: tuple[np.ndarray[Any, Any], int]) -> None:
    values, classes = table
    units = [[value for value in unit if value >= 0] for unit in values.T.tolist()]
    assert is_value(krippendorffs_alpha(values, classes), oracle.alpha(units))


@pytest.mark.oracle
@pytest.mark.property
@given(tables())
def test_kappa_is_its_definition(table: tuple[np.ndarray[Any, Any], int]) -> None:
    values, classes = table
    first, second = values[:2, (values[:2] >= 0).all(axis=0)]
    exact = oracle.kappa(first.tolist(), second.tolist())
    assert is_value(cohens_kappa(first, second, classes), exact)


def made_up(seed: int) -> tuple[np.ndarray[Any, Any], int]:
    """Annotators who say the first one's class in six of ten units."""
    rng = np.random.default_rng(seed)
    classes, shape = int(rng.integers(2, 6)), (int(rng.integers(2, 5)), int(rng.integers(2, 40)))
    values = rng.integers(0, classes, shape)
    values[1:] = np.where(rng.random((shape[0] - 1, shape[1])) < 0.6, values[0], values[1:])
    return values, classes


@pytest.mark.peers
def test_kappa_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is absent: pip install scikit-learn"
    )
    for seed in range(examples(1000)):
        values, classes = made_up(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tables without a kappa
            theirs = metrics.cohen_kappa_score(*values[:2], labels=range(classes))
        assert is_value(cohens_kappa(*values[:2], classes), None if math.isnan(theirs) else theirs)


@pytest.mark.peers
def test_alpha_is_that_of_krippendorff() -> None:
    peer = pytest.importorskip("krippendorff", reason="krippendorff is absent: pip install krippendorff")
    rng = np.random.default_rng(0)
    for seed in range(examples(1000)):
        values, classes = made_up(seed)
        values = np.where(rng.random(values.shape) < 0.2, -1, values)
        given = np.where(values < 0, np.nan, values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tables without an alpha
            try:
                theirs = peer.alpha(given, level_of_measurement="nominal", value_domain=list(range(classes)))
            except ValueError:  # of one value alone
                theirs = math.nan
        assert is_value(krippendorffs_alpha(values, classes), None if math.isnan(theirs) else theirs)
