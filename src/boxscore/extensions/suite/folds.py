"""Compute intervals and tests of the mean over the folds of a cross-validation.

Conventions
-----------
- Models of different folds share most of their training images, so their scores are not independent, and no
  estimate of their variance is without bias. The usual standard error, sd / sqrt(folds), is too small. With
  ``n`` scores of ``k`` folds a round, it is corrected to sd x sqrt(1 / n + 1 / (k - 1)).
- Scores of a few images are too high, so intervals are around the means of estimates without this bias. Few
  folds may agree by chance: an interval also contains the one over images.

References
----------
C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine Learning 52, 2003. Y. Bengio and
Y. Grandvalet, "No Unbiased Estimator of the Variance of K-Fold Cross-Validation", JMLR 5, 2004. R. R.
Bouckaert and E. Frank, "Evaluating the Replicability of Significance Tests", PAKDD 2004 (repeated rounds).
"""

from __future__ import annotations

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.extensions.decisions.swapping import NEGLIGIBLE
from boxscore.extensions.weights.resampling import student_quantile, student_within

LEAST_FOLDS = 3


def corrected_error(values: FloatArray, folds: int) -> FloatArray:
    """Return the standard error of the mean over scores of folds, [n, ...] to [...]."""
    error: FloatArray = values.std(axis=0, ddof=1) * np.sqrt(1 / len(values) + 1 / (folds - 1))
    return error


def reach_of_folds(values: FloatArray, folds: int, confidence: float) -> FloatArray:
    """Return half the width of the interval of the mean over scores of folds, [n, ...] to [...]."""
    upper = (1 + min(confidence, 1 - 1e-9)) / 2
    return student_quantile(upper, len(values) - 1) * corrected_error(values, folds)


def p_values_of_folds(differences: FloatArray, folds: int) -> FloatArray:
    """Return p-values of the mean difference over folds being 0, [n, O] to [O]: a corrected t-test."""
    error, mean = corrected_error(differences, folds), np.abs(differences.mean(axis=0))
    # A difference without any spread is certain.
    inside = [
        student_within(m / e, len(differences) - 1) if e > NEGLIGIBLE else float(m > NEGLIGIBLE)
        for m, e in zip(mean.tolist(), error.tolist(), strict=True)
    ]
    return 1 - np.array(inside)
