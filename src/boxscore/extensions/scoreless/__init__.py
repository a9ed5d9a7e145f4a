"""Evaluate detections without scores: answers of language models, phrases, metrics without ranking."""
