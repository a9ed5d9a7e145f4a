"""Evaluate many models on many data sets: a file lists them, and a table compares their results.

Conventions
-----------
- A *suite* lists sets and models, and a pattern for the results of each. A *cell* is one model on one set.
- A cell without results counts as 0 or as the worst value instead of being left out. The table lists it, and
  shows the mean without it.
- Cells are cached with the hash of their inputs, so that an interrupted suite resumes.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.suite.reading import Suite as Suite
    from boxscore.extensions.suite.reading import SuiteSet as SuiteSet
    from boxscore.extensions.suite.result import SuiteResult as SuiteResult
    from boxscore.extensions.suite.running import run_suite as run_suite
