"""Of equally overlapped objects: the last in the file (pycocotools), or the first."""

from __future__ import annotations

from support.scenes import COCO, PADILLA_COCO, VOC_LIKE, Case, Scene, by_protocol, det, obj

ENDS = [(1 / 2, 1), (1 / 2, 1 / 2)]  # a hit, then a miss: the curve ends at recall 1/2

LAST = (*COCO, *PADILLA_COCO, "ultralytics-april2026", "ultralytics-old", "bes-dev")
FIRST = (*VOC_LIKE, "ultralytics", "tide", "fiftyone")

#   [ first ][ second ]
#   [----- D .9 ------]     half of it in each
#            [ D .8   ]     the second alone
ACROSS = Scene(
    [obj(0, 0, 10, 10), obj(10, 0, 20, 10)],
    [det(0, 0, 20, 10, score=0.9), det(10, 0, 20, 10, score=0.8)],
)
#   the same, the objects' order in the file turned round
TURNED = Scene(ACROSS.objects[::-1], ACROSS.detections)


test_by_protocol = by_protocol(
    Case("across two", ACROSS, {LAST: ("TF", ENDS), FIRST: ("TT", [(1, 1)])}),
    Case("across two, turned", TURNED, {LAST: ("TT", [(1, 1)]), FIRST: ("TF", ENDS)}),
)
