"""What users of the drop-in ran into: keypoint counts and sigmas, and results of other images."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from side_by_side import OURS, REFERENCE, Library, load, outcome, random_dataset, same


def keypoints_evaluated(
    library: Library, *, cut: int = 17, found: int | None = None, sigmas: Any = None, look: bool = False
) -> Any:
    """Evaluate people with the first ``cut`` keypoints, detections with ``found``; stats, or what is raised."""
    dataset, results = copy.deepcopy(random_dataset(np.random.default_rng(0), "keypoints"))
    for records, count in ((dataset["annotations"], cut), (results, cut if found is None else found)):
        for record in records:
            record["keypoints"] = record["keypoints"][: 3 * count]
    evaluation = library.COCOeval(*load(library, dataset, results), "keypoints")
    if sigmas is not None:
        evaluation.params.kpt_oks_sigmas = sigmas
    evaluation.evaluate()
    if look:
        evaluation.ious  # noqa: B018 - made now, image by image
        evaluation.evalImgs  # noqa: B018
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats


@pytest.mark.parametrize("look", [False, True])
def test_sigmas_as_a_list(look: bool) -> None:
    """pycocotools cannot square a list; here it is what an array is."""
    sigmas = [0.05] * 17
    expected, _ = outcome(lambda: keypoints_evaluated(REFERENCE, sigmas=np.array(sigmas), look=look))
    ours, _ = outcome(lambda: keypoints_evaluated(OURS, sigmas=sigmas, look=look))
    assert same(ours, expected)
    assert ours[1] > 0


def test_sigmas_as_a_list_in_overridden_methods() -> None:
    class Own(OURS.COCOeval):  # type: ignore[misc, name-defined]
        def computeOks(self, imgId: Any, catId: Any) -> Any:  # noqa: N802
            return super().computeOks(imgId, catId)

    sigmas = [0.05] * 17
    own = Library(OURS.COCO, Own, OURS.mask)
    expected, _ = outcome(lambda: keypoints_evaluated(REFERENCE, sigmas=np.array(sigmas)))
    assert same(outcome(lambda: keypoints_evaluated(own, sigmas=sigmas))[0], expected)


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize(
    ("cut", "found", "count"),
    [(14, 14, 17), (17, 17, 14), (14, 17, 17), (17, 14, 17), (14, 17, 14), (1, 1, 17)],
)
def test_counts_of_keypoints_that_do_not_agree(cut: int, found: int, count: int, look: bool) -> None:
    """The same exception with the same text, or the same numbers where NumPy can stretch one keypoint."""

    def run(library: Library) -> Any:
        try:
            return keypoints_evaluated(library, cut=cut, found=found, sigmas=np.full(count, 0.05), look=look)
        except Exception as error:
            return type(error).__name__, str(error)

    ours, theirs = (outcome(lambda lib=library: run(lib))[0] for library in (OURS, REFERENCE))
    assert same(ours, theirs)
    if (cut, found, count) == (14, 14, 17):
        assert ours == ("ValueError", "operands could not be broadcast together with shapes (14,) (17,) ")


FIRST = "Results do not correspond to current coco set: "


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (str, "3 of 3 image ids are not among those of the images, such as '7', which is 7 there; write image_id in "
              "the results as int"),
        (lambda number: number + 100, "3 of 3 image ids are not among those of the images, such as 107"),
        (lambda number: 999 if number == 7 else number, "1 of 3 image ids are not among those of the images, such "
                                                        "as 999"),
    ],
    ids=["strings", "shifted", "one"],
)  # fmt: skip
def test_results_of_other_images(change: Any, text: str) -> None:
    dataset, results = random_dataset(np.random.default_rng(0))
    results = [{**results[0], "image_id": change(number)} for number in (7, 8, 9)]
    with pytest.raises(AssertionError) as caught:
        load(OURS, dataset, results)
    assert str(caught.value) == FIRST + text
    assert outcome(lambda: load(REFERENCE, dataset, copy.deepcopy(results)))[0] == "AssertionError"
