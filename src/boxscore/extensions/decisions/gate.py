"""A gate for pipelines: whether metrics meet their bounds.

Conventions
-----------
- A result is the JSON object that ``boxscore evaluate --output json`` prints and a report folder holds as
  ``result.json``.
- An undefined metric meets no bound. A result with values that no evaluation gives (infinite, above 1) is
  refused.
- A bound on a class is ``CLASS METRIC=NUMBER``: the last word before the last ``=`` is the metric, all before
  it the class, with or without quotes around it.
- A baseline must have been made under the same protocol: its signature must be equal except for the
  version. Otherwise a drop could come from a change of rules.
- A baseline must be of the same images and classes, and define the same metrics: what it lacks fails. Results
  of older versions do not say which images; then their number must be the same, and a warning says so.
- Against a baseline's numbers, a metric fails when it is worse by more than the tolerance.
- Against a baseline's detections, it fails when the drop is more than chance: by the swap test
  (:mod:`boxscore.extensions.decisions.swapping`), of drops alone and adjusted for all metrics that are
  checked. At the default confidence one in twenty of equal detectors fails, however many metrics there are.
- With a tolerance it fails when the whole interval of the difference lies below it: a margin cannot be
  exchanged. That is not adjusted for the number of metrics.
- A gate that looks at every commit spends its level over the looks that a history records
  (:mod:`boxscore.extensions.decisions.sequential`): then equal detectors ever fail with the probability of
  the level.
- Too few images to tell are no failure, and the result says so.
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
from boxscore.extensions.decisions.compare import TOO_FEW
from boxscore.protocols.metric_names import metric_named

if TYPE_CHECKING:
    from boxscore.extensions.decisions.compare import DetectorComparison
    from boxscore.extensions.decisions.sequential import DropSoFar

_ADVICE = "write it with boxscore evaluate --output json"

HIGHEST = 1 + 1e-9
"""No metric is higher, but for the last bits of a sum."""

NO_ERROR = "absent from the input"
"""The rule for an error in the input."""

COUNTS = ("class", "ground_truths", "ignored", "detections", "true_positives")
"""Keys of a class in a result that are no metrics."""

Values = Mapping[str, "float | None"]


@dataclasses.dataclass(frozen=True)
class Result:
    """What is checked; the classes are read when a bound asks for one."""

    metrics: Values
    signature: str
    read_classes: Callable[[], Mapping[str, Values]]
    lower_is_better: frozenset[str] = frozenset()
    """Metrics, by key, that fall when a detector gets better: miss rates."""
    images: int | None = None
    images_digest: str = ""
    """How many images there are and which; unknown in some results."""


class Bound(NamedTuple):
    """What a metric is compared with; of all classes together where ``class_name`` is None."""

    metric: str
    number: float
    class_name: str | None = None


class Check(NamedTuple):
    """One bound and whether it is met."""

    metric: str
    value: float | None
    rule: str
    passed: bool
    class_name: str | None = None
    baseline: float | None = None
    low: float | None = None
    """Ends of the interval of the difference to the baseline, where there is one."""
    high: float | None = None
    p_value: float | None = None
    """Of the drop, adjusted for all metrics that are checked."""
    undecided: bool = False
    """Whether there are too few images to tell; that passes."""

    @property
    def title(self) -> str:
        """Name what is checked, the class first."""
        return self.metric if self.class_name is None else f"{self.class_name} {self.metric}"

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        values = self._asdict()
        return {"class": values.pop("class_name"), **values}


def result_of(evaluation: Evaluation) -> Result:
    """Return what is checked of an evaluation."""

    # Metrics of classes are made only if a bound of a class asks for them.
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
        evaluation.image_count,
        evaluation.image_fingerprint,
    )


def read_result(path: Path) -> Result:
    """Read a result in JSON, and check that it is one."""
    # Repeated keys would hide a value, so they are refused.
    try:
        result = json_once(read_bytes(path).decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise FileFormatError(f"{path}: a result must be JSON, each key once; {_ADVICE}.") from None
    # Check what is used of the file; classes are checked when they are read.
    metrics: Any = result.get("metrics") if isinstance(result, dict) else None
    if not _are_numbers(metrics) or not isinstance(result.get("signature"), str):
        raise FileFormatError(f"{path}: a result must have metrics and a signature; {_ADVICE}.")
    _check_values(metrics, str(path))
    # Older results lack some of these; they then say less, and are not refused.
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
                f"{path}: a result must have per_class, a row for each class with its metrics; {_ADVICE}."
            )
        _check_values(values, f"class {name!r} of {path}")
        classes[name] = values
    return classes


def _are_numbers(values: Any) -> bool:
    return isinstance(values, dict) and all(v is None or type(v) in (int, float) for v in values.values())


def is_value(value: Any) -> bool:
    """Whether an evaluation may give this as a metric: a number in [0, 1], or None."""
    return value is None or (type(value) in (int, float) and 0 <= value <= HIGHEST)


def _check_values(values: Values, place: str) -> None:
    for name, value in values.items():
        if not is_value(value):  # no evaluation gives it: a bound says nothing
            rule, got = "be a number in [0, 1], or null", f"{value!s:.40}"
            raise FileFormatError(name, rule, got=got, place=place, cause=_ADVICE)


def json_once(text: str | bytes) -> Any:
    """Read JSON; a key that comes twice is a ValueError, for readers differ in which they take."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key comes twice")
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once)


