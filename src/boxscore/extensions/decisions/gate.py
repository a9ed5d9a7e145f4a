"""Check whether metrics meet their bounds: a gate for CI pipelines.

Conventions
-----------
- A result is the JSON object that ``boxscore evaluate --output json`` prints and that a report folder
  contains as ``result.json``.
- An undefined metric does not meet any bound. A result with impossible values (infinite, above 1) is
  rejected.
- A bound on a class is ``CLASS METRIC=NUMBER``: the last word before the last ``=`` is the metric, everything
  before it the class, with or without quotes.
- A baseline must use the same protocol: its signature must be equal except for the version. Otherwise a drop
  could result from a change of rules.
- A baseline must have the same images and classes, and define the same metrics; anything missing fails.
  Results of older versions do not identify their images; then the number of images must be the same, and a
  warning says so.
- Compared with a baseline's numbers, a metric fails if it is worse by more than the tolerance.
- Compared with a baseline's detections, it fails if the drop is significant: by a one-sided swap test
  (:mod:`boxscore.extensions.decisions.swapping`), adjusted for all checked metrics. At the default
  confidence, one in twenty comparisons of equal detectors fails, for any number of metrics.
- With a tolerance, it fails if the whole interval of the difference is below it, because the swap test cannot
  take one. This is not adjusted for the number of metrics.
- A gate that runs at every commit distributes its level over the looks that a history records
  (:mod:`boxscore.extensions.decisions.sequential`). Equal detectors then fail at any commit with at most the
  probability of the level.
- Too few images for a decision do not fail, and the result says so.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boxscore._utils import checks
from boxscore._utils.files import read_bytes
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.class_names import ambiguous
from boxscore.errors import FileFormatError, InputError
from boxscore.evaluation import Evaluation
from boxscore.evaluation.result import COUNTS_AT_SCORE
from boxscore.extensions.decisions.compare import TOO_FEW
from boxscore.protocols.metric_names import metric_named

if TYPE_CHECKING:
    from boxscore.extensions.decisions.compare import DetectorComparison
    from boxscore.extensions.decisions.sequential import DropSoFar

_ADVICE = "write it with boxscore evaluate --output json"

HIGHEST = 1 + 1e-9
"""Upper limit of a metric, with tolerance for rounding."""

NO_ERROR = "absent from the input"
"""The rule for an error in the input."""

COUNTS = ("class", "ground_truths", "ignored", "detections", "true_positives", *COUNTS_AT_SCORE)
"""Keys of a class in a result that are not metrics."""

Values = Mapping[str, "float | None"]


@dataclasses.dataclass(frozen=True)
class Result:
    """The result to check; classes are read when a bound needs one."""

    metrics: Values
    signature: str
    read_classes: Callable[[], Mapping[str, Values]]
    lower_is_better: frozenset[str] = frozenset()
    """Keys of metrics that fall as detectors improve: miss rates."""
    images: int | None = None
    images_digest: str = ""
    """Number and digest of the images; unknown in some results."""


class Bound(NamedTuple):
    """A bound of a metric; for all classes together if ``class_name`` is None."""

    metric: str
    number: float
    class_name: str | None = None


class Check(NamedTuple):
    """A bound, and whether it is met."""

    metric: str
    value: float | None
    rule: str
    passed: bool
    class_name: str | None = None
    baseline: float | None = None
    low: float | None = None
    """Ends of the interval of the difference from the baseline, if there is one."""
    high: float | None = None
    p_value: float | None = None
    """P-value of the drop, adjusted for all checked metrics."""
    undecided: bool = False
    """Whether there are too few images for a decision, which passes."""

    @property
    def title(self) -> str:
        """Name the check, the class first."""
        return self.metric if self.class_name is None else f"{self.class_name} {self.metric}"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        values = self._asdict()
        return {"class": values.pop("class_name"), **values}


def result_of(evaluation: Evaluation) -> Result:
    """Return the result of an evaluation in the form that is checked."""

    # Compute the metrics of classes only if a bound needs them.
    def classes() -> dict[str, dict[str, float | None]]:
        columns = {name: values.tolist() for name, values in evaluation.class_values.items()}
        return {
            label: {name: column[row] for name, column in columns.items()}
            for row, label in enumerate(evaluation.labels)
        }

    return Result(
        evaluation.metrics,
        evaluation.signature,
        classes,
        frozenset(evaluation.protocol.lower_is_better),
        evaluation._image_count,
        evaluation._image_fingerprint,
    )


def read_result(path: Path) -> Result:
    """Read a result from JSON, and validate it."""
    # Repeated keys would hide a value, so reject them.
    try:
        result = json_once(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise FileFormatError(
            f"{path}: not a valid result: must be JSON without repeated keys; {_ADVICE}."
        ) from None
    # Validate what is used of the file; classes are validated when they are read.
    metrics: Any = result.get("metrics") if isinstance(result, dict) else None
    if not _are_numbers(metrics) or not isinstance(result.get("signature"), str):
        raise FileFormatError(f"{path}: not a valid result: metrics or signature missing; {_ADVICE}.")
    _check_values(metrics, str(path))
    # Older results lack some of these keys, and are accepted.
    rows = result.get("per_class")
    falls = result.get("lower_is_better", [])
    counts, digest = result.get("counts"), result.get("images_digest")
    images = counts.get("images") if isinstance(counts, dict) else None
    return Result(
        metrics,
        result["signature"],
        lambda: _classes(rows, path),
        frozenset(key for key in falls if isinstance(key, str)) if isinstance(falls, list) else frozenset(),
        images if type(images) is int else None,
        digest if isinstance(digest, str) else "",
    )


def _classes(rows: Any, path: Path) -> dict[str, Values]:
    """Read the classes of a result."""
    classes: dict[str, Values] = {}
    for row in rows if isinstance(rows, list) else [None]:
        entries = row if isinstance(row, dict) else {}
        name = entries.get("class")
        values = {key: value for key, value in entries.items() if key not in COUNTS}
        if not isinstance(name, str) or not _are_numbers(values) or name in classes:
            raise FileFormatError(
                f"{path}: not a valid result: per_class must have one row per class with its metrics; "
                f"{_ADVICE}."
            )
        _check_values(values, f"class {name!r} of {path}")
        classes[name] = values
    return classes


def _are_numbers(values: Any) -> bool:
    return isinstance(values, dict) and all(v is None or type(v) in (int, float) for v in values.values())


def is_value(value: Any) -> bool:
    """Return whether an evaluation can give this value as a metric: a number in [0, 1], or None."""
    return value is None or (type(value) in (int, float) and 0 <= value <= HIGHEST)


def _check_values(values: Values, place: str) -> None:
    for name, value in values.items():
        # An evaluation cannot give this value, so a bound would be meaningless.
        if not is_value(value):
            rule, got = "be a number in [0, 1], or null", f"{value!s:.40}"
            raise FileFormatError(name, rule, got=got, place=place, cause=_ADVICE)


def json_once(text: str | bytes) -> Any:
    """Parse JSON; raise ValueError for repeated keys, which readers treat differently."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key is repeated")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once)


