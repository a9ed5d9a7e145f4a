"""Columns that rules declare survive every road, whatever they are; an undeclared one is refused."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import boxscore
from boxscore.data.alignment import align, of_images
from boxscore.distributed import Part
from boxscore.protocols import load_protocol
from boxscore.protocols.acting import ExtraColumn
from boxscore.protocols.protocol import EXTRA_COLUMNS, Protocol
from support.each import each
from support.examples import examples
from support.insides import Cut, Matches, MergedParts, bit_type, cut, match_part, packed
from support.insides import merge_matches as merge
from support.matches import assert_same_matches, match_tables
from support.parted import Tables, drawn_tables

JACCARD = {
    "extends": "crowdhuman",
    "boxes": {"clip": "none"},
    "ignore": {"regions": ""},
    "name": "case",
    "ap": {"recall_over": "all"},
}
GROUPS = {"extends": "openimages-v2", "group": {"weight": 0.25}, "labels": {"unlisted": "count"}}
PROTOCOLS: dict[str, Any] = {"coco": "coco", "voc2012": "voc2012", "JI": JACCARD, "groups": GROUPS}

DETECTION, TRUTH, FREE, FLAGS, COUNTED = (
    "made_of_detection",
    "made_of_truth",
    "made_free",
    "made_bits",
    "made_up",
)


def always(protocol: Any) -> bool:
    return True


MADE_UP = (
    ExtraColumn(DETECTION, "detection", "whole", always),
    ExtraColumn(TRUTH, "truth", "float", always, shape=lambda protocol: (2,)),
    ExtraColumn(FREE, "pair", "float", always),
    ExtraColumn(FLAGS, "pair", "bits", always, shape=lambda protocol: (len(protocol.ignore.area_ranges),)),
    ExtraColumn(COUNTED, "class_image", "whole", always, shape=lambda protocol: (2,)),
)


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare a column on every axis; detections and ground truths are known by theirs."""
    for column in MADE_UP:
        monkeypatch.setitem(EXTRA_COLUMNS, column.name, column)


def drawn(values: np.random.Generator, column: ExtraColumn, count: int, protocol: Protocol) -> NDArray[Any]:
    shape = count, *column.shape(protocol)
    if column.kind == "float":
        different = values.permutation(int(np.prod(shape))).reshape(shape) + 0.5
        return different / 1e6 if column.most == 1 else different
    if column.kind == "bool":
        return values.random(shape) < 0.5
    if column.kind == "bits":
        threshold_count = len(protocol.matching.iou_thresholds)
        return values.integers(0, 1 << threshold_count, shape).astype(bit_type(threshold_count))
    return values.permutation(count) if shape == (count,) else values.integers(0, 70_000, shape)


def filled(matches: Matches, protocol: Protocol, seed: int) -> Matches:
    """Make up every declared column, whether the protocol asks for it or not."""
    values = np.random.default_rng(seed)
    counts = {"detection": len(matches), "truth": len(matches.truth_image), "pair": len(matches.iou)}
    extra: dict[str, NDArray[Any]] = {}
    for column in EXTRA_COLUMNS.values():
        if column.axis != "class_image":
            extra[column.name] = drawn(values, column, counts[column.axis], protocol)
            continue
        K, images = len(matches.categories), len(matches.images)
        keys = np.flatnonzero(values.random(K * images) < 0.5)
        made = keys // images, (keys % images).astype(np.int32), drawn(values, column, len(keys), protocol)
        extra |= dict(zip(column.names, made, strict=True))
    return dataclasses.replace(matches, extra=extra).in_class_order()  # hits of groups decide about ties


# ---------------------------------------------------------------- what is known of matches, slowly

Facts = dict[str, dict[Any, Any]]


