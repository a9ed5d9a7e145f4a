"""Training loops: the Evaluator, and the outputs of model libraries."""
