"""torchmetrics' metric by boxscore: its results to the last bit, and what its loops do to a metric."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytest.importorskip("torchvision")
from framework_batches import batches, fed, unlike  # noqa: E402
from torchmetrics.detection import MeanAveragePrecision as Original  # noqa: E402
from torchmetrics.functional.detection.map import mean_average_precision as original_function  # noqa: E402
from torchvision.ops import box_convert  # noqa: E402

from boxscore import BoxscoreWarning, Detections, Evaluator, GroundTruth, InputError, evaluate  # noqa: E402
from boxscore.integrations.torchmetrics import MeanAveragePrecision, mean_average_precision  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

CONFIGURATIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "xywh": ({"box_format": "xywh"}, {}),
    "cxcywh": ({"box_format": "cxcywh"}, {}),
    "classes": ({"class_metrics": True}, {}),
    "masks": ({"iou_type": "segm"}, {}),
    "masks, everything": ({"iou_type": "segm", "class_metrics": True, "extended_summary": True}, {}),
    "both": ({"iou_type": ("bbox", "segm")}, {}),
    "both, everything": (
        {"iou_type": ("segm", "bbox"), "class_metrics": True, "extended_summary": True},
        {},
    ),
    "micro": ({"average": "micro"}, {}),
    "micro, everything": ({"average": "micro", "class_metrics": True, "extended_summary": True}, {}),
    "few detections": ({"max_detection_thresholds": [1, 3, 5], "class_metrics": True}, {}),
    "many detections": ({"max_detection_thresholds": [500, 10, 1], "class_metrics": True}, {}),
    "thresholds": (
        {"iou_thresholds": [0.5, 0.6], "rec_thresholds": [0.0, 0.1, 0.5, 1.0], "extended_summary": True},
        {},
    ),
    "one threshold": ({"iou_thresholds": [0.55], "class_metrics": True}, {"dtype": torch.float64}),
    "half precision": ({"class_metrics": True, "extended_summary": True}, {"dtype": torch.float16}),
    "bfloat16": ({"class_metrics": True, "box_format": "cxcywh"}, {"dtype": torch.bfloat16}),
    "no image": ({"class_metrics": True}, {"count": 0}),
    "no image, masks": ({"class_metrics": True, "iou_type": ("bbox", "segm")}, {"count": 0}),
}


def converted(side: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    form = options.get("box_format", "xyxy")
    return [item | {"boxes": box_convert(item["boxes"], "xyxy", form)} for item in side]


@pytest.mark.parametrize("backend", ["pycocotools", "faster_coco_eval"])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_equal_in_every_bit(name: str, backend: str) -> None:
    pytest.importorskip(backend)
    options, made = CONFIGURATIONS[name]
    predictions, targets = (converted(side, options) for side in batches(len(name), **made))
    expected, ours = (
        fed(metric(backend=backend, **options), predictions, targets).compute()
        for metric in (Original, MeanAveragePrecision)
    )
    assert unlike(expected, ours) == set()


def result(predictions: Any, targets: Any, **options: Any) -> dict[str, Any]:
    return fed(MeanAveragePrecision(class_metrics=True, **options), predictions, targets).compute()


@pytest.mark.parametrize("seed", range(20))
def test_equal_on_other_data(seed: int) -> None:
    predictions, targets = batches(100 + seed, 5)
    options = {"class_metrics": True, "iou_type": ("bbox", "segm")}
    expected = fed(Original(**options), predictions, targets).compute()
    assert unlike(expected, result(predictions, targets, iou_type=("bbox", "segm"))) == set()


def test_images_without_objects_in_a_run_of_masks() -> None:
    """torchmetrics leaves them out, with their false positives: so does this, with a warning."""
    predictions, targets = batches()
    empty = {key: values[:0] for key, values in targets[0].items()}
    targets = [*targets[:3], empty, *targets[4:]]
    assert len(predictions[3]["labels"])
    expected = fed(Original(iou_type="segm", class_metrics=True), predictions, targets).compute()
    with pytest.warns(
        BoxscoreWarning, match=r"masks in images without objects are not read, as by torchmetrics"
    ):
        ours = result(predictions, targets, iou_type="segm")
    assert unlike(expected, ours) == set()


def test_boxes_without_any_object() -> None:
    predictions, targets = batches()
    for side in (predictions, targets):
        for kept in ([], [{key: values[:0] for key, values in item.items()} for item in side]):
            one, other = (kept, targets) if side is predictions else (predictions, kept)
            if kept:
                expected = fed(Original(class_metrics=True), one, other).compute()
                assert unlike(expected, result(one, other)) == set()
    nothing = [{key: values[:0] for key, values in item.items()} for item in targets]
    scored = [item | {"scores": torch.zeros(0)} for item in nothing]
    expected = fed(Original(class_metrics=True), scored, nothing).compute()
    assert unlike(expected, result(scored, nothing)) == set()


def test_totals_of_micro_stay_micro_for_the_second_type() -> None:
    """torchmetrics computes the second IoU type by class if class metrics are asked for; this does not."""
    predictions, targets = batches()
    options = {"iou_type": ("bbox", "segm"), "average": "micro"}
    plain = fed(Original(**options), predictions, targets).compute()
    ours = fed(MeanAveragePrecision(class_metrics=True, **options), predictions, targets).compute()
    assert ours["segm_map"] == plain["segm_map"]
    theirs = fed(Original(class_metrics=True, **options), predictions, targets).compute()
    assert theirs["segm_map"] != plain["segm_map"]


# ---------------------------------------------------------------- what a loop does


def test_forward_gives_the_batch_and_counts_it_once() -> None:
    predictions, targets = batches()
    metric = MeanAveragePrecision(class_metrics=True)
    for start in (0, 4, 8):
        batch = predictions[start : start + 4], targets[start : start + 4]
        assert unlike(metric(*batch), result(*batch)) == set()
    assert unlike(metric.compute(), result(predictions, targets)) == set()
    assert metric.update_count == 3


@pytest.mark.parametrize("as_state", [False, True])
def test_merge_state(as_state: bool) -> None:
    predictions, targets = batches()
    first, second = MeanAveragePrecision(class_metrics=True), MeanAveragePrecision(class_metrics=True)
    fed(first, predictions[:7], targets[:7])
    first.compute()
    fed(second, predictions[7:], targets[7:])
    first.merge_state(second.metric_state if as_state else second)
    assert unlike(first.compute(), result(predictions, targets)) == set()
    assert unlike(second.compute(), result(predictions[7:], targets[7:])) == set()
    with pytest.raises(ValueError, match="Expected a dict or a MeanAveragePrecision, got a list"):
        first.merge_state([])


def test_clone_pickle_reset_half_and_devices() -> None:
    predictions, targets = batches()
    whole = result(predictions, targets)
    metric = fed(MeanAveragePrecision(class_metrics=True), predictions[:6], targets[:6])
    for copied in (metric.clone(), pickle.loads(pickle.dumps(metric)), copy.deepcopy(metric)):
        assert unlike(fed(copied, predictions[6:], targets[6:]).compute(), whole) == set()
    metric = metric.half().to("cpu").set_dtype(torch.float16)
    assert unlike(fed(metric, predictions[6:], targets[6:]).compute(), whole) == set()
    metric.reset()
    assert unlike(fed(metric, predictions, targets).compute(), whole) == set()
    on_cpu = fed(MeanAveragePrecision(class_metrics=True, compute_on_cpu=True), predictions, targets)
    assert unlike(on_cpu.compute(), whole) == set()


def test_state_of_a_checkpoint() -> None:
    predictions, targets = batches(ids=True)
    metric = fed(MeanAveragePrecision(class_metrics=True), predictions, targets)
    metric.persistent(True)
    other = MeanAveragePrecision(class_metrics=True)
    other.load_state_dict(copy.deepcopy(metric.state_dict()))
    other._update_count = 1
    assert unlike(other.compute(), metric.compute()) == set()


def test_inputs_changed_after_update_change_nothing() -> None:
    predictions, targets = batches()
    expected = result(predictions, targets)
    for size in (1, 5):
        metric = MeanAveragePrecision(class_metrics=True)
        one, other = copy.deepcopy((predictions, targets))
        for start in range(0, len(one), size):
            metric.update(one[start : start + size], other[start : start + size])
            for item in (*one[start : start + size], *other[start : start + size]):
                for values in item.values():
                    values.zero_()
        assert unlike(metric.compute(), expected) == set()


def test_gradients_are_not_held() -> None:
    predictions, targets = batches()
    for item in predictions:
        item["boxes"].requires_grad_()
        item["scores"].requires_grad_()
    metric = fed(MeanAveragePrecision(class_metrics=True), predictions, targets)
    assert not any(values.requires_grad for values in (*metric.detection_box, *metric.detection_scores))
    assert (
        unlike(metric.compute(), fed(Original(class_metrics=True), predictions, targets).compute()) == set()
    )


def test_plot_and_coco_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("agg")
    predictions, targets = batches()
    metric = fed(MeanAveragePrecision(), predictions, targets)
    assert metric.plot()[1].lines
    for iou_type in ("bbox", "segm", ("bbox", "segm")):
        texts = []
        for number, kind in enumerate((Original, MeanAveragePrecision)):
            fed(kind(iou_type=iou_type), predictions, targets).tm_to_coco(str(tmp_path / str(number)))
            names = [f"{number}_{side}.json" for side in ("preds", "target")]
            texts.append([json.loads((tmp_path / name).read_text()) for name in names])
        assert texts[0] == texts[1]


def test_lightning(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    predictions, targets = batches()

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Linear(1, 1)
            self.metric = MeanAveragePrecision()

        def training_step(self, batch: Any, _: int) -> Any:
            return self.weight(batch).sum()

        def validation_step(self, batch: Any, _: int) -> None:
            rows = [int(value) for value in batch.flatten()]
            self.metric.update([predictions[i] for i in rows], [targets[i] for i in rows])

        def on_validation_epoch_end(self) -> None:
            values = self.metric.compute()
            values.pop("classes")
            self.log_dict({f"val/{name}": value for name, value in values.items()})
            self.metric.reset()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    loader = torch.utils.data.DataLoader(torch.arange(len(targets), dtype=torch.float32)[:, None], 4)
    trainer = lightning.Trainer(
        max_epochs=2, logger=False, enable_progress_bar=False, default_root_dir=tmp_path, accelerator="cpu"
    )
    trainer.fit(Module(), loader, loader)  # the sanity check sees two batches first
    expected = result(predictions, targets)
    assert trainer.callback_metrics["val/map"] == expected["map"]
    assert trainer.callback_metrics["val/mar_100"] == expected["mar_100"]


# ---------------------------------------------------------------- images with ids


def test_repeated_images_count_once_with_a_warning() -> None:
    predictions, targets = batches(ids=True)
    expected = result(predictions, targets)
    with pytest.warns(BoxscoreWarning, match="^2 images came again and count once"):
        again = result([*predictions, *predictions[3:5]], [*targets, *targets[3:5]])
    assert unlike(again, expected) == set()


@pytest.mark.parametrize(
    "spelling", [int, str, lambda value: np.int64(value), lambda value: torch.tensor(value)]
)
def test_images_with_ids_do_not_depend_on_the_order(spelling: Any) -> None:
    predictions, targets = batches(ids=True)
    named = [item | {"image_id": spelling(int(item["image_id"]))} for item in targets]
    expected = result(predictions, named)
    order = np.random.default_rng(0).permutation(len(named))
    assert unlike(result([predictions[i] for i in order], [named[i] for i in order]), expected) == set()


RANKS: dict[str, tuple[list[list[int]], dict[str, Any]]] = {
    "5 and 2 images": ([[0, 1, 2, 3, 4], [5, 6]], {"ids": True}),
    "5 and 2 images, masks": ([[0, 1, 2, 3, 4], [5, 6]], {"ids": True, "iou_type": ["bbox", "segm"]}),
    "5 and 2 images without ids": ([[0, 1, 2, 3, 4], [5, 6]], {"ids": False}),
    "none on the second": ([[0, 1, 2, 3, 4, 5, 6], []], {"ids": True}),
    "none on the first": ([[], [0, 1, 2, 3, 4, 5, 6]], {"ids": True}),
    "none on the first, masks": ([[], [0, 1, 2, 3, 4, 5, 6]], {"ids": False, "iou_type": "segm"}),
    "none": ([[], []], {"ids": True}),
    "one twice": ([[0, 2, 4, 6], [1, 3, 5, 0]], {"ids": True}),
}
IN_TURN = [0, 5, 1, 6, 2, 3, 4]
"""The images of two ranks without ids, as torchmetrics orders them."""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Return what each of two processes computed, by case."""
    folder = tmp_path_factory.mktemp("ranks")
    cases = json.dumps([[shares, {"class_metrics": True, **given}] for shares, given in RANKS.values()])
    script = str(Path(__file__).with_name("two_ranks.py"))
    rest = ["2", str(folder / "store"), str(folder / "result"), cases]
    processes = [
        subprocess.Popen([sys.executable, script, rank, *rest], stderr=subprocess.PIPE, text=True)
        for rank in ("0", "1")
    ]
    try:
        errors = [process.communicate(timeout=240)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], errors
    saved = [torch.load(folder / f"result.{rank}", weights_only=False) for rank in (0, 1)]
    return {name: [of_rank[number] for of_rank in saved] for number, name in enumerate(RANKS)}


