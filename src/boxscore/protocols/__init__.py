"""The rules, as data: what a protocol is, and how it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names
from boxscore.protocols.loading import (
    IOU_TYPES,
    load_protocol,
    protocol_names,
    protocol_of_type,
    protocol_toml,
    read_toml,
)
from boxscore.protocols.protocol import Protocol

if TYPE_CHECKING:
    from boxscore.protocols.changing import changed_protocol

__getattr__, __dir__ = lazy_names(__name__, {"boxscore.protocols.changing": ["changed_protocol"]})

__all__ = [
    "IOU_TYPES",
    "Protocol",
    "changed_protocol",
    "load_protocol",
    "protocol_names",
    "protocol_of_type",
    "protocol_toml",
    "read_toml",
]
