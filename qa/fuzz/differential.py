"""Score made-up data sets with boxscore and with another program, and look for a difference.

    python qa/fuzz/differential.py --cases 100000 --seed 0

Boxes, masks and keypoints against pycocotools, with the traps of real files (annotation id 0 as a match and
as none, repeated ids, images and classes that are not listed, sides below 0 by rounding), VOC against the slow kit in tests/oracles: every cell must be
equal to the last bit. Boxes against faster-coco-eval too, where it is installed: it is not equal to pycocotools
in the last bits of precision, so there is a tolerance (tests/oracles/faster.py). A difference is shrunk, row by row, and saved in qa/fuzz/corpus, which the tests run.
``--change matching.equal_iou=first`` spoils the protocol, to see that the fuzzer notices.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import hashlib
import json
import math
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests")]

import boxscore  # noqa: E402
from oracles import faster, kit, pycoco  # noqa: E402
from support import cases, instances, traps, voc_cases  # noqa: E402

Record = dict[str, Any]
Changes = dict[str, Any]
CORPUS = HERE / "corpus"

SHARES = {"coco": 0.3, "ties": 0.1, "voc": 0.3, "segm": 0.1, "keypoints": 0.1, "faster": 0.1}
"""Part of the cases that each kind gets."""


BATCH = 500

TRAPPED = ("coco", "ties", "segm", "keypoints")
"""Kinds that get the traps of real files."""


class OracleError(Exception):
    """The other program does not take the case."""


# ---------------------------------------------------------------- cases as JSON


def coco_record(case: cases.Case) -> Record:
    return {
        "kind": "coco",
        "truth": case.truth,
        "results": case.results,
        "caps": list(case.caps),
        "thresholds": list(case.thresholds) if case.thresholds else None,
        "per_class": case.per_class,
    }


def voc_record(case: voc_cases.Case) -> Record:
    return {
        "kind": "voc",
        "images": case.images,
        "objects": [list(item) for item in case.objects],
        "found": [list(item) for item in case.found],
        "protocol": case.protocol,
        "threshold": case.threshold,
        "closed": case.closed,
    }


def tie_record(seed: int) -> Record:
    """Make a crowded line of equal squares: overlaps tie, and which one is taken decides what is left."""
    rng = np.random.default_rng(seed)
    width, images = int(rng.choice([6, 10, 40])), range(1, int(rng.integers(2, 4)))

    def square() -> list[float]:
        return [float(rng.integers(0, 5) * width // 5), 0.0, float(width), float(width)]

    annotations, results = [], []
    for image in images:
        for _ in range(int(rng.integers(1, 6))):
            crowd = int(rng.random() < 0.15)
            area = float(rng.choice([width * width, 1024, 5000]))
            row = {"id": len(annotations) + 1, "image_id": image, "category_id": 1, "bbox": square()}
            annotations.append({**row, "area": area, "iscrowd": crowd})
        for _ in range(int(rng.integers(1, 9))):
            score = float(rng.integers(1, 5)) / 4
            results.append({"image_id": image, "category_id": 1, "bbox": square(), "score": score})
    truth = {
        "images": [{"id": image} for image in images],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "square"}],
    }
    thresholds = [[0.25, 0.5], [0.1, 1 / 3, 3 / 7, 2 / 3], [0.5, 0.75]][int(rng.integers(3))]
    options = {"caps": [1, 10, 100], "thresholds": thresholds, "per_class": True}
    return {"kind": "ties", "truth": truth, "results": results, **options}


def trapped(record: Record) -> Record:
    """Set traps in half of the cases, the same ones in the same case."""
    number = zlib.crc32(json.dumps(record, sort_keys=True).encode())
    if record["kind"] not in TRAPPED or number % 2:
        return record
    truth, results, id_zero = traps.with_traps(
        record["truth"], record["results"], number, per_class=record.get("per_class", True)
    )
    return {**record, "truth": truth, "results": results, "id_zero": id_zero}


def generate(kind: str, count: int, seed: int, take: Callable[[Record], None]) -> None:
    """Make cases of a kind and hand each to ``take``."""
    _generate(kind, count, seed, lambda record: take(trapped(record)))


def _generate(kind: str, count: int, seed: int, take: Callable[[Record], None]) -> None:
    if kind == "ties":
        for number in range(count):
            take(tie_record(seed * 1_000_003 + number))
        return
    if kind in ("segm", "keypoints"):
        make = instances.mask_case if kind == "segm" else instances.keypoint_case
        for number in range(count):
            truth, results = make(seed * 1_000_003 + number)
            take({"kind": kind, "truth": truth, "results": results})
        return
    strategy = voc_cases.voc_cases(inside_out=True) if kind == "voc" else cases.coco_cases()
    record = voc_record if kind == "voc" else coco_record

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def run(case: Any) -> None:
        take({**json.loads(json.dumps(record(case))), "kind": kind})

    run()


# ---------------------------------------------------------------- comparing


def difference(record: Record, folder: Path, changes: Changes | None = None) -> str | None:
    """Say how the two programs differ about a case; None where they do not.

    Raises
    ------
    OracleError
        When the other program does not take the case.
    """
    compare = {"coco": _coco, "ties": _coco, "faster": _faster, "voc": _voc}.get(record["kind"], _instances)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compare(record, folder, changes or {})
        except OracleError:
            raise
        except AssertionError as error:
            return str(error)
        except Exception as error:  # whatever boxscore raises about a legal case is a difference
            return f"boxscore raised {type(error).__name__}: {error}"


def _with(protocol: Record, changes: Changes) -> Record:
    merged = copy.deepcopy(protocol)
    for table, values in changes.items():
        merged[table] = {**merged.get(table, {}), **values}
    return merged


def _coco(record: Record, folder: Path, changes: Changes) -> None:
    _boxes(record, folder, changes, pycoco.run_pycocotools, pycoco.assert_equal_to_pycocotools)


def _faster(record: Record, folder: Path, changes: Changes) -> None:
    _boxes(record, folder, changes, faster.run_faster_coco_eval, faster.assert_close_to_faster_coco_eval)


def _boxes(
    record: Record,
    folder: Path,
    changes: Changes,
    run: Callable[..., Any],
    check: Callable[[Any, Any], None],
) -> None:
    thresholds = tuple(record["thresholds"]) if record["thresholds"] else None
    case = cases.Case(
        record["truth"], record["results"], tuple(record["caps"]), thresholds, record["per_class"]
    )
    truth, protocol = _id_zero(record, case.protocol)
    try:
        reference = run(
            truth, case.results, caps=case.caps, thresholds=case.thresholds, per_class=case.per_class
        )
    except Exception as error:
        raise OracleError from error
    check(boxscore.evaluate(*case.load(folder), protocol=_with(protocol, changes)), reference)


def _id_zero(record: Record, protocol: Record) -> tuple[Record, Record]:
    """What the other program is given, and the protocol under which boxscore says the same."""
    if "id_zero" not in record:
        return record["truth"], protocol
    chosen = _with(protocol, {"matching": {"annotation_id_zero": record["id_zero"]}})
    return traps.truth_as_counted(record["truth"], record["id_zero"]), chosen


def _instances(record: Record, folder: Path, changes: Changes) -> None:
    kind, truth, results = record["kind"], record["truth"], record["results"]
    given, protocol = _id_zero(record, {"extends": instances.PROTOCOLS[kind], "name": "case"})
    try:
        reference = instances.run_pycocotools(given, results, kind)
    except Exception as error:
        raise OracleError from error
    protocol = _with(protocol, changes)
    instances.assert_same_bits(instances.evaluate(folder, truth, results, protocol), reference)


def _voc(record: Record, folder: Path, changes: Changes) -> None:
    case = voc_cases.Case(
        record["images"],
        [kit.Object(image, label, tuple(box), hard) for image, label, box, hard in record["objects"]],
        [kit.Found(image, label, score, tuple(box)) for image, label, score, box in record["found"]],
        record["protocol"],
        record["threshold"],
        record["closed"],
    )
    try:
        expected = case.expected()
    except Exception as error:
        raise OracleError from error
    evaluation = boxscore.evaluate(*_voc_tables(case, folder), protocol=_with(case.rules, changes))
    assert evaluation.labels == case.labels, "classes"
    ours = evaluation.class_values["AP"].tolist()
    assert np.array_equal(ours, expected, equal_nan=True), f"AP {ours} here, {expected} in the kit"
    defined = [value for value in expected if not math.isnan(value)]
    mean = float(np.mean(defined)) if defined else math.nan
    assert np.array_equal(evaluation.metrics["mAP"], mean, equal_nan=True), "mAP"


def _voc_tables(case: voc_cases.Case, folder: Path) -> Any:
    """Make tables of a case; of its files where a box is turned inside out, which arrays may not hold."""
    if all(x1 <= x2 and y1 <= y2 for x1, y1, x2, y2 in (item.box for item in case.found)):
        return voc_cases.tables(case)
    (folder / "voc").mkdir(exist_ok=True)
    truth, results = voc_cases.write(case, folder / "voc")
    ground_truth = boxscore.load_ground_truth(truth, image_set="test")
    return ground_truth, boxscore.load_detections(results, ground_truth)


# ---------------------------------------------------------------- shrinking


def _lists(record: Record) -> list[tuple[Record, str]]:
    if record["kind"] == "voc":
        return [(record, "found"), (record, "objects"), (record, "images")]
    truth = record["truth"]
    return [(record, "results"), *((truth, key) for key in ("annotations", "categories", "images"))]


def _is_whole(record: Record) -> bool:
    """Whether no result means an image that is gone."""
    if record["kind"] == "voc":
        named = {row[0] for row in (*record["objects"], *record["found"])}
        return bool(record["objects"]) and named <= set(record["images"])
    images = {row["id"] for row in record["truth"]["images"]}
    return bool(record["truth"]["categories"]) and all(row["image_id"] in images for row in record["results"])


def shrink(record: Record, folder: Path, changes: Changes | None = None) -> Record:
    """Take out rows, in ever smaller pieces, as long as the two programs still differ."""

    def differs(smaller: Record) -> bool:
        try:
            return _is_whole(smaller) and difference(smaller, folder, changes) is not None
        except OracleError:
            return False

    best, again = record, True
    while again:
        again = False
        for number in range(len(_lists(best))):
            rows = len(_lists(best)[number][0][_lists(best)[number][1]])
            piece = max(1, rows // 2)
            while piece:
                start = 0
                while start < len(_lists(best)[number][0][_lists(best)[number][1]]):
                    smaller = copy.deepcopy(best)
                    owner, key = _lists(smaller)[number]
                    del owner[key][start : start + piece]
                    if differs(smaller):
                        best, again = smaller, True
                    else:
                        start += piece
                piece //= 2
    return best


# ---------------------------------------------------------------- running


@dataclasses.dataclass
class Tally:
    """What a run did: cases by kind, those that the other program refused, and the differences."""

    cases: Counter[str] = dataclasses.field(default_factory=Counter)
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    differences: list[tuple[Record, str]] = dataclasses.field(default_factory=list)


def fuzz(
    kind: str,
    count: int,
    seed: int,
    folder: Path,
    *,
    changes: Changes | None = None,
    tally: Tally | None = None,
    most: int = 20,
) -> Tally:
    """Compare ``count`` cases of a kind; stop taking down differences after ``most``."""
    result = tally or Tally()

    def take(record: Record) -> None:
        if len(result.differences) >= most:
            return
        result.cases[kind] += 1
        try:
            text = difference(record, folder, changes)
        except OracleError:
            result.refused[kind] += 1
            return
        if text is not None:
            result.differences.append((record, text))

    generate(kind, count, seed, take)
    return result


def save(record: Record, text: str, corpus: Path) -> Path:
    """Write a case into the corpus; its name is what it holds."""
    content = {**record, "note": text}
    digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:10]
    path = corpus / f"{record['kind']}-{digest}.json"
    corpus.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def parse_changes(texts: list[str]) -> Changes:
    """Read ``table.key=value`` into a protocol's values; a value is JSON or plain text."""
    changes: Changes = {}
    for text in texts:
        name, _, value = text.partition("=")
        table, _, key = name.partition(".")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = value
        changes.setdefault(table, {})[key] = parsed
    return changes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000, metavar="N")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="S", help="stop after this long")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--kinds", nargs="+", default=list(SHARES), choices=list(SHARES))
    parser.add_argument("--change", nargs="+", default=[], metavar="TABLE.KEY=VALUE")
    parser.add_argument("--corpus", type=Path, default=CORPUS, metavar="DIR")
    parser.add_argument("--most", type=int, default=20, metavar="N", help="differences to take down")
    options = parser.parse_args(arguments)
    if "faster" in options.kinds and not faster.INSTALLED:
        options.kinds.remove("faster")
        print("without faster-coco-eval, which is not installed", file=sys.stderr)
    changes, tally, start = parse_changes(options.change), Tally(), time.monotonic()
    total = sum(SHARES[kind] for kind in options.kinds)
    left = {kind: round(options.cases * SHARES[kind] / total) for kind in options.kinds}
    seed, shown = options.seed, 0
    with tempfile.TemporaryDirectory() as folder:
        while any(left.values()) and len(tally.differences) < options.most:
            for kind in options.kinds:
                if time.monotonic() - start > options.seconds:
                    left = dict.fromkeys(left, 0)
                batch = min(left[kind], max(1, round(BATCH * SHARES[kind])))
                if batch:
                    fuzz(kind, batch, seed, Path(folder), changes=changes, tally=tally, most=options.most)
                    left[kind] -= batch
                for record, text in tally.differences[shown:]:
                    small = shrink(record, Path(folder), changes)
                    text = f"with {' '.join(options.change)}: {text}" if options.change else text
                    print(f"{kind}: {text}\n  saved {save(small, text, options.corpus)}", flush=True)
                shown = len(tally.differences)
            seed += 1
            if sum(tally.cases.values()) % 10_000 < BATCH:
                print(_line(tally, start), file=sys.stderr, flush=True)
    print(_line(tally, start))
    return int(bool(tally.differences))


def _line(tally: Tally, start: float) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in tally.cases.items())
    refused = sum(tally.refused.values())
    return (
        f"{sum(tally.cases.values())} cases ({kinds}), {refused} not taken by the other program, "
        f"{len(tally.differences)} differences, {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
