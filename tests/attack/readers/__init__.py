"""Every reader that is attacked, by name.

To add one: a module here with its ``READERS``, and its name in the line below. A reader makes a mutant (files and a
command) from a generator of random numbers, and may name an oracle for what is accepted.
"""

from __future__ import annotations

from attack.engine.mutant import Reader
from attack.readers import coco, columns, lists, options, outputs, pictures, results, toml, voc

__all__ = ["READERS"]

READERS: dict[str, Reader] = {
    name: reader
    for module in (coco, voc, columns, toml, lists, results, options, outputs, pictures)
    for name, reader in module.READERS.items()
}
