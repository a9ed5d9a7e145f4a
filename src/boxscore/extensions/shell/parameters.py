"""Make options from the parameters of the function that a command calls.

Conventions
-----------
- An option has the name, type and default of a keyword-only parameter, and the values of a ``Literal`` as its
  choices. Its help is the first sentence of the parameter's text in the docstring, so a new parameter of the
  function needs no change of the command.
- If a command needs another option for a parameter, it passes one with the same ``dest``, which replaces it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from boxscore.cli.arguments import Option
from boxscore.cli.parser import documentation

METAVARS = {
    "area": "NAME",
    "at_precision": "P",
    "at_recall": "R",
    "at_score": "S",
    "background_iou": "T",
    "confidence": "P",
    "fppi": "N",
    "group": "COLUMN",
    "iou_threshold": "T",
    "score_threshold": "S",
}
"""Placeholders of values in the help; integers without an entry use N."""

SHORT = {"iou_threshold": "--iou", "score_threshold": "--conf"}
"""Names of options in other tools."""

METRICS = Option(
    "metrics", "only these summary metrics, e.g. AP AP50", many=True, commas=True, metavar="NAME"
)

_KINDS: dict[str, type] = {"bool": bool, "float": float, "int": int, "str": str}


def options_of(function: Callable[..., Any], extra: Sequence[Option] = ()) -> tuple[Option, ...]:
    """Return options for a function's parameters, then those that only the command has.

    Parameters
    ----------
    function : callable
        Documented in numpydoc style. ``progress`` does not become an option, and ``workers`` belongs to every
        command.
    extra : sequence of Option
        Options of the command; one with the name of a parameter replaces the generated option.
    """
    given = {option.dest: option for option in extra}
    texts = _first_sentences(documentation(function))
    names = inspect.unwrap(function).__globals__
    options = [
        given.pop(name) if name in given else _option(parameter, texts.get(name, ""), names)
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and name not in ("progress", "workers")
    ]
    return (*options, *given.values())


def _option(parameter: inspect.Parameter, text: str, names: Mapping[str, Any]) -> Option:
    """Make one option; ``names`` are the globals of the function's module, to look up ``Literal`` types."""
    annotation = str(parameter.annotation).removesuffix(" | None")
    each = annotation.removeprefix("Sequence[").removesuffix("]")
    many = each != annotation
    return Option(
        parameter.name.replace("_", "-"),
        text,
        kind=_KINDS.get(each, str),
        default=parameter.default,
        choices=get_args(names[each]) if get_origin(names.get(each)) is Literal else (),
        metavar=METAVARS.get(parameter.name, "N" if each == "int" else ""),
        short=SHORT.get(parameter.name, ""),
        many=many,
        commas=many,
    )


def _first_sentences(docstring: str) -> dict[str, str]:
    """Return the first sentence about each parameter in the style of help: lower case, no full stop."""
    section = docstring.partition("Parameters\n----------\n")[2].partition("\n\nReturns\n")[0]
    texts = {}
    for entry in re.split(r"\n(?=\w)", section):
        name, _, text = entry.partition("\n")
        sentence = re.split(r"\.(?: |$)", " ".join(text.split()))[0].replace("``", "")
        word = sentence.partition(" ")[0]
        # Words such as IoU keep their capitals.
        if word == word.capitalize():
            sentence = sentence[:1].lower() + sentence[1:]
        texts[name.partition(" : ")[0]] = sentence
    return texts