@pytest.mark.parametrize("name", RANKS)
def test_every_rank_has_the_bits_of_one_process(name: str, ranks: dict[str, list[dict[str, Any]]]) -> None:
    shares, given = RANKS[name]
    predictions, targets = batches(ids=given["ids"])
    order = sorted({i for share in shares for i in share})
    if name == "5 and 2 images without ids":
        order = IN_TURN
    kind = given.get("iou_type", "bbox")
    metric = MeanAveragePrecision(class_metrics=True, iou_type=kind if isinstance(kind, str) else tuple(kind))
    fed(metric, [predictions[i] for i in order], [targets[i] for i in order])
    for saved in ranks[name]:
        assert unlike(saved["result"], metric.compute()) == set()
        if order:
            assert saved["AP"] == metric.evaluation()["AP"]
        else:
            assert saved["AP"] == "a metric must have seen an image with objects. Got none."


# ---------------------------------------------------------------- what cannot be scored


def test_boxes_that_mean_nothing_end_no_training() -> None:
    predictions, targets = batches()
    bad = copy.deepcopy(predictions)
    row = next(i for i, item in enumerate(bad) if len(item["labels"]) > 2)
    bad[row]["boxes"][0] = torch.nan
    bad[row]["boxes"][1] = torch.tensor([20.0, 20.0, 10.0, 30.0])
    bad[row]["scores"][2] = torch.nan
    text = f"^3 predictions of 1 image counted as false positives: .* the first in image {row}"
    with pytest.warns(BoxscoreWarning, match=text):
        worse = result(bad, targets)
    moved = copy.deepcopy(predictions)
    moved[row]["boxes"][:3] = torch.tensor([5000.0, 5000.0, 5000.0, 5000.0])
    moved[row]["scores"][2] = 0.0
    assert unlike(worse, result(moved, targets)) == set()
    spoilt = copy.deepcopy(targets)
    row = next(i for i, item in enumerate(spoilt) if len(item["labels"]) > 1)
    spoilt[row]["boxes"][0] = torch.inf
    with pytest.warns(BoxscoreWarning, match="^1 target of 1 image dropped"):
        left = result(predictions, spoilt)
    targets[row] = {key: values[1:] for key, values in targets[row].items()}
    assert unlike(left, result(predictions, targets)) == set()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"labels": lambda item: item["labels"].float()}, "Expected labels of type int, got torch.float32"),
        ({"scores": lambda item: item["labels"]}, "Expected scores of type float, got torch.int64"),
        (
            {"boxes": lambda item: torch.zeros(len(item["labels"]), 5)},
            r"Expected boxes of shape \[N, 4\], got \[",
        ),
        ({"scores": lambda item: item["scores"][:0]}, "have a different length"),
        ({"boxes": lambda item: item["boxes"].numpy()}, "to be of type Tensor"),
    ],
)
def test_a_refused_batch_leaves_nothing_behind(change: dict[str, Any], text: str) -> None:
    predictions, targets = batches()
    metric = fed(MeanAveragePrecision(class_metrics=True), predictions, targets)
    wrong = [item | {key: make(item) for key, make in change.items()} for item in predictions]
    with pytest.raises(ValueError, match=text):
        metric.update(wrong, targets)
    assert unlike(metric.compute(), result(predictions, targets)) == set()


