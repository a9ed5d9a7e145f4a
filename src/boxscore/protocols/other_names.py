"""Translate what other tools call a protocol or its field."""

from __future__ import annotations

import re
from collections.abc import Sequence

OTHER_PROTOCOLS = {
    **dict.fromkeys(
        ("voc", "pascal", "pascalvoc", "voc0712", "voc07", "voc12", "vocdevkit"), ("voc2007", "voc2012")
    ),
    **dict.fromkeys(("mscoco", "cocodetection", "cocobox", "cocobbox", "bbox", "pycocotools"), ("coco",)),
    **dict.fromkeys(("segm", "cocoseg", "cocomask", "cocoinstances"), ("coco-segm",)),
    **dict.fromkeys(("boundary", "boundaryiou"), ("coco-boundary",)),
    **dict.fromkeys(("keypoints", "pose", "cocopose", "cocokpt", "oks"), ("coco-keypoints",)),
    **dict.fromkeys(
        ("openimages", "openimage", "oid", "oidv4", "oidv6", "oidv7"),
        ("openimages-v2", "openimages-challenge"),
    ),
    **dict.fromkeys(("yolo", "yolov5", "yolov8", "yolo11", "yolov11"), ("ultralytics", "ultralytics-old")),
    **dict.fromkeys(("obb", "yoloobb", "yolov8obb"), ("ultralytics-obb", "dota")),
    **dict.fromkeys(("dota15", "dota20", "dota2", "dotav2", "dotav20"), ("dota-v1.5",)),
    **dict.fromkeys(("voc2010", "voc2011"), ("voc2012",)),
    **dict.fromkeys(("voc2005", "voc2006", "voc2008", "voc2009"), ("voc2007",)),
    **dict.fromkeys(("wider", "wideface"), ("widerface",)),
    **dict.fromkeys(("padilla",), ("padilla-voc", "padilla-coco")),
    **dict.fromkeys(("detectron2",), ("coco", "detectron2-voc2007", "detectron2-voc2012")),
    **dict.fromkeys(("torchvision", "mmdetection", "mmdet"), ("coco",)),
    **dict.fromkeys(("rotated",), ("dota", "coco-rotated")),
}
"""Names in lower case letters and digits alone, without a year or version at the end."""

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


def meant_protocols(name: str, known: Sequence[str]) -> list[str]:
    """Return the known protocols that a name may mean in other spellings, or as others call them."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    spelled = [one for one in known if re.sub(r"[^a-z0-9]", "", one) == plain]
    if spelled:
        return spelled
    for short in (plain, re.sub(r"(v?\d{1,2}|20[012]\d)$", "", plain)):
        names = [one for one in known if re.sub(r"[^a-z0-9]", "", one) == short]
        if names or short in OTHER_PROTOCOLS:
            return names or list(OTHER_PROTOCOLS[short])
    return []