def parse_bound(text: str, result: Result, *, name: str) -> Bound:
    """Parse ``AP=0.35`` or ``person AP=0.35``; the metric and the class must be known."""
    # Split at the last =, because class names may contain one.
    target, sign, number = text.rpartition("=")
    if not sign:
        raise InputError(name, "have the form METRIC=NUMBER, or CLASS METRIC=NUMBER", got=repr(text))
    target = target.strip()
    class_text, _, metric = target.rpartition(" ")
    class_name = None
    # Prefer an overall metric; otherwise the last word is the metric of the class before it.
    if target not in result.metrics and class_text:
        known = result.read_classes()
        class_name = _find_class(class_text, known, name)
        metric = metric_named(metric, list(known[class_name]), option=f"{name}, the metric of a class")
    else:
        metric = metric_named(target, list(result.metrics), option=name)
    try:
        value = float(number)
    except ValueError:
        raise InputError(name, "end in a number", got=repr(text)) from None
    # A bound outside 0..1 is usually a percentage.
    if not 0 <= value <= 1:
        cause = f"did you mean {value / 100:g}? Percentages are not accepted" if 1 < value <= 100 else ""
        raise InputError(
            f"{name} {target}", f"be a number from 0 to 1 for {metric}", got=number.strip(), cause=cause
        )
    return Bound(metric, value, class_name)


