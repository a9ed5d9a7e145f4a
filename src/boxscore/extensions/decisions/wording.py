"""State which detector of a comparison is better, by how much and how sure, and suggest the next step.

Conventions
-----------
- Sentences follow from the verdicts of the comparison; no other rule decides.
- All are about the first summary metric. For a metric that falls as detectors improve, the detector with the
  lower value is ahead.
- An answer has a statement, a link to a section of the page, and the next step in a terminal.
- Numbers have three decimals, and more where rounding would contradict the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from boxscore._utils.text import MOST_DECIMALS, counted, enumerated, fixed, signed_text
from boxscore.extensions.decisions.compare import TOO_FEW, DetectorComparison
from boxscore.extensions.diagnostics.ties import decided_by_ties
from boxscore.extensions.large.questions import source_of
from boxscore.extensions.weights.resampling import LEAST_UNITS

MOST_NAMED = 5
"""Maximum detectors or classes named in a sentence."""

LONGEST_NAME = 60

DECIDED = ("better", "worse")


class Answer(NamedTuple):
    """A sentence about a comparison, and the action that it ends in."""

    statement: str
    link: str = ""
    """Text of a link on the page."""
    anchor: str = ""
    """Section that the link leads to."""
    command: str = ""
    """The next step in a terminal."""

    @property
    def text(self) -> str:
        """Return the statement with the next step in a terminal."""
        return f"{self.statement} {self.command}".strip()


def answers(comparison: DetectorComparison) -> list[Answer]:
    """State who is better and how sure that is, in which classes, and the next step.

    Returns
    -------
    list of Answer
        The first one is the verdict. Empty without metrics.
    """
    if not comparison.metrics:
        return []
    ranked = _ranked(comparison)
    if len(ranked) < 2:
        metric = comparison.metrics[0]
        return [Answer(f"{metric} is undefined for all detectors but one, so nothing can be compared.")]
    return [
        _verdict(comparison, ranked),
        *_more_images(comparison, ranked),
        *_rest(comparison, ranked),
        *_other_metrics(comparison, ranked),
        *_classes(comparison),
        *_doubts(comparison, ranked),
    ]


def difference_text(comparison: DetectorComparison, row: int, column: int) -> str:
    """Write a difference of two detectors: ``+0.039 (95% interval +0.002 to +0.077, p = 0.036)``."""
    how, behind = comparison.resampling, list[str]()
    delta, low, high, p_value, _ = (values[row, column, 0] for values in comparison.pairs)
    if np.isfinite([low, high]).all():
        behind.append(f"{100 * how.confidence:.4g}% interval {signed_text(low)} to {signed_text(high)}")
    if np.isfinite(p_value):
        behind.append(f"p = {p_text(p_value, how.level)}")
    return signed_text(delta) + f" ({', '.join(behind)})" * bool(behind)


def p_text(value: float, level: float) -> str:
    """Write a p-value with three decimals, or as many as show on which side of the level it is."""
    digits = 3
    while digits < MOST_DECIMALS and (round(value, digits) <= level) != (value <= level):
        digits += 1
    return fixed(value, digits)


def classes_ahead(comparison: DetectorComparison) -> str:
    """Name the classes in which another detector is ahead of the overall leader."""
    # Without a defined, unique leader, no class can flip the ranking.
    if not comparison.metrics or not len(comparison.classes):
        return ""
    values, sign = comparison.scores[:, 0], _sign(comparison)
    if np.isfinite(values).sum() < 2:
        return ""
    # Express all detectors as differences from the first, whose own row is 0.
    delta = sign * comparison.per_class.delta[:, 0]  # [O,K], other minus first
    of_class = np.vstack([np.zeros_like(delta[:1]), np.where(np.isfinite(delta), delta, -np.inf)])
    known = np.isfinite(delta).any(axis=0)
    best = int(np.nanargmax(sign * values))
    if np.nanmax(sign * np.delete(values, best)) == sign * values[best]:
        return ""
    # The ranking flips in a class if another detector is ahead of the overall best.
    gain = of_class.max(axis=0) - of_class[best]
    turned = np.flatnonzero(known & (gain > 0) & np.isfinite(gain))
    name = short_name(comparison.names[best])
    of = counted(int(known.sum()), "class")
    if not len(turned):
        return f"The ranking is the same in every class: {name} is ahead or equal in all {of}."
    # Sort by descending gain.
    order = turned[np.argsort(-gain[turned], kind="stable")]
    many = len(comparison.names) > 2
    leaders = of_class.argmax(axis=0)
    by = [f"{short_name(comparison.names[leader])}, " if many else "" for leader in leaders.tolist()]
    named = [
        f"{short_name(comparison.classes[k])} ({by[k]}by {fixed(gain[k], 3)})"
        for k in order[:MOST_NAMED].tolist()
    ]
    more = f" and {len(order) - MOST_NAMED:,} more" if len(order) > MOST_NAMED else ""
    another = "another detector" if many else short_name(comparison.names[1 - best])
    said = (
        f"The ranking flips in {len(order):,} of {of}, where {another} is ahead of {name}: "
        f"{', '.join(named)}{more}."
    )
    if many:
        return said
    count = int(np.isin(comparison.per_class.verdict[0, 0, turned], DECIDED).sum())
    return (
        f"{said} The difference decides in {count:,} of them." if count else f"{said} None of them decides."
    )


def short_name(name: str) -> str:
    """Cut a long name."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def named_list(names: Sequence[str]) -> str:
    """List names, at most a few of them."""
    if len(names) > MOST_NAMED:
        return ", ".join(names[:MOST_NAMED]) + f" and {len(names) - MOST_NAMED:,} more"
    return enumerated(names)


