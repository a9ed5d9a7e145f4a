"""Docstrings are numpydoc; mkdocs reads Markdown. This griffe extension translates what differs."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([^`]+)`")
_TITLES = r"Goal|Conventions|Algorithms|Metrics|References|Notes|Differences[^\n]*"
_HEADING = re.compile(rf"^({_TITLES})\n-{{3,}}$", re.MULTILINE)


def _without_roles(text: str) -> str:
    return _ROLE.sub(lambda found: f"`{found[2].rsplit('.', 1)[-1] if found[1] else found[2]}`", text)


def _literal_blocks(text: str) -> str:
    """Turn ``word::`` and the indented block after it into ``word:`` and a fenced block."""
    lines, out, inside = text.split("\n"), [], False
    for number, line in enumerate(lines):
        if inside and line.strip() and not line.startswith("    "):
            while out and not out[-1].strip():
                out.pop()
            out += ["```", ""]
            inside = False
        if not inside and line.endswith("::"):
            below = next(filter(str.strip, lines[number + 1 :]), "")
            if below.startswith("    "):
                out += [line[:-1], "", "```text"]
                inside = True
                continue
        if inside and not line.strip() and out[-1] == "```text":
            continue
        out.append(line[4:] if inside else line)
    return "\n".join([*out, "```"] if inside else out)


class Docstrings(griffe.Extension):
    """Rewrite each docstring before it is parsed, and read what a face gives of the block of its imports."""

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Say that a package whose ``__all__`` is computed gives the names that it imports as themselves."""
        if mod.is_init_module and mod.exports is None and "lazy_names" in mod.imports:
            given = (name for name in mod.imports if name not in ("lazy_names", "TYPE_CHECKING"))
            mod.exports = sorted(given, key=lambda name: (name.islower(), name))

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Translate the docstring of one module, class, function or attribute."""
        if obj.docstring is None:
            return
        text = _literal_blocks(_without_roles(obj.docstring.value))
        # In a module these are headings of its text; elsewhere the numpydoc parser knows them.
        obj.docstring.value = _HEADING.sub(r"**\1**\n", text) if obj.is_module else text
