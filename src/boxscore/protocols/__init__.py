"""The rules, as data: what a protocol is, and how it is read."""

from boxscore.protocols.changing import changed_protocol
from boxscore.protocols.loading import (
    IOU_TYPES,
    load_protocol,
    protocol_names,
    protocol_of_type,
    protocol_toml,
    read_toml,
)
from boxscore.protocols.protocol import Protocol

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
