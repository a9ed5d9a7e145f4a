"""What a protocol is called: nothing here changes a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boxscore._utils.records import part
from boxscore.errors import ProtocolError
from boxscore.protocols.acting import DESCRIBES
from boxscore.protocols.fields import Check, Rules, list_of, rule, text

__all__ = ["NamingFields"]


def _strings(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = string", got=repr(value))
    return {key: text(item, f"{name}.{key}") for key, item in value.items()}


@part(frozen=True)
class NamingFields(Rules):
    """Names and titles, which a protocol that extends this one does not take over."""

    name: str = rule(
        check=text,
        doc="Stands in the signature; not taken over by a protocol that extends this one.",
        scope=DESCRIBES,
    )
    title: str = rule(
        "",
        check=text,
        doc="One line for people; not taken over.",
        scope=DESCRIBES,
    )
    aliases: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Other names by which `boxscore explain` knows the tool that scores so; not taken over.",
        scope=DESCRIBES,
    )
    of_type: Mapping[str, str] = rule(
        {},
        check=Check("IoU type = protocol", _strings),
        doc="The protocols that take this one's place when `--iou-type` asks for something else; not taken "
        "over.",
        scope=DESCRIBES,
    )
