"""What other tools call a protocol's field, and what it is called here."""

from __future__ import annotations

__all__ = ["OTHER_NAMES"]

OTHER_NAMES = {
    **dict.fromkeys(
        ("maxDets", "max_dets", "max_detection_thresholds", "maxdets", "caps"), "matching.max_detections"
    ),
    **dict.fromkeys(("iouThrs", "iou_thrs", "iou_thresholds", "iou_thres"), "matching.iou_thresholds"),
    **dict.fromkeys(("recThrs", "rec_thrs", "rec_thresholds"), "ap.recall_points"),
    **dict.fromkeys(("areaRng", "area_rng", "area_ranges", "areaRngLbl"), "ignore.area_ranges"),
    **dict.fromkeys(("useCats", "use_cats", "average"), "matching.per_class"),
    **dict.fromkeys(("iouType", "iou_type"), "similarity"),
    **dict.fromkeys(("kpt_oks_sigmas", "sigmas"), "keypoints.sigmas"),
    **dict.fromkeys(
        ("conf", "conf_thres", "confidence_threshold", "score_threshold"), "matching.score_threshold"
    ),
    **dict.fromkeys(("use_07_metric", "interpolation"), "ap.interpolation"),
}
