"""Detections in patches of large images, put back into the whole images.

Conventions
-----------
- A patch is called ``<image>__<scale>__<x>___<y>``: the image that it was cut from, by how much that was
  resized before, and the patch's corner in it, as DOTA_devkit's and mmrotate's splitters write it.
- Nothing is suppressed here: an object on an edge is detected in several patches, which NMS reduces to one.

References
----------
DOTA_devkit, ``ResultMerge.py``; mmrotate, ``_merge_func`` and ``merge_det``.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from boxscore._utils import checks
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import InputError

_NAME = re.compile(r"(.+)__(\d*\.?\d+)__(-?\d+)___(-?\d+)")


def merge_patches(detections: Detections, form: str = "scaled") -> Detections:
    """Move detections from patches to the images that these were cut from.

    Parameters
    ----------
    detections : Detections
        In images called ``<image>__<scale>__<x>___<y>``; an image with another name stays as it is.
    form : {"scaled", "shifted"}, default "scaled"
        ``"scaled"``: the patch's corner is added, then all is divided by the scale (DOTA_devkit);
        ``"shifted"``: the corner is added, whatever the scale (mmrotate).

    Returns
    -------
    Detections
        The same rows in the same order; suppress them next.

    Raises
    ------
    InputError
        When no image is called so, a scale is 0, or there are masks or keypoints.

    Examples
    --------
    >>> table = Detections.from_arrays(["P1__0.5__100___0"], ["ship"], [[0, 0, 10, 10]], [0.9])
    >>> merge_patches(table).boxes.tolist(), merge_patches(table).images.ids.tolist()
    ([[200.0, 0.0, 220.0, 20.0]], ['P1'])
    """
    checks.one_of(form, ("scaled", "shifted"), name="form")
    if detections.masks is not None or detections.keypoints is not None:
        raise InputError("detections in patches", "be boxes", got="masks or keypoints")
    # Parse each image's name once; names of another form are whole images.
    names = [str(identifier) for identifier in detections.images.ids.tolist()]
    parts = [_NAME.fullmatch(name) for name in names]
    if names and not any(parts):
        raise InputError(
            "images of patches",
            "be called <image>__<scale>__<x>___<y>",
            got=repr(names[0]),
            place=detections.source,
            cause="are these results of whole images?",
        )
    # Scale [I] and corner [I, 2] of each patch; a whole image has scale 1 and corner (0, 0).
    scale = np.array([float(part[2]) if part else 1.0 for part in parts])
    if (scale == 0).any():
        raise InputError("the scale of a patch", "be above 0", got=repr(names[int(np.argmin(scale))]))
    if form == "shifted":
        scale = np.ones(len(names))
    corner = np.array([[float(part[3]), float(part[4])] if part else [0.0, 0.0] for part in parts])
    # Number the whole images in the order of their first patch.
    ids: list[Id] = detections.images.ids.tolist()
    whole: list[Id] = [part[1] if part else identifier for part, identifier in zip(parts, ids, strict=True)]
    image = {name: row for row, name in enumerate(dict.fromkeys(whole))}
    rows = np.array([image[name] for name in whole], dtype=np.int32)
    # The order of DOTA_devkit: add the corner, then divide by the scale. Sizes only scale.
    by, shift = scale[detections.image][:, None], corner[detections.image].reshape(-1, 2)
    changes = {
        "boxes": (detections.boxes + np.tile(shift, 2)) / by,
        "sizes": detections.sizes / by,
    }
    # Corners move like boxes; of a rotated box the center moves, sides scale and the angle stays.
    if detections.quadrilaterals is not None:
        changes["quadrilaterals"] = (detections.quadrilaterals + np.tile(shift, 4)) / by
    if detections.rotated is not None:
        rotated = detections.rotated.copy()
        rotated[:, :2] += shift
        rotated[:, :4] /= by
        changes["rotated"] = rotated
    moved = detections.replaced(**changes)
    return dataclasses.replace(moved, images=Images.build(list(image)), image=rows[detections.image])