def facts(matches: Matches, *, of_parts: bool = False) -> Facts:
    """Everything by what it is of: a detection and a ground truth are known by their made-up columns."""
    images, classes = matches.images.ids.tolist(), matches.categories.ids.tolist()
    extra = {name: values.tolist() for name, values in matches.extra.items()}
    names: dict[str, list[str]] = {"detection": [], "truth": [], "pair": [], "class_image": []}
    for column in EXTRA_COLUMNS.values():
        if column.name in extra and (column.in_parts or not of_parts):
            names[column.axis].append(column.name)
    found: Facts = {axis: {} for axis in ("detection", "truth", "pair")}
    for d in range(len(matches)):
        key = images[matches.image[d]], classes[matches.category[d]], float(matches.score[d])
        found["detection"][extra[DETECTION][d]] = key, {name: extra[name][d] for name in names["detection"]}
    for g in range(len(matches.truth_image)):
        key = images[matches.truth_image[g]], classes[matches.truth_category[g]]
        found["truth"][tuple(extra[TRUTH][g])] = key, {name: extra[name][g] for name in names["truth"]}
    for p in range(len(matches.iou)):
        bits = matches.matched_bits[p].tolist()
        if of_parts and not any(bits):
            continue
        pair = extra[DETECTION][matches.pair_detection[p]], tuple(extra[TRUTH][matches.pair_truth[p]])
        found["pair"][pair] = bits, {name: extra[name][p] for name in names["pair"]}
    for name in names["class_image"]:
        category, image, values = (extra[one] for one in EXTRA_COLUMNS[name].names)
        keys = list(zip(category, image, strict=True))
        assert keys == sorted(keys)
        found[name] = {(classes[k], images[i]): value for (k, i), value in zip(keys, values, strict=True)}
    return found


def kept(
    known: Facts,
    *,
    detection: Callable[[Any], bool] = lambda key: True,
    truth: Callable[[Any], bool] = lambda key: True,
    counts: Callable[[Any], bool] | None = None,
) -> Facts:
    """Keep what is of some detections and ground truths, told by what they are of; no counts: dropped."""
    found = {
        "detection": {tag: fact for tag, fact in known["detection"].items() if detection(fact[0])},
        "truth": {tag: fact for tag, fact in known["truth"].items() if truth(fact[0])},
    }
    found["pair"] = {
        (d, g): fact
        for (d, g), fact in known["pair"].items()
        if d in found["detection"] and g in found["truth"]
    }
    if counts is not None:
        for name in known.keys() - found.keys():
            found[name] = {key: value for key, value in known[name].items() if counts(key)}
    return found


def case(name: str, seed: int) -> tuple[Tables, Protocol, Matches]:
    protocol = load_protocol(PROTOCOLS[name])
    truth, found = drawn_tables(seed)
    if name == "groups":
        truth = dataclasses.replace(truth, group=truth.crowd)
    found = align(found, truth)
    return (truth, found), protocol, match_tables(truth, found, protocol)


def part_matches(tables: Tables, matches: Matches, images: NDArray[np.intp]) -> Matches:
    """Take images out, with a vocabulary of their own and rows as they are."""
    return matches.take_images(np.isin(np.arange(len(matches.images)), images))


SEEDS = st.integers(0, 10_000)
NAMES = st.sampled_from([*PROTOCOLS])
EXAMPLES = settings(max_examples=examples(20), deadline=None)


# ---------------------------------------------------------------- roads of matches


@given(name=NAMES, seed=SEEDS)
@EXAMPLES
def test_taken(name: str, seed: int) -> None:
    _, protocol, matches = case(name, seed)
    matches = filled(matches, protocol, seed)
    known, values = facts(matches), np.random.default_rng(seed)
    assert facts(pickle.loads(pickle.dumps(matches))) == known
    assert facts(matches.in_class_order()) == known
    chosen = values.random(len(matches.images)) < 0.6
    if not chosen.all():
        own = set(matches.images.ids[chosen].tolist())
        expected = kept(
            known,
            detection=lambda key: key[0] in own,
            truth=lambda key: key[0] in own,
            counts=lambda key: key[1] in own,
        )
        assert facts(matches.take_images(chosen)) == expected
    some = values.random(len(matches)) < 0.6
    tags = set(matches.extra[DETECTION][some].tolist())
    expected = kept(known)
    expected["detection"] = {tag: fact for tag, fact in expected["detection"].items() if tag in tags}
    expected["pair"] = {pair: fact for pair, fact in expected["pair"].items() if pair[0] in tags}
    assert facts(matches.take_detections(some)) == expected
    assert facts(matches.take_scores_from(0.5)) == (
        kept(known, detection=lambda key: key[2] >= 0.5) if (matches.score < 0.5).any() else known
    )


