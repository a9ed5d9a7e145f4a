"""Reading small XML files safely and quickly, and finding the line of an element when a message needs it.

Conventions
-----------
- A document type declaration is refused before the parser sees it: entities, internal or external, are how
  an XML file blows up memory or reads other files, and no annotation tool writes them. To be sure that what
  is searched is what is parsed, the text is decoded here, by its byte order mark or its declaration.
- Elements are the standard library's. They do not know their lines: a file that breaks a rule is parsed once
  more, by the parser beneath, which counts lines.
"""

from __future__ import annotations

import codecs
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from boxscore.errors import FileFormatError

__all__ = ["XmlFile", "read_xml"]

_DECLARED = re.compile(rb"""\A\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class XmlFile(NamedTuple):
    """An XML file and its outermost element."""

    path: Path
    root: ElementTree.Element

    def place(self, element: ElementTree.Element) -> str:
        """Name the file and the line in which an element starts."""
        number = next(number for number, other in enumerate(self.root.iter()) if other is element)
        return f"{self.path}, line {_line_of(_text(self.path), number)}"


def read_xml(path: Path) -> XmlFile:
    """Read an XML file.

    Raises
    ------
    FileFormatError
        When the file cannot be read, is not XML, or declares a document type.
    """
    text = _text(path)
    if not text.strip():
        raise FileFormatError("an XML file", "hold XML", got="an empty file", place=str(path))
    found = text.find("<!DOCTYPE")
    if found >= 0:
        place = f"{path}, line {text.count(chr(10), 0, found) + 1}"
        cause = "entities are not read"
        raise FileFormatError("an XML file", "have no DOCTYPE", got="one", place=place, cause=cause)
    try:
        return XmlFile(path, ElementTree.fromstring(text))
    except (ElementTree.ParseError, ValueError) as error:
        line = error.position[0] if isinstance(error, ElementTree.ParseError) else 1
        raise _malformed(path, line, str(error).split(":")[0]) from None


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    declared = _DECLARED.search(content, 0, 200)
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "")
    encoding = encoding or (declared[1].decode("ascii") if declared else "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _malformed(path, line, f"bytes that are not {encoding}") from None
    except (LookupError, ValueError):
        raise _malformed(path, 1, "unknown encoding") from None


def _malformed(path: Path, line: int, got: str) -> FileFormatError:
    return FileFormatError("an XML file", "be well-formed", got=got, place=f"{path}, line {line}")


def _line_of(text: str, number: int) -> int:
    """Return the line in which the element with this number, in document order from 0, starts."""
    lines: list[int] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda *_: lines.append(parser.CurrentLineNumber)
    parser.Parse(text, True)
    return lines[number]
