"""Detections without scores: answers of language models, phrases, metrics without an order."""
