"""Map detections in patches of large images back to the images.

Conventions
-----------
- Patches are named ``<image>__<scale>__<x>___<y>``: the image, its scale before cutting, and the corner of
  the patch, as the splitter of DOTA_devkit writes it. Those of mmrotate and ultralytics do not scale, and
  write the width of the patch instead.
- Duplicates stay: an object on an edge is detected in several patches. Run NMS afterwards.

References
----------
DOTA_devkit, ``ResultMerge.py``; mmrotate, ``_merge_func`` and ``merge_det``.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from boxscore._utils import checks
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import InputError
from boxscore.extensions.tiles.names import DOTA_NAME, SMALLEST_WIDTH


def merge_patches(detections: Detections, form: str = "scaled") -> Detections:
    """Map detections in patches back to the images from which these were cut.

    Parameters
    ----------
    detections : Detections
        Images named ``<image>__<scale>__<x>___<y>``; images with other names stay as they are.
    form : {"scaled", "shifted"}, default "scaled"
        ``"scaled"``: add the corner of the patch, then divide by the scale (DOTA_devkit); ``"shifted"``: only
        add the corner (mmrotate, ultralytics).

    Returns
    -------
    Detections
        The same rows in the same order; suppress them next.

    Raises
    ------
    InputError
        If no image has such a name, a scale is 0, a name has the width of the patch instead, or there are
        masks or keypoints.

    Examples
    --------
    >>> table = Detections.from_arrays(["P1__0.5__100___0"], ["ship"], [[0, 0, 10, 10]], [0.9])
    >>> merge_patches(table).boxes.tolist(), merge_patches(table).images.ids.tolist()
    ([[200.0, 0.0, 220.0, 20.0]], ['P1'])
    """
    checks.one_of(form, ("scaled", "shifted"), name="form")
    if detections.masks is not None or detections.keypoints is not None:
        raise InputError("detections in patches", "be boxes", got="masks or keypoints")
    # Parse each image name once; other names are whole images.
    names = [str(identifier) for identifier in detections.images.ids.tolist()]
    parts = [DOTA_NAME.fullmatch(name) for name in names]
    if names and not any(parts):
        raise InputError(
            "images of patches",
            "be called <image>__<scale>__<x>___<y>",
            got=repr(names[0]),
            place=detections.source,
            cause="are these results of whole images?",
        )
    # Collect the scale [I] and corner [I, 2] of each patch; whole images have scale 1 and corner (0, 0).
    scale = np.array([float(part[2]) if part else 1.0 for part in parts])
    if (scale == 0).any():
        raise InputError("the scale of a patch", "be above 0", got=repr(names[int(np.argmin(scale))]))
    # The devkit scales by 0.5 to 2; divided by a width, all boxes would be a few pixels large.
    wide = np.flatnonzero(scale >= SMALLEST_WIDTH)
    if form == "scaled" and len(wide):
        raise InputError(
            "the scale in the name of a patch",
            f"be below {SMALLEST_WIDTH:g}",
            got=f"{scale[wide[0]]:g} in {names[wide[0]]!r}",
            place=detections.source,
            cause="mmrotate and ultralytics write the width of a patch there: use --merge-patches shifted, "
            'or merge_patches(table, "shifted")',
        )
    if form == "shifted":
        scale = np.ones(len(names))
    corner = np.array([[float(part[3]), float(part[4])] if part else [0.0, 0.0] for part in parts])
    # Number the whole images by their first patch.
    ids: list[Id] = detections.images.ids.tolist()
    whole: list[Id] = [part[1] if part else identifier for part, identifier in zip(parts, ids, strict=True)]
    image = {name: row for row, name in enumerate(dict.fromkeys(whole))}
    rows = np.array([image[name] for name in whole], dtype=np.int32)
    # Add the corner, then divide by the scale, in the order of DOTA_devkit. Sizes only scale.
    by, shift = scale[detections.image][:, None], corner[detections.image].reshape(-1, 2)
    changes = {
        "boxes": (detections.boxes + np.tile(shift, 2)) / by,
        "sizes": detections.sizes / by,
    }
    # Corners move like boxes; the centers of rotated boxes move, their sides scale, and angles stay.
    if detections.quadrilaterals is not None:
        changes["quadrilaterals"] = (detections.quadrilaterals + np.tile(shift, 4)) / by
    if detections.rotated is not None:
        rotated = detections.rotated.copy()
        rotated[:, :2] += shift
        rotated[:, :4] /= by
        changes["rotated"] = rotated
    moved = detections.replaced(**changes)
    return dataclasses.replace(moved, images=Images.build(list(image)), image=rows[detections.image])
