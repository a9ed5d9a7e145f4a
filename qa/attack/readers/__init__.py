"""Every reader that is attacked, by name.

To add one: a module here with its ``READERS``, and its name in the lines below. A reader makes a mutant (files and a
command) from a generator of random numbers, and may name an oracle for what is accepted.
"""

from __future__ import annotations

from attack.engine.mutant import Reader
from attack.readers import (
    annotations,
    archives,
    choices,
    coco,
    columns,
    conversions,
    lists,
    options,
    outputs,
    partitions,
    pictures,
    results,
    tables,
    toml,
    voc,
    yolo,
)

__all__ = ["READERS"]

FILES = (coco, voc, columns, yolo, tables, annotations, archives)

READERS: dict[str, Reader] = {
    name: reader
    for module in (*FILES, toml, lists, choices, results, options, outputs, conversions, pictures, partitions)
    for name, reader in module.READERS.items()
}