def _sign(comparison: DetectorComparison) -> float:
    return -1.0 if comparison.lower_is_better[0] else 1.0


def _ranked(comparison: DetectorComparison) -> list[int]:
    """Rank the detectors by the first metric; ties keep the given order, undefined ones are left out."""
    values = comparison.scores[:, 0]
    defined = np.flatnonzero(np.isfinite(values))
    ranked: list[int] = defined[np.argsort(-_sign(comparison) * values[defined], kind="stable")].tolist()
    return ranked


# ---------------------------------------------------------------- answers


def _verdict(comparison: DetectorComparison, ranked: Sequence[int]) -> Answer:
    """Name the best detector and its lead over the second; or those that the data cannot tell from it."""
    names = [short_name(name) for name in comparison.names]
    metric, values, pairs = comparison.metrics[0], comparison.scores[:, 0], comparison.pairs
    best, second, many = ranked[0], ranked[1], len(comparison.names) > 2
    word = pairs.verdict[best, second, 0]
    numbers = f"{metric} {fixed(values[best], 3)} against {fixed(values[second], 3)}"
    apart = f"{numbers}, {difference_text(comparison, best, second)}"
    anchor, link = ("pairs", "Compare every pair") if many else ("metrics", "See every metric")
    if word == "better":
        title = f"is the best of {len(names)} detectors, ahead of" if many else "is better than"
        said = f"{names[best]} {title} {names[second]}: {apart}."
        return Answer(said, link, anchor, "To see the images that it wins and loses, add --report FOLDER.")
    if word == TOO_FEW:
        unit = "image" if comparison.resampling.group is None else "group"
        units = counted(int(comparison.intervals.images[best, 0]), unit)
        said = f"{units} with objects are too few to tell which detector is better: {apart}."
        return Answer(said, link, anchor, f"Compare on {LEAST_UNITS} {unit}s or more.")
    if values[best] == values[second]:
        equal = [names[i] for i in ranked if values[i] == values[best]]
        said = f"{named_list(equal)} have the same {metric}, {fixed(values[best], 3)}."
        return Answer(said, link, anchor)
    alike = [names[i] for i in ranked if i == best or not pairs.significant[best, i, 0]]
    said = f"The data cannot tell which of {named_list(alike)} is {'best' if len(alike) > 2 else 'better'}"
    return Answer(f"{said}: {apart}.", link, anchor)


def _more_images(comparison: DetectorComparison, ranked: Sequence[int]) -> list[Answer]:
    """Say how to plan, if the data cannot tell which of the two best detectors is better."""
    best, second = ranked[:2]
    undecided = comparison.pairs.verdict[best, second, 0] in ("cannot tell", TOO_FEW)
    if not undecided or not comparison.pairs.delta[best, second, 0]:
        return []
    two = f" {short_name(comparison.names[best])} and {short_name(comparison.names[second])}"
    of_two = two * (len(comparison.names) > 2)
    return [Answer(f"To see how many images such a difference needs, compare{of_two} with --plan.")]


