"""Evaluate predictions and targets batch by batch, with results at the end of an epoch."""

from __future__ import annotations

from boxscore.extensions.training.evaluating import Evaluator
from boxscore.extensions.training.gathering import gather_with_torch

__all__ = ["Evaluator", "gather_with_torch"]
