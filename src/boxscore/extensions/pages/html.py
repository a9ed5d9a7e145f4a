"""Render one HTML file that works offline and runs only its own script.

Conventions
-----------
- Jinja2 with autoescape writes the content that is readable without a script; the script draws the rest from
  embedded JSON.
- The embedded JSON has ``<``, ``>``, ``&`` and the line separators U+2028 and U+2029 escaped, so that no name
  in it can close its element.
- A Content-Security-Policy allows only this style sheet and this script, by hash, and ``data:`` images.
  Nothing can be fetched, even if a name were injected into the page. A served page may send requests to its
  server.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from importlib import resources
from typing import Any
from urllib.parse import quote

from boxscore._utils.text import json_value, signed_text
from boxscore._version import __version__
from boxscore.errors import MissingDependencyError

SCRIPTS = (
    "base",
    "address",
    "charts",
    "table",
    "curves",
    "gallery",
    "first",
    "confusion",
    "comparison",
    "copying",
    "phone",
    "main",
)
"""Script files in the order in which they are joined."""

LIVE_SCRIPTS = (*SCRIPTS[:-1], "live", SCRIPTS[-1])
"""Script files of a served page, which may send requests to its server."""

STYLES = ("report", "first", "gallery", "comparison")
"""Style sheets in the order in which they are joined."""

SECTIONS = {
    "summary": "Summary",
    "findings": "Data issues",
    "pairs": "Pairs",
    "classes": "Classes",
    "sizes": "Sizes",
    "curves": "Curves",
    "confidence": "Threshold",
    "analysis": "Errors removed",
    "confusion": "Confusion",
    "errors": "Errors",
    "calibration": "Calibration",
    "won_lost": "Wins and losses",
    "differing": "Images",
    "gallery": "Images",
}
"""Menu label of each section, in the order of the page."""

_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_SECTION = re.compile('<section id="([a-z_]+)"')
_STEERING = ("Cc", "Cs")
_NUMBERS = frozenset({bool, int, float, type(None)})
_DIRECTION = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def embedded_json(value: Any) -> str:
    """Write JSON that is safe inside an HTML script element; NaN and infinities become null."""
    plainly = _plain_texts(json_value(value))
    text = json.dumps(plainly, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for mark, escape in _ESCAPES.items():
        text = text.replace(mark, escape)
    return text


def plain(value: object) -> str:
    """Replace control characters and direction marks, which could change how the page reads."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(mark) in _STEERING or mark in _DIRECTION else mark
        for mark in str(value)
    )


def _signed(value: float) -> str:
    return signed_text(value).replace("-", "\N{MINUS SIGN}")


def address(section: str, **values: object) -> str:
    """Return the URL fragment of a section and a selection in it: ``#gallery?class=cat``."""
    chosen = "&".join(f"{key}={quote(plain(value), safe='')}" for key, value in values.items())
    return f"#{section}?{chosen}" if chosen else f"#{section}"


def file_name(source: str) -> str:
    """Return the last part of a path: a page does not reveal folders."""
    return re.split(r"[/\\]", source.rstrip("/\\"))[-1]


def _without_folders(view: Mapping[str, Any]) -> Mapping[str, Any]:
    """Shorten the paths in findings to file names."""
    names = {source: file_name(source) for source in view["sources"] if file_name(source)}

    def shortened(text: str) -> str:
        for source, name in names.items():
            text = text.replace(source, name)
        return text

    findings = [
        note._replace(text=shortened(note.text), examples=tuple(map(shortened, note.examples)))
        for note in view["findings"]
    ]
    return {**view, "findings": findings}


def _plain_texts(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else plain(value)
    if isinstance(value, list):
        return value if _NUMBERS.issuperset(map(type, value)) else [_plain_texts(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain_texts(item) for key, item in value.items()}
    return value


@functools.cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@functools.cache
def _style() -> str:
    return "\n".join(_asset(f"{name}.css") for name in STYLES)


@functools.cache
def _script(*, live: bool = False) -> str:
    parts = "\n".join(_asset(f"{name}.js") for name in (LIVE_SCRIPTS if live else SCRIPTS))
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


@functools.cache
def page_policy(*, live: bool = False) -> str:
    """Write the Content-Security-Policy of a page; a live page may send requests to its own server."""
    rules = {
        "default-src": "'none'",
        "script-src": _hash(_script(live=live)),
        "style-src": _hash(_style()),
        "img-src": "'self' data:" if live else "data:",
        **({"connect-src": "'self'"} if live else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


@functools.cache
def _environment() -> Any:
    # Import Jinja2 here, because it is optional.
    try:
        import jinja2
    except ImportError:
        raise MissingDependencyError("An HTML report needs Jinja2: pip install jinja2.") from None
    # Escape all values unless they are marked; a missing one is an error, not an empty text.
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    environment.filters["signed"] = _signed
    environment.globals["address"] = address
    environment.filters["file_name"] = file_name
    return environment


def render_page(view: Mapping[str, Any], *, template: str = "report") -> str:
    """Render a whole HTML document from the view of an evaluation, of two or of several."""
    # Remove folders of this machine from a page that may be shared.
    environment = _environment()
    from markupsafe import Markup

    view = _without_folders(view)

    # Leave the parts that the template renders out of the data for the script.
    live = "live" in view
    style, script = _style(), _script(live=live)
    static = (
        *("findings", "conclusions", "table", "summary", "signature", "sources", "counts", "rows"),
        *("detectors", "links", "worst", "answers", "turned", "image_rows", "groups"),
    )
    body = environment.get_template(f"{template}.html.j2")
    # Mark only our own style, script and encoded data as safe.
    page: str = body.render(
        view=view,
        sections=_sections,
        policy=Markup(page_policy(live=live)),
        style=Markup(style),
        script=Markup(script),
        payload=Markup(embedded_json({k: v for k, v in view.items() if k not in static})),
    )
    return page


def render_static(view: Mapping[str, Any], *, template: str) -> str:
    """Render a document without a script, with its own style sheet and the common one."""
    environment = _environment()
    from markupsafe import Markup

    style = "\n".join([_style(), _asset(f"{template}.css")])
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    body = environment.get_template(f"{template}.html.j2")
    page: str = body.render(view=view, style=Markup(style), policy=Markup(policy), version=__version__)
    return page


def _sections(content: str) -> list[tuple[str, str]]:
    """Return id and menu label of each section in a page's content, in its order."""
    return [(key, SECTIONS[key]) for key in _SECTION.findall(content) if key in SECTIONS]