def test_a_wrong_option_is_torchmetrics_error() -> None:
    for options in ({"average": "all"}, {"iou_type": "keypoints"}, {"box_format": "yxyx"}, {"speed": 1}):
        with pytest.raises(ValueError) as one:
            Original(**options)
        with pytest.raises(ValueError) as other:
            MeanAveragePrecision(**options)
        assert str(one.value) == str(other.value)


def test_a_first_number_of_minus_one_says_why() -> None:
    predictions, targets = batches()
    text = r"map is -1 because max_detection_thresholds \[1, 10, 500\] lacks 100, as with pycocotools; "
    with pytest.warns(BoxscoreWarning, match=text):
        assert result(predictions, targets, max_detection_thresholds=[1, 10, 500])["map"] == -1


OPTIONS: list[dict[str, Any]] = [
    {},
    {"class_metrics": True, "average": "micro"},
    {"iou_type": ("bbox", "segm"), "max_detection_thresholds": [1, 5, 100]},
    {"iou_type": "segm", "backend": "faster_coco_eval", "warn_on_many_detections": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_function(options: dict[str, Any]) -> None:
    predictions, targets = batches(seed=7)
    expected = original_function(predictions, targets, **options)
    got = mean_average_precision(predictions, targets, **options)
    assert unlike(got, expected) == set()
    with pytest.raises(ValueError, match="same length"):
        mean_average_precision(predictions, targets[1:])


@pytest.mark.parametrize("which", ["metric", "evaluator"])
def test_a_compiled_step_does_not_trace_update(which: str) -> None:
    """The graphs have the step's own operation alone, and the numbers are the same."""
    dynamo = pytest.importorskip("torch._dynamo")
    predictions, targets = batches(count=12, dtype=torch.float32)
    predictions = [{key: item[key] for key in ("boxes", "labels", "scores")} for item in predictions]
    targets = [
        {"boxes": item["boxes"], "labels": item["labels"], "image_id": row}
        for row, item in enumerate(targets)
    ]
    make = MeanAveragePrecision if which == "metric" else Evaluator
    plain, compiled = make(), make()
    dynamo.reset()
    traced: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        traced.extend(node.name for node in graph.graph.nodes if node.op.startswith("call"))
        return graph.forward

    @torch.compile(backend=backend)
    def step(value: Any, found: Any, truth: Any) -> Any:
        doubled = value * 2
        compiled.update(found, truth)
        return doubled

    for found, truth in zip(predictions, targets, strict=True):
        plain.update([found], [truth])
        step(torch.ones(3), [found], [truth])
    results = [each.compute() if which == "metric" else each.compute().metrics for each in (plain, compiled)]
    if which == "metric":
        assert unlike(*results) == set()
    else:
        assert results[0] == pytest.approx(results[1], abs=0, nan_ok=True)
    assert {name.rstrip("_0123456789") for name in traced} == {"doubled"}


# ---------------------------------------------------------------- more than torchmetrics has


def test_evaluation_intervals_and_explain() -> None:
    predictions, targets = batches(count=30)
    metric = fed(MeanAveragePrecision(), predictions, targets)
    values, made = metric.compute(), metric.evaluation()
    assert made["AP"] == pytest.approx(float(values["map"]), abs=1e-7)
    assert len(made.per_class) == 3
    assert len(made.ground_truth) == sum(len(item["labels"]) for item in targets)
    intervals = metric.intervals(metrics=["AP"]).total
    assert intervals.value[0] == made["AP"]
    assert intervals.low[0] < intervals.estimate[0] < intervals.high[0]
    explanation = metric.explain("coco")
    assert explanation.first_value == made["AP"]
    assert explanation.last_value == pytest.approx(made["AP"], abs=1e-3)
    with pytest.raises(InputError, match="a metric must have seen an image with objects"):
        MeanAveragePrecision().evaluation()


def test_evaluation_is_that_of_the_same_tables() -> None:
    predictions, targets = batches(seed=5, dtype=torch.float64)
    made = fed(MeanAveragePrecision(), predictions, targets).evaluation()
    for item in targets:
        item.pop("area", None)
    plain = fed(MeanAveragePrecision(), predictions, targets).evaluation()
    truth = GroundTruth.from_targets(
        [
            {key: item[key] for key in ("boxes", "labels")}
            | {"iscrowd": item.get("iscrowd", torch.zeros(len(item["labels"]), dtype=int))}
            for item in targets
        ],
        image_ids=range(len(targets)),
        categories=range(3),
    )
    found = Detections.from_predictions(
        [{key: item[key] for key in ("boxes", "labels", "scores")} for item in predictions],
        image_ids=range(len(targets)),
        categories=range(3),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = evaluate(truth, found, protocol="torchmetrics")
    assert plain["AP"] == pytest.approx(expected["AP"], abs=1e-12)
    assert made["AR100"] == pytest.approx(expected["AR100"], abs=1e-12)
