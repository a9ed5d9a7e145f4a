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
Every function takes the boxes of one image or of many: boxes of different ``groups`` never interact. A box is
suppressed if the overlap is **more than** the threshold; higher scores come first, ties by lowest index;
results are indices into the input. Everything is float64. NaN, inverted boxes and unequal lengths raise an
``InputError``; an empty input is valid.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.fusion.fusion import Fused as Fused
    from boxscore.extensions.fusion.fusion import nmw as nmw
    from boxscore.extensions.fusion.fusion import weighted_boxes_fusion as weighted_boxes_fusion
    from boxscore.extensions.fusion.tables import fuse as fuse
    from boxscore.extensions.masks.suppression import mask_nms as mask_nms
    from boxscore.extensions.oriented.suppression import quadrilateral_nms as quadrilateral_nms
    from boxscore.extensions.oriented.suppression import rotated_nms as rotated_nms
    from boxscore.suppression.fast import cluster_nms as cluster_nms
    from boxscore.suppression.fast import fast_nms as fast_nms
    from boxscore.suppression.hard import batched_nms as batched_nms
    from boxscore.suppression.hard import diou_nms as diou_nms
    from boxscore.suppression.hard import nms as nms
    from boxscore.suppression.matrix import matrix_nms as matrix_nms
    from boxscore.suppression.merging import greedy_nmm as greedy_nmm
    from boxscore.suppression.merging import nmm as nmm
    from boxscore.suppression.result import Suppression as Suppression
    from boxscore.suppression.soft import soft_nms as soft_nms
    from boxscore.suppression.suppressing import suppress as suppress
    from boxscore.suppression.suppressing import suppress_boxes as suppress_boxes
