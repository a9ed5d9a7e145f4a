"""Measure the quality of labels: annotator agreement, label suspects, the effect of label edits."""
