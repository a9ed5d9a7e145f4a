"""Evaluate the epochs of a training run: the curve, the best epoch, and which others may be as good.

Conventions
-----------
- An epoch is a number that its results file, or a folder of it, has in its name.
- The best of many epochs looks better than it is, because it was chosen on the same images. A verdict about
  it allows for the choice.
"""

from boxscore._utils.lazy import lazy_imports

with lazy_imports(__name__):
    from boxscore.extensions.epochs.curve import EpochCurve as EpochCurve
    from boxscore.extensions.epochs.curve import epoch_curve as epoch_curve
    from boxscore.extensions.epochs.files import EpochFiles as EpochFiles
    from boxscore.extensions.epochs.files import find_epochs as find_epochs