def _find_class(text: str, known: Mapping[str, Values], name: str) -> str:
    """Find a class as written, without surrounding blanks, or without its quotes."""
    bare = text.strip()
    unquoted = bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"" else bare
    for each in (text, bare, unquoted):
        if each in known:
            return each
    several = [label for label in known if label.startswith(f"{unquoted} (") and label.endswith(")")]
    if len(several) > 1:
        raise ambiguous(unquoted, several, what=f"{name}, the class")
    got, cause = repr(unquoted), checks.did_you_mean(unquoted, known)
    raise InputError(f"{name}, the class", "be in the result", got=got, cause=cause)


def check_bounds(
    result: Result, *, minimum: Sequence[Bound] = (), maximum: Sequence[Bound] = ()
) -> list[Check]:
    """Compare metrics with bounds, which are inclusive."""
    done = []
    for bounds, sign in ((minimum, ">="), (maximum, "<=")):
        for metric, bound, class_name in bounds:
            values = result.metrics if class_name is None else result.read_classes()[class_name]
            value = _defined(values[metric])
            met = value is not None and (value >= bound if sign == ">=" else value <= bound)
            done.append(Check(metric, value, f"{sign} {bound:g}", met, class_name))
    return done


def check_input(errors: Iterable[str], *, of: str = "") -> list[Check]:
    """Return a failed check for each error in the input, by its code; ``of`` names the input."""
    return [Check(f"{code} ({of})" if of else code, None, NO_ERROR, False) for code in errors]


def check_baseline(
    result: Result,
    baseline: Result,
    *,
    tolerance: float = 0.0,
    only: Sequence[str] = (),
    place: str = "the baseline",
) -> list[Check]:
    """Check that no metric, or none of ``only``, is worse than the baseline's by more than the tolerance.

    A miss rate is worse if it is higher, any other metric if it is lower.
    """
    if not same_rules(result.signature, baseline.signature):
        raise InputError(
            "a baseline",
            f"have the signature {result.signature}",
            got=baseline.signature,
            place=place,
            cause="results of different protocols cannot be compared",
        )
    # Check every metric that either side has: a missing metric fails.
    known = list(dict.fromkeys([*result.metrics, *baseline.metrics]))
    chosen = [metric_named(key, known, option="--metrics") for key in only]
    done = _check_same_data(result, baseline)
    compared = False
    for key in chosen or known:
        before, value = _defined(baseline.metrics.get(key)), _defined(result.metrics.get(key))
        if before is None and value is None:
            # Undefined on both sides, such as APs without small objects.
            continue
        compared = True
        if before is None:
            done.append(Check(key, value, "in the baseline (missing there)", False))
            continue
        # Worse means higher for metrics that fall as detectors improve, otherwise lower.
        falls = key in result.lower_is_better | baseline.lower_is_better
        sign, slack = ("<=", "+") if falls else (">=", "-")
        rule = f"{sign} {before:.4f}" + (f" {slack} {tolerance:g}" if tolerance else "") + " (baseline)"
        if falls:
            met = value is not None and value <= before + tolerance
        else:
            met = value is not None and value >= before - tolerance
        done.append(Check(key, value, rule, met, baseline=before))
    if not compared:
        got = [key for key, value in baseline.metrics.items() if _defined(value) is not None]
        raise InputError("a baseline", "have a defined metric to compare", got=sorted(got), place=place)
    return done


