"""Made-up images for thresholds with a guarantee."""

from __future__ import annotations

import numpy as np

from boxscore.extensions.decisions.guarantee import NEVER, Sample


def drawn_sample(random: np.random.Generator, images: int) -> Sample:
    """Draw images that differ: some are hard, so that true positives score low; each has objects."""
    objects, wrong = random.integers(1, 9, images), random.poisson(1.5, images)
    truth_image = np.repeat(np.arange(images), objects)
    hard = random.beta(2, 5, images)[truth_image]
    seen = random.random(len(truth_image)) > 0.05
    truth_score = np.where(seen, random.beta(4, 2, len(truth_image)) * (1 - hard), NEVER)
    false_image = np.repeat(np.arange(images), wrong)
    score = np.concatenate([truth_score[seen], random.beta(2, 5, len(false_image))])
    true = np.arange(len(score)) < seen.sum()
    return Sample(
        *(np.concatenate([truth_image[seen], false_image]), score, true, np.ones(len(score))),
        *(truth_image, truth_score, np.ones(len(truth_image))),
    )
