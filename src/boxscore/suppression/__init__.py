"""Non-maximum suppression: the whole family, exact, for one image or a whole data set.

=============================================  =========================================================
drop what overlaps                             :func:`nms`, :func:`batched_nms`, :func:`diou_nms`,
                                               :func:`rotated_nms`, :func:`quadrilateral_nms`,
                                               :func:`mask_nms`
lower its score                                :func:`soft_nms`, :func:`matrix_nms`
drop in matrix steps                           :func:`fast_nms`, :func:`cluster_nms`
merge it                                       :func:`greedy_nmm`, :func:`nmm`
average the models of an ensemble              :func:`weighted_boxes_fusion`, :func:`nmw`
any of them by name                            :func:`suppress` a table, :func:`suppress_boxes`
=============================================  =========================================================

Conventions
-----------
Every function takes the boxes of one image or of many: ``groups`` defines which may meet. Overlap counts when
it is **more than** the threshold; higher scores come first, of equal ones the lower index; results are
indices into the input. Everything is float64. NaN, inverted boxes and unequal lengths are an ``InputError``;
no boxes at all is a legal input.
"""

from boxscore.suppression.fast import cluster_nms, fast_nms
from boxscore.suppression.fusion import Fused, nmw, weighted_boxes_fusion
from boxscore.suppression.hard import batched_nms, diou_nms, nms
from boxscore.suppression.masks import mask_nms
from boxscore.suppression.matrix import matrix_nms
from boxscore.suppression.merging import greedy_nmm, nmm
from boxscore.suppression.result import Suppression
from boxscore.suppression.rotated import quadrilateral_nms, rotated_nms
from boxscore.suppression.soft import soft_nms
from boxscore.suppression.suppressing import suppress, suppress_boxes

__all__ = [
    "Fused",
    "Suppression",
    "batched_nms",
    "cluster_nms",
    "diou_nms",
    "fast_nms",
    "greedy_nmm",
    "mask_nms",
    "matrix_nms",
    "nmm",
    "nms",
    "nmw",
    "quadrilateral_nms",
    "rotated_nms",
    "soft_nms",
    "suppress",
    "suppress_boxes",
    "weighted_boxes_fusion",
]