def parse_bound(text: str, result: Result, *, name: str) -> Bound:
    """Read ``AP=0.35``, or ``person AP=0.35``; the metric and the class must be known."""
    # The last = separates, since names of classes may have one.
    target, sign, number = text.rpartition("=")
    if not sign:
        raise InputError(name, "have the form METRIC=NUMBER, or CLASS METRIC=NUMBER", got=repr(text))
    target = target.strip()
    class_text, _, metric = target.rpartition(" ")
    class_name = None
    # A metric of the whole wins; else the last word is the metric of the class before it.
    if target not in result.metrics and class_text:
        known = result.read_classes()
        class_name = _class_named(class_text, known, name)
        metric = metric_named(metric, list(known[class_name]), option=f"{name}, the metric of a class")
    else:
        metric = metric_named(target, list(result.metrics), option=name)
    try:
        value = float(number)
    except ValueError:
        raise InputError(name, "end in a number", got=repr(text)) from None
    # A bound beyond 0..1 is mostly a percentage.
    if not 0 <= value <= 1:
        cause = f"is {value / 100:g} meant, in place of per cent?" if 1 < value <= 100 else ""
        raise InputError(
            f"{name} {target}", f"be a number: {metric} is between 0 and 1", got=number.strip(), cause=cause
        )
    return Bound(metric, value, class_name)


def _class_named(text: str, known: Mapping[str, Values], name: str) -> str:
    """Find a class as it is written, without the blanks around it, or without its quotes."""
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
    """Compare metrics with bounds; both ends are allowed values."""
    done = []
    for bounds, sign in ((minimum, ">="), (maximum, "<=")):
        for metric, bound, class_name in bounds:
            values = result.metrics if class_name is None else result.read_classes()[class_name]
            value = _defined(values[metric])
            met = value is not None and (value >= bound if sign == ">=" else value <= bound)
            done.append(Check(metric, value, f"{sign} {bound:g}", met, class_name))
    return done


def check_input(errors: Iterable[str], *, of: str = "") -> list[Check]:
    """Return a failed check for each error in the input, by its code; ``of`` says whose."""
    return [Check(f"{code} ({of})" if of else code, None, NO_ERROR, False) for code in errors]


