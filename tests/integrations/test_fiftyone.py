"""FiftyOne's samples, in memory: its own matching of each image, and what we write into the same places.

FiftyOne starts a database when a data set is made, which these tests do not need: samples live without one.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore import InputError
from boxscore.integrations.fiftyone import evaluate_samples, tables, write_matches

SIZE = (640, 480)


class Label(dict[str, Any]):
    """A label that takes new attributes by name, as FiftyOne's does."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Sample(Label):
    """A sample of named fields."""


def plain(kind: str, **values: Any) -> Any:
    return {"Sample": Sample, "Detection": Label, "Detections": SimpleNamespace}[kind](**values)


def real(kind: str, **values: Any) -> Any:
    import fiftyone as fo

    if kind == "Sample":
        metadata = values.pop("metadata")
        values["metadata"] = fo.ImageMetadata(width=metadata.width, height=metadata.height)
    values.pop("id", None)
    return getattr(fo, kind)(**values)


def samples(make: Any, *, crowds: bool = False, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    made = []
    for image in range(12):
        truth, found = [], []
        for k in range(0 if image == 3 else int(random.integers(1, 7))):
            box = np.concatenate([random.uniform(0, 0.6, 2), random.uniform(0.05, 0.4, 2)])
            label = str(random.choice(["cat", "dog", "bird"]))
            flag = {"iscrowd": int(random.random() < 0.3)} if crowds else {}
            truth.append(
                make("Detection", id=f"g{image}-{k}", label=label, bounding_box=box.tolist(), **flag)
            )
            for n in range(2):
                near = (box + random.normal(0, 0.02, 4)).tolist()
                score = float(random.random())
                other = label if random.random() < 0.8 else "cat"
                found.append(
                    make(
                        "Detection",
                        id=f"d{image}-{k}-{n}",
                        label=other,
                        bounding_box=near,
                        confidence=score,
                    )
                )
        made.append(
            make(
                "Sample",
                filepath=f"/images/{image}.jpg",
                metadata=SimpleNamespace(width=SIZE[0], height=SIZE[1]),
                ground_truth=make("Detections", detections=truth),
                predictions=make("Detections", detections=found) if image != 5 else None,
            )
        )
    return made


def test_tables_are_the_labels_in_pixels() -> None:
    given = samples(plain, crowds=True)
    truth, detections = tables(given)
    first = given[0]["ground_truth"].detections[0]
    assert truth.ids[0] == first["id"]
    x, y, w, h = np.array(first["bounding_box"]) * np.tile(SIZE, 2)
    assert truth.boxes[0].tolist() == pytest.approx([x, y, x + w, y + h])
    assert truth.crowd.any()
    assert len(truth.images) == 12
    assert detections.columns["label_id"][0] == given[0]["predictions"].detections[0]["id"]
    assert truth.categories.names.tolist() == ["bird", "cat", "dog"]
    assert tables(given, classes=["dog", "cat", "bird", "cow"])[0].categories.names.tolist()[-1] == "dog"


def test_what_became_of_each_is_written() -> None:
    given = samples(plain, crowds=True)
    evaluation = evaluate_samples(given, eval_key="eval", digest=False)
    matches = evaluation.matches.assign(label=evaluation.detections.columns["label_id"]).set_index("label")
    words = {"true positive": "tp", "false positive": "fp", "ignored": "ignored"}
    ids, seen = set(evaluation.ground_truth.ids.tolist()), []
    for sample in given:
        counts = {"tp": 0, "fp": 0, "fn": 0, "ignored": 0}
        for label in sample["predictions"].detections if sample["predictions"] else ():
            row = matches.loc[label["id"]]
            assert label["eval"] == words[row["outcome"]]
            assert label["eval_id"] == (row["annotation_id"] if row["annotation_id"] in ids else "")
            assert label["eval_iou"] == row["iou"] or (label["eval_iou"] is None and pd.isna(row["iou"]))
            counts[label["eval"]] += 1
        hits = (
            matches[matches["outcome"] == "true positive"].reset_index().set_index("annotation_id")["label"]
        )
        for label in sample["ground_truth"].detections:
            is_hit = label["id"] in hits.index
            assert label["eval"] == ("ignored" if label["iscrowd"] else "tp" if is_hit else "fn")
            assert label["eval_id"] == (hits[label["id"]] if is_hit and not label["iscrowd"] else "")
            counts["fn"] += label["eval"] == "fn"
        assert [sample[f"eval_{name}"] for name in ("tp", "fp", "fn")] == [
            counts[name] for name in ("tp", "fp", "fn")
        ]
        seen.append(counts)
    assert all(sum(counts[name] for counts in seen) for name in ("tp", "fp", "fn", "ignored"))


def test_samples_of_a_data_set_are_saved() -> None:
    given = samples(plain)
    calls = []

    class DataSet(list[Any]):
        def iter_samples(self, *, autosave: bool) -> Any:
            calls.append(autosave)
            return iter(self)

    evaluate_samples(DataSet(given), eval_key="run", digest=False)
    assert calls == [True]
    assert {"run_tp", "run_fp", "run_fn"} <= set(given[0])


@pytest.mark.parametrize("protocol", ["fiftyone", "voc2012", "ultralytics"])
def test_any_protocol_may_decide(protocol: str) -> None:
    given = samples(plain)
    truth, detections = tables(given)
    evaluation = boxscore.evaluate(truth, detections, protocol=protocol, digest=False)
    write_matches(evaluation, given, "eval")
    assert sum(sample["eval_tp"] for sample in given) == (evaluation.matches.outcome == "true positive").sum()


def test_what_it_refuses() -> None:
    given = samples(plain)
    given[2]["metadata"] = None
    with pytest.raises(InputError, match=r"sample '/images/2.jpg'; call samples.compute_metadata\(\) first"):
        tables(given)
    given = samples(plain)
    given[0]["predictions"].detections[0]["confidence"] = None
    with pytest.raises(InputError, match="confidence must be given for every detection"):
        tables(given)
    given[1]["predictions"] = SimpleNamespace(polylines=[])
    with pytest.raises(
        InputError, match=r"a field must hold Detections. Got SimpleNamespace in 'predictions'"
    ):
        tables(given)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_fiftyone_writes_itself(seed: int) -> None:
    pytest.importorskip("fiftyone")
    from fiftyone.utils.eval.coco import COCOEvaluation, COCOEvaluationConfig

    config = COCOEvaluationConfig("predictions", "ground_truth", iou=0.5, classwise=True)
    given = samples(real, seed=seed)
    evaluate_samples(given, eval_key="ours", protocol="fiftyone", digest=False)
    seen = set()
    for sample in given:
        if sample["predictions"] is None:
            continue
        its = COCOEvaluation(config)
        its.gt_field, its.pred_field = "ground_truth", "predictions"  # as its ``register_samples`` does
        its.evaluate(sample, eval_key="theirs")
        for field in ("predictions", "ground_truth"):
            for label in sample[field].detections:
                assert label["ours"] == label["theirs"]
                assert label["ours_id"] == label["theirs_id"]
                if label["theirs_id"]:
                    assert label["ours_iou"] == pytest.approx(label["theirs_iou"], rel=1e-12)
                seen.add(label["ours"])
    assert seen == {"tp", "fp", "fn"}
