"""Evaluate inside training loops: the Evaluator, and readers of the outputs of model libraries."""