def check_baseline(
    result: Result,
    baseline: Result,
    *,
    tolerance: float = 0.0,
    only: Sequence[str] = (),
    place: str = "the baseline",
) -> list[Check]:
    """Check that no metric, or none of ``only``, is worse than in a baseline by more than the tolerance.

    A miss rate is worse when it is higher, any other metric when it is lower.
    """
    if not same_rules(result.signature, baseline.signature):
        raise InputError(
            "a baseline",
            f"have the signature {result.signature}",
            got=baseline.signature,
            place=place,
            cause="scores under two protocols do not compare",
        )
    # Check every metric that either side has: one that vanished is a failure, not a pass.
    known = list(dict.fromkeys([*result.metrics, *baseline.metrics]))
    chosen = [metric_named(key, known, option="--metrics") for key in only]
    done = _check_same_data(result, baseline)
    compared = False
    for key in chosen or known:
        before, value = _defined(baseline.metrics.get(key)), _defined(result.metrics.get(key))
        if before is None and value is None:
            continue  # undefined on both sides, such as APs without small objects
        compared = True
        if before is None:
            done.append(Check(key, value, "in the baseline, which lacks it", False))
            continue
        # Worse means higher for metrics that fall, else lower.
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
        raise InputError("a baseline", "define a metric to compare", got=sorted(got), place=place)
    return done


def _check_same_data(result: Result, baseline: Result) -> list[Check]:
    """Return a failed check for images, and for classes, that are not those of the baseline."""
    done = []
    # The count of images first, then their digest; without digests equal counts prove nothing.
    new, old = result.images, baseline.images
    if new is not None and old is not None and new != old:
        done.append(Check("images", new, f"{old} (baseline)", False, baseline=old))
    elif result.images_digest and baseline.images_digest not in ("", result.images_digest):
        done.append(Check("images", new, "the baseline's, and are others", False, baseline=old))
    elif new is not None and new == old and not (result.images_digest and baseline.images_digest):
        which = "the baseline" if result.images_digest else "the result"
        warn_user(
            f"{which} says how many images it is of, not which: they may be others. "
            f"W{_ADVICE[1:]} of this version."
        )
    # Other classes mean another mean, even over the same images.
    try:
        names, baseline_names = list(result.read_classes()), list(baseline.read_classes())
    except FileFormatError:  # a result of metrics alone
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
    """Check that no metric of a comparison's first other is significantly worse than that of its first.

    Without a tolerance by the swap test; with one, where the whole interval of the difference lies beyond it.
    """
    done = []
    # Without tolerance, the test under exchanged results is the sharper one.
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
        # Too few images decide nothing: the check passes and says so.
        few = total.verdict[row] == TOO_FEW or (not exchanged and low is None)
        undecided = value is not None and few
        if undecided:
            met = True
        # By the test, or by the end of the interval that matters.
        elif exchanged:
            met = value is not None and p_value is not None and p_value > how.level
        elif falls:
            met = value is not None and low is not None and low <= tolerance
        else:
            met = value is not None and high is not None and high >= -tolerance
        done.append(Check(metric, value, rule, met, None, before, low, high, p_value, undecided))
    if not done:
        raise InputError("a baseline", "define a metric to compare", got="none", place=place)
    return done


def check_drop(
    drop: DropSoFar,
    *,
    look: int,
    level: float,
    lower_is_better: frozenset[str] = frozenset(),
    place: str = "the baseline",
) -> Check:
    """Check that one metric is not significantly worse than that of a baseline, at one look of many."""
    before, value = _defined(drop.first), _defined(drop.other)
    if before is None:
        raise InputError("a baseline", f"define {drop.metric}", got="none", place=place)
    change = "rise" if drop.metric in lower_is_better else "drop"
    rule = f"no significant {change} from {before:.4f}, look {look}"
    met = value is not None and drop.p_value > level
    return Check(drop.metric, value, rule, met, baseline=before, p_value=drop.p_value)


def _defined(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def same_rules(signature: str, other: str) -> bool:
    """Whether two signatures are equal except for the version."""
    first, second = (
        [part for part in each.split("|") if not part.startswith("v:")] for each in (signature, other)
    )
    return first == second
