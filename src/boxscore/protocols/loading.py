"""Read protocols from the TOML files that ship with boxscore, and from the user's.

Conventions
-----------
- This module locates, parses and merges files; each field checks its value.
- Shipped files are in this folder, and in the folders ``protocols`` of extensions. Their names are unique.
- A file may contain ``extends = "coco"`` (or the path of another file) and only the differences. Tables merge
  key by key; grids, area ranges, lists and the summary replace the parent's. Unknown keys are errors.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.files import read_bytes
from boxscore.errors import ProtocolError
from boxscore.protocols.fields import all_fields, meant_protocols
from boxscore.protocols.protocol import Protocol, describing_fields

IOU_TYPES = {"bbox": "coco", "segm": "coco-segm", "boundary": "coco-boundary", "keypoints": "coco-keypoints"}
"""COCO's protocol for each IoU type of pycocotools."""

_FOLDERS = (".", "../extensions/*/protocols")
"""Folders of shipped protocols, relative to this one: the core's, and one per extension."""


def protocol_names() -> list[str]:
    """Names of the protocols that ship with boxscore."""
    return list(_files())


@functools.cache
def _files() -> Mapping[str, Path]:
    """Return the files of shipped protocols by name, in alphabetical order."""
    here = Path(__file__).parent
    files = [file for folder in _FOLDERS for file in here.glob(f"{folder}/*.toml")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


def protocol_toml(name: str) -> str:
    """Return the TOML text of a protocol that ships with boxscore."""
    names = protocol_names()
    if name not in names:
        meant = meant_protocols(name, names)
        cause = f"did you mean {' or '.join(map(repr, meant))}?" if meant else checks.nearest(name, names)
        cause = cause or "boxscore protocols lists them"
        raise ProtocolError("protocol", "be a known name or a .toml file", got=repr(name), cause=cause)
    return _files()[name].read_text(encoding="utf-8")


def load_protocol(protocol: str | Path | Mapping[str, Any] | Protocol) -> Protocol:
    """Return a protocol by name, from a user's TOML file, or from a mapping.

    Parameters
    ----------
    protocol : str, Path, mapping or Protocol
        A shipped name (``"coco"``, ``"voc2007"``), a path that ends in ``.toml``, or a mapping with the
        keys of such a file. A Protocol is returned as it is.

    Returns
    -------
    Protocol

    Raises
    ------
    ProtocolError
        When a key or value breaks a rule; the message names the file and the key.

    Examples
    --------
    >>> strict = load_protocol({"extends": "coco", "matching": {"iou_thresholds": [0.75]}, "summary": []})
    >>> strict.matching.iou_thresholds
    (0.75,)
    """
    if isinstance(protocol, Protocol):
        return protocol
    if isinstance(protocol, Mapping):
        return Protocol.read(_resolve(dict(protocol), seen=()))
    if str(protocol).endswith(".toml"):
        path = Path(protocol)
        values = read_toml(path)
        values.setdefault("name", path.stem)
        try:
            return Protocol.read(_resolve(values, seen=(str(path.resolve()),), folder=path.parent))
        except ValueError as error:
            raise ProtocolError(f"{path}: {error}") from None
    return Protocol.read(_resolve(_shipped(str(protocol)), seen=()))


def protocol_of_type(protocol: Protocol, iou_type: str) -> Protocol:
    """Return the variant of a protocol that compares the objects that ``iou_type`` names.

    ``of_type`` is valid only for the protocol as written: clear it in a changed copy.

    Parameters
    ----------
    protocol : Protocol
    iou_type : {"bbox", "segm", "boundary", "keypoints"}

    Returns
    -------
    Protocol
        The given protocol if it already compares this type; else the one named in its ``of_type``; else the
        given one with masks in place of boxes.

    Raises
    ------
    ProtocolError
        When the protocol compares neither boxes nor the wanted type, or does not support keypoints.
    """
    wanted = load_protocol(IOU_TYPES[checks.one_of(iou_type, list(IOU_TYPES), name="iou_type")])
    if protocol.similarity == wanted.similarity:
        return protocol
    if iou_type in protocol.of_type:
        return load_protocol(protocol.of_type[iou_type])
    if protocol.similarity != "box" or wanted.similarity == "keypoints":
        rule = f"compare {wanted.similarity}, as the IoU type {iou_type!r} does"
        raise ProtocolError(
            f"protocol {protocol.name}", rule, got=protocol.similarity, cause=f"extend {wanted.name!r}"
        )
    ignore = protocol.ignore.replaced(detection_area=wanted.ignore.detection_area)
    return protocol.replaced(name=f"{protocol.name}-{iou_type}", similarity=wanted.similarity, ignore=ignore)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    ProtocolError
        When it cannot be read or is not TOML.
    """
    try:
        text = read_bytes(path).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8 text"
        raise ProtocolError(f"{path}: cannot be read: {reason}.") from None
    return _parse_text(text, str(path))


def _parse_text(text: str, source: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ProtocolError(f"{source}: must be TOML. It is nested too deep.") from None
    except tomllib.TOMLDecodeError as error:
        raise ProtocolError(f"{source}: must be TOML. {error}.") from None
    except ValueError:
        raise ProtocolError(f"{source}: must be TOML. A whole number in it is too long.") from None


def _shipped(name: str) -> dict[str, Any]:
    """Return a copy of the values of a shipped protocol."""
    return copy.deepcopy(_parsed(name))


@functools.cache
def _parsed(name: str) -> dict[str, Any]:
    return _parse_text(protocol_toml(name), f"protocol {name}")


def _resolve(values: dict[str, Any], *, seen: tuple[str, ...], folder: Path | None = None) -> dict[str, Any]:
    """Merge a protocol into its parent."""
    # A parent is a shipped name, or a file relative to the one that names it.
    parent = values.pop("extends", None)
    if parent is None:
        return values
    if not isinstance(parent, str):
        raise ProtocolError("extends", "be a protocol's name or file", got=repr(parent))
    if parent.endswith(".toml"):
        path = (folder or Path()) / parent
        key, raw, where = str(path.resolve()), read_toml(path), path.parent
    else:
        key, raw, where = parent, _shipped(parent), None
    # Remember every protocol on the way, to detect cycles.
    if key in seen:
        raise ProtocolError(
            "extends", "not go in a circle", got=" -> ".join(Path(name).name for name in [*seen, key])
        )
    # Drop fields that describe the parent, such as its title.
    base = _resolve(raw, seen=(*seen, key), folder=where)
    for key in describing_fields(Protocol):
        base.pop(key, None)
    return _merged(base, values)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    whole = {field.name for field in all_fields(Protocol) if field.rule.replaces}
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict) and key not in whole:
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = value
    return merged
