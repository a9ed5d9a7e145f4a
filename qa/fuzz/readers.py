"""Every reader as a function of bytes: what it may do with them is return, or raise an error of boxscore's.

Whatever a reader accepts is evaluated and validated as well: a table that loads must be one that works. A
warning of NumPy's is taken for an error, as everywhere in the tests.
"""

from __future__ import annotations

import dataclasses
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import boxscore
from boxscore.errors import BoxscoreError, BoxscoreWarning, InputError
from boxscore.extensions.pages.pictures import embed_pictures
from boxscore.extensions.shell.run_command import read_config
from boxscore.protocols import load_protocol
from boxscore.protocols.protocol import SimilarityName
from boxscore.validation import validate, validate_files

HERE = Path(__file__).parent
BASE = HERE.parents[1] / "tests" / "bad_input" / "base"
SEEDS, FOUND = HERE / "seeds", HERE / "found"

PROTOCOLS: dict[SimilarityName, str] = {"box": "coco", "mask": "coco-segm", "keypoints": "coco-keypoints"}

MEMBER = b"\n\xffMEMBER "
"""Stands before each member of an archive in the inputs of ``columns_*``, whose checksums are made here:
a fuzzer would never get them right. The member's name ends at the line's end."""


def _use(truth: boxscore.GroundTruth, found: boxscore.Detections, protocol: str = "coco") -> None:
    assert all(
        isinstance(value, float)
        for value in boxscore.evaluate(truth, found, protocol=protocol).metrics.values()
    )
    validate(truth, found, protocol=protocol)


def _results_of(folder: Path, truth: boxscore.GroundTruth) -> boxscore.Detections:
    """Make the truth's own boxes detections: they fit whatever ground truth was read."""
    return boxscore.Detections.from_arrays(
        truth.images.ids[truth.image],
        truth.categories.ids[truth.category],
        truth.boxes,
        [0.5] * len(truth),
        images=truth.images,
        categories=truth.categories,
    )


def coco_truth(data: bytes, folder: Path) -> None:
    (folder / "gt.json").write_bytes(data)
    validate_files(folder / "gt.json")
    each_similarity(lambda similarity: _coco_truth(folder, similarity))


def _coco_truth(folder: Path, similarity: SimilarityName) -> None:
    truth = boxscore.load_ground_truth(folder / "gt.json")
    found = dataclasses.replace(_results_of(folder, truth), masks=truth.masks, keypoints=truth.keypoints)
    _use(truth, found, PROTOCOLS[similarity])


def each_similarity(run: Callable[[SimilarityName], None]) -> None:
    """Run for boxes, masks and keypoints; refuse what all three refuse."""
    refused = []
    for similarity in PROTOCOLS:
        try:
            run(similarity)
        except BoxscoreError as error:
            refused.append(error)
    if len(refused) == len(PROTOCOLS):
        raise refused[0]


def coco_results(data: bytes, folder: Path) -> None:
    (folder / "dt.json").write_bytes(data)
    validate_files(folder / "gt.json", folder / "dt.json")
    each_similarity(lambda similarity: _coco_results(folder, similarity))


def _coco_results(folder: Path, similarity: SimilarityName) -> None:
    name = "gt.json" if similarity == "box" else "masks.json"
    truth = boxscore.load_ground_truth(folder / name)
    found = boxscore.load_detections(folder / "dt.json", truth)
    _use(truth, found, PROTOCOLS[similarity])


def voc_xml(data: bytes, folder: Path) -> None:
    (folder / "VOC2007" / "Annotations" / "000002.xml").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "VOC2007", image_set="test")
    _use(truth, _results_of(folder, truth), "voc2007")


def voc_set(data: bytes, folder: Path) -> None:
    (folder / "VOC2007" / "ImageSets" / "Main" / "test.txt").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "VOC2007", image_set="test")
    _use(truth, _results_of(folder, truth), "voc2007")


def voc_results(data: bytes, folder: Path) -> None:
    (folder / "results" / "comp4_det_test_cat.txt").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "VOC2007", image_set="test")
    _use(truth, boxscore.load_detections(folder / "results", truth), "voc2007")


def archive(data: bytes) -> list[tuple[str, bytes]]:
    """Split the input of ``columns_*`` into the members of an archive."""
    parts = data.split(MEMBER)[1:]
    pairs = [part.partition(b"\n") for part in parts]
    return [(name.decode("latin-1") or "x", content) for name, _, content in pairs]


