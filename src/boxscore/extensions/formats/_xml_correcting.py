"""Correct labels in VOC and CVAT XML, and copy detections of CVAT, keeping all other text byte for byte."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from boxscore._utils.files import read_bytes, write_atomically
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.vocabulary import Id
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.extensions.formats.cvat import FORMAT, SCORE, SCORES, file_in
from boxscore.formats._voc_xml import read_xml

if TYPE_CHECKING:
    from boxscore.extensions.formats.correcting import Correction
    from boxscore.formats._survivors import Survivors

SIDES = ("xmin", "ymin", "xmax", "ymax")
CVAT_SIDES = ("xtl", "ytl", "xbr", "ybr")
_ATTRIBUTES = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*?"
_SHAPE = re.compile(rf"<(box|polygon|ellipse|mask)\s{_ATTRIBUTES}>")
_WHOLE = re.compile(
    rf"\s*(<(?:box|polygon|ellipse|mask)\s{_ATTRIBUTES})(?:/>|>(?:[^<]|<(?!/(?:box|polygon|ellipse|mask)\b))*</\w+\s*>)"
)
"""A shape with the space before it; the group is its opening tag, without the end."""
_SCORE_TEXT = re.compile(
    rf"<attribute\b[^>]*?\sname\s*=\s*([\"'])({'|'.join(SCORES)})\1[^>]*(?<!/)>(.*?)</attribute\s*>",
    re.IGNORECASE | re.DOTALL,
)
"""An attribute with a score; the groups are a quote, its name and its text."""
_IMAGE = re.compile(rf"<image\s({_ATTRIBUTES})(?:/>|>(.*?)</image\s*>)", re.DOTALL)


def corrected_voc(
    path: Path, corrections: Sequence[Correction], image_set: str | Path | None
) -> dict[Path, bytes]:
    """Return the changed files of a VOC folder."""
    # Edit the text, so that everything but the corrected values stays byte for byte.
    folder, files = path / "Annotations" if (path / "Annotations").is_dir() else path, {}
    for image, some in by_image(corrections).items():
        # Blank comments without moving a character, so that positions are the same in both texts.
        file = folder / f"{image}.xml"
        text = _read_utf8(file)
        plain = _without_comments(text)
        objects = [*re.finditer(r"<object\b[^>]*>.*?</object\s*>", plain, re.DOTALL)]
        end = plain.lower().rfind("</annotation")
        # Collect new objects, and add them together at the end.
        spans: dict[tuple[int, int], str] = {}
        added = []
        for one in some:
            if one.place is None:
                added.append(_new_object(one))
                continue
            # Blank ``part`` elements, which have boxes of their own, then collect the spans to replace.
            start, stop = objects[one.place].span()
            inside = re.sub(
                r"<part\b.*?</part\s*>", lambda match: " " * len(match[0]), plain[start:stop], flags=re.DOTALL
            )
            spans[_content_span(inside, start, "name", file)] = html.escape(one.label, quote=False)
            if one.box is not None:
                low, high = _content_span(inside, start, "bndbox", file)
                for side, value in zip(SIDES, one.box, strict=True):
                    spans[_content_span(plain[low:high], low, side, file)] = _plain(value)
        # Insert new objects after the last one, indented like the first.
        if added:
            first = objects[0].start() if objects else 0
            gap = text[len(text[:first].rstrip()) : first] if objects else "\n  "
            at = objects[-1].end() if objects else len(text[:end].rstrip())
            spans[at, at] = "".join(f"{gap}{one}" for one in added)
        files[file] = _replace_spans(text, spans).encode()
    return files


def corrected_cvat(
    path: Path, corrections: Sequence[Correction], image_set: str | Path | None
) -> dict[Path, bytes] | None:
    """Return the corrected CVAT file of images; None for tracks."""
    # Edit the text; blank comments without moving a character.
    file = file_in(path)
    text = _read_utf8(file)
    plain = _without_comments(text)
    if re.search(r"<track\b", plain):
        return None
    # Find images by name, or by id if unnamed; a name used twice is not supported.
    images: dict[str, list[re.Match[str]]] = {}
    for match in _IMAGE.finditer(plain):
        images.setdefault(_attribute(match[1], "name") or _attribute(match[1], "id"), []).append(match)
    spans: dict[tuple[int, int], str] = {}
    for image, some in by_image(corrections).items():
        # Count shapes with a label, as the reader does.
        matches = images.get(some[0].file_name or str(image), [])
        if len(matches) != 1:
            return None
        inside, start = (matches[0][2] or ""), matches[0].start(2)
        shapes = [shape for shape in _SHAPE.finditer(inside) if _attribute(shape[0], "label")]
        added = ""
        for one in some:
            if one.place is None:
                assert one.box is not None, "a new label has a box"
                # Append a new box in CVAT's form after the image's other shapes.
                sides = " ".join(
                    f'{side}="{_plain(value)}"' for side, value in zip(CVAT_SIDES, one.box, strict=True)
                )
                label = html.escape(one.label)
                box = f'<box label="{label}" source="manual" occluded="0" {sides} z_order="0"></box>'
                added += f"  {box}\n  "
                continue
            # Replace attribute values in place, between the existing quotes.
            shape = shapes[one.place]
            values = {"label": html.escape(one.label)}
            if one.box is not None:
                if shape[1] != "box":
                    rule = "be a box to be drawn again"
                    raise InputError("a label", rule, got=f"a {shape[1]}", place=str(file))
                values |= dict(zip(CVAT_SIDES, map(_plain, one.box), strict=True))
            for name, value in values.items():
                # Match the value between single or double quotes.
                found = re.search(rf"\s{name}\s*=\s*([\"'])(.*?)\1", shape[0])
                assert found is not None, "the file was read"
                at = start + shape.start()
                spans[at + found.start(2), at + found.end(2)] = value
        # An image without shapes may be a self-closing tag: open it first.
        if added:
            if matches[0][2] is None:
                opening = text[matches[0].start() : matches[0].end()].removesuffix("/>")
                spans[matches[0].span()] = f"{opening}>\n  {added}</image>"
            else:
                spans[matches[0].end(2), matches[0].end(2)] = added
    return {file: _replace_spans(text, spans).encode()}


def rewrite_cvat(path: Path, survivors: Survivors, output: Path) -> None:
    """Copy the surviving shapes of images and all other text; write tracks as images of boxes."""
    file = file_in(path)
    content = read_bytes(file)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "<track"
    plain = _without_comments(text)
    if re.search(r"<track\b|<!\[CDATA\[", text) or output.suffix != ".xml":
        _save_boxes(file, survivors, output)
        return
    # Rows are shapes with a label, as the reader counts them.
    spans: dict[tuple[int, int], str] = {}
    scores: list[float] = []
    for image in _IMAGE.finditer(plain):
        for shape in _WHOLE.finditer(plain, *image.span(2)) if image[2] else ():
            if not _attribute(shape[1], "label"):
                continue
            found = _SCORE_TEXT.finditer(plain, *shape.span())
            given = [each for each in found if each[3].strip()]
            texts = [each.span(3) for each in given]
            row = len(scores)
            scores.append(_number(plain[slice(*texts[0])]) if texts else math.nan)
            if row >= survivors.total:
                continue
            if not survivors.wanted[row]:
                spans[shape.span()] = ""
                continue
            score, box = survivors.changes(row)
            if box is None:
                spans |= {span: repr(score) for span in texts if score is not None}
            else:
                # A merged shape is an upright box.
                sides = " ".join(
                    f'{side}="{_plain(value)}"' for side, value in zip(CVAT_SIDES, box, strict=True)
                )
                label = html.escape(_attribute(shape[1], "label"))
                name = given[0][2] if given else SCORE
                value = f'<attribute name="{name}">{scores[row] if score is None else score!r}</attribute>'
                new = f'<box label="{label}" occluded="0" {sides} z_order="0">{value}</box>'
                spans[shape.start(1), shape.end()] = new
    # Scores between comments or in pieces are numbers to a parser alone.
    if len(scores) != survivors.total or any(map(math.isnan, scores)):
        _save_boxes(file, survivors, output)
        return
    if survivors.are_compared:
        survivors.check_rows(np.arange(survivors.total), scores, None)
    survivors.check_files()
    write_atomically(output, _replace_spans(text, spans).encode())


def _save_boxes(file: Path, survivors: Survivors, output: Path) -> None:
    """Write the boxes and scores of survivors alone, and tell what else the file has."""
    table, root = survivors.as_table(), read_xml(file).root
    FORMAT.save(table, output, like=file)
    if root.find("track") is not None:
        text = f"{output}: the tracks of {file} are written as images, one per frame."
        warn_user(BoxscoreWarning(text, severity="note"))
    # Attributes of shapes have a name, unlike those that labels declare; ``save`` warns of rotated boxes.
    names = [name for each in root.iter("attribute") if (name := each.get("name"))]
    lost = [repr(name) for name in dict.fromkeys(names) if name.lower() not in SCORES]
    what = [f"attributes of shapes ({short_list(lost)})"] * bool(lost)
    if table.rotated is None and any(_number(each.get("rotation") or "0") % 360 for each in root.iter()):
        what.append("the rotation of shapes")
    if what:
        warn_user(f"{output}: leaves out {' and '.join(what)}: only boxes and their scores are written.")


def by_image(corrections: Sequence[Correction]) -> dict[Id, list[Correction]]:
    """Group corrections by image."""
    made: dict[Id, list[Correction]] = {}
    for one in corrections:
        made.setdefault(one.image, []).append(one)
    return made


def _new_object(one: Correction) -> str:
    assert one.box is not None, "a new label has a box"
    sides = "".join(f"<{side}>{_plain(value)}</{side}>" for side, value in zip(SIDES, one.box, strict=True))
    name = html.escape(one.label, quote=False)
    return f"<object><name>{name}</name><difficult>0</difficult><bndbox>{sides}</bndbox></object>"


def _content_span(text: str, start: int, tag: str, file: Path) -> tuple[int, int]:
    """Return the span of the content of the first element with a tag; ``text`` starts at ``start``."""
    match = re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}\s*>", text, re.DOTALL)
    if match is None:
        raise InputError("an object", f"have {tag} to be corrected", got="none", place=str(file))
    return start + match.start(1), start + match.end(1)


def _attribute(text: str, name: str) -> str:
    match = re.search(rf"(?:^|\s){name}\s*=\s*([\"'])(.*?)\1", text)
    return html.unescape(match[2]) if match else ""


def _number(text: str) -> float:
    """Return the number of a text; NaN for other text."""
    try:
        return float(html.unescape(text))
    except ValueError:
        return math.nan


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _replace_spans(text: str, spans: Mapping[tuple[int, int], str]) -> str:
    """Replace non-overlapping spans of a text."""
    parts, at = [], 0
    for (start, end), new in sorted(spans.items()):
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def _without_comments(text: str) -> str:
    """Return XML with comments and CDATA blanked out; positions stay the same."""
    return re.sub(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", lambda match: " " * len(match[0]), text, flags=re.DOTALL)


def _read_utf8(file: Path) -> str:
    """Return the text of a UTF-8 file; UTF-8 is the default encoding of XML."""
    try:
        return read_bytes(file).decode("utf-8")
    except UnicodeDecodeError:
        rule = "be UTF-8 to be corrected"
        raise InputError("an XML file", rule, got="another encoding", place=str(file)) from None
