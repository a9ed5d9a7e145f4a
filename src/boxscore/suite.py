"""Many data sets, many models: one file names them, and one table says how each does.

Conventions
-----------
- A *suite* names sets and models, and a pattern for the results of each. A *cell* is one model on one set.
- A cell without a result is no cell that is left out: it counts 0 or as the worst, is named, and so is what
  leaving it out would do to the mean.
- Cells are kept with the hash of their inputs, so that a suite that was stopped goes on where it was.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.suite.reading import Suite as Suite
    from boxscore.extensions.suite.reading import SuiteSet as SuiteSet
    from boxscore.extensions.suite.result import SuiteResult as SuiteResult
    from boxscore.extensions.suite.running import run_suite as run_suite
