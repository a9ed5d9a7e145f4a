"""List the shipped protocols, or print one as TOML, as a template for your own."""

from __future__ import annotations

import argparse

from boxscore._utils.text import text_table
from boxscore.cli.arguments import Option
from boxscore.cli.streams import show, table_width
from boxscore.matching.points import POINTS
from boxscore.protocols import Protocol, load_protocol, protocol_names, protocol_toml
from boxscore.protocols.fields import all_fields

OPTIONS = (
    Option("name", "print this protocol's TOML", positional=True),
    Option(
        "stages", "print which rules of this protocol affect matching, and where", kind=bool, default=False
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Print; return the exit status."""
    if arguments.stages:
        show(_stages(load_protocol(arguments.name or "coco")))
        return 0
    if arguments.name:
        show(protocol_toml(arguments.name).removesuffix("\n"))
        return 0
    protocols = [load_protocol(name) for name in protocol_names()]
    columns = {
        "protocol": [protocol.name for protocol in protocols],
        "what it is": [protocol.title for protocol in protocols],
        "signature": [protocol.signature() for protocol in protocols],
    }
    show(text_table(columns, longest=400, width=table_width(), first_out=["signature"]))
    return 0


def _stages(protocol: Protocol) -> str:
    """List the effects of rules at each stage of matching, beyond COCO's own rules."""
    rules = [(field.path, each) for field in all_fields(protocol) for each in field.rule.does]
    asked = sorted((each for each in rules if each[1].when(protocol)), key=lambda each: each[1].order)
    rows = [(point, path, each.function) for point in POINTS for path, each in asked if each.point == point]
    if not rows:
        return f"{protocol.name}: only rules that every protocol has affect matching."
    columns = dict(zip(("point", "rule", "function"), map(list, zip(*rows, strict=True)), strict=True))
    return text_table(columns, longest=400, width=table_width())