def _write_archive(path: Path, data: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of two members with one name
        with zipfile.ZipFile(path, "w") as file:
            for name, content in archive(data):
                file.writestr(zipfile.ZipInfo(name.replace("\0", "")[:100] or "x"), content)


def columns_truth(data: bytes, folder: Path) -> None:
    _write_archive(folder / "gt.npz", data)
    truth = boxscore.load_ground_truth(folder / "gt.npz")
    _use(truth, _results_of(folder, truth))


def columns_results(data: bytes, folder: Path) -> None:
    _write_archive(folder / "dt.npz", data)
    truth = boxscore.load_ground_truth(folder / "gt.json")
    _use(truth, boxscore.load_detections(folder / "dt.npz", truth))


def columns_bytes(data: bytes, folder: Path) -> None:
    """The archive itself, with whatever is wrong about it."""
    (folder / "gt.npz").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "gt.npz", format="columns")
    _use(truth, _results_of(folder, truth))


def run_config(data: bytes, folder: Path) -> None:
    (folder / "run.toml").write_bytes(data)
    read_config(folder / "run.toml")


def protocol(data: bytes, folder: Path) -> None:
    (folder / "mine.toml").write_bytes(data)
    rules = load_protocol(folder / "mine.toml")
    rules.signature()
    truth = boxscore.load_ground_truth(folder / "gt.json")
    found = boxscore.load_detections(folder / "dt.json", truth)
    evaluation = boxscore.evaluate(truth, found, protocol=rules)
    assert list(evaluation.metrics) == [row.key for row in rules.rows]
    validate(truth, found, protocol=rules)


def pictures(data: bytes, folder: Path) -> None:
    """A picture for the report; one that cannot be read leaves a blank frame."""
    (folder / "pictures").mkdir(exist_ok=True)
    (folder / "pictures" / "a.jpg").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "gt.json")
    evaluation = boxscore.evaluate(truth, boxscore.load_detections(folder / "dt.json", truth))
    if not embed_pictures(evaluation, [0], [0], folder / "pictures"):
        raise InputError("a picture cannot be read.")


def answers(data: bytes, folder: Path) -> None:
    """Read answers of a language model; their boxes work like any other, with scores."""
    (folder / "dt.jsonl").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "gt.json")
    found = boxscore.load_detections(
        folder / "dt.jsonl", truth, format="answers", coordinates="pixels", loose=True, unlisted_images="drop"
    )
    assert found.answers["counts"]["boxes"] >= len(found)
    boxscore.save_columns(found, folder / "found.npz")
    assert boxscore.load_detections(folder / "found.npz", truth).answers == found.answers
    _use(truth, found.replaced(scores=np.ones(len(found))))


def phrases(data: bytes, folder: Path) -> None:
    """Read ground truth of phrases, in whichever of its forms it is."""
    (folder / "phrases.json").write_bytes(data)
    name = "omnilabel" if b"descriptions" in data else "saco" if b"text_input" in data else "refcoco"
    truth = boxscore.load_ground_truth(folder / "phrases.json", format=name)
    assert name == "omnilabel" or len(truth.images.columns["phrase"]) == len(truth.images)
    _use(truth, _results_of(folder, truth))


def pickled(data: bytes, folder: Path) -> None:
    """Read pickles of MMDetection and detectron2."""
    (folder / "dt.pkl").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "gt.json")
    _use(truth, boxscore.load_detections(folder / "dt.pkl", truth, format="pickled"))


def mot(data: bytes, folder: Path) -> None:
    (folder / "gt.txt").write_bytes(data)
    truth = boxscore.load_ground_truth(folder / "gt.txt", format="mot")
    _use(truth, _results_of(folder, truth))


READERS: dict[str, Callable[[bytes, Path], None]] = {
    function.__name__: function
    for function in (
        *(coco_truth, coco_results, voc_xml, voc_set, voc_results),
        *(columns_truth, columns_results, columns_bytes, run_config, protocol, pictures),
        *(answers, phrases, pickled, mot),
    )
}


def prepare(folder: Path) -> None:
    """Put the good files beside which an input stands into a folder."""
    shutil.copytree(BASE, folder, dirs_exist_ok=True)
    shutil.copy(SEEDS / "coco_truth" / "masks.json", folder)


def read(reader: str, data: bytes, folder: Path) -> bool:
    """Give bytes to a reader, in a prepared folder; say whether it took them.

    Whatever is raised here is a fault of the reader.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BoxscoreWarning)
        try:
            READERS[reader](data, folder)
        except BoxscoreError:
            return False
    return True
