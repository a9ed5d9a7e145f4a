"""List the protocols that come with boxscore, or print one as TOML, to write your own from."""

from __future__ import annotations

import argparse

from boxscore._utils.text import text_table
from boxscore.cli.arguments import Option
from boxscore.cli.streams import show, table_width
from boxscore.protocols import load_protocol, protocol_names, protocol_toml

OPTIONS = (Option("name", "print this protocol's TOML", positional=True),)


def run(arguments: argparse.Namespace) -> int:
    """Print; return the exit status."""
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
