"""Run the command line: one module per command, listed in :mod:`boxscore.cli.commands`.

Conventions
-----------
- Only the selected subcommand is imported, to start fast.
- Results go to stdout; messages, warnings and progress go to stderr.
- Exit status: 0 done, 1 a check failed, 2 bad input, 3 out of memory, 130 interrupted, 143 terminated.
- :func:`main` restores the state of the process; code that owns the process is in ``__main__``.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boxscore._utils.given_paths import remember_secrets
from boxscore._utils.memory import OUT_OF_MEMORY, is_out_of_memory, require_room
from boxscore._utils.progress import named_stages
from boxscore._utils.records import NamedTuple
from boxscore._version import __version__
from boxscore.cli.arguments import EVERYWHERE, Option, declared, errors_as_typed, given, look_for_packages
from boxscore.cli.commands import BY_GROUP, ENTRIES
from boxscore.cli.other_names import SYNONYMS, hints_for, words_of_synonym
from boxscore.cli.overwriting import inputs_protected
from boxscore.cli.parser import ArgumentParser, add_options, documentation
from boxscore.cli.sockets import extension
from boxscore.cli.streams import Settings, say, show, using
from boxscore.errors import (
    BoxscoreError,
    BoxscoreWarning,
    InputError,
    VerificationError,
    is_refused,
    shortened,
    with_severity,
)

__all__ = ["COMMANDS", "GROUPS", "Command", "command_parser", "load_command", "main"]

GROUPS = {group: tuple(entries) for group, entries in BY_GROUP.items()}
"""Names of subcommands by task."""

COMMANDS = {name: entry.summary for name, entry in ENTRIES.items()}
"""Summaries of subcommands by name, in the order of the help."""

LIBRARIES = 512 << 20
"""Address space in bytes, mostly unused, without which pandas, pyarrow and matplotlib crash."""


class Command(NamedTuple):
    """The description, options and function of a subcommand.

    ``without`` explains why some options of other subcommands are not available.
    """

    description: str
    options: Sequence[Option]
    run: Callable[[argparse.Namespace], int]
    without: Mapping[str, str] = {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line inside a process that may continue afterwards.

    Large files are read by forked processes; use ``--workers 1`` if the process has threads or devices.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments without the program name; by default those of ``sys.argv``.

    Returns
    -------
    int
        The exit status.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    remember_secrets(words)
    if words and words[0] not in COMMANDS:
        words = words_of_synonym(words)
    try:
        if not words or words[0] not in COMMANDS:
            try:
                return _without_command(words)
            except InputError as error:
                _say(f"error: {error}")
                return 2
        name, *rest = words
        command = load_command(name, rest)
        parsed = command_parser(name, command).parse_args(rest)
    except SystemExit as stop:  # raised by argparse after printing help or a usage error
        return stop.code if isinstance(stop.code, int) else 2
    # Libraries for plots and tables crash if there is little address space.
    with_tables = ENTRIES[name].tables or any(option.needs for option in given(command.options, parsed))
    return _run(name, command, parsed, room=LIBRARIES if with_tables else 0)


def _without_command(words: Sequence[str]) -> int:
    """Handle calls without a command: help, version, completion, or an error of two lines."""
    # Do not import commands, to print the help quickly.
    first = words[0] if words else "--help"
    if first in ("-h", "--help"):
        from boxscore.cli.help import program_help

        show(program_help(GROUPS, COMMANDS).removesuffix("\n"))
        return 0
    if first in ("-V", "--version"):
        show(f"boxscore {__version__}")
        return 0
    if first == "--print-completion":
        try:
            shell = words[1] if len(words) > 1 else ""
            show(extension("completion_script")(shell, _options_of_commands(), _synonyms_by_command()))
        except BoxscoreError as error:
            _say(f"error: {error}")
            return 2
        return 0
    from boxscore._utils.checks import nearest

    # Suggest the command that was probably meant.
    more = "boxscore --help lists the commands."
    if first.startswith("-"):
        near = nearest(first, ["--help", "--version", "--print-completion"]).replace("'", "")
        _say(shortened(f"error: unknown option {first}{'; ' + near if near else '.'}"))
    elif hints := hints_for(words):
        _say(shortened(f"error: unknown command {first!r}."))
        for hint in hints:
            say(hint, quiet=False)
        return 2
    else:
        near = nearest(first, list(COMMANDS)) or nearest(first, list(SYNONYMS))
        _say(shortened(f"error: unknown command {first!r}{'; ' + near if near else '.'}"))
        if not near and Path(first).exists():
            more = "To score detections: boxscore evaluate GT DT; boxscore --help lists all commands."
    say(more, quiet=False)
    return 2


def _options_of_commands() -> dict[str, tuple[Option, ...]]:
    return {name: (*load_command(name).options, *EVERYWHERE) for name in COMMANDS}


def _synonyms_by_command() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for synonym, call in SYNONYMS.items():
        command = call.split()[0]
        if command in COMMANDS and synonym not in COMMANDS:
            names.setdefault(command, []).append(synonym)
    return names


def load_command(name: str, words: Sequence[str] | None = None) -> Command:
    """Import a subcommand; given the words of a call, only load the extension options that occur in it."""
    path, _, table = ENTRIES[name].module.partition(":")
    module = importlib.import_module(path)
    if table:
        row = getattr(module, table)[name]
        return Command(row.help(name), declared(row.arguments, words), row.run)
    without = getattr(module, "WITHOUT", {})
    return Command(documentation(module), declared(module.OPTIONS, words), module.run, without)


def command_parser(name: str, command: Command) -> ArgumentParser:
    """Build the parser of a subcommand."""
    parser = ArgumentParser(name, command.description, command.without)
    add_options(parser, [*command.options, *EVERYWHERE])
    parser.take_paths()
    return parser


def _run(name: str, command: Command, arguments: argparse.Namespace, *, room: int) -> int:
    # Always show warnings of boxscore, one per line.
    with warnings.catch_warnings():
        warnings.simplefilter("always", BoxscoreWarning)
        own_options = functools.partial(_with_own_options, name=name, arguments=arguments)
        warnings.showwarning = _make_showwarning(arguments, own_options)
        # Only handle the path of --output here; other paths are handled by the command.
        file = getattr(getattr(arguments, "output", None), "path", None)
        columns = getattr(arguments, "show", None) or ()
        chosen = Settings(arguments.wide, arguments.quiet, file, columns, own_options)
        # Enter all contexts of the command.
        try:
            if room:
                require_room(room)
            stages = named_stages(lambda text: say(text, name="boxscore"))
            as_typed = errors_as_typed(command.options, arguments)
            with inputs_protected(command.options, arguments), using(chosen), stages, as_typed:
                look_for_packages(command.options, arguments)
                return command.run(arguments)
        # Status 1: the command ran, but a check failed.
        except VerificationError as error:
            _say(str(error))
            return 1
        # Status 2: report an input error in one line; bugs keep their traceback.
        except (BoxscoreError, BoxscoreWarning) as error:
            if is_out_of_memory(error):
                return _out_of_memory(str(error))
            _say(f"error: {_with_own_options(str(error), name, arguments)}")
            return 2
        except (MemoryError, ImportError, OSError, ValueError) as error:
            if is_out_of_memory(error):
                return _out_of_memory(str(error))
            if not isinstance(error, OSError):
                raise
            file_name = f"{error.filename}: " if error.filename else ""
            _say(shortened(f"error: {file_name}{error.strerror or error}."))
            return 2
        except KeyboardInterrupt:
            _say("interrupted")
            return 130


_NAMED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


def _with_own_options(text: str, name: str, arguments: argparse.Namespace) -> str:
    """Return a message, with other advice where it names an option that this command lacks."""
    # Options after "boxscore COMMAND" are those of that command. Those of the arguments are declared: only
    # others need the modules of extensions that declare more.
    known, at = vars(arguments), 0
    while match := _NAMED.search(text, at):
        at = match.end()
        start = max(text.rfind(mark, 0, match.start()) for mark in (". ", "; "))
        sentence = text.rfind(". ", 0, match.start()) + 1
        is_own = match[1].replace("-", "_") in known or match[1] in _names_of_options(name)
        if is_own or start < 0 or "boxscore " in text[sentence : match.start()]:
            continue
        # Drop the advice if the sentence has other advice before it.
        end = text.find(". ", match.end())
        if any(word[1].replace("-", "_") in known for word in _NAMED.finditer(text, sentence, start)):
            text, at = f"{text[:start]}.{'' if end < 0 else text[end + 1 :]}", start
            continue
        # Replace the advice: the sentence, or its last part.
        advice = f"boxscore {name} has no {match[0]}"
        if match[1] in _names_of_options("convert"):
            advice += ", boxscore convert has it: convert the file to COCO first"
        elif match[1] in _names_of_options("evaluate"):
            advice += ", boxscore evaluate has it"
        head = f"{text[: start + 2]}{advice}."
        text, at = head + ("" if end < 0 else text[end + 1 :]), len(head)
    return text


def _names_of_options(name: str) -> set[str]:
    options = (*load_command(name).options, *EVERYWHERE)
    return {flag.lstrip("-") for option in options for flag in option.flags}


def _out_of_memory(reason: str) -> int:
    """Print advice, and return a separate status, because the input may be valid."""
    detail = f" ({reason.splitlines()[0].rstrip('.')})" if reason else ""
    _say(
        f"error: not enough memory{detail}; evaluate fewer images or classes (--images, --classes), or "
        "use --workers 1."
    )
    return OUT_OF_MEMORY


def _say(text: str) -> None:
    """Print a message to stderr, without control characters from names in files."""
    first = text.partition(":")[0]
    color = "red" if first.startswith("error") else "yellow" if first == "warning" else ""
    say(text, name="boxscore", color=color, quiet=first in ("warning", "note"))


def _make_showwarning(
    arguments: argparse.Namespace, own_options: Callable[[str], str]
) -> Callable[..., None]:
    """Return a ``showwarning`` that shows each warning once; with ``--strict`` it raises unless allowed."""
    allowed = getattr(arguments, "allow", ())
    shown: set[str] = set()

    def raise_or_show(warning: Warning | str, category: type[Warning], *rest: Any) -> None:
        if isinstance(warning, BoxscoreWarning) and arguments.strict and warning.code not in allowed:
            _raise_if_refused(warning)
        if str(warning) not in shown:
            shown.add(str(warning))
            _show_warning(warning, category, *rest, own_options=own_options)

    return raise_or_show


def _raise_if_refused(warning: BoxscoreWarning) -> None:
    if is_refused(warning.severity):
        raise warning


def _show_warning(
    warning: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    *_: object,
    own_options: Callable[[str], str],
) -> None:
    if isinstance(warning, BoxscoreWarning):
        _say(with_severity(warning.severity, own_options(str(warning))))
    else:
        for line in warnings.formatwarning(warning, category, filename, lineno).splitlines():
            say(line, quiet=False)