def _rest(comparison: DetectorComparison, ranked: Sequence[int]) -> list[Answer]:
    """Name the detectors that are worse than the leader, among three or more."""
    if len(ranked) < 3:
        return []
    best, second, pairs = ranked[0], ranked[1], comparison.pairs
    worse = [
        f"{short_name(comparison.names[i])}, {difference_text(comparison, i, best)}"
        for i in ranked[2:]
        if pairs.significant[i, best, 0]
    ]
    name = short_name(comparison.names[best])
    more = f" and {len(worse) - MOST_NAMED:,} more" if len(worse) > MOST_NAMED else ""
    also = "Also worse" if pairs.significant[second, best, 0] else "Worse"
    said = f"{also} than {name}: {'; '.join(worse[:MOST_NAMED])}{more}."
    if not worse:
        said = f"The data cannot tell whether any other detector is worse than {name}."
    return [Answer(said, "See the images where they differ most", "differing")]


def _other_metrics(comparison: DetectorComparison, ranked: Sequence[int]) -> list[Answer]:
    """Count the other metrics with each verdict on the one of two detectors that is ahead."""
    if len(comparison.names) > 2 or len(comparison.metrics) < 2:
        return []
    words = comparison.pairs.verdict[ranked[0], ranked[1], 1:]
    defined = np.isfinite(comparison.pairs.delta[ranked[0], ranked[1], 1:])
    count = {word: int(((words == word) & defined).sum()) for word in DECIDED}
    name, of = short_name(comparison.names[ranked[0]]), f"the other {counted(int(defined.sum()), 'metric')}"
    left = int(defined.sum()) - sum(count.values())
    if not comparison.pairs.delta[ranked[0], ranked[1]][np.append(True, defined)].any():
        return [Answer(f"By {of}, both are equal too: check that the files differ.")]
    parts = [f"{word} in {number:,}" for word, number in count.items() if number]
    parts += [f"the data cannot tell in {left:,}"] if left else []
    said = (
        f"By {of}, {name} is {enumerated(parts)}" if sum(count.values()) else f"By {of}, {enumerated(parts)}"
    )
    return [Answer(f"{said}. Decide by one metric that you choose before you look.")]


def _classes(comparison: DetectorComparison) -> list[Answer]:
    """Name the classes in which the other of two detectors is better or worse, and count the rest.

    With three or more, name those in which another one is ahead of the best.
    """
    if len(comparison.classes) < 2:
        return []
    action = "Sort all classes", "classes", "To list all classes, add --per-class."
    if len(comparison.names) > 2:
        said = classes_ahead(comparison)
        return [Answer(said, *action)] if said else []
    part = comparison.per_class.take(0, 0)
    known = np.isfinite(part.delta)
    if not part.delta[known].any():
        return []
    size = np.where(known, np.abs(part.delta), -np.inf)
    order = np.argsort(-size, kind="stable")
    name = short_name(comparison.others[0])
    named = {
        word: [
            f"{short_name(comparison.classes[k])} ({signed_text(float(part.delta[k]))})"
            for k in order.tolist()
            if known[k] and part.verdict[k] == word
        ]
        for word in DECIDED
    }
    total, decided = int(known.sum()), sum(map(len, named.values()))
    if decided:
        parts = [f"{word} in {named_list(classes)}" for word, classes in named.items() if classes]
        left = total - decided
        rest = f"; the data cannot tell in the other {left:,}" if left else ""
        said = f"By class, {name} is {' and '.join(parts)}{rest}."
    else:
        delta = float(part.delta[order[0]])
        ahead = f"{name} is {abs(delta):.3f} {'higher' if delta > 0 else 'lower'}"
        largest = f"{short_name(comparison.classes[order[0]])} ({ahead})"
        said = f"The data cannot tell in any single class of {total:,}; the largest difference is {largest}."
    return [Answer(said, *action)]


def _doubts(comparison: DetectorComparison, ranked: Sequence[int]) -> list[Answer]:
    """Say what could make the verdict void: the order of equal scores, or too few resamples."""
    doubts, (best, second) = list[Answer](), ranked[:2]
    results, how = list(comparison.evaluations.values()), comparison.resampling
    row = next(row for row in results[0].protocol.rows if row.key == comparison.metrics[0])
    known = row.metric == "AP" and all(source_of(results[i]).is_here for i in (best, second))
    differ = bool(comparison.pairs.delta[best, second, 0])
    if differ and known and decided_by_ties(results[best], results[second], row.key):
        said = "Another order of equal scores could reverse this: export scores with more digits."
        doubts.append(Answer(said, command="boxscore ties prints the range of each detector."))
    pairs = how.pairs
    if how.test == "swap" and (how.resamples + 1) * how.level < pairs:
        needed = int(np.ceil(2 * pairs / (1 - how.confidence) / 1000)) * 1000
        said = f"{how.resamples:,} resamples are too few for {counted(pairs, 'pair')} of detectors"
        doubts.append(Answer(f"{said}: use --resamples {needed}."))
    return doubts
