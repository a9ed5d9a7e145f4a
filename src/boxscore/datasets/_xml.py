"""Reading small XML files safely: a tree of elements, each with its line.

Conventions
-----------
A document type declaration is refused before anything in it is read: entities, internal or external, are
how an XML file blows up memory or reads other files, and no annotation tool writes them. Nesting is limited.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from xml.parsers import expat

from boxscore._validate import message
from boxscore.errors import FileFormatError

__all__ = ["Element", "read_xml"]

DEEPEST = 50


@dataclasses.dataclass(slots=True)
class Element:
    """An XML element: its tag, text, children, and the line it starts in."""

    tag: str
    line: int
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = dataclasses.field(default_factory=list)

    def find(self, tag: str) -> Element | None:
        """Return the first child with a tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> list[Element]:
        """Return the children with a tag, in file order."""
        return [child for child in self.children if child.tag == tag]

    def text_of(self, tag: str) -> str | None:
        """Return the text of the first child with a tag, None without one or when it is blank."""
        child = self.find(tag)
        return (child.text.strip() or None) if child else None


class _RefusedError(Exception):
    """Raised inside a handler to stop the parser."""


def read_xml(path: Path) -> Element:
    """Read an XML file.

    Raises
    ------
    FileFormatError
        When the file cannot be read, is not XML, declares a document type, or nests too deeply.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    if not content.strip():
        raise FileFormatError(message("an XML file", "hold XML", got="an empty file", place=str(path)))
    root = Element("", 0, {})
    stack = [root]
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) > DEEPEST:
            raise _RefusedError(
                message("an XML file", f"nest at most {DEEPEST} deep", got="more", place=place())
            )
        element = Element(tag, parser.CurrentLineNumber, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        stack.pop()

    def characters(text: str) -> None:
        stack[-1].text += text

    def document_type(*_: object) -> None:
        raise _RefusedError(
            message("an XML file", "have no DOCTYPE", got="one", place=place(), cause="entities are not read")
        )

    def place() -> str:
        return f"{path}, line {parser.CurrentLineNumber}"

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(content, True)
    except _RefusedError as error:
        raise FileFormatError(str(error)) from None
    except (expat.ExpatError, ValueError, LookupError) as error:
        line = getattr(error, "lineno", parser.CurrentLineNumber)
        text = str(error).split(":")[0]
        raise FileFormatError(
            message("an XML file", "be well-formed", got=text, place=f"{path}, line {line}")
        ) from None
    return root.children[0]
