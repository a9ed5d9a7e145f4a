"""Run boxscore evaluate with options from a TOML file.

Paths in the file are relative to the file. See configs/ for examples.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from boxscore._utils import checks
from boxscore._utils.given_paths import is_address, path_of
from boxscore.cli import evaluate
from boxscore.cli.arguments import Form, Option, declared, errors_as_typed, form_of, look_for_packages
from boxscore.cli.overwriting import inputs_protected
from boxscore.cli.streams import settings, using
from boxscore.errors import InputError, ProtocolError
from boxscore.protocols import load_protocol, read_toml

OPTIONS = (
    Option(
        "config", "a TOML file, such as configs/shapes-coco.toml", kind=Path, positional=True, required=True
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Run the file; return the exit status."""
    config, options = read_config(arguments.config), declared(evaluate.OPTIONS)
    config.strict = arguments.strict
    with (
        inputs_protected(options, config, config=arguments.config),
        using(settings()._replace(file=config.output.path, columns=config.show or ())),
        errors_as_typed(options, config, keys=True),
    ):
        look_for_packages(options, config)
        return evaluate.run(config)


def known_keys() -> dict[str, dict[str, Option]]:
    """Return all keys of a run configuration, by table, and their options."""
    tables: dict[str, dict[str, Option]] = {}
    for option in declared(evaluate.OPTIONS):
        if option.key:
            table, key = option.key.split(".")
            tables.setdefault(table, {})[key] = option
    return tables


def read_config(path: Path) -> argparse.Namespace:
    """Read a run configuration into the arguments of ``boxscore evaluate``."""
    try:
        return _read_config(path)
    except InputError as error:
        text = str(error)
        raise ProtocolError(text if text.startswith(f"{path}: ") else f"{path}: {text}") from None


def _read_config(path: Path) -> argparse.Namespace:
    # Check every key by name, so that a typo does not silently select a default.
    config, known = read_toml(path), known_keys()
    for table, values in config.items():
        if table not in known:
            raise ProtocolError(checks.unknown_key(table, table, known))
        if not isinstance(values, dict):
            raise ProtocolError(table, "be a table", got=repr(values))
        for key in values:
            if key not in known[table]:
                raise ProtocolError(checks.unknown_key(f"{table}.{key}", key, known[table]))
    # Check values like those of the command line; find a missing protocol before reading any file.
    values = {
        option.dest: _value(option, config.get(table, {}), key, path.parent)
        for table, options in known.items()
        for key, option in options.items()
    }
    if values["protocol"] is not None and not values["protocol"].endswith(".toml"):
        load_protocol(values["protocol"])
    return argparse.Namespace(**values)


_KINDS: Mapping[Any, tuple[Any, str]] = {
    str: (str, "a string"),
    Path: (str, "a string"),
    path_of: (str, "a string"),
    bool: (bool, "true or false"),
    float: (float, "a number"),
    int: (int, "a whole number"),
    list: (list, "a list"),
}
"""TOML type of each kind of option, and its name in messages."""


def _value(option: Option, values: Mapping[str, Any], key: str, folder: Path) -> Any:
    """Return an option's value as argparse would: checked, or its default; paths are relative to the file."""
    # An empty string leaves an option out.
    value: Any = values.get(key)
    if value is None or (value == "" and not option.required):
        if option.required:
            raise ProtocolError(option.key, "be given", got="none")
        return option.default
    # Take TOML types as they are, except that an integer may be used as a float.
    kind, wanted = _KINDS[list if option.many else option.kind if option.kind in _KINDS else str]
    if kind is float and type(value) is int:
        value = float(value)
    # Not isinstance: a bool is not an integer here.
    if type(value) is not kind:
        raise ProtocolError(option.key, f"be {wanted}", got=repr(value))
    # Check each item of a list like the option.
    if option.many:
        value = [_item(option, item) for item in value]
    texts = value if isinstance(value, list) else [value]
    if any("\0" in text for text in texts if isinstance(text, str)):
        raise ProtocolError(option.key, "not contain a NUL character", got=repr(value))
    if option.many:
        return value
    # Convert strings as argparse would.
    if option.kind is form_of:
        return _form(value, option.key, folder)
    if option.known():
        checks.one_of(value, option.known(), name=option.key)
    if option.kind is path_of and is_address(value):
        return path_of(value)
    if option.kind in (Path, path_of) or (option.ending and value.endswith(option.ending)):
        return option.kind(os.path.normpath(folder / value))
    return value


def _form(text: str, key: str, folder: Path) -> Form:
    """Return the output form; a file path is relative to the configuration's folder."""
    form = form_of(text, key)
    if form.path is not None:
        form.path = Path(os.path.normpath(folder / form.path))
    return form


def _item(option: Option, item: Any) -> Any:
    """Return an item of a list as argparse would convert it."""
    if option.kind is int and type(item) is not int:
        raise ProtocolError(option.key, "be a list of whole numbers", got=repr(item))
    return item if option.kind is int else str(item)
