"""Check ground truth and detections for faults that give a wrong score without an error.

Goal
----
A score can be wrong without an error: boxes in another order, ids off by one, results of another split.
Each check detects one such fault and gives its evidence. If the fault can be repaired, the score is computed
with and without it.

Conventions
-----------
- Three severities: an ``error`` makes the score wrong, a ``warning`` probably does, a ``note`` is useful
  to know.
- The data are not changed.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.errors import SEVERITIES as SEVERITIES
    from boxscore.extensions.validation._findings import Finding as Finding
    from boxscore.extensions.validation.checking import CHECKS as CHECKS
    from boxscore.extensions.validation.numbering import find_class_map as find_class_map
    from boxscore.extensions.validation.validating import findings_table as findings_table
    from boxscore.extensions.validation.validating import validate as validate
    from boxscore.extensions.validation.validating import validate_files as validate_files
