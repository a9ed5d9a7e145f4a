"""The order of detections whose scores are equal."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, prepares, scores
from boxscore.protocols.fields import Rules, Step, Word, choice, flag, rule

EqualScores = Literal["image_order", "file_order", "last_first", "last_in_file_first"]
TieOrder = Literal["as_ranked", "true_positives_first", "true_positives_last"]


def _equal_scores(protocol: Any) -> str:
    """Write the order of ties, or what moves in it after matching."""
    moved = protocol.ap.tie_order
    return str(protocol.matching.equal_scores if moved == "as_ranked" else moved).replace("_", " ")


@part(frozen=True)
class EqualScoresField(Rules):
    """The order in which they are matched and counted."""

    equal_scores: EqualScores = rule(
        "image_order",
        check=choice(EqualScores),
        doc="In which order a class's equally scored detections are counted: image by image, then by file; "
        "by file over all images; or matched with the last in the file first, and counted with the last "
        "image first, and in an image what stands for a group (TensorFlow, where its sort happens to be "
        "stable); or by file over all images, the last first (nuScenes).",
        word=Word("order", silent="image_order"),
        step=Step("equal scores", "matching", _equal_scores),
        scope=scores(Scope.CLASS),
        refuses=(
            Refusal(
                "together",
                lambda protocol: (
                    protocol.matching.equal_scores == "last_first" and not protocol.matching.per_class
                ),
                "be true where equal scores go last_first",
                field="matching.per_class",
                got="false",
            ),
        ),
    )


def _ranked(protocol: Any) -> bool:
    return bool(protocol.matching.ranked_files)


@part(frozen=True)
class RankedFilesField(Rules):
    """Whether the order of a file is checked."""

    ranked_files: bool = rule(
        False,
        check=flag,
        doc="Whether the detections of an image must come by descending score, as tools want them that read "
        "them in file order; others are an error then.",
        word=Word("files", silent=False, text={True: "ranked"}, note="`ranked` where the order is checked"),
        step="matching.equal_scores",
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.matching.ranked_files else Scope.ROW),
        refuses=(Refusal("plain_tables", _ranked),),
        does=(Does("prepare", "boxscore.matching.stretching:check_ranked", _ranked, -10),),
    )


@part(frozen=True)
class TieOrderField(Rules):
    """What moves after matching."""

    tie_order: TieOrder = rule(
        "as_ranked",
        check=choice(TieOrder),
        doc="Whether, after matching, the true positives among a class's equally scored detections move.",
        word=Word("equal", silent="as_ranked"),
        step="matching.equal_scores",
        scope=scores(Scope.CLASS),
    )