@given(name=NAMES, seed=SEEDS)
@EXAMPLES
def test_pooled(name: str, seed: int) -> None:
    _, protocol, matches = case(name, seed)
    matches = filled(matches, protocol, seed)
    known = kept(facts(matches))
    for axis in ("detection", "truth"):
        known[axis] = {tag: ((key[0], "all", *key[2:]), values) for tag, (key, values) in known[axis].items()}
    pooled = facts(matches.pooled())
    for axis in ("detection", "truth"):
        pooled[axis] = {tag: ((key[0], "all", *key[2:]), own) for tag, (key, own) in pooled[axis].items()}
    assert pooled == known


@given(name=NAMES, seed=SEEDS, shares=st.integers(2, 4))
@EXAMPLES
def test_merged(name: str, seed: int, shares: int) -> None:
    _, protocol, matches = case(name, seed)
    matches = filled(matches, protocol, seed)
    images = np.arange(len(matches.images))
    parts = [matches.take_images(images % shares == share) for share in range(shares)]
    assert_same_matches(merge(parts), matches)
    assert facts(merge(parts[::-1])) == facts(matches)


# ---------------------------------------------------------------- roads of parts


@given(name=NAMES, seed=SEEDS, shares=st.integers(1, 4), data=st.data())
@EXAMPLES
def test_packed_saved_cut_and_merged(name: str, seed: int, shares: int, data: st.DataObject) -> None:
    tables, protocol, matches = case(name, seed)
    matches = filled(matches, protocol, seed)
    known, images = facts(matches, of_parts=True), np.arange(len(matches.images))
    parts = []
    for share in range(shares):
        own = images[share::shares]
        rows = (np.flatnonzero(np.isin(table.image, own)) for table in tables)
        truth, found = (of_images(table, own, some) for table, some in zip(tables, rows, strict=True))
        part = match_part(truth, found, protocol)
        small = packed(matches.take_images(np.isin(images, own)), with_rows=part.matches.row is not None)
        parts.append(dataclasses.replace(part, matches=small, row_order="shared"))
    saved = [Part.from_bytes(part.to_bytes()) for part in parts]
    assert [part.nbytes for part in saved] == [part.nbytes for part in parts]
    together = MergedParts(saved)
    assert facts(together.matches(), of_parts=True) == known
    K = len(together.categories)
    low, high = sorted(data.draw(st.sets(st.integers(0, K), min_size=2, max_size=2), label="classes"))
    classes = set(together.categories.ids[low:high].tolist())

    def of_class(key: Any) -> bool:
        return key[1] in classes

    def counted(key: Any) -> bool:
        return key[0] in classes

    assert facts(together.matches(low, high), of_parts=True) == kept(
        known, detection=of_class, truth=of_class, counts=counted
    )
    edge = data.draw(st.sampled_from([-np.inf, 0.2, 0.6, 1.0]), label="edge")
    for least, below in ((edge, np.inf), (-np.inf, edge)):
        piece = Cut(low, high, least, below)
        pieces = [
            cut(part, place.astype(np.int64), piece)
            for part, place in zip(saved, together._places, strict=True)
        ]
        expected = kept(
            known,
            detection=lambda key: of_class(key) and least <= key[2] < below,  # noqa: B023
            truth=of_class,
            counts=counted,
        )
        if piece.is_range:  # only ground truths that a pair asks for
            asked = {truth for _, truth in expected["pair"]}
            expected["truth"] = {tag: fact for tag, fact in expected["truth"].items() if tag in asked}
        found = facts(MergedParts(pieces).matches(), of_parts=True)
        back = together.ids.tolist()
        for axis in ("detection", "truth"):
            found[axis] = {tag: ((back[key[0]], *key[1:]), own) for tag, (key, own) in found[axis].items()}
        for column in found.keys() - {"detection", "truth", "pair"}:
            found[column] = {(k, back[i]): value for (k, i), value in found[column].items()}
        assert found == expected


