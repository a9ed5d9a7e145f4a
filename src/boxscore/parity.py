"""Compare two results of one model box by box, such as those of a model and of its export."""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.parity.diff import DetectionDiff as DetectionDiff
    from boxscore.extensions.parity.diff import diff_detections as diff_detections
    from boxscore.extensions.parity.signatures import Cause as Cause