def _check_same_data(result: Result, baseline: Result) -> list[Check]:
    """Return a failed check for images, and for classes, that differ from the baseline's."""
    done = []
    # Compare the number of images first, then their digest; without digests, equal numbers prove nothing.
    new, old = result.images, baseline.images
    if new is not None and old is not None and new != old:
        done.append(Check("images", new, f"{old} (baseline)", False, baseline=old))
    elif result.images_digest and baseline.images_digest not in ("", result.images_digest):
        done.append(
            Check("images", new, "as many as in the baseline, but different ones", False, baseline=old)
        )
    elif new is not None and new == old and not (result.images_digest and baseline.images_digest):
        which = "the baseline" if result.images_digest else "the result"
        warn_user(
            f"{which} records the number of images but not their ids, so the images may differ. "
            f"W{_ADVICE[1:]} of this version."
        )
    # Other classes give another mean, even over the same images.
    try:
        names, baseline_names = list(result.read_classes()), list(baseline.read_classes())
    # A result that has only metrics.
    except FileFormatError:
        return done
    more = [name for name in names if name not in {*baseline_names}]
    fewer = [name for name in baseline_names if name not in {*names}]
    if more or fewer:
        parts = [
            f"{word} {short_list(names, 3)}" for word, names in (("without", more), ("with", fewer)) if names
        ]
        rule = f"the {len(baseline_names)} of the baseline: {' and '.join(parts)}"
        done.append(Check("classes", len(names), rule, False, baseline=len(baseline_names)))
    return done


def check_difference(
    comparison: DetectorComparison,
    *,
    tolerance: float = 0.0,
    place: str = "the baseline",
    lower_is_better: frozenset[str] = frozenset(),
) -> list[Check]:
    """Check that no metric of the comparison's first other is significantly worse than the baseline.

    Without a tolerance, use the swap test; with one, fail if the whole interval of the difference exceeds it.
    """
    done = []
    # Without a tolerance, the swap test is more powerful.
    total, how = comparison.total.take(0), comparison.resampling
    exchanged = tolerance == 0 and how.test == "swap"
    # An undefined baseline cannot become worse.
    for row, metric in enumerate(comparison.metrics):
        before, value, low, high, p_value = (
            _defined(float(column[row]))
            for column in (total.value_first, total.value_other, total.low, total.high, comparison.drops[0])
        )
        if before is None:
            continue
        falls = metric in lower_is_better
        change, slack = ("rise", "+") if falls else ("drop", "-")
        rule = f"no significant {change} from {before:.4f}" + (f" {slack} {tolerance:g}" if tolerance else "")
        # With too few images, the check passes and says so.
        few = total.verdict[row] == TOO_FEW or (not exchanged and low is None)
        undecided = value is not None and few
        if undecided:
            met = True
        # Use the test, or the relevant end of the interval.
        elif exchanged:
            met = value is not None and p_value is not None and p_value > how.level
        elif falls:
            met = value is not None and low is not None and low <= tolerance
        else:
            met = value is not None and high is not None and high >= -tolerance
        done.append(Check(metric, value, rule, met, None, before, low, high, p_value, undecided))
    if not done:
        raise InputError("a baseline", "have a defined metric to compare", got="none", place=place)
    return done


def check_drop(
    drop: DropSoFar,
    *,
    look: int,
    level: float,
    lower_is_better: frozenset[str] = frozenset(),
    place: str = "the baseline",
) -> Check:
    """Check at one look of many that one metric is not significantly worse than a baseline's."""
    before, value = _defined(drop.first), _defined(drop.other)
    if before is None:
        raise InputError("a baseline", f"define {drop.metric}", got="none", place=place)
    # At a level of 0 every drop would pass.
    if not level > 0:
        raise InputError("the level of a look", "be above 0", got=level)
    change = "rise" if drop.metric in lower_is_better else "drop"
    rule = f"no significant {change} from {before:.4f}, run {look}"
    met = value is not None and drop.p_value > level
    return Check(drop.metric, value, rule, met, baseline=before, p_value=drop.p_value)


def _defined(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def same_rules(signature: str, other: str) -> bool:
    """Return whether two signatures are equal except for the version."""
    first, second = (
        [part for part in each.split("|") if not part.startswith("v:")] for each in (signature, other)
    )
    return first == second