# ---------------------------------------------------------------- what is refused


def part_of(name: str) -> tuple[Part, Protocol]:
    tables, protocol, matches = case(name, 5)
    part = match_part(*tables, protocol)
    return dataclasses.replace(
        part, matches=packed(filled(matches, protocol, 5), with_rows=part.matches.row is not None)
    ), protocol


def test_a_name_that_no_rule_declares_is_refused() -> None:
    matches = case("coco", 5)[2]
    part, _ = part_of("coco")
    for value in (matches, part.matches):
        with pytest.raises(ValueError, match="the unknown column nobody"):
            dataclasses.replace(value, extra={**value.extra, "nobody": np.zeros(3)})


def test_a_file_with_a_column_that_nobody_declares_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    part, _ = part_of("coco")
    content = part.to_bytes()
    monkeypatch.delitem(EXTRA_COLUMNS, DETECTION)
    with pytest.raises(boxscore.FileFormatError, match=f"the unknown column extra:{DETECTION}"):
        Part.from_bytes(content)


@pytest.mark.long
@each([*PROTOCOLS])
def test_every_column_that_does_not_fit_is_refused(name: str) -> None:
    part, protocol = part_of(name)
    extra = part.matches.extra
    assert {*extra} == {one for c in EXTRA_COLUMNS.values() if c.in_parts for one in c.names}
    for column in EXTRA_COLUMNS.values():
        for one in column.names if column.in_parts else ():
            values = extra[one]
            wrong: list[dict[str, Any]] = [{one: values[:-1]}, {one: values.astype(np.complex128)}]
            if values.ndim > 1 and values.shape[-1]:
                wrong.append({one: values[..., :-1]})
            if column.axis == "class_image" and one != column.name:
                wrong.append({one: values.astype(np.uint16) + np.uint16(1000)})
            if column.kind == "float":
                wrong += [{one: values * factor} for factor in (np.nan, np.inf, -1.0)]
            if column.asked_for(protocol) or column.axis == "class_image":
                wrong.append({})
            for some in wrong:
                others = {key: own for key, own in extra.items() if key != one}
                damaged = dataclasses.replace(
                    part, matches=dataclasses.replace(part.matches, extra={**others, **some})
                )
                with pytest.raises(boxscore.FileFormatError, match="hold what boxscore wrote"):
                    Part.from_bytes(damaged.to_bytes())


def test_rows_of_classes_that_do_not_ascend_are_refused() -> None:
    part, _ = part_of("coco")
    turned = {name: part.matches.extra[name][::-1] for name in EXTRA_COLUMNS[COUNTED].names}
    damaged = dataclasses.replace(part.matches, extra={**part.matches.extra, **turned})
    with pytest.raises(boxscore.FileFormatError, match=f"classes of {COUNTED} that do not ascend"):
        Part.from_bytes(dataclasses.replace(part, matches=damaged).to_bytes())


def test_parts_with_other_columns_are_not_merged() -> None:
    _, protocol, matches = case("coco", 5)
    parts = [matches.take_images(np.arange(len(matches.images)) % 2 == share) for share in range(2)]
    with pytest.raises(boxscore.InputError, match="same thresholds, area ranges, groups and order"):
        merge([filled(parts[0], protocol, 0), parts[1]])


# ---------------------------------------------------------------- the declarations themselves


def test_matches_have_what_their_protocol_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for column in MADE_UP:
        monkeypatch.delitem(EXTRA_COLUMNS, column.name)
    for name in PROTOCOLS:
        tables, protocol, matches = case(name, 5)
        asked = {c.name for c in EXTRA_COLUMNS.values() if c.asked_for(protocol)}
        assert {*matches.extra} == {name for name in asked if EXTRA_COLUMNS[name].axis != "class_image"}
        in_part = {one for name in asked if (c := EXTRA_COLUMNS[name]).in_parts for one in c.names}
        assert {*match_part(*tables, protocol).matches.extra} == in_part


def test_declarations_are_called_by_their_names() -> None:
    for name, column in EXTRA_COLUMNS.items():
        assert column.name == name
        assert ":" not in name
        assert column.kind != "bits" or column.axis == "pair"
