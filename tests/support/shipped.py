"""The shipped protocols, each parsed once for all tests of a process."""

from __future__ import annotations

import functools

from boxscore.protocols import Protocol, load_protocol, protocol_names


@functools.cache
def shipped() -> dict[str, Protocol]:
    """Return the protocols that ship, by name."""
    return {name: load_protocol(name) for name in protocol_names()}


def box_protocols(*without: str) -> list[str]:
    """Return the names of the protocols whose similarity is that of upright boxes, but for some."""
    return [
        name for name, protocol in shipped().items() if protocol.similarity == "box" and name not in without
    ]
