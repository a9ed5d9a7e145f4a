"""Non-maximum suppression: the whole family, in NumPy."""

from boxscore.nms.hard import batched_nms, diou_nms, nms

__all__ = ["batched_nms", "diou_nms", "nms"]
