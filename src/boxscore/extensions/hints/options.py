"""Define the options that correct how detections are read."""

from __future__ import annotations

from boxscore.cli.arguments import IMAGES_TOPIC, NOT_IN_FILES, TABLES, Option

OF_TRUTH = (
    Option(
        "swap-image-sizes",
        "exchange width and height of the ground truth's images, if its file has them in the wrong order",
        kind=bool,
        default=False,
        key="ground_truth.swap_image_sizes",
        group=NOT_IN_FILES,
        topic=IMAGES_TOPIC,
    ),
)
"""Options of the ground truth."""

OPTIONS = (
    Option(
        "class-map",
        "how to map detection class ids to ground-truth classes: auto (inferred from the boxes), "
        "zero-based, one-based, plus-one, minus-one, coco80to91, coco91to80, or a file with lines from,to",
        metavar="NAME|FILE",
        key="detections.class_map",
        ending=".csv",
        group=NOT_IN_FILES,
        brief="how to map detection classes: auto, one-based, FILE",
    ),
    Option(
        "image-id-offset",
        "a whole number to add to the image ids of the detections",
        kind=int,
        metavar="N",
        key="detections.image_id_offset",
        group=NOT_IN_FILES,
        topic=TABLES,
    ),
    Option(
        "network-input",
        "the network's input whose coordinates the detected boxes have, from which to scale them back: "
        "letterbox:640 (centered padding), corner:640 (image at the top left), stretch:640x384 or scale:0.5",
        metavar="INPUT",
        key="detections.network_input",
        group=NOT_IN_FILES,
        topic=TABLES,
    ),
)
